"""Photographs in fewer shades, so that a page on which their picture is saved stays small."""

import numpy as np

COARSE = 20  # shades that become one on the screen


def coarse(pixels: np.ndarray) -> np.ndarray:
    return (pixels.astype(int) // COARSE * COARSE + COARSE // 2).clip(0, 255).astype(np.uint8)


def greyed(photograph: np.ndarray) -> np.ndarray:
    """A photograph (H, W, 3) without its colours, on which coloured frames are seen."""
    return np.repeat(coarse(photograph.mean(2, keepdims=True)), 3, axis=2)
