"""Pushes along a circle: of a loss on two views, and as arrows."""

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from torch import Tensor

from setclr.losses import SetLoss
from setclr_course.pixels.circle import as_drawn
from setclr_course.pixels.parts import Part

LONGEST = 0.6  # radii: the longest arrow
START = 0.07  # radii: an arrow begins at the edge of its marker
QUIET = 0.05  # of the longest arrow: a point pushed less than this is as good as left alone
REST = 1e-6  # a loss whose longest arrow is less than this is at rest


def pushes(loss: SetLoss, z: Tensor) -> np.ndarray:
    """(V, N): minus the gradient of the loss at points z (V, N, 2) of the circle, along the circle;
    anticlockwise is positive."""
    z = z.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(z), z)
    return (slope[..., 0] * z[..., 1] - slope[..., 1] * z[..., 0]).detach().numpy()


def share_of_longest(force: np.ndarray) -> np.ndarray:
    """Pushes divided by the strongest; 0 where the loss is at rest."""
    most = np.abs(force).max()
    return force / most if most > REST else np.zeros_like(force)


def arrows_on(axis: Axes, colours: ArrayLike) -> Part:
    """Arrows at points, moved by views z (..., N, 2) and by pushes (..., N) from −1 to 1, and by the middles
    of their circles where these are not (0, 0)."""
    arrows = axis.quiver(
        *np.zeros((4, len(np.asarray(colours)))),
        color=colours,
        units="xy",
        scale=1,
        scale_units="xy",
        width=0.035,
        headwidth=5,
        headlength=5,
        headaxislength=4.5,
        minshaft=1.6,  # an arrow shorter than 1.6 heads is drawn small, head and shaft
        minlength=0,
        zorder=5,
    )

    def move(z: np.ndarray, push: np.ndarray, centres: Any = 0) -> None:
        along = np.stack([-z[..., 1], z[..., 0]], axis=-1)
        start = centres + as_drawn(z) + START * np.sign(push)[..., None] * along
        arrows.set_offsets(start.reshape(-1, 2))
        arrows.set_UVC(*(LONGEST * push[..., None] * along).reshape(-1, 2).T)

    return Part([arrows], move)
