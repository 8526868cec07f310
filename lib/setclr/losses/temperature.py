"""Numbers that are learnt: a loss's temperature, or its weight in a sum."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from setclr.checks import setting, transforms
from setclr.settings import Setting

LEAST, MOST = 0.01, 1.0  # of a learnt number: 1 over CLIP's logit scale, which is 1 to 100
PAPERS_USE = "the papers use 0.05 to 0.5"


class Learnable(nn.Module):
    """A number that is learnt in the logarithm, so that no step can make it 0 or less; see `learnable`."""

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
        if transforms() or torch.compiler.is_exporting():  # which allow no change in place
            return self.log.clamp(math.log(LEAST), math.log(MOST)).exp()
        with torch.no_grad():
            self.log.clamp_(math.log(LEAST), math.log(MOST))
        return self.log.exp()

    def __repr__(self) -> str:
        return f"learnable({self.value:.6g})"


class Offset(Learnable):
    """A number that is learnt as it is, without bounds."""

    def __init__(self, start: float) -> None:
        nn.Module.__init__(self)
        kind = torch.promote_types(torch.get_default_dtype(), torch.float32)
        self.number = nn.Parameter(torch.tensor(setting("bias", start), dtype=kind))

    @property
    def value(self) -> float:
        return self.number.item()

    def forward(self) -> Tensor:
        return self.number

    def __repr__(self) -> str:
        return f"{self.value:.6g}"


Temperature = float | Learnable


def learnable(start: float) -> Learnable:
    """A number that is learnt: `InfoNCE(temperature=learnable(0.07))` (CLIP, Radford et al. 2021).

    Its logarithm is the parameter, and is kept within log 0.01 to log 1 at each use, as CLIP's logit scale
    is. So every optimiser keeps it positive. `loss.temperature.value` is the present number. A loss may be
    multiplied by one, too: `InfoNCE() + learnable(0.5) * QARe()`.

    >>> from setclr import InfoNCE, learnable
    >>> loss = InfoNCE(temperature=learnable(0.07))
    >>> round(loss.temperature.value, 4), len(list(loss.parameters()))
    (0.07, 1)

    Raises ValueError unless `start` is 0.01 to 1.
    """
    return Learnable(start)


def tau(default: float, hint: str = PAPERS_USE) -> Any:
    """A setting that is a temperature: a number > 0, or `learnable(0.07)`."""
    return Setting(default, _temperature, hint=hint)


def learnt(default: float, offset: bool = False) -> Any:
    """A setting that is always learnt; the number given is its start. `offset`: it has no bounds."""
    return Setting(default, _learnt, kind=Offset if offset else Learnable)


def _learnt(name: str, value: Any, kind: type[Learnable]) -> Learnable:
    if isinstance(value, kind):
        return value
    if isinstance(value, Learnable):
        raise ValueError(f"{name} must be a number, where it starts, got {value!r}; it is learnt")
    bounds: dict[str, Any] = {} if kind is Offset else {"least": LEAST, "most": MOST}
    return kind(setting(name, value, **bounds, hint="it is learnt; this is where it starts"))


def _temperature(name: str, value: Any, hint: str) -> Temperature:
    if isinstance(value, Tensor):
        remedy = "x.item() is a number, and learnable(x.item()) is learnt"
        got = f"a tensor of shape {tuple(value.shape)}"
        raise ValueError(f"{name} must be a number or learnable(0.07), got {got}; {remedy}")
    return value if isinstance(value, Learnable) else setting(name, value, above=0, hint=hint)


def current(value: Any) -> float | Tensor:
    """The present value of a temperature."""
    return value() if isinstance(value, Learnable) else value


def learnt_numbers(loss: nn.Module) -> dict[str, float]:
    """The present values of a loss's learnt numbers, by name."""
    return {name: module.value for name, module in loss.named_modules() if isinstance(module, Learnable)}
