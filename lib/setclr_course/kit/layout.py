"""Where the plots of a picture lie, and where in a plot a point is: in pixels from the upper left.

paint.js has the same arithmetic; a test holds the two to each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, copysign
from textwrap import wrap
from typing import Any

import numpy as np

SIZES = {"small": 11, "normal": 13, "title": 14}  # of letters, in pixels at any width
LINE = 1.25  # from one line of words to the next, in their size
WIDE = 0.56  # of a letter, in its size, on average
GAP = 16  # between plots


def boxes(mosaic: str, width: float, height: float, widths: Sequence[float] = (),
          heights: Sequence[float] = ()) -> dict[str, tuple[float, float, float, float]]:  # fmt: skip
    """Left, top, width and height of each plot of a mosaic such as "ring lists; ring fits"."""
    names = np.array([row.split() for row in mosaic.split(";")])
    lefts, rights = edges(names.shape[1], width, widths)
    tops, bottoms = edges(names.shape[0], height, heights)
    found = {}
    for name in dict.fromkeys(names.ravel().tolist()):
        row, column = np.nonzero(names == name)
        left, top = lefts[column[0]], tops[row[0]]
        found[name] = (left, top, rights[column[-1]] - left, bottoms[row[-1]] - top)
    return found


def edges(count: int, length: float, shares: Sequence[float]) -> tuple[list[float], list[float]]:
    """Where so many columns or rows begin, and where they end."""
    part = np.array(shares or [1] * count, float)
    long = part / part.sum() * (length - GAP * (count - 1))
    ends = (long + GAP).cumsum() - GAP
    return (ends - long).tolist(), ends.tolist()


def wrapped(said: str, width: float, size: float) -> list[str]:
    """Words in lines that are no wider; a word that is too wide has a line of its own."""
    most = max(1, int(width / (WIDE * size)))
    parts = said.split("\n") if said else []
    return [
        line for part in parts for line in wrap(part, most, break_long_words=False, break_on_hyphens=False)
    ]


@dataclass
class Frame:
    """A plot of this width and height: the room that its words take, and where its points lie.

    The plot's upper left is at the `corner` of the picture.
    """

    about: dict[str, Any]
    width: float
    height: float
    corner: tuple[float, float] = (0, 0)

    def __post_init__(self) -> None:
        about, small = self.about, SIZES["small"]
        xticks, yticks = ([word for _, word in about.get(ticks, [])] for ticks in ("xticks", "yticks"))
        left, top, right, bottom = about.get("room", (0, 0, 0, 0))
        left += 4 + (ceil(max(map(len, yticks)) * WIDE * small) + 8 if yticks else 0)
        left += 18 if about.get("ylabel") else 0
        right += 6
        self.below = 6 + small if xticks else 2  # from the plot to the name of its axis
        if xticks and about.get("turn"):
            self.below = 6 + max(small, ceil(0.8 * max(map(len, xticks)) * WIDE * small))
        elif xticks:
            right += ceil(0.5 * len(xticks[-1]) * WIDE * small)
        self.title = wrapped(about.get("title", ""), self.width - left, SIZES["title"])
        self.xlabel = wrapped(about.get("xlabel", ""), self.width - left - right, SIZES["normal"])
        top += 5 + ceil(len(self.title) * LINE * SIZES["title"]) + (5 if self.title else 0)
        bottom += 4 + self.below + ceil(len(self.xlabel) * LINE * SIZES["normal"])
        x, y = self.corner
        self.left, self.top = x + left, y + top
        self.right, self.bottom = x + self.width - right, y + self.height - bottom
        (self.x0, x1), (self.y0, y1) = (self.place(way, about[way]).tolist() for way in "xy")
        self.sx = (self.right - self.left) / (x1 - self.x0)
        self.sy = (self.bottom - self.top) / (y1 - self.y0)
        if about.get("equal"):
            scale = min(abs(self.sx), abs(self.sy))
            x, y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
            across, down = scale * abs(x1 - self.x0) / 2, scale * abs(y1 - self.y0) / 2
            self.left, self.right, self.top, self.bottom = x - across, x + across, y - down, y + down
            self.sx, self.sy = copysign(scale, self.sx), copysign(scale, self.sy)

    def place(self, way: str, values: Any) -> np.ndarray:
        """Data units, or their decades on a logarithmic axis; nan for None."""
        at = np.array(values, float)
        return np.log10(at) if way in self.about.get("log", "") else at

    def x(self, values: Any) -> np.ndarray:
        """Pixels from the left."""
        return self.left + (self.place("x", values) - self.x0) * self.sx

    def y(self, values: Any) -> np.ndarray:
        """Pixels from the top."""
        return self.bottom - (self.place("y", values) - self.y0) * self.sy
