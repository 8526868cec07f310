"""The positive and four negatives that lie on a line, with their photographs."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.cast import two_views
from setclr_course.kit.palette import INK
from setclr_course.kit.scene import Piece, Plot

PLACES = {"cat": 0.4, "coffee": 0.65, "astronaut": 0.0, "rocket": -0.85, "temple": -0.3}
FIVE = tuple(PLACES)  # the positive ✚, then four negatives ✕


@cache
def faces() -> np.ndarray:
    """The second view of the cat, and the first views of the four others: (5, side, side, 3)."""
    one, two = two_views()
    return np.concatenate([two[:1], one[1:5]])


def beside(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Points (n, 2) of these coordinates, of which one may be the same for all."""
    return np.stack(np.broadcast_arrays(x, y), -1)


def draw_signs(plot: Plot, points: np.ndarray) -> list[Piece]:
    """The positive ✚ and its negatives ✕."""
    plus, crosses = plot.dots(points[:1], INK, "✚", 16), plot.dots(points[1:], INK, "✕", 13)
    return [plus[0], *(crosses[k] for k in range(len(points) - 1))]


def spread(places: ArrayLike, gap: float, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """Places that are at least `gap` apart, from low to high, in the same order, as near to the given ones as
    can be."""
    places = np.asarray(places, float)
    order, n = np.argsort(places, kind="stable"), len(places)
    steps = gap * np.arange(n)
    sums = np.concatenate([[0], (places[order] - steps).cumsum()]).tolist()
    level = [
        max(min((sums[j + 1] - sums[i]) / (j + 1 - i) for j in range(k, n)) for i in range(k + 1))
        for k in range(n)
    ]
    apart = np.empty(n)
    apart[order] = np.clip(level, low, high - steps[-1]) + steps
    return apart
