"""The candidates of an anchor, a view of the cat: its other view ✚ and five other photographs ✕."""

from functools import cache

import numpy as np

from setclr_course.kit.cast import two_views


@cache
def faces() -> np.ndarray:
    """Of ✚ and of the five ✕: (6, side, side, 3)."""
    one, two = two_views()
    return np.concatenate([two[:1], one[1:]])
