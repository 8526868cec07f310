"""Two views of a batch on a circle that is drawn twice, so that the views do not hide each other."""

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from torch import Tensor

from setclr_course.kit.palette import GREY

RADII = (1.0, 0.76)  # of the circle of view 1, outside, and of that of view 2


def on_circle(degrees: ArrayLike) -> Tensor:
    """Points of the unit circle (..., 2) float64 at these angles (...)."""
    radians = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=-1)


def as_drawn(z: np.ndarray) -> np.ndarray:
    """Where views z (2, N, 2) of unit vectors are drawn, each on its own circle."""
    return np.array(RADII)[:, None, None] * z


def draw_circles(axis: Axes, radii: tuple[float, ...] = RADII) -> None:
    """The circles, as thin grey lines behind everything."""
    around = np.linspace(0, 2 * np.pi, 200)
    for radius in radii:
        axis.plot(radius * np.cos(around), radius * np.sin(around), color=GREY, linewidth=0.5, zorder=0)
