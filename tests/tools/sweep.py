"""Which values of a control a test goes through, and what the arrow keys do to a handle."""

from typing import Any

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
