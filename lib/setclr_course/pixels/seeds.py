"""Rows of results, a dot for each seed and a line at their mean."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from setclr_course.kit.palette import BLACK
from setclr_course.pixels.parts import Part


def seed_rows(axis: Axes, colours: Sequence[str]) -> Part:
    """As many rows as colours, the first on top; `move` takes for each row the numbers of its seeds, and how
    far the rows stand apart. A single number has no mean."""
    rows = [axis.plot([], [], "o", color=colour, markersize=5, alpha=0.8)[0] for colour in colours]
    means = [axis.plot([], [], color=BLACK, linewidth=3)[0] for _ in colours]

    def move(found: Sequence[Any], step: float = 1.0) -> None:
        for place, (row, mean) in enumerate(zip(rows, means)):
            x, y = np.asarray(found[place] if place < len(found) else [], float), place * step
            row.set_data(x, y + (np.linspace(-0.18, 0.18, len(x)) if len(x) > 1 else np.zeros(len(x))))
            mean.set_data([x.mean()] * 2 if len(x) > 1 else [], [y - 0.3, y + 0.3] if len(x) > 1 else [])

    return Part([*rows, *means], move)
