"""The controls of a panel: a `Knob` says what a control is, a `Control` is one, with a value."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log10
from numbers import Real
from typing import Any

from setclr.checks import choice
from setclr_course.kit.palette import of_loss


def minus(said: str) -> str:
    """The words with a minus sign where Python writes a hyphen before a number."""
    return re.sub(r"(^|[\s(\[=]|\de)-(?=\.?\d|inf)", r"\1−", said) if "-" in said else said


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
    def whole(self) -> bool:
        return not self.log and all(isinstance(x, int) for x in (self.start, self.low, self.high, self.step))

    @property
    def stops(self) -> int:
        """How many there are."""
        return 1 + round((self.place(self.high) - self.place(self.low)) / self.step)

    def place(self, value: float) -> float:
        return log10(max(value, 1e-300)) if self.log else value

    def stop(self, number: int) -> Any:
        """The value of that stop, or of the end before it; the last one is the end, whatever the step."""
        steps = min(max(number, 0), self.stops - 1)
        at = min(self.place(self.low) + steps * self.step, self.place(self.high))
        return round(at) if self.whole else round(10**at if self.log else float(at), 12)

    def number(self, value: float) -> int:
        """The stop nearest to that value."""
        return round((self.place(value) - self.place(self.low)) / self.step)

    def taken(self, name: str, value: Any) -> Any:
        """The value, if the slider can take it; else ValueError."""
        real = isinstance(value, Real) and not isinstance(value, bool)
        slack, remedy = 1e-9 * abs(self.high - self.low), "the slider ends there" if real else "give a number"
        if not real or not self.low - slack <= value <= self.high + slack:
            raise ValueError(f"{name} must be {self.low:g} to {self.high:g}, got {value!r}; {remedy}")
        if self.whole and value != round(value):
            raise ValueError(f"{name} must be a whole number, got {value!r}; round it")
        return int(value) if self.whole else float(value)

    def read(self, value: Any) -> str:
        """A value as the reader sees it."""
        return minus(f"{value:d}" if self.whole else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}")

    def to_json(self) -> dict[str, Any]:
        low, high = self.place(self.low), self.place(self.high)
        marks = [[(self.place(at) - low) / (high - low), word] for at, word in self.marks.items()]
        return {"label": self.label, "stops": self.stops, "marks": marks}


@dataclass(frozen=True)
class Options:
    """A choice between a few names, all of them visible."""

    label: str
    names: tuple[str, ...]
    start: str
    losses: tuple[str, ...] = ()
    """Whose colours the names have, where they are not called after losses."""

    @property
    def stops(self) -> int:
        return len(self.names)

    def stop(self, number: int) -> str:
        return self.names[min(max(number, 0), self.stops - 1)]

    def number(self, value: str) -> int:
        return self.names.index(value)

    def taken(self, name: str, value: Any) -> str:
        return choice(name, value, self.names)

    def read(self, value: str) -> str:
        return value

    def to_json(self) -> dict[str, Any]:
        colours = [*map(of_loss, self.losses or self.names)]
        return {"label": self.label, "stops": self.stops, "names": list(self.names), "colours": colours}


@dataclass(frozen=True)
class Written:
    """A state as text, which moves with what the reader does, and which no control shows."""

    label: str
    start: str
    readable: re.Pattern[str]
    stops: int = 1

    def stop(self, number: int | str) -> str:
        """The text is its own number; any other is the start's."""
        return number if isinstance(number, str) else self.start

    def number(self, value: str) -> Any:
        return value

    def taken(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or not self.readable.fullmatch(value):
            raise ValueError(f"{name} must be as a panel wrote it, got {value!r}; copy it anew")
        return value

    def read(self, value: str) -> str:
        return ""

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "stops": 1, "written": self.readable.pattern}


Knob = Slider | Options | Written
slider = Slider


def log_slider(label: str, start: float, low: float, high: float, step: float = 0.05,
               marks: Mapping[float, str] | None = None) -> Slider:  # fmt: skip
    """A slider for a temperature-like quantity, `low` to `high` in steps of `step` decades."""
    return Slider(label, start, low, high, step, marks or {}, log=True)


def options(label: str, names: Iterable[str], start: str | None = None,
            losses: Iterable[str] = ()) -> Options:  # fmt: skip
    names = tuple(names)
    return Options(label, names, start or names[0], tuple(losses))


@dataclass
class Control:
    """One knob of one panel. Setting its `value` raises ValueError where the knob cannot take it."""

    panel: Any
    name: str
    knob: Knob

    @property
    def value(self) -> Any:
        return self.panel.values[self.name]

    @value.setter
    def value(self, value: Any) -> None:
        self.panel.on_event({"event": "", "values": {self.name: self.knob.taken(self.name, value)}})

    def ends(self) -> list[Any]:
        """Both ends and the middle of a slider, all names of a choice."""
        last = self.knob.stops - 1
        stops = range(last + 1) if isinstance(self.knob, Options) else dict.fromkeys((0, last // 2, last))
        return [self.knob.stop(at) for at in stops]
