"""Loss schedules: parameters of a loss that change during training, as MMCL's bandwidth on CIFAR-100.

"bandwidth: 25, 2.5 from 75, 0.25 from 125" is 25 in epochs 0 to 74 (counted from 0), 2.5 from epoch 75 on
and 0.25 from epoch 125 on. Several parameters are separated by ";".
"""

import ast
import copy
from bisect import bisect_right
from functools import cache
from operator import itemgetter
from typing import Any

from setclr.checks import choice
from setclr.losses.base import Objective, WeightedSum
from setclr.losses.temperature import Learnable

Stages = dict[str, list[tuple[int, Any]]]


@cache
def loss_stages(text: str) -> Stages:
    """The values of each parameter in a schedule, as (first epoch, value) in rising order of epochs.

    Raises ValueError: the text has another form, epochs are not whole and rising, or a name comes twice.
    """
    stages: Stages = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _, values = map(str.strip, part.partition(":"))
        first, *later = values.split(",")
        try:
            stages_of_name = [(0, _literal(first))]
            for value, epoch in (stage.split(" from ") for stage in later):
                stages_of_name.append((int(epoch), _literal(value)))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            stages_of_name = []
        epochs = [epoch for epoch, _ in stages_of_name]
        if not epochs or name in stages or epochs != sorted(set(epochs)):
            form = "a parameter once, numbers or quoted names, and the rising epochs that they hold from"
            raise ValueError(f"loss_schedule must have {form}: 'bandwidth: 25, 2.5 from 75', got {part!r}")
        stages[name] = stages_of_name
    return stages


def apply(loss: Objective, text: str, epoch: int) -> None:
    """Set each scheduled parameter to its value in this epoch (from 0), in every term that has it.

    They are set in the order of the text. The loss stays the same object.

    Raises ValueError: no term has such a parameter (the nearest is named), it is learnt, or its value is
    invalid.
    """
    terms = [term.loss for term in loss.terms] if isinstance(loss, WeightedSum) else [loss]
    for name, stages in loss_stages(text).items():
        names = sorted({name for term in terms for name in term.settings})
        choice("loss_schedule's parameter", name, names, hint=f"{loss} has no others")
        _, value = stages[bisect_right(stages, epoch, key=itemgetter(0)) - 1]
        for term in terms:
            if isinstance(getattr(term, name, None), Learnable):
                raise ValueError(f"loss_schedule names {name!r}, which {loss} learns; give it a number there")
            if name in term.settings:
                try:
                    setattr(term, name, value)
                except ValueError as error:
                    raise ValueError(f"loss_schedule at epoch {epoch}: {error}") from None


def check(loss: Objective, text: str) -> None:
    """Try all stages of a schedule on a copy of the loss. Raises ValueError as `loss_stages` and `apply`
    do."""
    loss = copy.deepcopy(loss) if text else loss
    for epoch in sorted({epoch for stages in loss_stages(text).values() for epoch, _ in stages}):
        apply(loss, text, epoch)


def _literal(text: str) -> Any:
    return float("inf") if text.strip() == "inf" else ast.literal_eval(text.strip())
