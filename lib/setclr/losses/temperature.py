"""Temperatures: fixed numbers or learned parameters."""

import torch
from torch import Tensor, nn

from setclr.checks import setting, values_readable


def learnable(name: str, value: float | nn.Parameter, hint: str) -> float | nn.Parameter:
    """Check a temperature: a number > 0 or a 0-d floating parameter > 0. Raises ValueError for others."""
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        kind = f"a plain tensor of shape {tuple(value.shape)}"
        raise ValueError(
            f"{name} must be a number or an nn.Parameter, got {kind}; x.item() is a number, and "
            "nn.Parameter(x) is learnt"
        )
    if not isinstance(value, nn.Parameter):
        return setting(name, value, above=0, hint=hint)
    if value.ndim or not value.is_floating_point():
        raise ValueError(
            f"{name} must be a number or a 0-d floating nn.Parameter, got {value.dtype} of shape "
            f"{tuple(value.shape)}; nn.Parameter(torch.tensor(0.07)) is one"
        )
    setting(name, value.item(), above=0, hint=hint)
    return value


def in_use(name: str, value: float | nn.Parameter) -> float | Tensor:
    """Current value of a temperature; if a learned one is not > 0, ValueError on the CPU, NaN on a GPU."""
    if not isinstance(value, nn.Parameter):
        return value
    if values_readable(value) and not value > 0:
        raise ValueError(
            f"{name} must be > 0, got {value.item()}: the optimiser moved it there; lower its learning "
            "rate, or clamp it after each step"
        )
    return torch.where(value > 0, value, torch.nan)
