"""A molecule that the reader edits, a view that chance makes of it, and how far an encoder has them apart."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr.seeding import seeded
from setclr_course.kit.palette import GREEN, GREY, INK
from setclr_course.panels.graphs.drawn import MOST, PALE, all_molecules, draw_atoms, positions, seen_in
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

if TYPE_CHECKING:
    from setclr.experiments import Run

VIEWS = {"drop atoms": "drop", "rewire bonds": "rewire", "hide atoms": "mask", "walk": "walk"}
PARK = np.array([-1.05, -0.82])  # where the ring lies when it is on no atom
NEAREST, FURTHEST = 1e-4, 2.0  # distances that the strip shows


def molecule_views(run: "Run | None" = None, **initial) -> Panel:
    """View 1 is a molecule without the atom that the ring lies on; view 2 is what chance makes of it.

    Args:
        run: whose encoder and head compare them; None: one with its first weights.
    """
    from setclr import experiments, recipes

    run = run or experiments.pretrain(recipes.GraphRecipe("InfoNCE(temperature=0.2)", epochs=0))
    seen = Seen(run)
    last = len(all_molecules()) - 1
    controls = {
        "view 2": options("chance may", VIEWS),
        "draw": slider("another draw", 1, 1, 12, 1),
        "atom": slider("atom left out", 0, 0, MOST, 1, {0: "none"}),
        "ratio": slider(
            "share changed (kept by a walk)", 0.2, 0.1, 0.6, 0.05, {0.1: "program 0.1", 0.2: "paper 0.2"}
        ),
        "molecule": slider("molecule", 2, 0, last, 1),
    }
    return Panel(lambda figure, compact: build(figure, compact, seen), controls, (9, 4.1), initial, 4.6, 3)


class Seen:
    """What an encoder makes of all molecules and of views of one."""

    def __init__(self, run: "Run"):
        from setclr import graphs

        self.run, self.graphs = run, graphs.load_graphs("mutag")
        self.all = self._embed(self.graphs.batch(range(len(self.graphs))))

    @torch.no_grad()
    def _embed(self, batch) -> Tensor:
        return normalize(self.run.head(self.run.encoder(batch)).double(), dim=1)

    def views(self, values: dict):
        """The molecule without the atom, and its random view; and these with the numbers of atoms as x."""
        from setclr import graphs

        number = values["molecule"]
        batch = self.graphs.batch([number])
        numbered = batch.clone()
        numbered.x = torch.arange(len(batch.x), dtype=torch.float64)[:, None]
        name = VIEWS[values["view 2"]]
        view = partial(graphs.graph_view, view=name, ratio=values["ratio"])
        made = [view(one, generator=seeded(number, values["draw"])) for one in (batch, numbered)]
        return without(batch, chosen_atom(values)), made[0], made[1]

    def distances(self, first, second, number: int) -> np.ndarray:
        """1 − cosine of view 2 and each molecule, (188,): of its own, of view 1."""
        others = self.all.clone()
        others[number] = self._embed(first)[0]
        return (1 - others @ self._embed(second)[0]).clamp(min=NEAREST).numpy()


def chosen_atom(values: dict) -> int:
    """The atom that the ring lies on, −1: on none. Beyond a molecule's last atom the slider begins again."""
    return (values["atom"] - 1) % len(positions(values["molecule"])) if values["atom"] else -1


def without(batch, atom: int):
    """The one graph of the batch without that atom; −1 leaves none out."""
    from setclr.graphs import keep_nodes

    if atom < 0:
        return batch
    return keep_nodes(batch, torch.arange(len(batch.x)) != atom)


