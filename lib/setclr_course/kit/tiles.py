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


def coloured(flow: np.ndarray) -> np.ndarray:
    """Flow (2, T, H, W), in eighths of a frame, as colours (3, T, H, W): the hue says where to, white is
    still. A third of the reach has the full colour."""
    turns = np.array([0, 2, 4]).reshape(3, 1, 1, 1) * np.pi / 3
    hue = 0.5 + 0.5 * np.cos(np.arctan2(flow[1], flow[0]) - turns)
    return 1 - (3 * np.hypot(*flow)).clip(max=1) * (1 - hue)
