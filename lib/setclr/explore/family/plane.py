"""Two views of the six photographs on a circle: what the panels of pages 00 and 08 let the reader drag."""

from collections.abc import Sequence

import numpy as np
from ipywidgets import ValueWidget
from matplotlib.collections import LineCollection

from setclr.explore.kit.cast import NAMES, two_views
from setclr.explore.kit.circle import as_drawn, draw_circles
from setclr.explore.kit.controls import slider
from setclr.explore.kit.handles import Mark, dot, line
from setclr.explore.kit.parts import Part, bare
from setclr.palette import GREY, INK, VERMILION

N = len(NAMES)
POINTS = [(view, i) for view in range(2) for i in range(N)]
SIZE = 0.27  # of a photograph beside its point


def control(view: int, i: int) -> str:
    """The name of the control for a point's angle."""
    return f"{NAMES[i]} {view + 1}"


def angle_sliders(angles: Sequence[Sequence[int]]) -> dict[str, ValueWidget]:
    """A slider for each point, in degrees."""
    return {
        control(view, i): slider(f"{'●■'[view]} {NAMES[i]}, angle", angles[view][i], 0, 359, 1)
        for view, i in POINTS
    }


def angles_of(values: dict) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(values[control(view, i)] for i in range(N)) for view in range(2))


def angle_of(x: float, y: float) -> float:
    """Of a point in the plane, in degrees from 0 to 360."""
    return float(np.degrees(np.arctan2(y, x)) % 360)


def pair_of(axis, one: np.ndarray, two: np.ndarray) -> list[Mark]:
    return [dot(axis, one), dot(axis, two), line(axis, one, two)]


def draw_plane(axis, title: str) -> Part:
    """The views with their photographs, and a line for every pair, as wide as its share; moved by the views
    z (2, N, 2) of the unit circle and the shares (N, N)."""
    bare(axis, (-1.45, 1.45))
    draw_circles(axis)
    axis.set_title(title)
    lines = axis.add_collection(LineCollection([], zorder=1))
    style = {"color": INK, "markersize": 8, "markeredgecolor": "white", "zorder": 6}
    dots = [axis.plot([], [], sign, **style)[0] for sign in "os"]
    faces = [axis.imshow(face, extent=(0, 0, 0, 0), zorder=4) for view in two_views() for face in view]
    axis.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), autoscale_on=False)

    def move(z: np.ndarray, share: np.ndarray) -> None:
        points = as_drawn(z)
        for sign, view in zip(dots, points):
            sign.set_data(*view.T)
        beside = z * np.array([1.24, 0.53])[:, None, None]
        for face, (x, y) in zip(faces, beside.reshape(-1, 2)):
            face.set_extent((x - SIZE / 2, x + SIZE / 2, y - SIZE / 2, y + SIZE / 2))
        lines.set_segments([[one, two] for one in points[0] for two in points[1]])
        lines.set(linewidths=5 * share.ravel(), colors=np.where(np.eye(N), VERMILION, GREY).ravel())

    return Part([lines, *faces, *dots], move)
