"""Six piles of sand ● and six buckets ■ in a plane: what carrying costs, and who carries how much where."""

from collections.abc import Mapping, Sequence

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.controls import slider
from setclr_course.kit.palette import INK, SKY
from setclr_course.kit.scene import Mark, Page

N = len(NAMES)
PILES = np.array([(-0.8, 0.35), (0.45, -0.15), (0.05, 0.45), (0.65, 0.6), (-0.5, -0.45), (0.4, -0.7)])
BUCKETS = np.array([(-0.8, 0.95), (-0.35, 0.05), (0.1, 1.15), (1.05, 0.45), (-0.9, -0.9), (1.1, -0.65)])
KNOBS = {
    f"{name} {way}": slider(f"■ {name}, {word}", at, -1.25, 1.25, 0.05)
    for name, place in zip(NAMES, BUCKETS.tolist())
    for way, word, at in zip("xy", ("to the right", "up"), place)
}
HUB = NAMES.index("coffee")  # its bucket stands amid the piles
THICKEST = 9  # pixels: the line of a whole share
SEEN = 0.01  # of a share: what is less has no line


def placed(values: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    """(n, 2): where the buckets of these names stand."""
    return np.array([(values[f"{name} x"], values[f"{name} y"]) for name in names])


def cost(buckets: np.ndarray) -> np.ndarray:
    """(6, 6): half the squared distance of pile i and bucket j; on a sphere that is 1 − cosine."""
    return 0.5 * np.square(PILES[:, None] - buckets).sum(-1)


def draw_sand(
    page: Page, name: str, title: str, shares: np.ndarray, buckets: np.ndarray, below: str = ""
) -> tuple[Mark, Mark]:
    """Piles, buckets, and lines as thick as the sand between them; the marks of lines (6, 6) and buckets."""
    plane = page.plane(name, (-1.4, 1.4), (-1.3, 1.6), title, xlabel=below)
    starts, ends = np.repeat(PILES, N, axis=0), np.tile(buckets, (N, 1))
    widths = THICKEST * np.where(shares < SEEN, 0, shares).clip(max=2).ravel()
    lines = plane.segments(starts, ends, SKY, widths)
    plane.photographs(np.concatenate([PILES, buckets]), np.concatenate(two_views()), 0.27, "bottom", 7)
    plane.dots(PILES, INK, "●", 11)
    return lines, plane.dots(buckets, INK, "■", 11)
