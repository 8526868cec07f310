"""The optimisers that recipes name: Adam, AdamW and SGD as torch has them, and LARS, which it has not."""

from collections.abc import Callable

import torch
from torch import nn

from setclr.checks import number
from setclr.recipes import Recipe
from setclr.training.schedule import peak_rate


def make_optimiser(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The recipe's optimiser of the model's parameters, its learning rate the peak rate."""
    lr, momentum, decay = peak_rate(recipe), recipe.momentum, recipe.weight_decay
    if recipe.optimiser == "lars":
        return LARS(model.parameters(), lr=lr, momentum=momentum, weight_decay=decay)
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=decay)
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=decay)
    return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=decay)


class LARS(torch.optim.Optimizer):
    """SGD with momentum in which each weight moves in proportion to its norm (You, Gitman, Ginsburg 2017).

    With gradient g and weight w, the step adds d = trust · ‖w‖ / ‖g + λw‖ · (g + λw) to the momentum buffer,
    m ← μm + d, and moves w ← w − lr · m. The factor is 1 where either norm is 0. Parameters of fewer than two
    dimensions (biases, batch norm) take d = g: neither scaled nor decayed, as in SimCLR, Barlow Twins and
    MoCo v3.

    Args:
        params: parameters, or groups of them, as for torch's optimisers.
        lr: the learning rate; above 1 is usual, since `trust` is small.
        momentum: μ, 0 to 1.
        weight_decay: λ ≥ 0.
        trust: how far a weight moves, as a fraction of its norm, when lr is 1.

    Raises:
        ValueError: an argument is not as above; the message names it.

    Cost: O(parameters); no value is read back from the device.
    """

    def __init__(
        self, params, lr: float, momentum: float = 0.9, weight_decay: float = 0.0, trust: float = 1e-3
    ):
        number("lr", lr, least=0)
        number("momentum", momentum, least=0, most=1)
        number("weight_decay", weight_decay, least=0)
        number("trust", trust, above=0)
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        """Move every parameter that has a gradient; returns what `closure`, if given, returned."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            for w in group["params"]:
                if w.grad is None:
                    continue
                d = w.grad
                if w.ndim > 1:
                    d = d.add(w, alpha=group["weight_decay"])
                    size, change = w.norm(), d.norm()
                    ratio = group["trust"] * size / change
                    d = d * torch.where((size > 0) & (change > 0), ratio, torch.ones_like(ratio))
                state = self.state[w]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(w)
                state["momentum"].mul_(group["momentum"]).add_(d)
                w.add_(state["momentum"], alpha=-group["lr"])
        return loss
