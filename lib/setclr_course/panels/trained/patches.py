"""Patches as the kit draws them, and which of them a point is at."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from setclr.data import ImageSet


def patches_of(images: "ImageSet") -> np.ndarray:
    """The images of a set, (n, H, W, 3) uint8; those in files are read."""
    pixels = np.asarray(images.images[:]).transpose(0, 2, 3, 1)
    return np.broadcast_to(pixels, (*pixels.shape[:3], 3))


def nearest_to(points: np.ndarray, present: int) -> Callable[[float, float], list[int]]:
    """A handle's way: the number of the nearest of the points (n, 2); the present one where it is as near."""

    def to(x: float, y: float) -> list[int]:
        far = np.hypot(*(points - (x, y)).T)
        stays = far[present] <= far.min() + 1e-3 * np.ptp(points)
        return [present if stays else int(far.argmin())]

    return to
