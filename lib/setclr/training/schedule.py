"""Learning rates as pure functions of the step, and random streams as functions of a key.

Neither has a state, so a resumed run needs nothing but its step number to go on exactly.
"""

import math

import numpy as np
import torch
from torch import nn

from setclr.recipes import Recipe


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, …: linear warm-up, then constant or half a cosine from `lr` to 0 at the end."""
    warmup, total = recipe.warmup * steps_per_epoch, recipe.epochs * steps_per_epoch
    if step < warmup:
        return recipe.lr * (step + 1) / (warmup + 1)
    if recipe.schedule == "constant":
        return recipe.lr
    return recipe.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))


def make_optimiser(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(
            model.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay
        )
    return torch.optim.Adam(model.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay)


def stream(*key: int) -> torch.Generator:
    """A CPU generator that is a function of `key` alone, for example (seed, epoch, step).

    The key's length counts too: numpy's SeedSequence by itself takes (seed, epoch) for (seed, epoch, 0).
    """
    seed = int(np.random.SeedSequence([len(key), *key]).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(seed)