def build(figure, compact: bool, seen: Seen) -> Drawing:
    grid = figure.add_gridspec(2, 1 if compact else 2, height_ratios=(4, 1))
    left = None if compact else figure.add_subplot(grid[0, 0])
    right, strip = figure.add_subplot(grid[0, -1]), figure.add_subplot(grid[1, :])
    one = Part([], lambda *_: None) if left is None else draw_first(left)
    right.set_title("■ view 2: chance", fontsize=10)
    two, alike = draw_atoms(right), draw_strip(strip, compact)

    def update(values: dict) -> str:
        first, second, numbered = seen.views(values)
        number = values["molecule"]
        atom = chosen_atom(values)
        one.move(number, atom)
        two.move(*seen_in(number, numbered.x, numbered.edge_index))
        far = seen.distances(first, second, number)
        place = int((far < far[number]).sum()) + 1
        alike.move(far, number)
        return sentence(values, number, atom, len(numbered.x), far[number], place)

    handles = {} if left is None else {"ring": ring(left)}
    return Drawing([*one.artists, *two.artists, *alike.artists], update, handles)


def ring(axis) -> Handle:
    """The ring that leaves an atom out; it is put on the nearest atom of the molecule that is drawn."""
    now = {"molecule": 0}

    def at(values: dict) -> np.ndarray:
        now["molecule"] = values["molecule"]
        atom = chosen_atom(values)
        return PARK if atom < 0 else positions(values["molecule"])[atom]

    def to(x: float, y: float) -> list[int]:
        places = np.concatenate([PARK[None], positions(now["molecule"])])
        return [int(np.square(places - (x, y)).sum(1).argmin())]

    return Handle(axis, ("atom",), at, to=to, label="the ring")


def draw_first(axis) -> Part:
    """The molecule, the atom under the ring pale, with its bonds."""
    axis.set_title("● view 1: drag the green ring onto an atom", fontsize=10)
    atoms = draw_atoms(axis)
    axis.text(*PARK + (0.15, 0), "no atom", fontsize=9, va="center", color=GREY)
    round_it = axis.plot(
        [], [], "o", fillstyle="none", color=GREEN, markersize=21, markeredgewidth=3, zorder=5
    )[0]

    def move(number: int, atom: int) -> None:
        molecule = all_molecules()[number]
        gone = (molecule.bonds == atom).any(0)
        colours = [PALE if lost else INK for lost in gone]
        said = ["gone" if i == atom else "" for i in range(len(molecule.atoms))]
        atoms.move(positions(number), molecule.atoms, molecule.bonds, colours, said)
        round_it.set_data(*(PARK if atom < 0 else positions(number)[atom])[:, None])

    return Part([*atoms.artists, round_it], move)


def draw_strip(axis, compact: bool) -> Part:
    """How far each molecule is from view 2, on a line: the others as ticks, view 1 as a disc."""
    axis.set(xscale="log", xlim=(NEAREST, FURTHEST), ylim=(-1, 1), yticks=[])
    said = (
        ": ● view 1" if compact else ", 1 − cosine (smaller is closer): ● view 1, | the other 187 molecules"
    )
    axis.set_xlabel(f"how far from ■{said}", fontsize=9)
    axis.spines["left"].set_visible(False)
    others = axis.plot([], [], "|", color=GREY, markersize=14, markeredgewidth=1)[0]
    own = axis.plot([], [], "o", color=INK, markersize=9)[0]

    def move(far: np.ndarray, number: int) -> None:
        rest = np.delete(far, number)
        others.set_data(rest, np.zeros(len(rest)))
        own.set_data([far[number]], [0])

    return Part([others, own], move)


def sentence(values: dict, number: int, atom: int, kept: int, far: float, place: int) -> str:
    molecule = all_molecules()[number]
    atoms = len(molecule.atoms)
    kind = "mutagenic" if molecule.mutagenic else "not mutagenic"
    made = {"drop": f"{atoms - kept} of {atoms} atoms are dropped", "rewire": "bonds are rewired",
            "mask": "atoms are hidden", "walk": f"a walk has seen {kept} of {atoms} atoms"}  # fmt: skip
    return (
        f"Molecule {number}, {kind}, {'whole' if atom < 0 else f'without atom {atom + 1}'}. In draw "
        f"{values['draw']}, by a share of {values['ratio']:.2f}, {made[VIEWS[values['view 2']]]}. The "
        f"encoder finds view 1 at {far:.2g} from view 2: place {place} of {len(all_molecules())}."
    )
