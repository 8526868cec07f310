"""Two views of the six photographs on a circle: ● stand still outside, ■ can be dragged inside."""

from typing import Any

import numpy as np
from ipywidgets import ValueWidget
from matplotlib.collections import LineCollection

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, INK
from setclr_course.pixels.circle import RADII, draw_circles
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Circle, Handle
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

FIRST = np.array([10, 60, 110, 180, 225, 300])  # degrees of ●
SPREAD = np.array([20, -20, 25, -15, 30, -10])  # by how much ■ differ where they go their own ways
OUTSIDE, INSIDE = 1.27, 0.47  # the radii at which the photographs ride


def ring_controls(own: np.ndarray, turn: int) -> dict[str, ValueWidget]:
    """How far view 2 is turned as a whole, and the angle of each ■ before that."""
    controls = {"turn": slider("turn of view 2", turn, -180, 180, 5, {0: "not turned"})}
    for name, angle in zip(NAMES, wrapped(FIRST + own)):
        controls[name] = slider(f"■ {name}, degrees", int(angle), -180, 175, 5)
    return controls


def wrapped(degrees: Any) -> Any:
    """The same angles from −180 up to 180."""
    return (degrees + 180) % 360 - 180


def degrees_of(values: dict) -> np.ndarray:
    """(2, 6): of ● and of ■."""
    return np.array([FIRST, [values[name] + values["turn"] for name in NAMES]], float)


def vectors(degrees: np.ndarray) -> np.ndarray:
    """Unit vectors (..., 2)."""
    radians = np.deg2rad(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=-1)


def ring_handles(axis, now: dict) -> dict[str, Handle]:
    """A handle for each ■; `now` holds the `turn`."""

    def handle(j: int, name: str) -> Handle:
        def to(x: float, y: float) -> list[float]:
            return [float(wrapped(np.rad2deg(np.arctan2(y, x)) - now["turn"]))]

        def at(values: dict) -> np.ndarray:
            return RADII[1] * vectors(degrees_of(values))[1, j]

        return Handle(axis, (name,), at, Circle(radius=RADII[1]), to, f"■ {name}")

    return {name: handle(j, name) for j, name in enumerate(NAMES)}


def draw_ring(axis, compact: bool, still: bool = True) -> Part:
    """Both circles with their photographs, and a line from each ● to its ■; moved by unit vectors (2, 6, 2).
    Where ● stand `still`, they are drawn once, at FIRST."""
    bare(axis, (-1.5, 1.5))
    draw_circles(axis)
    lines = axis.add_collection(LineCollection([], colors=GREY, linewidths=1.6, zorder=1))
    one, two = two_views()
    size, marks = 0.32, 7 if compact else 10
    faces = riders(axis, one, size, -size / 2), riders(axis, two, 0.8 * size, -0.4 * size)
    signs = [
        axis.plot([], [], sign, color=INK, markersize=marks, markeredgecolor="white", zorder=5)[0]
        for sign in "os"
    ]
    if not compact:
        axis.text(-1.48, -1.48, "● view 1, outside\n■ view 2, inside", va="bottom")

    def place(view: int, z: np.ndarray) -> None:
        signs[view].set_data(*(RADII[view] * z).T)
        faces[view].move((OUTSIDE, INSIDE)[view] * z)

    def move(z: np.ndarray) -> None:
        lines.set_segments(np.stack([z[0], RADII[1] * z[1]], axis=1))
        place(1, z[1])
        if not still:
            place(0, z[0])

    place(0, vectors(FIRST))
    moving = (1,) if still else (0, 1)
    return Part([lines, *(a for v in moving for a in (*faces[v].artists, signs[v]))], move)
