"""Points in a picture that the reader drags, and places in it that light up together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import atan2, degrees
from typing import Any

from ipywidgets import ValueWidget
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from setclr_course.pixels.controls import nearest_stop

Point = tuple[float, float]


@dataclass(frozen=True)
class Circle:
    """Round a centre; the control is the angle in degrees, counted from the right and to the left."""

    centre: Point = (0.0, 0.0)
    radius: float = 1.0


@dataclass(frozen=True)
class Segment:
    """From one point to another; the control is the fraction of the way."""

    start: Point
    end: Point


@dataclass(frozen=True)
class Handle:
    """A point of the picture that can be dragged: the controls follow it, and it follows the controls."""

    axis: Axes
    controls: tuple[str, ...]
    """The controls that it moves: two on a plane, else one."""
    at: Callable[[dict], ArrayLike]
    """Where it is for these values of the controls, in data coordinates of the axes."""
    along: str | Circle | Segment = "plane"
    """Where it can be moved: in the "plane", along "x" or "y" only, on a circle or a segment."""
    to: Callable[[float, float], Sequence[Any]] | None = None
    """The controls' values for a point in data coordinates. None: its coordinates, its angle on the circle,
    its fraction of the segment."""
    label: str = ""
    """What the reader may call it, for screen readers; "" is the handle's name."""

    def values(self, controls: dict[str, ValueWidget], place: Point) -> dict[str, Any]:
        """What the controls become where it is dragged to `place`, a fraction of the picture from its
        upper left."""
        x, y = point_at(self.axis, place)
        if self.to is not None:
            found = self.to(x, y)
        elif isinstance(self.along, Circle):
            (name,) = self.controls
            angle = degrees(atan2(y - self.along.centre[1], x - self.along.centre[0]))
            low = controls[name].min
            found = [turned(angle, low, low + 360)]
        elif isinstance(self.along, Segment):
            found = [fraction(self.along, (x, y))]
        else:
            found = {"plane": (x, y), "x": (x,), "y": (y,)}[self.along]
        return {name: nearest_stop(controls[name], value) for name, value in zip(self.controls, found)}

    def nudged(self, controls: dict[str, ValueWidget], right: float, up: float) -> dict[str, Any]:
        """What the controls become after so many steps to the right and upwards by keyboard."""
        steps = (right, up) if len(self.controls) == 2 else (right + up,)
        return {
            n: nearest_stop(controls[n], controls[n].value, step) for n, step in zip(self.controls, steps)
        }

    def place(self, values: dict) -> Point:
        """Where it is, as a fraction of the picture from its upper left."""
        return place_of(self.axis, self.at(values))

    def told(self, name: str) -> dict:
        """What the front end knows of it: its label and its way, in fractions of the picture."""
        way: dict[str, Any] = {"kind": self.along}
        if isinstance(self.along, Circle):
            (x, y), r = self.along.centre, self.along.radius
            way = {"kind": "circle", "centre": place_of(self.axis, (x, y)),
                   "right": place_of(self.axis, (x + r, y))}  # fmt: skip
        elif isinstance(self.along, Segment):
            ends = self.along.start, self.along.end
            way = {"kind": "segment", "ends": [place_of(self.axis, end) for end in ends]}
        return {"label": self.label or name, **way}


def free(axis: Axes, name: str, label: str = "") -> Handle:
    """A point that can be dragged anywhere; its coordinates are the controls "NAME x" and "NAME y"."""
    controls = f"{name} x", f"{name} y"
    return Handle(axis, controls, lambda values: [values[control] for control in controls], label=label)


@dataclass(frozen=True)
class Link:
    """Places in the picture that belong together: pointing at one of `over` lights up all of them."""

    over: Sequence["Mark"]
    lit: Sequence["Mark"] = field(default_factory=tuple)
    text: str = ""
    """What is shown beside the pointer, such as the value."""

    def told(self) -> dict:
        return {"over": [mark.told() for mark in self.over], "lit": [mark.told() for mark in self.lit],
                "text": self.text}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """A dot, a line between two points, or a box between two corners, in data coordinates of the axes."""

    axis: Axes
    kind: str
    points: Sequence[ArrayLike]

    def told(self) -> list:
        return [self.kind, *(x for point in self.points for x in place_of(self.axis, point))]


def dot(axis: Axes, point: ArrayLike) -> Mark:
    return Mark(axis, "dot", [point])


def line(axis: Axes, start: ArrayLike, end: ArrayLike) -> Mark:
    return Mark(axis, "line", [start, end])


def box(axis: Axes, corner: ArrayLike, opposite: ArrayLike) -> Mark:
    return Mark(axis, "box", [corner, opposite])


def cell(axis: Axes, row: int, column: int, rows: int = 1, columns: int = 1) -> Mark:
    """A cell of the matrix that `parts.cells` drew, or the block of cells that begins there."""
    return box(axis, (column - 0.5, row - 0.5), (column + columns - 0.5, row + rows - 0.5))


def place_of(axis: Axes, point: ArrayLike) -> Point:
    """A point in data coordinates as a fraction of the picture from its upper left."""
    x, y = axis.transData.transform(point)
    width, height = axis.figure.get_figure(root=True).bbox.size
    return round(float(x / width), 5), round(float(1 - y / height), 5)


def point_at(axis: Axes, place: Point) -> Point:
    """The reverse of `place_of`."""
    width, height = axis.figure.get_figure(root=True).bbox.size
    x, y = axis.transData.inverted().transform((place[0] * width, (1 - place[1]) * height))
    return float(x), float(y)


def turned(angle: float, low: float, high: float) -> float:
    """The angle with full turns added until it lies from low to high."""
    return low + (angle - low) % (high - low)


def fraction(segment: Segment, point: Point) -> float:
    """How far along the segment its point nearest to this one is."""
    (x, y), (u, v) = segment.start, segment.end
    along = ((point[0] - x) * (u - x) + (point[1] - y) * (v - y)) / ((u - x) ** 2 + (v - y) ** 2)
    return min(max(along, 0.0), 1.0)
