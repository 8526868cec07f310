"""Settings: numbers, names and switches, declared once and checked wherever they are set.

In the body of a loss or a dataclass, `temperature: float = positive(0.5, "the papers use 0.05 to 0.5")` says
the default, what is allowed, and the hint of the error message. Signature, check, repr, command line and the
tests of wrong values follow from it.
"""

from collections.abc import Callable, Collection
from typing import Any

from setclr.checks import boolean, choice, integer, number, setting


class Setting:
    """A declared attribute. It is checked when it is set, as a field of a dataclass is by the constructor.

    `check(name, value, **bounds)` returns the value, or raises ValueError that names it. A setting whose
    default is None, or with `or_none`, may also be None. `...` as default: a value must be given.
    """

    def __init__(self, default: Any, check: Callable[..., Any], or_none: bool = False, **bounds: Any):
        self.default, self.check, self.bounds = default, check, bounds
        self.or_none = or_none or default is None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is not None:
            return vars(instance)[self.name]
        if self.default is ...:
            raise AttributeError(self.name)  # so a dataclass knows that the field has no default
        return self.default

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = self.checked(value)

    @property
    def options(self) -> Collection[str]:
        """The names that `one_of` allows; of other settings none."""
        return self.bounds.get("options", ())

    def checked(self, value: Any) -> Any:
        """The value as the setting holds it. Raises ValueError where it is not allowed."""
        return None if value is None and self.or_none else self.check(self.name, value, **self.bounds)


def settings_of(kind: type) -> dict[str, Setting]:
    """The declared settings of a class by name, those of its bases first."""
    declared = (item for base in reversed(kind.__mro__) for item in vars(base).items())
    return {name: x for name, x in declared if isinstance(x, Setting)}


def real(default: Any, hint: str = "", or_none: bool = False, **bounds: Any) -> Any:
    """A number within `above`, `least` and `most`, for a recipe or a view. An integer stays one."""
    return Setting(default, _as_given, or_none, hint=hint, **bounds)


def moderate(default: Any, hint: str = "", or_none: bool = False, **bounds: Any) -> Any:
    """A number of a loss within bounds, and moderate in size (`checks.setting`)."""
    return Setting(default, setting, or_none, hint=hint, **bounds)


def positive(default: Any, hint: str = "", **bounds: Any) -> Any:
    """A number of a loss, > 0 and moderate in size."""
    return moderate(default, hint, above=0, **bounds)


def whole(default: Any, least: int, most: int | None = None, hint: str = "", or_none: bool = False) -> Any:
    """An integer, at least `least` and at most `most`."""
    return Setting(default, integer, or_none, least=least, most=most, hint=hint)


def flag(default: bool) -> Any:
    """True or False."""
    return Setting(default, boolean)


def one_of(default: Any, options: Collection[str], hint: str = "") -> Any:
    """One of several names."""
    return Setting(default, choice, options=options, hint=hint)


def text(default: Any) -> Any:
    """Any text."""
    return Setting(default, _text)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, got {value!r}")
    return value


def _as_given(name: str, value: Any, **bounds: Any) -> float:
    x = number(name, value, **bounds)
    return value if isinstance(value, int) else x  # a record says warmup: 10, as its recipe does
