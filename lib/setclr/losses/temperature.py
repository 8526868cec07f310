"""Temperatures: fixed numbers, or numbers that are learnt."""

import math

import torch
from torch import Tensor, nn

from setclr.checks import setting, values_readable

LEAST, MOST = 0.01, 1.0  # of a learnt temperature: 1 over CLIP's logit scale, which is 1 to 100


class Learnable(nn.Module):
    """A setting that is learnt in the logarithm, so that no step can make it 0 or less; see `learnable`."""

    def __init__(self, start: float) -> None:
        super().__init__()
        setting("learnable", start, least=LEAST, most=MOST, hint="CLIP starts at 0.07")
        kind = torch.promote_types(torch.get_default_dtype(), torch.float32)
        self.log = nn.Parameter(torch.tensor(math.log(start), dtype=kind))

    @property
    def value(self) -> float:
        """The present value."""
        return min(max(math.exp(self.log.item()), LEAST), MOST)

    def forward(self) -> Tensor:
        with torch.no_grad():
            self.log.clamp_(math.log(LEAST), math.log(MOST))
        return self.log.exp()

    def __repr__(self) -> str:
        return f"learnable({self.value:.6g})"


Temperature = float | nn.Parameter | Learnable


def learnable(start: float) -> Learnable:
    """A temperature that is learnt: `InfoNCE(temperature=learnable(0.07))` (CLIP, Radford et al. 2021).

    Its logarithm is the parameter, and is kept within log 0.01 to log 1 at each use, as CLIP's logit scale
    is. So every optimiser keeps it positive. `loss.temperature.value` is the present number.

    >>> from setclr import InfoNCE, learnable
    >>> loss = InfoNCE(temperature=learnable(0.07))
    >>> round(loss.temperature.value, 4), len(list(loss.parameters()))
    (0.07, 1)

    Raises ValueError unless `start` is 0.01 to 1.
    """
    return Learnable(start)


def checked_temperature(name: str, value: Temperature, hint: str) -> Temperature:
    """Check a temperature: a number > 0, `learnable(0.07)`, or a 0-d floating parameter > 0."""
    if isinstance(value, Learnable):
        return value
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        raise ValueError(
            f"{name} must be a number or learnable(0.07), got a tensor of shape {tuple(value.shape)}; "
            "x.item() is a number, and learnable(x.item()) is learnt"
        )
    if not isinstance(value, nn.Parameter):
        return setting(name, value, above=0, hint=hint)
    if value.ndim or not value.is_floating_point():
        raise ValueError(
            f"{name} must be a number or a 0-d floating nn.Parameter, got {value.dtype} of shape "
            f"{tuple(value.shape)}; learnable(0.07) is learnt, too, and stays positive"
        )
    setting(name, value.item(), above=0, hint=hint)
    return value


def learnt_numbers(loss: nn.Module) -> dict[str, float]:
    """The present values of a loss's learnt numbers, by name: temperatures and weights."""
    found = {name: module.value for name, module in loss.named_modules() if isinstance(module, Learnable)}
    own = {name: p.item() for name, p in loss.named_parameters() if p.ndim == 0}
    return found | {name: x for name, x in own.items() if name.removesuffix(".log") not in found}


def in_use(name: str, value: Temperature) -> float | Tensor:
    """Current value of a temperature; a parameter that is not > 0: ValueError on the CPU, NaN on a GPU."""
    if isinstance(value, Learnable):
        return value()
    if not isinstance(value, nn.Parameter):
        return value
    if values_readable(value) and not value > 0:
        raise ValueError(
            f"{name} must be > 0, got {value.item()}: the optimiser moved it there; "
            "learnable(0.07) is learnt in the logarithm and stays positive"
        )
    return torch.where(value > 0, value, torch.nan)
