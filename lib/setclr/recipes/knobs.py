"""What is searched for each loss: the learning rate, and the one number of the loss that matters most."""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

from torch import Tensor

from setclr import losses
from setclr.checks import choice
from setclr.losses.base import WeightedSum
from setclr.recipes.recipe import Recipe

RATES = (3e-4, 1e-3, 3e-3, 1e-2)  # for Adam


class Knob(NamedTuple):
    name: str
    values: tuple[float, ...]


# The papers have 0.05 (QARe), 0.1 (GroCo) and 0.5 (IOT-CL, and QARe's program).
TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0)
KNOBS = {
    "InfoNCE": Knob("temperature", TEMPERATURES),
    "IOT": Knob("epsilon", TEMPERATURES),
    # Around 1, that of QARe's program. From 3 on no positive can enter the support.
    "SparseCLR": Knob("margin", (0.125, 0.25, 0.5, 1.0, 2.0)),
    # Around 1, the best for ten negatives in GroCo's table 8a, which has 0.062 to 16.
    "GroCo": Knob("beta", (0.0625, 0.25, 1.0, 4.0, 16.0)),
    # MMCL on CIFAR has 25, 2.5 and 0.25, one after the other.
    "MMCL": Knob("bandwidth", (0.25, 0.8, 2.5, 8.0, 25.0)),
}
WEIGHT = Knob("weight", (0.125, 0.25, 0.5, 1.0, 2.0))  # of QARe in a sum; its table 4 has 0.125 to 1.25


def knob(loss: str) -> Knob:
    """The knob of the loss that the text describes. Of a sum that ends with QARe it is QARe's weight.
    Raises ValueError for other losses."""
    parsed = losses.parse(loss)
    if isinstance(parsed, WeightedSum) and isinstance(parsed.losses[-1], losses.QARe):
        return WEIGHT
    return KNOBS[choice("loss", type(parsed).__name__, KNOBS, "or a sum that ends with QARe")]


def knob_value(loss: str) -> float:
    """Where the knob of the loss stands. Raises ValueError where it is learnt, or there is none."""
    parsed, name = losses.parse(loss), knob(loss).name
    value = parsed.weights[-1] if isinstance(parsed, WeightedSum) else getattr(parsed, name)
    if isinstance(value, Tensor):
        raise ValueError(f"{name} must be a number, got one that is learnt in {loss!r}; give it a value")
    return value


def turned(loss: str, value: float) -> str:
    """The loss with its knob at that value. Raises what `knob_value` does."""
    knob_value(loss)
    parsed = losses.parse(loss)
    if isinstance(parsed, WeightedSum):
        parsed.factors[-1] = (value,)
    else:
        setattr(parsed, knob(loss).name, value)
    return repr(parsed)


def grid(recipe: Recipe) -> dict[str, Recipe]:
    """The recipe with every rate and every value of its loss's knob, by titles such as
    "lr0.001-temperature0.5". Raises ValueError where the loss has no knob or changes while it trains, or the
    optimiser is not Adam."""
    choice("optimiser", recipe.optimiser, ("adam", "adamw"), "the rates of the grid are Adam's")
    choice("loss_schedule", recipe.loss_schedule, ("",), "a knob that is searched stays where it is")
    name, values = knob(recipe.loss)
    return {
        f"lr{lr:g}-{name}{value:g}": replace(recipe, lr=lr, loss=turned(recipe.loss, value))
        for lr, value in product(RATES, values)
    }
