"""The positive and four negatives that lie on a line, with their photographs."""

from collections.abc import Sequence

import numpy as np

from setclr_course.kit.cast import two_views

PLACES = {"cat": 0.4, "coffee": 0.65, "astronaut": 0.0, "rocket": -0.85, "temple": -0.3}
FIVE = tuple(PLACES)  # the positive ✚, then four negatives ✕


def faces() -> np.ndarray:
    """The second view of the cat, and the first views of the four others: (5, side, side, 3)."""
    one, two = two_views()
    return np.concatenate([two[:1], one[1:5]])


def spread(places: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """Places that are at least `gap` apart, in the same order, as near to the given ones as can be."""
    order = np.argsort(places, kind="stable")
    n, steps = len(order), gap * np.arange(len(order))
    free = np.asarray(places, float)[order] - steps
    sums = np.concatenate([[0], free.cumsum()])
    level = [
        max(min((sums[j + 1] - sums[i]) / (j + 1 - i) for j in range(k, n)) for i in range(k + 1))
        for k in range(n)
    ]
    apart = np.empty(n)
    apart[order] = np.array(level) + steps
    return apart
