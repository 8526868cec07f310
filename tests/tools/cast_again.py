"""cast.png made again from the photographs: the six that the course shows, and two random views of each."""

import numpy as np
from PIL import Image
from torch import Generator, from_numpy

from setclr.data.patches import PHOTOGRAPHS
from setclr.seeding import seeded
from setclr.views import View, augment
from setclr_course.kit.cast import SIDE

CAST = ("cat", "coffee", "astronaut", "rocket", "china", "flower")
MILD = View(scale=(0.35, 0.8), jitter=(0.5, 0.4, 0.4, 0.06), jitter_p=1.0, grey=0.1)  # each is recognised
SEED = 6


def drawn() -> np.ndarray:
    """(3, 6, 64, 64, 3) uint8: what `kept` of kit/cast.py gives."""
    whole = np.stack([icon(PHOTOGRAPHS[name]()) for name in CAST])
    before = Generator().manual_seed(seeded(SEED).initial_seed())  # drawn when 32 bits of a seed counted
    pair = augment(from_numpy(whole.transpose(0, 3, 1, 2).copy()), (MILD, MILD), before)
    views = (pair * 255).round().byte().permute(0, 1, 3, 4, 2).numpy()
    return np.concatenate([whole[None], views])


def icon(pixels: np.ndarray) -> np.ndarray:
    """The square in the middle of a photograph, in small."""
    photograph = Image.fromarray(pixels).convert("RGB")
    width, height = photograph.size
    half = min(width, height) / 2
    box = (width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half)
    return np.asarray(photograph.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box))
