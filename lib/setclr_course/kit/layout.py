"""Where the plots of a picture lie, and where in a plot a point is: in pixels from the upper left.

paint.js has the same arithmetic; a test holds the two to each other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from typing import Any

import numpy as np

SIZES = {"small": 11, "normal": 13, "title": 14}  # of letters, in pixels at any width
LINE = 1.25  # from one line of words to the next, in their size
WIDE = 0.56  # of a letter, in its size, on average
GAP = 16  # between plots

SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
PLUS = np.outer([1, 1j, -1, -1j], [0.36 + 0.36j, 0.36 + 1j, -0.36 + 1j]).ravel()
CORNERS = {  # of signs of radius 1, as complex numbers
    "●": np.exp(2j * np.pi * np.arange(48) / 48), "■": SQUARE @ (0.88, 0.88j), "✚": PLUS,
    "★": np.exp(2j * np.pi * (np.arange(10) / 10 + 1 / 4)) * np.tile([1, 0.42], 5), "✕": PLUS * np.sqrt(1j),
    "▲": np.array([-0.95 - 0.8j, 0.95 - 0.8j, 1j]), "▼": np.array([-0.95 + 0.8j, 0.95 + 0.8j, -1j]),
    "◆": np.array([1, 1j, -1, -1j]),
}  # fmt: skip
SIGNS = {sign: np.stack([at.real, -at.imag], 1) for sign, at in CORNERS.items()}  # y runs downwards


def boxes(mosaic: str, width: float, height: float, widths: Sequence[float] = (),
          heights: Sequence[float] = ()) -> dict[str, tuple[float, float, float, float]]:  # fmt: skip
    """Left, top, width and height of each plot of a mosaic such as "ring lists; ring fits".

    In reading order, in which a narrow page shows them; but `rows-sums` comes right after `rows`.
    """
    names = np.array([row.split() for row in mosaic.split(";")])
    (lefts, rights), (tops, bottoms) = edges(len(names.T), width, widths), edges(len(names), height, heights)
    found = {}
    read = list(dict.fromkeys(names.ravel().tolist()))
    begins = [name.split("-")[0] for name in read]
    for _, name in sorted(zip(map(begins.index, begins), read), key=itemgetter(0)):
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
    return re.findall(rf"[^ \n].{{0,{most - 1}}}(?= |$)|[^ \n]+", said, re.M)


def wide(words: Sequence[str], size: str = "small") -> float:
    """Pixels across of the longest of these words."""
    return max(map(len, words), default=0) * WIDE * SIZES[size]


@dataclass
class Frame:
    """A plot of this width and height: the room that its words take, and where its marks lie.

    The plot's upper left is at the `corner` of the picture.
    """

    about: dict[str, Any]
    width: float
    height: float
    corner: tuple[float, float] = (0, 0)

    def __post_init__(self) -> None:
        about, turn = self.about, self.about.get("turn")
        xticks, yticks = ([word for _, word in about.get(ticks, ())] for ticks in ("xticks", "yticks"))
        left, top, right, bottom = about.get("room", (0, 0, 0, 0))
        left += 4 + (ceil(wide(yticks)) + 8 if yticks else 0) + (18 if about.get("ylabel") else 0)
        right += 6 + (0 if turn else ceil(0.5 * wide(xticks[-1:])))
        high = max(SIZES["small"], ceil(0.8 * wide(xticks)) if turn else 0)
        self.below = 6 + high if xticks else 2  # from the plot to the name of its axis
        self.title = wrapped(about.get("title", ""), self.width - left, SIZES["title"])
        self.xlabel = wrapped(about.get("xlabel", ""), self.width - left - right, SIZES["normal"])
        top += 5 + ceil(len(self.title) * LINE * SIZES["title"]) + (5 if self.title else 0)
        bottom += 4 + self.below + ceil(len(self.xlabel) * LINE * SIZES["normal"])
        x, y = self.corner
        self.left, self.top = x + left, y + top
        self.right, self.bottom = x + self.width - right, y + self.height - bottom
        (self.x0, x1), (self.y0, y1) = (self.place(way, about[way]).tolist() for way in "xy")
        if about.get("equal"):
            across, down = abs(x1 - self.x0) / 2, abs(y1 - self.y0) / 2
            x, y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
            scale = min((self.right - x) / across, (self.bottom - y) / down)
            self.left, self.right = x - scale * across, x + scale * across
            self.top, self.bottom = y - scale * down, y + scale * down
        self.begin = min(self.left, self.corner[0] + self.width - wide(self.title, "title"))
        self.sx = (self.right - self.left) / (x1 - self.x0)
        self.sy = (self.bottom - self.top) / (y1 - self.y0)

    def place(self, way: str, values: Any) -> np.ndarray:
        """Data units, or their decades on a logarithmic axis; nan for None."""
        at = np.array(values, float)
        with np.errstate(divide="ignore"):  # what has no decade is left out, as in the browser
            return np.log10(at) if way in self.about.get("log", "") else at

    def x(self, values: Any) -> np.ndarray:
        """Pixels from the left."""
        return self.left + (self.place("x", values) - self.x0) * self.sx

    def y(self, values: Any) -> np.ndarray:
        """Pixels from the top."""
        return self.bottom - (self.place("y", values) - self.y0) * self.sy

    def at(self, x: Any, y: Any) -> np.ndarray:
        return np.stack([self.x(x), self.y(y)], -1)

    def outlines(self, mark: Mapping[str, Any]) -> np.ndarray | list[np.ndarray]:
        """The points (n, 2) of each piece of a mark in pixels: the corners of a sign, box, cell or picture,
        both ends of a segment, all of a line, of an area with nan between its rings, and one of words."""
        kind = mark["kind"]
        if kind == "area":
            x, y = ([one for ring in mark["rings"] for one in (*ring[k], *ring[k][:1], None)] for k in (0, 1))
            return [self.at(x, y)]
        if kind == "cells":
            rows, columns = np.divmod(np.arange(len(mark["shades"])), mark["columns"])
            middles = self.at(columns + mark["at"][0], rows + mark["at"][1])
            return middles[:, None] + SQUARE * (self.sx / 2, -self.sy / 2)
        points = self.at(mark["x"], mark["y"])
        if kind == "line":
            return [points]
        if kind == "dots":
            return points[:, None] + mark["size"] / 2 * SIGNS[mark["sign"]]
        if kind == "photographs":
            half = abs(mark["size"] * self.sx) / 2
            down = {"middle": 0, "bottom": -half, "top": half}[mark["hangs"]] - mark["up"]
            return points[:, None] + half * SQUARE + (0, down)
        if kind == "text":
            across, down = self.right - self.left, self.top - self.bottom
            share = [self.left, self.bottom] + np.column_stack([mark["x"], mark["y"]]) * (across, down)
            return (share if "within" in mark else points)[:, None]
        ends = np.stack([points, self.at(mark["u"], mark["v"])], 1)
        return ends if kind in ("segments", "arrows") else ends[:, [[0, 0], [1, 0], [1, 1], [0, 1]], [0, 1]]
