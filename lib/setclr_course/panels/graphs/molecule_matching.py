"""Six molecules and a view of each: whom each loss matches them with, before and after training."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from setclr.experiments import Run, pretrain
from setclr.recipes import GraphRecipe
from setclr_course.kit import losses
from setclr_course.kit.inner import assignment
from setclr_course.kit.palette import GREEN, VERMILION
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.panels.graphs import drawn
from setclr_course.panels.graphs.drawn import HIGH, WIDE, Shown, draw_atoms

N = 6
LOSSES: dict[str, tuple] = {  # in numpy, with their parameters
    "InfoNCE": (losses.info_nce, 0.2),
    "SparseCLR": (losses.sparse_clr, 1.0),
    "GroCo": (losses.groco, 1.0, 10),
    "IOT": (losses.info_nce, 0.2),  # each row's total is all that is asked
    "MMCL": (losses.mmcl, 1.0),
}
PUSHING = ("SparseCLR", "MMCL")  # their matrices say which negatives are pushed; the true pairs are empty


class Matched(NamedTuple):
    views: list[Shown]  # of each of the six molecules
    shares: np.ndarray  # (6, 6): what each ● gives to each ■, of what it gives to them all


class molecule_matching(Panel):
    """Rows: six molecules as they are. Columns: a random view of each. Cells: the shares that a loss gives.

    Args:
        runs: encoders and heads by what the reader shall call them; by default first weights and two epochs.
    """

    size, row_height = (9, 5), 3.7
    mosaic, widths, row_mosaic = "table anchor; table view", (1.5, 1), "table"
    in_sight = 2

    def __init__(self, runs: Mapping[str, Run] | None = None, **initial: Any):
        self.runs = runs or {
            name: pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=epochs))
            for name, epochs in (("first weights", 0), ("two epochs", 2))
        }
        every = drawn.MUTAG.batch(range(len(drawn.MUTAG)))
        self.whole = {name: drawn.embedded(run, [every]) for name, run in self.runs.items()}
        self.knobs = {
            "loss": options("loss", ("assignment", *LOSSES), "InfoNCE"),
            "run": options("encoder", self.runs),
            "anchor": slider("anchor ●", 5, 1, N, 1),
            "draw": slider("another draw of ■", 1, 1, 12, 1),
            "six": slider("another six", 4, 0, len(drawn.MUTAG) // N - 1, 1),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Matched:
        run, numbers = self.runs[values["run"]], range(N * values["six"], N * values["six"] + N)
        second, views = drawn.random_views(numbers, "any", run.recipe.ratio, values["six"], values["draw"])
        z = np.concatenate([self.whole[values["run"]][numbers], drawn.embedded(run, [second])])
        S = z @ z.T
        if values["loss"] == "assignment":
            return Matched(views, np.eye(N)[assignment(-S[:N, N:])])
        loss, *parameters = LOSSES[values["loss"]]
        given = loss(S, losses.partners(S), *parameters).shares[:N, N:]
        if values["loss"] == "GroCo":  # its network, where the positive comes last, would favour it in a tie
            given = evened(given, S[:N, N:].round(9))
        return Matched(views, given / given.sum(1, keepdims=True).clip(1e-12))

    def draw(self, page: Page, values: dict, now: Matched) -> None:
        row, molecules = values["anchor"] - 1, [drawn.whole(N * values["six"] + i) for i in range(N)]
        limits = (-1.6, N - 0.5), (N - 0.5, -1.6)
        plane = page.plane("table", *limits, "rows ● as it is, columns ■ a random view")
        cells = plane.cells(now.shares, words=".2f")
        plane.frames([(i, i) for i in range(N)], VERMILION, 2)
        frame = plane.boxes((-0.5, row - 0.5), (N - 0.5, row + 0.5), edge=GREEN, width=4)
        frame.handle("anchor", (-1.08, row), along="y", to=lambda x, y: [round(y) + 1], label="the anchor")
        middles = np.array([(-1.08, i) for i in range(N)] + [(i, -1.08) for i in range(N)])
        small = drawn.together([*molecules, *now.views], middles, (0.42, -0.42))
        draw_atoms(plane, small, 4 if page.row else 5.5)
        for name, title, one in (("anchor", "anchor ●", molecules), ("view", "its view ■", now.views)):
            field = page.plane(name, (-WIDE, WIDE), (-HIGH, HIGH), f"{title} {row + 1}")
            draw_atoms(field, one[row], 16, letters=True)
        for i, j in np.ndindex(N, N):
            said = f"● {i + 1} gives ■ {j + 1} a share of {now.shares[i, j]:.2f}"
            page.link(said, cells[i, j], lit=[cells[j, i]], anchor=i + 1)

    def say(self, values: dict, now: Matched) -> str:
        row, shares = values["anchor"] - 1, now.shares
        molecules = f"molecules {N * values['six']} to {N * values['six'] + N - 1}, draw {values['draw']}"
        said = f"{values['loss']}, {values['run']}, {molecules}: "
        if values["loss"] in PUSHING:
            mine = f"anchor {row + 1} pushes {(shares[row] > 0).sum()} of {N - 1} views"
            return f"{said}{mine}, all anchors {(shares > 0).sum()} of {N * (N - 1)}."
        first, right = int(shares[row].argmax()), int((shares.argmax(1) == np.arange(N)).sum())
        mostly = "its own view" if first == row else f"view {first + 1}, another molecule's"
        return (
            f"{said}anchor {row + 1} gives {shares[row, first]:.0%} to {mostly}. {right} of {N} anchors give "
            f"most to their own view, on average {shares.diagonal().mean():.0%}."
        )


def evened(shares: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Shares (n, m) of which views that are as near to an anchor get the same, their mean."""
    tied = similarity[:, :, None] == similarity[:, None]
    return (tied * shares[:, None]).sum(2) / tied.sum(2)
