"""The controls of a panel: a `Knob` says what a control is, a `Control` is one, with a value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isclose, log10
from typing import Any

import traitlets

from setclr.checks import choice


@dataclass(frozen=True)
class Slider:
    """A quantity from low to high in even steps; `log`: in even decades. Whole numbers where all four are."""

    label: str
    start: float
    low: float
    high: float
    step: float
    marks: Mapping[float, str] = field(default_factory=dict)
    log: bool = False

    @property
    def stops(self) -> int:
        """How many there are."""
        return 1 + round((self.place(self.high) - self.place(self.low)) / self.step)

    def place(self, value: float) -> float:
        return log10(max(value, 1e-300)) if self.log else value

    def stop(self, number: int) -> Any:
        """The value of that stop; the last one is the end, even where a step would lead beyond."""
        steps = min(max(number, 0), self.stops - 1)
        at = min(self.place(self.low) + steps * self.step, self.place(self.high))
        if isinstance(self.step, int):
            return round(at)
        return round(10**at, 12) if self.log else round(at, 12)

    def number(self, value: float) -> int:
        """The stop nearest to that value."""
        at = (self.place(value) - self.place(self.low)) / self.step
        return min(max(round(at), 0), self.stops - 1)

    def nearest(self, value: float, steps: float = 0) -> Any:
        """The value of the stop nearest to that one, or of one so many steps further on."""
        return self.stop(self.number(value) + round(steps))

    def share(self, value: float) -> float:
        """How far along its way a value is, from 0 to 1."""
        return (self.place(value) - self.place(self.low)) / (self.place(self.high) - self.place(self.low))

    def taken(self, name: str, value: Any) -> Any:
        """The value, if the slider can take it; else ValueError."""
        slack = 1e-9 * abs(self.high - self.low)
        if isinstance(value, bool) or not self.low - slack <= value <= self.high + slack:
            raise ValueError(
                f"{name} must be {self.low:g} to {self.high:g}, got {value!r}; the slider ends there"
            )
        if isinstance(self.step, int) and value != round(value):
            raise ValueError(f"{name} must be a whole number, got {value!r}")
        return value

    def read(self, value: Any) -> str:
        """A value as the reader sees it."""
        if isinstance(self.step, int):
            return f"{value:d}"
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"

    def told(self) -> dict[str, Any]:
        marks = [[self.share(at), word] for at, word in self.marks.items()]
        kind = "log" if self.log else "whole" if isinstance(self.step, int) else "even"
        scale = [self.place(self.low), self.step, kind]
        return {"label": self.label, "stops": self.stops, "marks": marks, "scale": scale}


@dataclass(frozen=True)
class Options:
    """A choice between a few names, all of them visible."""

    label: str
    names: tuple[str, ...]
    start: str

    @property
    def stops(self) -> int:
        return len(self.names)

    def stop(self, number: int) -> str:
        return self.names[min(max(number, 0), self.stops - 1)]

    def number(self, value: str) -> int:
        return self.names.index(value)

    def nearest(self, value: str, steps: float = 0) -> str:
        return self.stop(self.number(value) + round(steps))

    def taken(self, name: str, value: Any) -> str:
        return choice(name, value, self.names)

    def read(self, value: str) -> str:
        return value

    def told(self) -> dict[str, Any]:
        return {"label": self.label, "stops": self.stops, "names": list(self.names)}


Knob = Slider | Options


def slider(
    label: str, value: float, low: float, high: float, step: float, marks: Mapping[float, str] | None = None
) -> Slider:
    whole = all(isinstance(x, int) for x in (value, low, high, step))
    return Slider(label, value, low, high, step if whole else float(step), marks or {})


def log_slider(
    label: str,
    value: float,
    low: float,
    high: float,
    step: float = 0.05,
    marks: Mapping[float, str] | None = None,
) -> Slider:
    """A slider for a temperature-like quantity, `low` to `high` in steps of `step` decades."""
    return Slider(label, value, low, high, float(step), marks or {}, log=True)


def options(label: str, names: Iterable[str], value: str | None = None) -> Options:
    names = tuple(names)
    return Options(label, names, value or names[0])


class Control(traitlets.HasTraits):
    """One knob of one panel: set its `value`, or watch it by `observe`.

    Raises ValueError where the value is none that the knob can take.
    """

    value = traitlets.Any()

    def __init__(self, name: str, knob: Knob, value: Any):
        self.name, self.knob = name, knob
        super().__init__(value=value)

    @traitlets.validate("value")
    def _taken(self, proposal: Any) -> Any:
        value = self.knob.taken(self.name, proposal["value"])
        return self.value if same(self.value, value) else value

    def ends(self) -> list[Any]:
        """Both ends and the middle of a slider, all names of a choice: what a test sweeps."""
        if isinstance(self.knob, Options):
            return list(self.knob.names)
        return list(
            dict.fromkeys(self.knob.stop(at) for at in (0, (self.knob.stops - 1) // 2, self.knob.stops - 1))
        )


def same(one: Any, other: Any) -> bool:
    """Whether two values differ by no more than arithmetic may change them."""
    return (
        isinstance(one, float)
        and isinstance(other, float)
        and isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    )
