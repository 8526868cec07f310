"""Which values of a control a test goes through."""

from typing import Any

from setclr_course.kit.controls import Knob, Options


def ends(knob: Knob) -> list[Any]:
    """Both ends and the middle of a slider, all names of a choice."""
    last = knob.stops - 1
    stops = range(knob.stops) if isinstance(knob, Options) else dict.fromkeys((0, last // 2, last))
    return [knob.stop(at) for at in stops]
