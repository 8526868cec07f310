"""The sums of a coupling's rows and columns as bars, in units of a fair share."""

from typing import NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from setclr_course.kit.palette import BLACK, SKY
from setclr_course.pixels.parts import Part, bare

MOST = 3  # fair shares: where the bars end, with a ▲ if they are cut off


class SumBars(NamedTuple):
    """Bars above and beside a matrix."""

    above: Axes  # of the column sums
    right: Axes  # of the row sums
    stairs: Part  # moved by the sums of the columns and of the rows


def sum_bars(matrix: Axes, n: int, length: float, most: float) -> SumBars:
    """Bars for an n × n matrix; a fair share is 1 and has a line, a sum above `most` a mark."""
    above, right = matrix.inset_axes((0, 1.03, 1, length)), matrix.inset_axes((1.03, 0, length, 1))
    edges = np.arange(n + 1) - 0.5
    columns = above.stairs(np.ones(n), edges, fill=True, color=SKY)
    rows = right.stairs(np.ones(n), edges, orientation="horizontal", fill=True, color=SKY)
    above.axhline(1, color=BLACK, linewidth=0.8, zorder=3)
    right.axvline(1, color=BLACK, linewidth=0.8, zorder=3)
    bare(above)
    bare(right)
    above.set(xlim=(-0.5, n - 0.5), ylim=(0, most))
    right.set(ylim=(n - 0.5, -0.5), xlim=(0, most))
    marks = [axis.plot([], [], sign, color=BLACK, ms=4)[0] for axis, sign in ((above, "^"), (right, ">"))]

    def move(*sums: np.ndarray) -> None:
        for stairs, mark, values in zip((columns, rows), marks, sums):
            stairs.set_data(values.clip(max=most))
            high = np.flatnonzero(values > most)
            ends = np.full(len(high), 0.96 * most)
            mark.set_data(*((high, ends) if stairs is columns else (ends, high)))

    artists: list[Artist] = [columns, rows, *marks]
    return SumBars(above, right, Part(artists, move))
