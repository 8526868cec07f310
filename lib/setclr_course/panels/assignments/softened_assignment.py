"""The best matching made soft: all N! matchings together, or every row by itself (QARe, eq. 4 and 13)."""

from functools import cache
from math import lgamma, log

import numpy as np

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.palette import DUSK
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.assignments.things import (
    COLOURS,
    WAYS,
    Solved,
    distances,
    draw_shares,
    random_things,
    soft_losses,
    softly,
)

LARGEST = 6
LOWEST, HIGHEST = 0.005, 50  # temperatures
CURVE = np.logspace(np.log10(LOWEST), np.log10(HIGHEST), 81)
THINGS = random_things(948, LARGEST, spread=0.9)  # no best matching of the first N is the true one
COST = distances(*THINGS)


@cache
def curve(way: str, n: int) -> np.ndarray:
    """(81,): the loss at CURVE."""
    return soft_losses(COST[:n, :n], CURVE, way)


class softened_assignment(Panel):
    """A few things matched softly, one to one and every row alone, with both losses over the temperature."""

    size, mosaic, widths = (9, 4.6), "one-to-one loss; batch-hard loss", (1, 1.9)
    row_mosaic, row_height = "one-to-one batch-hard; loss loss", 4.4
    knobs = {
        "temperature": log_slider(
            "temperature τ", 0.05, LOWEST, HIGHEST, 0.1, {0.05: "InfoNCE .05", 0.5: ".5", 5: "5"}
        ),
        "N": slider("things N", 5, 2, LARGEST, 1),
    }

    def solve(self, values: dict) -> Solved:
        return softly(COST[: values["N"], : values["N"]], values["temperature"])

    def draw(self, page: Page, values: dict, now: Solved) -> None:
        n, marks = values["N"], (0.01, 0.1, 1, 10, 100)
        for way, shares in now.shares.items():
            draw_shares(page, way, shares, [str(i + 1) for i in range(n)])
        plot = page.plot("loss", (0.004, 62), (0.001, 200), "loss per thing", "temperature τ",
                         xticks=marks[:4], yticks=marks, log="x y")  # fmt: skip
        slopes = {"one-to-one": lgamma(n + 1) / n, "batch-hard": log(n)}
        ends = np.array([LOWEST, HIGHEST])
        for way, colour in COLOURS.items():
            plot.line(ends, slopes[way] * ends, colour, 1.6, "dot")
            plot.line(CURVE, curve(way, n), colour)
            plot.dots((values["temperature"], now.loss[way]), colour, size=13)
        plot.key(*((f"{WAYS[way]}: {now.loss[way]:.3g}", COLOURS[way]) for way in reversed(WAYS)))
        plot.note(f"dotted: τ log N = {slopes['batch-hard']:.2f} τ", "bottom right", DUSK, line=1)
        plot.note(f"τ log(N!) / N = {slopes['one-to-one']:.2f} τ", "bottom right", DUSK)

    def say(self, values: dict, now: Solved) -> str:
        n = values["N"]
        one, rows = now.loss.values()
        A, B = now.shares.values()
        columns = B.sum(0)
        return (
            f"{n} things at temperature {values['temperature']:.3g}. One-to-one: loss {one:.3f}, "
            f"{A.trace() / n:.0%} of the weight on true pairs, every column sums to 1. Each row alone: loss "
            f"{rows:.3f}, {B.trace() / n:.0%} on true pairs, columns sum to between {columns.min():.2f} and "
            f"{columns.max():.2f}."
        )
