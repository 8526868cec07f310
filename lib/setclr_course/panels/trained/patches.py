"""Patches as the kit draws them."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from setclr.data import ImageSet


def patches_of(images: "ImageSet") -> np.ndarray:
    """The images of a set, (n, H, W, 3) uint8; those in files are read."""
    pixels = np.asarray(images.images[:]).transpose(0, 2, 3, 1)
    return np.broadcast_to(pixels, (*pixels.shape[:3], 3))
