"""Axes of accuracies, and the ring round what is chosen on them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.palette import WHITE
from setclr_course.kit.scene import Mark, Page, Plot

STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def holding(numbers: ArrayLike, room: float = 0.06) -> tuple[float, float]:
    """Limits that hold all these numbers, with a share of their span free on both sides."""
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    free = room * max(high - low, 1)
    return float(low - free), float(high + free)


def round_ones(limits: tuple[float, float], most: int = 8) -> list[float]:
    """Round numbers within the limits, at most so many: ticks."""
    low, high = limits
    step = next((step for step in STEPS if high - low <= most * step), STEPS[-1])
    return (step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)).tolist()


def rows_plot(page: Page, name: str, rows: Iterable[str], x: tuple[float, float], title: str,
              xlabel: str) -> Plot:  # fmt: skip
    """A plot with a row for each of these names, the first on top, and round numbers below."""
    words = dict(enumerate(rows))
    return page.plot(name, x, (len(words) - 0.3, -0.7), title, xlabel, xticks=round_ones(x), yticks=words,
                     frame="bottom", room=(8, 0, 0, 0))  # fmt: skip


def ring(plot: Plot, point: ArrayLike, colour: str, size: float = 15) -> Mark:
    """A thick ring; what it is round is drawn after it."""
    plot.dots(point, colour, size=size, edge=colour)
    return plot.dots(point, WHITE, size=size - 5)
