"""Bars with numbers at their ends; a bar that is longer than its axis becomes an arrow."""

from collections.abc import Sequence

import numpy as np

from setclr_course.kit.palette import DUSK, INK
from setclr_course.kit.scene import Mark, Plot


def long_bars(
    plot: Plot, places: Sequence[float], values: np.ndarray, colours: Sequence[str], low: float, high: float
) -> Mark:
    """Bars at places (n,) to values (n,), and the values at their ends. Those beyond `low` or `high` end
    there, with the head of an arrow."""
    ends = values.clip(low, high)
    tips = ends + 0.08 * (high - low) * np.sign(values - ends)
    bars = plot.bars(places, ends, colours)
    for x, value, end, tip, colour in zip(places, values, ends, tips, colours):
        if tip != end:
            plot.area([[(x - 0.4, 0), (x - 0.4, end), (x, tip), (x + 0.4, end), (x + 0.4, 0)]], colour)
        said = f"{value:.2f}" if 0 < abs(value) < 10 else f"{value:.0f}"
        rise, up = ("top", -3) if value < 0 else ("bottom", 2)
        plot.text(x, tip, said, INK if value else DUSK, rise=rise, up=up, halo=True)
    return bars
