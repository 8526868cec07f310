"""Pushes of a loss along a circle, and as arrows."""

import numpy as np

from setclr_course.kit.circle import RADII
from setclr_course.kit.losses import Answer, gradient
from setclr_course.kit.scene import Plot, Words

LONGEST = 0.6  # radii: the longest arrow
START = 0.07  # radii: an arrow begins at the edge of its marker
QUIET = 0.05  # of the longest arrow: a point pushed less than this is as good as left alone
REST = 1e-6  # a loss whose longest arrow is less than this is at rest


def turned(z: np.ndarray) -> np.ndarray:
    """Vectors (..., 2), turned by a right angle to the left."""
    return np.stack([-z[..., 1], z[..., 0]], axis=-1)


def forces(answer: Answer, z: np.ndarray) -> np.ndarray:
    """(2, N): minus the gradient at views z (2, N, 2) of the circle, along it; anticlockwise is positive."""
    return -(gradient(answer, z.reshape(-1, 2)).reshape(z.shape) * turned(z)).sum(-1)


def share_of_longest(force: np.ndarray) -> np.ndarray:
    """Pushes divided by the strongest; 0 where the loss is at rest."""
    most = np.abs(force).max()
    return force / most if most > REST else np.zeros_like(force)


def draw_arrows(plot: Plot, z: np.ndarray, share: np.ndarray, colours: Words, width: float = 2.5) -> None:
    """An arrow at each point of views z (2, N, 2), as long as its push (2, N) from −1 to 1 says."""
    way = np.sign(share)[..., None] * turned(z)
    starts = np.array(RADII)[:, None, None] * z + START * way
    ends = starts + LONGEST * np.abs(share)[..., None] * way
    plot.arrows(starts.reshape(-1, 2), ends.reshape(-1, 2), colours, width)
