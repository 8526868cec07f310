"""Search grids: learning rates, and for each loss the values of its most important hyperparameter."""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

from torch import Tensor, nn

from setclr import losses
from setclr.checks import choice
from setclr.losses.base import WeightedSum
from setclr.recipes.recipe import Recipe

RATES: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2)  # for Adam


class Hyperparameter(NamedTuple):
    name: str
    values: tuple[float, ...]


# The papers have 0.05 (QARe), 0.1 (GroCo) and 0.5 (IOT-CL, and QARe's program).
TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0)
HYPERPARAMETERS = {
    "InfoNCE": Hyperparameter("temperature", TEMPERATURES),
    "IOT": Hyperparameter("epsilon", TEMPERATURES),
    # Around 1, the value of QARe's program. From 3 on no positive can enter the support.
    "SparseCLR": Hyperparameter("margin", (0.125, 0.25, 0.5, 1.0, 2.0)),
    # Around 1, the best for ten negatives in GroCo's table 8a, which has 0.062 to 16.
    "GroCo": Hyperparameter("beta", (0.0625, 0.25, 1.0, 4.0, 16.0)),
    # MMCL on CIFAR has 25, 2.5 and 0.25, one after the other.
    "MMCL": Hyperparameter("bandwidth", (0.25, 0.8, 2.5, 8.0, 25.0)),
}
# Of QARe in a sum; its table 4 has 0.125 to 1.25.
WEIGHT = Hyperparameter("weight", (0.125, 0.25, 0.5, 1.0, 2.0))


def hyperparameter(loss: str) -> Hyperparameter:
    """The hyperparameter that is searched for a loss, given by its repr. Of a sum that ends with QARe it
    is QARe's weight. Raises ValueError for other losses."""
    parsed = losses.parse(loss)
    if isinstance(parsed, WeightedSum) and isinstance(parsed.losses[-1], losses.QARe):
        return WEIGHT
    kind = choice("loss", type(parsed).__name__, HYPERPARAMETERS, "or a sum that ends with QARe")
    return HYPERPARAMETERS[kind]


def hyperparameter_value(loss: str) -> float:
    """The value of the loss's hyperparameter. Raises ValueError where it is learnt, or there is none."""
    parsed, name = losses.parse(loss), hyperparameter(loss).name
    value = parsed.terms[-1].weight if isinstance(parsed, WeightedSum) else getattr(parsed, name)
    if isinstance(value, (Tensor, nn.Module)):
        raise ValueError(f"{name} must be a number, got one that is learnt in {loss!r}; give it a value")
    return value


def with_value(loss: str, value: float) -> str:
    """The repr of the loss with that value of its hyperparameter. Raises what `hyperparameter_value`
    does."""
    hyperparameter_value(loss)
    parsed = losses.parse(loss)
    if isinstance(parsed, WeightedSum):
        *others, last = parsed.terms
        parsed = WeightedSum([*others, last._replace(number=value)])
    else:
        setattr(parsed, hyperparameter(loss).name, value)
    return repr(parsed)


def beyond(values: tuple[float, ...], best: float) -> tuple[float, ...]:
    """The ascending values; where the best is the first or the last of them, with one more beyond it.

    The ratio of two neighbours goes on, to two digits: after 1, 2 comes 4; before 0.05, 0.1 comes 0.025.
    """
    if best == values[0]:
        return (float(f"{best**2 / values[1]:.2g}"), *values)
    return (*values, float(f"{best**2 / values[-2]:.2g}")) if best == values[-1] else values


def grid(recipe: Recipe, rates: tuple[float, ...] = (), values: tuple[float, ...] = ()) -> dict[str, Recipe]:
    """The recipe with every learning rate and every value of its loss's hyperparameter, by titles such as
    "lr0.001-temperature0.5". Empty ones are RATES and the values of HYPERPARAMETERS. Raises ValueError where
    the loss has no hyperparameter or has a schedule, or the optimiser is neither Adam nor AdamW."""
    choice("optimiser", recipe.optimiser, ("adam", "adamw"), "the rates of the grid are Adam's")
    if schedule := recipe.loss_schedule:
        raise ValueError(f"loss_schedule must be empty, got {schedule!r}: what is searched is constant")
    name, usual = hyperparameter(recipe.loss)
    return {
        f"lr{lr:g}-{name}{value:g}": replace(recipe, lr=lr, loss=with_value(recipe.loss, value))
        for lr, value in product(rates or RATES, values or usual)
    }
