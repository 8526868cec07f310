"""Pieces that many panels draw: bare axes, a matrix of cells, frames round some of them, numbers inside."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.text import Text

from setclr_course.kit.palette import VERMILION

SHADES = matplotlib.colormaps["cividis"].resampled(40)  # few enough for a small PNG


class Part(NamedTuple):
    """A piece of a picture that follows the controls."""

    artists: Sequence[Artist]  # those that move, in drawing order
    move: Callable[..., Any]  # moves them; every piece has its own arguments


def bare(axis: Axes, x: tuple[float, float] | None = None, y: tuple[float, float] | None = None) -> None:
    """An axes without frame and ticks; with limits it is a plane, equal in both directions."""
    axis.set(xticks=[], yticks=[])
    for side in axis.spines.values():
        side.set_visible(False)
    if x is not None:
        axis.set(xlim=x, ylim=x if y is None else y, aspect="equal")


def cells(axis: Axes, rows: int, columns: int, high: float = 1.0, low: float = 0.0) -> QuadMesh:
    """A matrix, row 0 on top, dark at `low` and bright at `high`; `set_array` takes its values."""
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    mesh = axis.pcolormesh(*edges, np.zeros((rows, columns)), cmap=SHADES, vmin=low, vmax=high)
    axis.set(aspect="equal", xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), xticks=[], yticks=[])
    return mesh


def cell_outlines(where: Iterable[tuple[int, int]]) -> list[np.ndarray]:
    """Outlines of the cells at these (row, column), as the segments of a LineCollection: n times (5, 2)."""
    corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]])
    return [corners + [column, row] for row, column in where]


def frames(axis: Axes, where: Iterable[tuple[int, int]], colour: str, width: float = 1.6) -> LineCollection:
    """Frames round the cells at these (row, column); `set_segments(cell_outlines(...))` moves them."""
    outlines = LineCollection(cell_outlines(where), colors=colour, linewidths=width)
    axis.add_collection(outlines)
    return outlines


def true_match_frames(n: int, width: float) -> LineCollection:
    """For the assignment (2n, 2n) of two views: a frame round each true match, and white lines between the
    blocks of the views."""
    outlines = cell_outlines((i, (i + n) % (2 * n)) for i in range(2 * n))
    between, end = n - 0.5, 2 * n - 0.5
    lines = [np.array([[between, -0.5], [between, end]]), np.array([[-0.5, between], [end, between]])]
    colours = ["white"] * 2 + [VERMILION] * len(outlines)
    return LineCollection(lines + outlines, colors=colours, linewidths=width)


def numbers(axis: Axes, rows: int, columns: int, size: float = 8) -> list[Text]:
    """A text in every cell, row by row; `write` fills them."""
    return [
        axis.text(column, row, "", ha="center", va="center", fontsize=size)
        for row in range(rows)
        for column in range(columns)
    ]


def write(texts: list[Text], values: np.ndarray, middle: float, form: str = ".2f") -> None:
    """Values into the cells, white on those darker than the shade of `middle`."""
    for text, value in zip(texts, np.ravel(values)):
        text.set_text(format(value, form))
        text.set_color("black" if value > middle else "white")
