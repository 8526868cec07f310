"""Where the plots of a picture lie, and where in a plot a point is: in pixels from the upper left.

paint.js has the same arithmetic; a test holds the two to each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10
from typing import Any

import numpy as np

SIZES = {"small": 11, "normal": 13, "title": 14}  # of letters, in pixels at any width
LINE = 1.25  # from one line of words to the next, in their size
WIDE = 0.56  # of a letter, in its size, on average
GAP = 16  # between plots


def boxes(
    mosaic: str, width: float, height: float, widths: Sequence[float] = (), heights: Sequence[float] = ()
) -> dict[str, tuple[float, float, float, float]]:
    """Left, top, width and height of each plot of a mosaic such as "ring lists; ring fits"."""
    rows = [row.split() for row in mosaic.split(";")]
    x, y = edges(len(rows[0]), width, widths), edges(len(rows), height, heights)
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        at = [(i, j) for i, row in enumerate(rows) for j, other in enumerate(row) if other == name]
        (top, left), (bottom, right) = at[0], at[-1]
        found[name] = (x[left][0], y[top][0], x[right][1] - x[left][0], y[bottom][1] - y[top][0])
    return found


def edges(count: int, length: float, shares: Sequence[float]) -> list[tuple[float, float]]:
    """Beginning and end of each of so many columns or rows."""
    part = np.array(shares or [1] * count, float)
    long = part / part.sum() * (length - GAP * (count - 1))
    starts = np.concatenate([[0], (long + GAP).cumsum()[:-1]])
    return list(zip(starts.tolist(), (starts + long).tolist()))


def wrapped(said: str, width: float, size: float) -> list[str]:
    """Words in lines that are no wider."""
    most = max(1, int(width / (WIDE * size)))
    lines: list[str] = []
    for part in said.split("\n") if said else []:
        line = ""
        for word in part.split(" "):
            if line and len(line) + 1 + len(word) > most:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines


@dataclass
class Frame:
    """A plot of this width and height: the room that its words take, and where its points lie."""

    about: dict[str, Any]
    width: float
    height: float

    def __post_init__(self) -> None:
        about = self.about
        left, top, right, bottom = about.get("room", (0, 0, 0, 0))
        small, normal = SIZES["small"], SIZES["normal"]
        words = [word for _, word in about.get("yticks", [])]
        left += 4 + (ceil(max(map(len, words)) * WIDE * small) + 8 if words else 0)
        left += 18 if about.get("ylabel") else 0
        ends = [word for _, word in about.get("xticks", [])][-1:]
        right += 6 + (ceil(0.5 * len(ends[0]) * WIDE * small) if ends and not about.get("turn") else 0)
        self.title = wrapped(about.get("title", ""), self.width - left, SIZES["title"])
        self.xlabel = wrapped(about.get("xlabel", ""), self.width - left - right, normal)
        top += 5 + ceil(len(self.title) * LINE * SIZES["title"]) + (5 if self.title else 0)
        ticks = about.get("xticks", [])
        long = max((len(word) for _, word in ticks), default=0) * WIDE * small if about.get("turn") else 0
        self.below = (6 + max(small, ceil(0.8 * long))) if ticks else 2
        bottom += 4 + self.below + ceil(len(self.xlabel) * LINE * normal)
        self.left, self.top = left, top
        self.right, self.bottom = self.width - right, self.height - bottom
        (self.x0, self.x1), (self.y0, self.y1) = self._limits("x"), self._limits("y")
        self.sx = (self.right - self.left) / (self.x1 - self.x0)
        self.sy = (self.bottom - self.top) / (self.y1 - self.y0)
        if about.get("equal"):
            scale = min(abs(self.sx), abs(self.sy))
            middle = (self.left + self.right) / 2, (self.top + self.bottom) / 2
            half = scale * abs(self.x1 - self.x0) / 2, scale * abs(self.y1 - self.y0) / 2
            self.left, self.right = middle[0] - half[0], middle[0] + half[0]
            self.top, self.bottom = middle[1] - half[1], middle[1] + half[1]
            self.sx, self.sy = (scale if s > 0 else -scale for s in (self.sx, self.sy))

    def _limits(self, way: str) -> list[float]:
        return (
            [log10(end) for end in self.about[way]] if way in self.about.get("log", "") else self.about[way]
        )

    def x(self, values: Any) -> np.ndarray:
        """Pixels from the left; nan for None."""
        at = np.array(values, float)
        return self.left + ((np.log10(at) if "x" in self.about.get("log", "") else at) - self.x0) * self.sx

    def y(self, values: Any) -> np.ndarray:
        """Pixels from the top."""
        at = np.array(values, float)
        return self.bottom - ((np.log10(at) if "y" in self.about.get("log", "") else at) - self.y0) * self.sy
