"""Optimisers by name (torch's Adam, AdamW and SGD; LARS, which torch lacks), and learning-rate schedules."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from setclr.checks import number
from setclr.settings import one_of, real


def make_optimiser(
    name: str, model: nn.Module, loss: nn.Module, lr: float, momentum: float = 0.9, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """The optimiser of that name, "adam", "adamw", "sgd" or "lars", at its peak learning rate.

    The loss's own parameters get no weight decay.
    """
    groups: list[dict] = [{"params": list(model.parameters())}]
    if own := list(loss.parameters()):
        groups.append({"params": own, "weight_decay": 0.0})
    if name == "lars":
        return LARS(groups, lr, momentum, weight_decay)
    fused = all(p.device.type in ("cpu", "cuda") for p in model.parameters()) or None  # None: as torch likes
    if name == "sgd":
        return torch.optim.SGD(groups, lr, momentum, weight_decay=weight_decay, fused=fused)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return kind(groups, lr, weight_decay=weight_decay, fused=fused)


def check_optimiser(optimiser: torch.optim.Optimizer, learnt: nn.Module) -> torch.optim.Optimizer:
    """Give the optimiser back, with its peak learning rates stored as `initial_lr`.

    Raises ValueError if it lacks a parameter that learns, or none learns.
    """
    if not any(p.requires_grad for p in learnt.parameters()):
        raise ValueError("encoder or head must have a parameter that learns, got none; requires_grad_(True)")
    held = {id(parameter) for group in optimiser.param_groups for parameter in group["params"]}
    missing = [name for name, p in learnt.named_parameters() if p.requires_grad and id(p) not in held]
    if missing:
        lacks = f"{missing[0]} ({len(missing)} in all); add it, or requires_grad_(False) keeps it as it is"
        raise ValueError(f"optimiser must hold every parameter that learns, and lacks {lacks}")
    for group in optimiser.param_groups:
        group.setdefault("initial_lr", group["lr"])
    return optimiser


class LARS(torch.optim.Optimizer):
    """SGD with momentum that moves each weight in proportion to its norm (You, Gitman, Ginsburg 2017).

    With gradient g and weight w, the step adds d = trust · ‖w‖ / ‖g + λw‖ · (g + λw) to the momentum
    buffer, m ← μm + d, and moves w ← w − lr · m. The factor before (g + λw) is 1 where either norm is 0.
    Parameters of fewer than two dimensions (biases, batch norm) use d = g, without scaling or decay, as
    in SimCLR, Barlow Twins and MoCo v3.

    `params` are as for torch's optimisers, `momentum` is μ, 0 to 1, and `weight_decay` λ ≥ 0. `trust` is
    how far a weight moves, as a fraction of its norm, when lr is 1. It is small, so lr is usually above
    1. Raises ValueError where one is not as above. Cost: O(parameters); no value is read back from the
    device.
    """

    def __init__(
        self, params: Iterable, lr: float,
        momentum: float = 0.9, weight_decay: float = 0.0, trust: float = 1e-3,
    ):  # fmt: skip
        number("lr", lr, least=0)
        number("momentum", momentum, least=0, most=1)
        number("weight_decay", weight_decay, least=0)
        number("trust", trust, above=0)
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable | None = None) -> Any:
        """Move every parameter that has a gradient; returns what `closure` returns, or None without one."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            weights = [w for w in group["params"] if w.grad is not None]
            moves = {w: w.grad for w in weights}
            if matrices := [w for w in weights if w.ndim > 1]:
                d = torch._foreach_add([w.grad for w in matrices], matrices, alpha=group["weight_decay"])
                size, length = (torch.stack(torch._foreach_norm(x)) for x in (matrices, d))
                factor = torch.where((size > 0) & (length > 0), group["trust"] * size / length, 1)
                moves |= zip(matrices, torch._foreach_mul(d, factor.unbind()))
            for w in weights:
                if not self.state[w]:
                    self.state[w]["momentum"] = torch.zeros_like(w)
            if weights:
                momenta = [self.state[w]["momentum"] for w in weights]
                torch._foreach_mul_(momenta, group["momentum"])
                torch._foreach_add_(momenta, list(moves.values()))
                torch._foreach_sub_(weights, momenta, alpha=group["lr"])
        return loss


@dataclass(frozen=True)
class LRSchedule:
    """The learning rate as a fraction of its peak: a linear warm-up, then the `shape`.

    `shape`: "constant"; "cosine", half a cosine to 0; or "steps", a tenth from half of the epochs on and
    a hundredth from three quarters on. `warmup` is the length of the warm-up in epochs, ≥ 0. Raises
    ValueError for another shape or a negative warm-up.

    >>> from setclr.training import LRSchedule
    >>> LRSchedule("cosine", warmup=10)
    LRSchedule(shape='cosine', warmup=10)
    """

    shape: str = one_of("cosine", ("cosine", "constant", "steps"))
    warmup: float = real(0.0, least=0)

    def factor(self, step: int, steps: int, epochs: int) -> float:
        """The fraction at `step` (from 0) in a run of `epochs` epochs of `steps` steps each."""
        warmup, total = self.warmup * steps, epochs * steps
        if step < warmup:
            return (step + 1) / (warmup + 1)
        if self.shape == "constant":
            return 1.0
        if self.shape == "steps":
            epoch = step // steps
            return 0.1 ** ((epoch >= epochs / 2) + (epoch >= 3 * epochs / 4))
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))
