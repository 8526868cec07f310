"""The six photographs that ride on the dots of the course, and two random views of each.

They lie in cast.png, so that a page that shows them needs no torch; a test makes them again by `drawn`.
"""

from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

CAST = {"cat": "cat", "coffee": "coffee", "astronaut": "astronaut", "rocket": "rocket", "china": "temple",
        "flower": "flower"}  # fmt: skip
NAMES = tuple(CAST.values())
SIDE, SEED = 64, 6
FILE = Path(__file__).with_name("cast.png")


@cache
def kept() -> np.ndarray:
    """(3, 6, 64, 64, 3) uint8: the photographs, their first views, their second views."""
    sheet = np.asarray(Image.open(FILE).convert("RGB"))
    return sheet.reshape(3, SIDE, len(NAMES), SIDE, 3).transpose(0, 2, 1, 3, 4).copy()


def photographs() -> np.ndarray:
    """The photographs, each its middle square: (6, 64, 64, 3) uint8."""
    return kept()[0]


def two_views() -> np.ndarray:
    """Two random views of each photograph, always the same ones: (2, 6, 64, 64, 3) uint8."""
    return kept()[1:]


def drawn() -> np.ndarray:
    """What `kept` gives, made from the photographs."""
    from torch import from_numpy

    from setclr.data.patches import PHOTOGRAPHS
    from setclr.seeding import seeded
    from setclr.views import View, augment
    from setclr_course.kit.few_patches import icons

    mild = View(scale=(0.35, 0.8), jitter=(0.5, 0.4, 0.4, 0.06), jitter_p=1.0, grey=0.1)  # each is recognised
    whole = icons(SIDE)[[list(PHOTOGRAPHS).index(name) for name in CAST]]
    pair = augment(from_numpy(whole.transpose(0, 3, 1, 2).copy()), (mild, mild), seeded(SEED))
    views = (pair * 255).round().byte().permute(0, 1, 3, 4, 2).numpy()
    return np.concatenate([whole[None], views])
