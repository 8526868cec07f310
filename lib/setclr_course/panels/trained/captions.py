"""Patches enlarged, each with words under it, as one picture."""

from functools import lru_cache

import numpy as np
from matplotlib.font_manager import findfont
from PIL import Image, ImageDraw, ImageFont

LETTERS = 14  # pixels


@lru_cache
def font(size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(findfont("DejaVu Sans"), size)


def captioned(patch: np.ndarray, words: str, side: int, scale: float = 1.0) -> np.ndarray:
    """A patch (H, W, 3) uint8 of that side over its words, on white: (side + 30, side + 60, 3) uint8, all
    enlarged by the scale."""
    image = Image.new("RGB", (round(scale * (side + 60)), round(scale * (side + 30))), "white")
    large = Image.fromarray(patch).resize((round(scale * side),) * 2, Image.Resampling.NEAREST)
    image.paste(large, (round(4 * scale),) * 2)
    place = 4 * scale, (side + 7) * scale
    ImageDraw.Draw(image).text(place, words, "black", font(scale * LETTERS))
    return np.asarray(image)
