"""Which values of a control a test goes through, what readers do to handles, and what a scene shows."""

import io
from typing import Any

import numpy as np
from PIL import Image

from setclr_course.kit.controls import Knob, Options
from setclr_course.kit.panel import Panel


def ends(knob: Knob) -> list[Any]:
    """Both ends and the middle of a slider, all names of a choice."""
    last = knob.stops - 1
    stops = range(knob.stops) if isinstance(knob, Options) else dict.fromkeys((0, last // 2, last))
    return [knob.stop(at) for at in stops]


def arrow(panel: Panel, name: str, right: int, up: int) -> None:
    """A handle is moved by so many arrow keys, as panel.js does it."""
    handle = panel.handles[name]
    event: dict[str, Any] = {"event": ""}
    if handle.step:
        x, y = handle.point
        event |= {"handle": name, "x": x + handle.step * right, "y": y + handle.step * up}
    else:
        steps = zip(handle.moves, (right, up) if len(handle.moves) == 2 else (right + up,))
        event["set"] = {knob: panel.knobs[knob].number(panel.values[knob]) + step for knob, step in steps}
    panel.on_event(event)


def drag(panel: Panel, name: str, x: float, y: float) -> None:
    """A handle is dragged there."""
    panel.on_event({"event": "", "handle": name, "x": float(x), "y": float(y)})


def marks(shown: Any, plot: str, kind: str) -> list[dict]:
    """The marks of that kind in one of the plots of a panel, or of what `Panel.seen` gave."""
    (found,) = (one for one in shown.scene["plots"] if one["name"] == plot)
    return [mark for mark in found["marks"] if mark["kind"] == kind]


def points(mark: dict) -> np.ndarray:
    """(n, 2): where the pieces of a mark are."""
    return np.array([mark["x"], mark["y"]], float).T


def opened(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
