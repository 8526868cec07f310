"""Checks of arguments; every error message names the argument, the value it got and what to do."""

import difflib
import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # whoever checks a number or a name does not wait for torch
    import torch

MAX_ROUNDS = 10**5  # most rounds of an inner solver; more is a slip and would hang


def number(
    name: str, value: Any, above: float | None = None, least: float | None = None, most: float | None = None,
    hint: str = "", infinite: bool = False,
) -> float:  # fmt: skip
    """`value` as a float, if it is > `above`, >= `least` and <= `most`; inf only if `infinite`.

    Raises ValueError if it is no real number (a bool, NaN), out of bounds, or too small or large for float32.
    """
    bounds = ((">", above), (">=", least), ("<=", most))
    wanted = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
    wanted = wanted or "a finite number"
    good = isinstance(value, Real) and not isinstance(value, bool)
    good = good and (-math.inf < value < math.inf or (infinite and value == math.inf))
    good = good and (above is None or value > above) and (least is None or value >= least)
    if not good or (most is not None and value > most):
        raise ValueError(f"{name} must be {wanted}, got {value!r}" + (f"; {hint}" if hint else ""))
    if (above is not None and value < 1e-30) or 1e30 < abs(value) < math.inf:
        raise ValueError(f"{name} must be 1e-30 to 1e30 in size, got {value!r}; others overflow in float32")
    return float(value)


def setting(name: str, value: Any, or_zero: bool = False, **bounds: Any) -> float:
    """`number` for a setting of a loss or an inner problem, with a limit on its size.

    It may be at most 1e9 in size, or inf where allowed. If it must be > 0, it is at least 1e-9; with
    `or_zero` it may also be 0. Beyond these limits the product of two settings, or a gradient, leaves the
    range of float32.
    """
    x = number(name, value, **bounds)
    positive = bounds.get("above") is not None
    least = 1e-9 if or_zero or positive else 0.0
    if x and not least <= abs(x) <= 1e9 and math.isfinite(x):
        size = "1e-9 to 1e9" if positive else "0, or 1e-9 to 1e9" if or_zero else "at most 1e9"
        raise ValueError(f"{name} must be {size} in size, got {value!r}; float32 is not reliable beyond")
    return x


def integer(name: str, value: Any, least: int, most: int | None = None, hint: str = "") -> int:
    """`value` as an int, at least `least` and at most `most`. Raises ValueError otherwise."""
    wanted = f"an integer >= {least}" + (f" and <= {most}" if most is not None else "")
    good = isinstance(value, Integral) and not isinstance(value, bool)
    if not good or value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {wanted}, got {value!r}" + (f"; {hint}" if hint else ""))
    return int(value)


def boolean(name: str, value: Any, hint: str = "") -> bool:
    """`value` if it is True or False. Raises ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}" + (f"; {hint}" if hint else ""))
    return value


def choice(name: str, value: Any, options: Iterable[str], hint: str = "") -> str:
    """`value` if it is one of `options`. Otherwise a ValueError that lists them and names the nearest.

    With more than 20 options, the message names only the nearest three; `hint` should say how to list all.
    """
    options = list(options)
    if value not in options:
        many = len(options) > 20
        near = difflib.get_close_matches(str(value), options, *((3, 0.3) if many else (1,)))
        rest = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        rest += f"; {hint}" if hint else ""
        listed = f"the {len(options)} there are" if many else ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}{rest}")
    return value


def printable(text: object) -> str:
    """A text or path with newlines, escape codes and the like written out, for a terminal or a table."""
    text = str(text)
    return text if text.isprintable() else "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)


def floating(name: str, x: Any, shape: str, fits: "Callable[[torch.Tensor], bool]") -> "torch.Tensor":
    """`x` if it is a dense float32 or float64 tensor, not empty, and `fits(x)`. Otherwise ValueError.

    `shape` says in words, for the message, what `fits` asks for.
    """
    import torch

    if not isinstance(x, torch.Tensor):
        got = type(x).__name__
    elif x.dtype not in (torch.float32, torch.float64):
        got = f"{x.dtype}; use {name}.float()"
    elif x.numel() == 0 or not fits(x):
        got = f"shape {tuple(x.shape)}" + ("" if x.numel() or not x.ndim else ", which is empty")
    else:
        dense(name, x)
        return x
    raise ValueError(f"{name} must be a float32 or float64 tensor {shape}, got {got}")


def dense(name: str, x: "torch.Tensor") -> None:
    """Raises ValueError if the tensor is sparse, in any layout."""
    import torch

    if x.layout != torch.strided:
        raise ValueError(f"{name} must be a dense tensor, got {x.layout}; use {name}.to_dense()")


def finite(name: str, x: "torch.Tensor") -> None:
    """Raises ValueError if x holds NaN or inf; values are checked only on a CPU and outside compiled code."""
    if values_readable(x) and not x.isfinite().all():
        raise ValueError(f"{name} must be finite, got NaN or inf; look for a diverged step")


def folder(name: str, value: str | Path | None) -> Path | None:
    """The path of a folder, or None. Raises ValueError if it is empty: that would be the present folder."""
    if value == "":
        raise ValueError(f"{name} must name a folder, got ''; '.' is the present one")
    return None if value is None else Path(value)


def default_device() -> None:
    """Raises ValueError unless torch makes tensors on the CPU if nothing else is said: indices are there."""
    import torch

    if (device := torch.get_default_device()).type != "cpu":
        remedy = "torch.set_default_device('cpu'); data and models are moved by device="
        raise ValueError(f"torch's default device must be the CPU here, got {device}; {remedy}")


def values_readable(x: "torch.Tensor") -> bool:
    """Whether the values of x can be checked: only on a CPU, outside compiled code and torch.func.

    A check would stall a GPU, and compiled code and torch.func.vmap cannot make one.
    """
    import torch

    return x.device.type == "cpu" and not torch.compiler.is_compiling() and transforms() == 0


def transforms() -> int:
    """How many derivatives of torch.func (grad, vjp, jvp) are at work here, one within the other; at least
    one in vmap.

    What has a gradient written out by hand computes in autograd's own operations then: torch.func follows
    these alone.
    """
    import torch

    if torch.compiler.is_compiling():
        return 0
    stack = torch._C._functorch.get_interpreter_stack() or []
    return sum(level.key() != torch._C._functorch.TransformType.Vmap for level in stack) or int(bool(stack))
