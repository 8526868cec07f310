"""Six molecules and a view of each: whom each loss matches them with, before and after training."""

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from setclr_course.kit import losses
from setclr_course.kit.controls import options, slider
from setclr_course.kit.inner import assignment
from setclr_course.kit.palette import GREEN, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.graphs.drawn import (
    HIGH,
    WIDE,
    Shown,
    all_molecules,
    draw_atoms,
    embedded,
    mutag,
    random_views,
    side_by_side,
    whole,
)

if TYPE_CHECKING:
    from setclr.experiments import Run
    from setclr.graphs.geometric import Batch

N, DRAWS = 6, 12


def one_to_one(S: np.ndarray) -> np.ndarray:
    shares = np.zeros_like(S)
    shares[np.arange(N), N + assignment(-S[:N, N:])] = 1
    return shares


LOSSES = {  # what each gives, of the cosines (12, 12) of the molecules and their views
    "assignment": one_to_one,
    "InfoNCE": lambda S: losses.info_nce(S, 0.2).shares,
    "SparseCLR": lambda S: losses.sparse_clr(S, 1.0).shares,
    "GroCo": lambda S: losses.groco(S, 1.0, 10).shares,
    "IOT": lambda S: losses.info_nce(S, 0.2).shares,  # each row's total is all that is asked
    "MMCL": lambda S: losses.mmcl(S, 1.0).shares,
}
PUSHING = ("SparseCLR", "MMCL")  # their matrices say which negatives are pushed; the true pairs are empty


class molecule_matching(Panel):
    """Rows: six molecules as they are. Columns: a random view of each. Cells: the shares that a loss gives.

    Args:
        runs: encoders and heads by what the reader shall call them; by default first weights and two epochs.
    """

    size, row_height = (9, 5), 3.7
    mosaic, widths, row_mosaic = "table anchor; table view", (1.5, 1), "table"
    in_sight = 2

    def __init__(self, runs: "Mapping[str, Run] | None" = None, **initial: Any):
        from setclr import experiments, recipes

        infonce = "InfoNCE(temperature=0.2)"
        runs = runs or {
            name: experiments.pretrain(recipes.GraphRecipe(infonce, epochs=epochs))
            for name, epochs in (("first weights", 0), ("two epochs", 2))
        }
        self.sixes = len(all_molecules()) // N
        seen = {run.recipe.ratio: every_view(self.sixes, run.recipe.ratio) for run in runs.values()}
        self.views = next(iter(seen.values()))[1]
        self.molecules = [[whole(N * six + i) for i in range(N)] for six in range(self.sixes)]
        plain = mutag().batch(range(N * self.sixes))
        self.z = {
            name: (
                embedded(run, [plain]).reshape(self.sixes, N, -1),
                embedded(run, seen[run.recipe.ratio][0]).reshape(self.sixes, DRAWS, N, -1),
            )
            for name, run in runs.items()
        }
        self.knobs = {
            "loss": options("loss", LOSSES, "InfoNCE"),
            "run": options("encoder", runs),
            "anchor": slider("anchor ●", 5, 1, N, 1),
            "draw": slider("another draw of ■", 1, 1, DRAWS, 1),
            "six": slider("another six", 4, 0, self.sixes - 1, 1),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> np.ndarray:
        """(6, 6): what each ● gives to each ■, as shares of what it gives to them all."""
        one, views = self.z[values["run"]]
        z = np.concatenate([one[values["six"]], views[values["six"], values["draw"] - 1]])
        given = LOSSES[values["loss"]](z @ z.T)[:N, N:]
        return given / given.sum(1, keepdims=True).clip(1e-12)

    def draw(self, page: Page, values: dict, now: np.ndarray) -> None:
        row, six = values["anchor"] - 1, values["six"]
        views = self.views[six, values["draw"]]
        plane = page.plane(
            "table", (-1.6, N - 0.5), (N - 0.5, -1.6), "rows ● as it is, columns ■ a random view"
        )
        cells = plane.cells(now, words=".2f")
        plane.frames([(i, i) for i in range(N)], VERMILION, 2)
        frame = plane.boxes((-0.5, row - 0.5), (N - 0.5, row + 0.5), edge=GREEN, width=4)
        frame.handle("anchor", (-1.08, row), along="y", to=lambda x, y: [round(y) + 1], label="the anchor")
        beside = np.array([(-1.08, i) for i in range(N)])
        for shown, middles in ((self.molecules[six], beside), (views, beside[:, ::-1])):
            draw_atoms(plane, side_by_side(shown, middles, (0.42, -0.42)), 4 if page.row else 5.5)
        titles = f"anchor ● {row + 1}", f"its view ■ {row + 1}"
        for name, title, one in zip(("anchor", "view"), titles, (self.molecules[six][row], views[row])):
            draw_atoms(page.plane(name, (-WIDE, WIDE), (-HIGH, HIGH), title), one, 16, letters=True)
        for i, j in np.ndindex(N, N):
            said = f"● {i + 1} gives ■ {j + 1} a share of {now[i, j]:.2f}"
            page.link(said, cells[i, j], lit=[cells[j, i]], anchor=i + 1)

    def say(self, values: dict, now: np.ndarray) -> str:
        row = values["anchor"] - 1
        molecules = f"molecules {N * values['six']} to {N * values['six'] + N - 1}, draw {values['draw']}"
        said = f"{values['loss']}, {values['run']}, {molecules}: "
        if values["loss"] in PUSHING:
            mine = f"anchor {row + 1} pushes {(now[row] > 0).sum()} of {N - 1} views"
            return f"{said}{mine}, all anchors {(now > 0).sum()} of {N * (N - 1)}."
        first, right = int(now[row].argmax()), int((now.argmax(1) == np.arange(N)).sum())
        mostly = "its own view" if first == row else f"view {first + 1}, another molecule's"
        return (
            f"{said}anchor {row + 1} gives {now[row, first]:.0%} to {mostly}. {right} of {N} anchors give "
            f"most to their own view, on average {now.diagonal().mean():.0%}."
        )


def every_view(sixes: int, ratio: float) -> "tuple[list[Batch], dict[tuple[int, int], list[Shown]]]":
    """All views that the sliders can ask for, as batches for an encoder and as they are drawn."""
    from setclr.seeding import seeded

    batches, shown = [], {}
    for six, draw in product(range(sixes), range(1, DRAWS + 1)):
        numbers = range(N * six, N * six + N)
        batch, shown[six, draw] = random_views(numbers, "any", ratio, seeded(six, draw))
        batches.append(batch)
    return batches, shown
