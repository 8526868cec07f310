"""Refusing bad arguments in one voice: every message names the argument, the value it got and what to do."""

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real

import torch


def number(
    name: str,
    value,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    hint: str = "",
    infinite: bool = False,
) -> float:
    """`value` as a float within the bounds: > `above`, >= `least`, <= `most`; inf only where `infinite`.

    Raises:
        ValueError: it is no real number (a bool is none, nor is NaN) or is out of bounds.
    """
    bounds = [
        f"> {above:g}" if above is not None else "",
        f">= {least:g}" if least is not None else "",
        f"<= {most:g}" if most is not None else "",
    ]
    wanted = " and ".join(filter(None, bounds)) or "a finite number"
    good = isinstance(value, Real) and not isinstance(value, bool)
    good = good and (-math.inf < value < math.inf or (infinite and value == math.inf))
    if (
        not good
        or (above is not None and not value > above)
        or (least is not None and value < least)
        or (most is not None and value > most)
    ):
        raise ValueError(f"{name} must be {wanted}, got {value!r}" + (f"; {hint}" if hint else ""))
    return float(value)


def integer(name: str, value, least: int, most: int | None = None, hint: str = "") -> int:
    """`value` as an int, at least `least` and at most `most`. Raises ValueError otherwise."""
    wanted = f"an integer >= {least}" + (f" and <= {most}" if most is not None else "")
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {wanted}, got {value!r}" + (f"; {hint}" if hint else ""))
    return int(value)


def boolean(name: str, value, hint: str = "") -> bool:
    """`value` if it is True or False. Raises ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}" + (f"; {hint}" if hint else ""))
    return value


def choice(name: str, value, options: Iterable[str], hint: str = "") -> str:
    """`value` if it is one of `options`. Otherwise a ValueError that lists them and names the nearest."""
    options = list(options)
    if value not in options:
        near = difflib.get_close_matches(str(value), options, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}{guess}"
            + (f"; {hint}" if hint else "")
        )
    return value


def may_look(x: torch.Tensor) -> bool:
    """Whether values of x may be looked at: on a GPU that stalls it, and compiled it is impossible."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()
