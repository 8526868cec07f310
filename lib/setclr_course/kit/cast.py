"""The six photographs that ride on the dots of the course, and two random views of each.

They lie in cast.png, so that a page that shows them needs no torch; tests/tools/cast_again.py made it (commit
80d9a71).
"""

from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

NAMES = ("cat", "coffee", "astronaut", "rocket", "temple", "flower")
SIDE = 64


@cache
def kept() -> np.ndarray:
    """(3, 6, 64, 64, 3) uint8: the photographs, their first views, their second views."""
    sheet = np.asarray(Image.open(Path(__file__).with_name("cast.png")).convert("RGB"))
    return sheet.reshape(3, SIDE, len(NAMES), SIDE, 3).transpose(0, 2, 1, 3, 4).copy()


def photographs() -> np.ndarray:
    """The photographs, each its middle square: (6, 64, 64, 3) uint8."""
    return kept()[0]


def two_views() -> np.ndarray:
    """Two random views of each photograph, always the same ones: (2, 6, 64, 64, 3) uint8."""
    return kept()[1:]
