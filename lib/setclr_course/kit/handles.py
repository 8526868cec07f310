"""Points that the reader drags: where they are, where they can go, and which controls they move."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import atan2, degrees
from typing import Any

import numpy as np

from setclr_course.kit.controls import Knob, Slider

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
    """A point that can be dragged: the controls follow it, and it follows the controls."""

    plot: int
    point: Point
    moves: tuple[str, ...]
    """The controls that it moves: two on a plane, else one; more with `to`."""
    along: str | Circle | Segment = "plane"
    """Where it can be moved: in the "plane", along "x" or "y" only, on a circle or a segment."""
    to: Callable[[float, float], Sequence[Any]] | None = None
    """The controls' values for a point. None: its coordinates, its angle on the circle, its fraction of the
    segment."""
    label: str = ""
    ends: tuple[float, float] | None = None
    """Along "x" or "y": where its way ends. None: where its control does."""
    snap: tuple[Point, ...] = ()
    """When it is let go near one of these points, it goes there."""
    step: float = 0.0
    """How far an arrow key moves it, in data units. 0: to the next stop of its controls."""

    def values(self, knobs: Mapping[str, Knob], x: float, y: float) -> dict[str, Any]:
        """What the controls become where it is dragged to that point."""
        if self.to is not None:
            found = self.to(x, y)
        elif isinstance(self.along, Circle):
            low = knobs[self.moves[0]].low  # type: ignore[union-attr]
            angle = degrees(atan2(y - self.along.centre[1], x - self.along.centre[0]))
            found = [low + (angle - low) % 360]
        elif isinstance(self.along, Segment):
            found = [fraction(self.along, (x, y))]
        else:
            found = {"plane": (x, y), "x": (x,), "y": (y,)}[self.along]
        return {name: knobs[name].nearest(value) for name, value in zip(self.moves, found)}

    def nudged(
        self, knobs: Mapping[str, Knob], values: Mapping[str, Any], right: float, up: float
    ) -> dict[str, Any]:
        """What the controls become after so many steps to the right and upwards by keyboard."""
        if self.step:
            both, (x, y) = right + up, self.point
            go = (both, 0) if self.along == "x" else (0, both) if self.along == "y" else (right, up)
            return self.values(knobs, x + self.step * go[0], y + self.step * go[1])
        steps = (right, up) if len(self.moves) == 2 else (right + up,)
        return {name: knobs[name].nearest(values[name], step) for name, step in zip(self.moves, steps)}

    def told(self) -> dict[str, Any]:
        """What the front end knows of it."""
        way: list[Any] = [self.along]
        if isinstance(self.along, Circle):
            way = ["circle", *self.along.centre, self.along.radius]
        elif isinstance(self.along, Segment):
            way = ["segment", *self.along.start, *self.along.end]
        told = {"plot": self.plot, "at": list(self.point), "way": way, "label": self.label}
        more = {"moves": list(self.moves), "ends": self.ends, "snap": self.snap, "step": self.step}
        return told | {name: value for name, value in more.items() if value}

    def ended(self, knobs: Mapping[str, Knob]) -> "Handle":
        """With the ends of its way, where they are those of its control."""
        knob = knobs[self.moves[0]]
        if self.to is None and self.ends is None and self.along in ("x", "y") and isinstance(knob, Slider):
            return replace(self, ends=(knob.low, knob.high))
        return self


def fraction(segment: Segment, point: Point) -> float:
    """How far along the segment its point nearest to this one is."""
    (x, y), (u, v) = segment.start, segment.end
    along = ((point[0] - x) * (u - x) + (point[1] - y) * (v - y)) / ((u - x) ** 2 + (v - y) ** 2)
    return min(max(along, 0.0), 1.0)


def nearest_to(points: np.ndarray, present: int) -> Callable[[float, float], list[int]]:
    """A handle's way: the number of the nearest of the points (n, 2); the present one where it is as near."""

    def to(x: float, y: float) -> list[int]:
        far = np.hypot(*(points - (x, y)).T)
        stays = far[present] <= far.min() + 1e-3 * np.ptp(points)
        return [present if stays else int(far.argmin())]

    return to
