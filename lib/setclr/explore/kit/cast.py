"""The six photographs that ride on the dots of the course."""

from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from torch import from_numpy

from setclr.data.patches import PHOTOGRAPHS
from setclr.explore.kit.few_patches import icons
from setclr.explore.kit.parts import Part
from setclr.training.seeding import seeded
from setclr.views import View, augment

CAST = {"cat": "cat", "coffee": "coffee", "astronaut": "astronaut", "rocket": "rocket", "china": "temple",
        "flower": "flower"}  # fmt: skip
NAMES = tuple(CAST.values())

MILD = View(scale=(0.35, 0.8), jitter=(0.5, 0.4, 0.4, 0.06), jitter_p=1.0, grey=0.1)  # each is recognised
SEED = 6


@cache
def photographs(side: int = 64) -> np.ndarray:
    """The photographs, each its middle square: (6, side, side, 3) uint8."""
    return icons(side)[[list(PHOTOGRAPHS).index(name) for name in CAST]]


@cache
def two_views(side: int = 64) -> np.ndarray:
    """Two random views of each photograph, always the same ones: (2, 6, side, side, 3) uint8."""
    images = from_numpy(photographs(side).transpose(0, 3, 1, 2).copy())
    pair = augment(images, (MILD, MILD), seeded(SEED))
    return (pair * 255).round().byte().permute(0, 1, 3, 4, 2).numpy()


def riders(axis: Axes, faces: np.ndarray, size: float, lift: float = 0.0) -> Part:
    """Photographs (n, side, side, 3) that ride on dots: squares of `size` in data units, their lower edges
    `lift` above the points (n, 2) that `move` takes; those at nan are not seen."""
    width, height = axis_units(axis, size)
    shown = []
    for face in faces:
        image = AxesImage(axis, extent=(0, 0, 0, 0), interpolation="bilinear", zorder=4)
        image.set_data(face)
        axis.add_image(image)
        shown.append(image)

    def move(points: np.ndarray) -> None:
        for image, (x, y) in zip(shown, points):
            image.set_visible(bool(np.isfinite(x)))
            if image.get_visible():
                image.set_extent((x - width / 2, x + width / 2, y + lift, y + lift + height))

    return Part(shown, move)


def axis_units(axis: Axes, size: float) -> tuple[float, float]:
    """Width and height in data units of what looks square and is `size` wide."""
    if axis.get_aspect() == 1.0:
        return size, size
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    per_x, per_y = (right - left) / axis.bbox.width, (high - low) / axis.bbox.height
    return size, size * per_y / per_x
