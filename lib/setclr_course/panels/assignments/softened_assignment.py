"""The best matching made soft: all N! matchings together, or every row by itself (QARe, eq. 4 and 13)."""

from functools import cache
from math import lgamma, log
from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.palette import BLUE, DUSK, GREEN, PINE, SKY, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.assignments.things import (
    WAYS,
    distances,
    draw_numbered,
    heading,
    random_things,
    soft_losses,
    soft_matching,
)

LARGEST = 6
LOWEST, HIGHEST = 0.005, 50  # temperatures
CURVE = np.logspace(np.log10(LOWEST), np.log10(HIGHEST), 81)
THINGS = random_things(948, LARGEST, spread=0.9)  # no best matching of the first N is the true one
COST = distances(*THINGS)


class Kind(NamedTuple):
    """How one of the two ways to match is shown."""

    table: str
    sign: str
    colour: str
    words: str  # their colour


KINDS = {
    "one-to-one": Kind("mean of all N!", "◆", BLUE, BLUE),
    "batch-hard": Kind("softmax of rows", "▲", GREEN, PINE),
}


class Softened(NamedTuple):
    """For each way."""

    matrix: dict[str, np.ndarray]  # (N, N), rows sum to 1
    loss: dict[str, float]  # per thing
    curves: dict[str, np.ndarray]  # (81,) losses at CURVE


@cache
def curve(way: str, n: int) -> np.ndarray:
    return soft_losses(COST[:n, :n], CURVE, way)


class softened_assignment(Panel):
    """A few things matched softly, one to one and every row alone, with both losses over the temperature."""

    size, row_height = (9, 4.8), 5.4
    mosaic = "one-to-one one-to-one-table loss; batch-hard batch-hard-table loss"
    widths = (1.55, 1, 1.75)
    row_mosaic = "one-to-one batch-hard; " * 2 + "one-to-one-table batch-hard-table; " * 3
    row_mosaic += "loss loss; loss loss; loss loss"
    knobs = {
        "temperature": log_slider(
            "temperature τ", 0.05, LOWEST, HIGHEST, 0.1, {0.05: "InfoNCE .05", 0.5: ".5", 5: "5"}
        ),
        "N": slider("things N", 5, 2, LARGEST, 1),
    }

    def solve(self, values: dict) -> Softened:
        temperature, n = values["temperature"], values["N"]
        cost = COST[:n, :n]
        return Softened(
            {way: soft_matching(cost, temperature, way) for way in WAYS},
            {way: soft_losses(cost, temperature, way).item() for way in WAYS},
            {way: curve(way, n) for way in WAYS},
        )

    def draw(self, page: Page, values: dict, now: Softened) -> None:
        for way in WAYS:
            self.draw_things(page, way, now.matrix[way])
            self.draw_table(page, way, now.matrix[way])
        self.draw_losses(page, values["temperature"], values["N"], now)

    def draw_things(self, page: Page, way: str, A: np.ndarray) -> None:
        """The things with a line for every pair, as thick as its weight."""
        below = "thick: much weight · blue: true pair" if way == "batch-hard" and not page.row else ""
        plane = page.plane(way, (-1.66, 1.66), (-1.06, 1.06), xlabel=below, room=(0, 20, 0, 0))
        heading(plane, WAYS[way], KINDS[way].words)
        one, two = THINGS[:, : len(A)]
        i, j = np.indices(A.shape).reshape(2, -1)
        colours = [SKY if true else VERMILION for true in i == j]
        plane.segments(one[i], two[j], colours, (3.5 if page.row else 5.5) * A.ravel(), opacity=0.8)
        draw_numbered(plane, THINGS[:, : len(A)])

    def draw_table(self, page: Page, way: str, A: np.ndarray) -> None:
        """The weights as a table with the sums of its columns."""
        n, title = len(A), "" if page.row else KINDS[way].table
        beside = {} if page.row else {n: "sum"}
        table = page.plane(f"{way}-table", (-0.5, LARGEST - 0.5), (LARGEST + 0.5, -0.5), title, yticks=beside)
        table.cells(A)
        table.frames([(i, i) for i in range(n)], width=1.6)
        table.text(np.arange(n), n, [f"{total:.1f}" for total in A.sum(0)], size="small")

    def draw_losses(self, page: Page, temperature: float, n: int, now: Softened) -> None:
        marks = 0.01, 0.1, 1, 10, 100
        plot = page.plot("loss", (0.004, 62), (0.01, 200), "loss per thing", "temperature τ",
                         xticks=marks[:4], yticks=marks, log="x y")  # fmt: skip
        slopes = {"one-to-one": lgamma(n + 1) / n, "batch-hard": log(n)}
        ends = np.array([LOWEST, HIGHEST])
        for way, kind in KINDS.items():
            plot.line(ends, slopes[way] * ends, kind.colour, 1.6, "dot")
            plot.line(CURVE, now.curves[way], kind.colour)
            plot.dots((temperature, now.loss[way]), kind.colour, kind.sign, 13)
        words = [(f"{kind.sign} {WAYS[way]}: {now.loss[way]:.3g}", kind.words) for way, kind in KINDS.items()]
        plot.key(*words[::-1])
        if not page.row:
            plot.note(f"dotted: τ log N = {slopes['batch-hard']:.2f} τ", "bottom right", DUSK, line=1)
            plot.note(f"τ log(N!) / N = {slopes['one-to-one']:.2f} τ", "bottom right", DUSK)

    def say(self, values: dict, now: Softened) -> str:
        n = values["N"]
        one, rows = now.loss.values()
        A, B = now.matrix.values()
        columns = B.sum(0)
        return (
            f"{n} things at temperature {values['temperature']:.3g}. One-to-one: loss {one:.3f}, "
            f"{A.trace() / n:.0%} of the weight on true pairs, every column sums to 1. Each row alone: loss "
            f"{rows:.3f}, {B.trace() / n:.0%} on true pairs, columns sum to between {columns.min():.2f} and "
            f"{columns.max():.2f}."
        )
