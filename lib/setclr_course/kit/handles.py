"""Points that the reader drags: where they are, where they can go, and which controls they move."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

    def value(self, x: float, y: float, knob: Any) -> float:
        angle = degrees(atan2(y - self.centre[1], x - self.centre[0]))
        return knob.low + (angle - knob.low) % 360

    def to_json(self) -> list[Any]:
        return ["circle", *self.centre, self.radius]


@dataclass(frozen=True)
class Segment:
    """From one point to another; the control is the fraction of the way."""

    start: Point
    end: Point

    def value(self, x: float, y: float, knob: Any) -> float:
        start, way = np.array(self.start), np.subtract(self.end, self.start)
        return float(np.clip((np.array([x, y]) - start) @ way / (way @ way), 0, 1))

    def to_json(self) -> list[Any]:
        return ["segment", *self.start, *self.end]


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
    ends: Point | None = None
    """Along "x" or "y": where its way ends. None: where its control does."""
    snap: tuple[Point, ...] = ()
    """When it comes near one of these points, it goes there."""
    step: float = 0.0
    """How far an arrow key moves it, in data units. 0: to the next stop of its controls."""

    def values(self, knobs: Mapping[str, Knob], x: float, y: float) -> dict[str, Any]:
        """What the controls become where it is dragged to that point."""
        way, knob = self.along, knobs[self.moves[0]]
        here: dict[str, Sequence[Any]] = {"plane": (x, y), "x": (x,), "y": (y,)}
        found = self.to(x, y) if self.to else here[way] if isinstance(way, str) else [way.value(x, y, knob)]
        return {name: knobs[name].stop(knobs[name].number(value)) for name, value in zip(self.moves, found)}

    def to_json(self, knobs: Mapping[str, Knob]) -> dict[str, Any]:
        """What the front end knows of it."""
        way, ends, knob = self.along, self.ends, knobs.get(self.moves[0])
        if way in ("x", "y") and self.to is None and isinstance(knob, Slider):
            ends = ends or (knob.low, knob.high)
        about = {"at": list(self.point), "way": [way] if isinstance(way, str) else way.to_json(),
                 "label": self.label, "moves": list(self.moves), "ends": ends, "snap": self.snap,
                 "step": self.step}  # fmt: skip
        return {"plot": self.plot} | {name: value for name, value in about.items() if value}


def nearest_to(points: np.ndarray, present: int) -> Callable[[float, float], list[int]]:
    """A handle's way: the number of the nearest of the points (n, 2); the present one where it is as near."""

    def to(x: float, y: float) -> list[int]:
        far = np.hypot(*(points - (x, y)).T)
        stays = far[present] <= far.min() + 1e-3 * np.ptp(points)
        return [present if stays else int(far.argmin())]

    return to
