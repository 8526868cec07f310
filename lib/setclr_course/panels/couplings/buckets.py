"""Six piles of sand ● and six buckets ■ in a plane: what carrying costs, and who carries how much where."""

from collections.abc import Callable, Mapping

import numpy as np
from ipywidgets import ValueWidget
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import INK, SKY
from setclr_course.pixels.controls import slider
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

N = len(NAMES)
SIDES = ("columns", "rows")
PILES = np.array([(-0.8, 0.35), (0.45, -0.15), (0.05, 0.45), (0.65, 0.6), (-0.5, -0.45), (0.4, -0.7)])
BUCKETS = np.array([(-0.8, 0.95), (-0.35, 0.05), (0.1, 1.15), (1.05, 0.45), (-0.9, -0.9), (1.1, -0.65)])
HUB = NAMES.index("coffee")  # its bucket stands amid the piles
FACE, LIFT = 0.27, 0.075  # of the photographs that ride on the signs
THICKEST = 7  # points: the line of a whole share


def bucket_controls(names: tuple[str, ...]) -> dict[str, ValueWidget]:
    """Two sliders for the place of each of these buckets."""
    found = {}
    for name in names:
        for way, word, at in zip("xy", ("to the right", "up"), BUCKETS[NAMES.index(name)]):
            found[f"{name} {way}"] = slider(f"■ {name}, {word}", float(at), -1.25, 1.25, 0.05)
    return found


def bucket_places(values: Mapping) -> np.ndarray:
    """(6, 2): where the buckets stand; those without sliders stay."""
    places = BUCKETS.copy()
    for j, name in enumerate(NAMES):
        if f"{name} x" in values:
            places[j] = values[f"{name} x"], values[f"{name} y"]
    return places


def cost(buckets: np.ndarray) -> np.ndarray:
    """(6, 6): half the squared distance of pile i and bucket j; on a sphere that is 1 − cosine."""
    return 0.5 * np.square(PILES[:, None] - buckets).sum(-1)


def draw_sand(axis: Axes) -> Part:
    """Piles, buckets, and lines as thick as the sand between them; moved by shares (6, 6), where 1 is a whole
    pile, and by the places of the buckets."""
    bare(axis, (-1.4, 1.4), (-1.05, 1.6))
    flows = LineCollection([], colors=SKY, zorder=1, capstyle="round")
    axis.add_collection(flows)
    flows.set_clip_path(axis.patch)
    signs = [
        axis.plot([], [], sign, color=INK, markersize=8, markeredgecolor="white", zorder=5)[0]
        for sign in "os"
    ]
    faces = riders(axis, np.concatenate(two_views()), FACE, LIFT)

    def move(share: np.ndarray, buckets: np.ndarray) -> None:
        ends = np.stack(np.broadcast_arrays(PILES[:, None], buckets), axis=2)
        flows.set_segments(list(ends.reshape(N * N, 2, 2)))
        shown = np.where(share < 0.01, 0, share).clip(max=2)
        flows.set_linewidth((THICKEST * shown).ravel().tolist())
        for sign, places in zip(signs, (PILES, buckets)):
            sign.set_data(*places.T)
        faces.move(np.concatenate([PILES, buckets]))

    return Part([flows, *faces.artists, *signs], move)


def spread(shares: np.ndarray, form: Callable[[float], str] = "{:.2f}".format) -> str:
    """From the least to the most, in words."""
    return f"{form(shares.min())} to {form(shares.max())}"


def pressed(number: int, first: str) -> str:
    """Which button the press of this number, from 1, is."""
    return SIDES[(SIDES.index(first) + number - 1) % 2]


def shares(costs: np.ndarray, epsilon: float, presses: int, first: str) -> np.ndarray:
    """(6, 6): six times the plan after so many presses; before the first it is exp(−cost/ε), scaled to the
    right sum (IOT-CL, eq. 19)."""
    logits = -costs / epsilon
    logits = logits - np.logaddexp.reduce(logits, axis=None) + np.log(N)
    for number in range(1, presses + 1):
        axis = SIDES.index(pressed(number, first))  # the sums over axis 0 are those of the columns
        logits = logits - np.logaddexp.reduce(logits, axis=axis, keepdims=True)
    return np.exp(logits)
