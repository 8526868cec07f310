"""Rows of runs, one of which, with the green ring, all others are compared with."""

from collections.abc import Callable, Sequence

import numpy as np

from setclr_course.kit.palette import GREEN
from setclr_course.kit.scene import Page, Piece, Plot
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import colour_of
from setclr_course.panels.trained.rulers import ring, round_ones

Limits = tuple[float, float]


def rows_plot(page: Page, name: str, rows: Sequence[str], x: Limits, title: str, xlabel: str) -> Plot:
    """A plot with a row for each name, and round numbers below."""
    return page.plot(name, x, (len(rows) - 0.4, -0.7), title, xlabel, xticks=round_ones(x),
                     yticks=dict(enumerate(rows)), frame="bottom")  # fmt: skip


def ringed_rows(
    plot: Plot, names: Sequence[str], found: Sequence[np.ndarray], base: int, control: str,
    to: Callable[[float], float],
) -> list[tuple[Piece, Piece]]:  # fmt: skip
    """A dot for each seed, and a ring at the mean of row `base`, which is dragged from row to row: `to` gives
    the control's value of a row. Returns each row's dots and mean, for links."""
    last, own = len(names) - 1, found[base]
    at = float(own.mean() if len(own) else np.mean(plot.about["x"]))
    if len(own):
        plot.line([at, at], [-0.5, last + 0.5], GREEN, 1.5, "dash")
    grip = ring(plot, (at, base), GREEN, 19)
    grip.handle(control, (at, base), along="y", to=lambda x, y: [to(y)], ends=(0, last), label="the row")
    return seed_rows(plot, found, [colour_of(name) for name in names])
