"""The circles on which two views of a batch are drawn, so that the views do not hide each other."""

import numpy as np

RADII = np.array([1.0, 0.76])  # of the circle of view 1, outside, and of that of view 2


def unit(degrees: np.ndarray) -> np.ndarray:
    """Unit vectors (..., 2) at these angles."""
    radians = np.deg2rad(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=-1)
