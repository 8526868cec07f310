"""Two views of the six photographs on a circle: what the panels of pages 00 and 08 let the reader drag."""

from collections.abc import Sequence

import numpy as np
from ipywidgets import ValueWidget
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, INK, VERMILION
from setclr_course.pixels.circle import RADII, as_drawn, draw_circles
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Circle, Handle, Mark, dot, line
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

N = len(NAMES)
POINTS = [(view, i) for view in range(2) for i in range(N)]
SIZE = 0.27  # of a photograph beside its point
# Degrees of a batch with a trap: ● rocket and ■ astronaut are the closest pair, and no partners.
TRAP_ANGLES = ((75, 15, 212, 184, 310, 130), (98, 350, 197, 152, 285, 115))


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


def round_the_circle(axis: Axes, view: int, i: int) -> Handle:
    """A point that is dragged round its circle; its control is the angle."""
    name, radius = control(view, i), RADII[view]

    def at(values: dict) -> tuple[float, float]:
        angle = np.deg2rad(values[name])
        return radius * np.cos(angle), radius * np.sin(angle)

    label = f"{'●■'[view]} {NAMES[i]}"
    return Handle(axis, (name,), at, Circle(radius=radius), lambda x, y: [angle_of(x, y)], label)


def pair_of(axis, one: np.ndarray, two: np.ndarray) -> list[Mark]:
    return [dot(axis, one), dot(axis, two), line(axis, one, two)]


def draw_plane(axis, title: str) -> Part:
    """The views with their photographs, and a line for every pair, as wide as its share; moved by the views
    z (2, N, 2) of the unit circle and the shares (N, N)."""
    lines = axis.add_collection(LineCollection([], zorder=1))
    views = draw_views(axis, title)

    def move(z: np.ndarray, share: np.ndarray) -> None:
        views.move(z)
        points = as_drawn(z)
        lines.set_segments([[one, two] for one in points[0] for two in points[1]])
        lines.set(linewidths=5 * share.ravel(), colors=np.where(np.eye(N), VERMILION, GREY).ravel())

    return Part([lines, *views.artists], move)


def draw_views(axis, title: str) -> Part:
    """The views with their photographs on two circles; moved by the views z (2, N, 2) of the unit circle."""
    bare(axis, (-1.45, 1.45))
    draw_circles(axis)
    axis.set_title(title)
    style = {"color": INK, "markersize": 8, "markeredgecolor": "white", "zorder": 6}
    dots = [axis.plot([], [], sign, **style)[0] for sign in "os"]
    faces = riders(axis, np.concatenate(two_views()), SIZE, -SIZE / 2)
    axis.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), autoscale_on=False)

    def move(z: np.ndarray) -> None:
        for sign, view in zip(dots, as_drawn(z)):
            sign.set_data(*view.T)
        faces.move((z * np.array([1.24, 0.53])[:, None, None]).reshape(-1, 2))

    return Part([*faces.artists, *dots], move)
