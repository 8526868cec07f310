"""A molecule that the reader edits, a view that chance makes of it, and how far an encoder has them apart."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import DUSK, GREEN, GREY, INK, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.graphs.drawn import (
    HIGH,
    MOST,
    WIDE,
    Shown,
    all_molecules,
    draw_atoms,
    embedded,
    mutag,
    positions,
    random_views,
    whole,
)

if TYPE_CHECKING:
    from setclr.experiments import Run
    from setclr.graphs.geometric import Batch

VIEWS = {"drop atoms": "drop", "rewire bonds": "rewire", "hide atoms": "mask", "walk": "walk"}
PARK = np.array([-1.05, -0.82])  # where the ring lies when it is on no atom
NEAREST, FURTHEST = 1e-4, 2.0  # distances that the strip shows


class Compared(NamedTuple):
    atom: int  # that the ring lies on; −1: on none
    view: Shown
    far: np.ndarray  # (188,) 1 − cosine of view 2 and each molecule, of its own: of view 1


class molecule_views(Panel):
    """View 1 is a molecule without the atom that the ring lies on; view 2 is what chance makes of it.

    Args:
        run: whose encoder and head compare them; None: one with its first weights.
    """

    size, row_height = (9, 4.1), 4.2
    mosaic, heights, row_mosaic = "one two; strip strip", (3.2, 1), "two; two; two; strip"
    in_sight = 3

    def __init__(self, run: "Run | None" = None, **initial: Any):
        from setclr import experiments, recipes

        run = run or experiments.pretrain(recipes.GraphRecipe("InfoNCE(temperature=0.2)", epochs=0))
        last = len(all_molecules()) - 1
        self.knobs = {
            "view 2": options("chance may", VIEWS),
            "draw": slider("another draw", 1, 1, 12, 1),
            "atom": slider("atom left out", 0, 0, MOST, 1, {0: "none"}),
            "ratio": slider(
                "share changed (kept by a walk)", 0.2, 0.1, 0.6, 0.05, {0.1: "program 0.1", 0.2: "paper 0.2"}
            ),
            "molecule": slider("molecule", 2, 0, last, 1),
        }
        self.run, self.all = run, embedded(run, [mutag().batch(range(last + 1))])
        for number in range(last + 1):
            positions(number)  # so that no event has to wait for them
        super().__init__(**initial)

    def solve(self, values: dict) -> Compared:
        from setclr.seeding import seeded

        number, atom = values["molecule"], chosen_atom(values)
        chance = seeded(number, values["draw"])
        second, (view,) = random_views([number], VIEWS[values["view 2"]], values["ratio"], chance)
        z, own = embedded(self.run, [second, without(number, atom)])
        far = 1 - self.all @ z
        far[number] = 1 - own @ z
        return Compared(atom, view, far.clip(NEAREST))

    def draw(self, page: Page, values: dict, now: Compared) -> None:
        number = values["molecule"]
        title = "● view 1: drag the green ring onto an atom"
        one = page.plane("one", (-WIDE, WIDE), (-HIGH, HIGH), title)
        places = np.concatenate([PARK[None], positions(number)])
        at = places[now.atom + 1]
        ring = one.dots(at, GREEN, size=31, edge=GREEN)
        one.dots(at, WHITE, size=23)
        draw_atoms(one, whole(number, now.atom), 18, letters=True)
        one.text(PARK[0], PARK[1], "no atom", DUSK, "small", "start", right=22)

        def to(x: float, y: float) -> list[int]:
            return [int(np.square(places - (x, y)).sum(1).argmin())]

        ring.handle("ring", at, "atom", to=to, label="the ring")
        two = page.plane("two", (-WIDE, WIDE), (-HIGH, HIGH), "■ view 2: chance")
        draw_atoms(two, now.view, 18, letters=True)

        said = (
            ": ● view 1" if page.row else ", 1 − cosine (smaller is closer): ● view 1, | the other molecules"
        )
        ticks = [10.0**k for k in range(-4, 1)]
        strip = page.plot("strip", (NEAREST, FURTHEST), (-1, 1), xlabel=f"how far from ■{said}", xticks=ticks,
                          frame="bottom", log="x", room=(16, 0, 0, 0))  # fmt: skip
        others = np.delete(now.far, number)
        low, high = (np.stack([others, np.full(len(others), y)], 1) for y in (-0.5, 0.5))
        strip.segments(low, high, GREY, 1.3)
        strip.dots((now.far[number], 0), INK, size=13)

    def say(self, values: dict, now: Compared) -> str:
        number = values["molecule"]
        molecule, far = all_molecules()[number], now.far[number]
        atoms, kept = len(molecule.atoms), len(now.view.kinds)
        kind = "mutagenic" if molecule.mutagenic else "not mutagenic"
        left = "whole" if now.atom < 0 else f"without atom {now.atom + 1}"
        made = {"drop": f"{atoms - kept} of {atoms} atoms are dropped", "rewire": "bonds are rewired",
                "mask": "atoms are hidden", "walk": f"a walk has seen {kept} of {atoms} atoms"}  # fmt: skip
        return (
            f"Molecule {number}, {kind}, {left}. In draw {values['draw']}, by a share of "
            f"{values['ratio']:.2f}, {made[VIEWS[values['view 2']]]}. The encoder finds view 1 at {far:.2g} "
            f"from view 2: place {(now.far < far).sum() + 1} of {len(now.far)}."
        )


def chosen_atom(values: dict) -> int:
    """The atom that the ring lies on, −1: on none. Beyond a molecule's last atom the slider begins again."""
    atoms = len(all_molecules()[values["molecule"]].atoms)
    return (values["atom"] - 1) % atoms if values["atom"] else -1


def without(number: int, atom: int) -> "Batch":
    """A molecule without that atom; −1 leaves none out."""
    from setclr.graphs import keep_nodes

    batch = mutag().batch([number])
    return keep_nodes(batch, batch.x.new_tensor(range(len(batch.x))) != atom)
