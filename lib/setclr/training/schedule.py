"""Learning rates as pure functions of the step: a resumed run needs its step number alone."""

import math

from setclr.recipes import Recipe


def peak_rate(recipe: Recipe) -> float:
    """The learning rate after the warm-up: `lr`, times batch / lr_batch where the recipe has that."""
    return recipe.lr * recipe.batch / recipe.lr_batch if recipe.lr_batch else recipe.lr


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, …: linear warm-up to the peak, then constant or half a cosine to 0."""
    warmup, total = recipe.warmup * steps_per_epoch, recipe.epochs * steps_per_epoch
    peak = peak_rate(recipe)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if recipe.schedule == "constant":
        return peak
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))
