"""Images as arrays that matplotlib and Pillow draw."""

import numpy as np
from torch import Tensor
from torch.nn import functional as F


def tiles(images: Tensor) -> np.ndarray:
    """Images (N, C, H, W) uint8 as (N, H, W, 3) uint8."""
    return images.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()


def thumbnails(images: Tensor, side: int) -> np.ndarray:
    """Images (N, C, H, W) uint8 as (N, side, side, 3) uint8."""
    small = F.interpolate(images.expand(-1, 3, -1, -1).float(), (side, side), mode="bilinear", antialias=True)
    return tiles(small.round().clamp(0, 255).byte())
