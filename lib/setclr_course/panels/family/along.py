"""Pushes of a loss along a circle."""

import numpy as np

from setclr_course.kit.losses import Answer, gradient


def turned(z: np.ndarray) -> np.ndarray:
    """Vectors (..., 2), turned by a right angle to the left."""
    return np.stack([-z[..., 1], z[..., 0]], axis=-1)


def forces(answer: Answer, z: np.ndarray) -> np.ndarray:
    """(2, N): minus the gradient at views z (2, N, 2) of the circle, along it; anticlockwise is positive."""
    return -(gradient(answer, z.reshape(-1, 2)).reshape(z.shape) * turned(z)).sum(-1)
