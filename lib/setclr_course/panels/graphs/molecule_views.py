"""A molecule that the reader edits, a view that chance makes of it, and how far an encoder has them apart."""

from typing import Any, NamedTuple

import numpy as np
import torch

from setclr.experiments import Run, pretrain
from setclr.graphs import keep_nodes
from setclr.recipes import GraphRecipe
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import DUSK, GREEN, GREY, INK, WHITE
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.panels.graphs import drawn
from setclr_course.panels.graphs.drawn import HIGH, WIDE, Shown, draw_atoms

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

    def __init__(self, run: Run | None = None, **initial: Any):
        run = run or pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=0))
        last, printed = len(drawn.MUTAG) - 1, {0.2: "paper"}  # GraphCL's program has 0.1
        self.knobs = {
            "view 2": options("chance may", VIEWS),
            "draw": slider("another draw", 1, 1, 12, 1),
            "atom": slider("atom left out", 0, 0, 28, 1, {0: "none"}),  # as many as the largest has
            "ratio": slider("share changed (kept by a walk)", 0.2, 0.1, 0.6, 0.05, printed),
            "molecule": slider("molecule", 2, 0, last, 1),
        }
        self.run, self.all = run, drawn.embedded(run, [drawn.MUTAG.batch(range(last + 1))])
        super().__init__(**initial)

    def solve(self, values: dict) -> Compared:
        number, kind = values["molecule"], VIEWS[values["view 2"]]
        molecule = drawn.MUTAG.batch([number])
        atom = min(values["atom"], len(molecule.x)) - 1
        first = keep_nodes(molecule, torch.arange(len(molecule.x)) != atom)
        second, (view,) = drawn.random_views((number,), kind, values["ratio"], number, values["draw"])
        z, own = drawn.embedded(self.run, [second, first])
        far = 1 - self.all @ z
        far[number] = 1 - own @ z
        return Compared(atom, view, far.clip(NEAREST))

    def draw(self, page: Page, values: dict, now: Compared) -> None:
        number = values["molecule"]
        left = "whole" if now.atom < 0 else f"without atom {now.atom + 1}"
        one = page.plane("one", (-WIDE, WIDE), (-HIGH, HIGH), f"● view 1: {left}")
        places = np.concatenate([PARK[None], drawn.positions()[number]])
        at = places[now.atom + 1]
        ring = one.dots(at, GREEN, size=31, edge=GREEN)
        one.dots(at, WHITE, size=23)
        draw_atoms(one, drawn.whole(number, now.atom), 18, letters=True)
        one.text(PARK[0], PARK[1], "no atom", DUSK, "small", "start", right=22)
        ring.handle("ring", at, "atom", to=nearest_to(places, now.atom + 1), label="the ring")
        kept = f"{len(now.view.kinds)} of {len(places) - 1} atoms"
        two = page.plane("two", (-WIDE, WIDE), (-HIGH, HIGH), f"■ view 2: {kept}")
        draw_atoms(two, now.view, 18, letters=True)
        below, ticks = "1 − cosine from ■ (smaller is closer): ● view 1, | others", (1e-4, 1e-3, 0.01, 0.1, 1)
        others = np.delete(now.far, number)
        title = "" if page.row else f"nearer to ■ than its own ●: {(others < now.far[number]).sum()} others"
        strip = page.plot("strip", (NEAREST, FURTHEST), (-1, 1), title, below, xticks=ticks, frame="bottom",
                          log="x", room=(16, 0, 0, 0))  # fmt: skip
        strip.segments([(far, -0.5) for far in others], [(far, 0.5) for far in others], GREY, 1.3)
        strip.dots((now.far[number], 0), INK, size=13)

    def say(self, values: dict, now: Compared) -> str:
        molecule, far = drawn.MOLECULES[values["molecule"]], now.far[values["molecule"]]
        kind = "mutagenic" if drawn.MUTAG.labels[values["molecule"]] else "not mutagenic"
        left = "whole" if now.atom < 0 else f"without atom {now.atom + 1}"
        return (
            f"Molecule {values['molecule']}, {kind}, {left}. Chance may {values['view 2']}, by a share of "
            f"{values['ratio']:.2f}: in draw {values['draw']} view 2 has {len(now.view.kinds)} of "
            f"{len(molecule.atoms)} atoms. The encoder finds view 1 at {far:.2g} from it: place "
            f"{(now.far < far).sum() + 1} of {len(now.far)}."
        )
