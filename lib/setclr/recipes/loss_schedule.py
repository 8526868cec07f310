"""Loss schedules: parameters of a loss that change during training, as MMCL's bandwidth on CIFAR-100.

"bandwidth: 25, 2.5 from 75, 0.25 from 125" is 25 in epochs 0 to 74 (counted from 0), 2.5 from epoch 75 on
and 0.25 from epoch 125 on. Several parameters are separated by ";".
"""

import ast
import copy
import inspect
from bisect import bisect_right
from functools import cache
from operator import itemgetter
from typing import Any, cast

from setclr.checks import choice
from setclr.losses.base import Objective, WeightedSum
from setclr.losses.temperature import learnt_numbers

Stages = dict[str, list[tuple[int, Any]]]


@cache
def loss_stages(text: str) -> Stages:
    """The values of each parameter in a schedule, as (first epoch, value) in rising order of epochs.

    Raises ValueError: the text has another form, epochs are not whole and rising, or a name comes twice.
    """
    stages: Stages = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, colon, values = map(str.strip, part.partition(":"))
        if not colon or not name.isidentifier():
            raise ValueError(f"loss_schedule must name a parameter and its values, 'beta: 25', got {part!r}")
        if name in stages:
            raise ValueError(f"loss_schedule must name each parameter once, got {name} twice")
        stages[name] = []
        for piece in values.split(","):
            value, *since = map(str.strip, piece.split(" from "))
            epoch = _literal(name, since[0]) if len(since) == 1 else 0
            if len(since) != bool(stages[name]) or type(epoch) is not int:
                wanted = "a first value, then each with the epoch it holds from, '25, 2.5 from 75'"
                raise ValueError(f"loss_schedule must give {name} {wanted}, got {values!r}")
            if since and epoch <= (last := stages[name][-1][0]):
                raise ValueError(f"loss_schedule must give {name} at rising epochs, got {epoch} after {last}")
            stages[name].append((epoch, _literal(name, value)))
    return stages


def apply(loss: Objective, text: str, epoch: int) -> None:
    """Set each scheduled parameter to its value in this epoch (from 0), in every term that has it.

    The loss stays the same object. A new term is made with the values only to check them.

    Raises ValueError: no term has such a parameter (the nearest is named), it is learnt, or its value is
    invalid.
    """
    current = {}
    for name, stages in loss_stages(text).items():
        current[name] = stages[bisect_right(stages, epoch, key=itemgetter(0)) - 1][1]
    terms = {}
    for term in cast(list[Objective], loss.losses) if isinstance(loss, WeightedSum) else [loss]:
        terms[term] = {name: getattr(term, name) for name in inspect.signature(type(term)).parameters}
    has = {name for arguments in terms.values() for name in arguments}
    for name in current:
        if not has:
            raise ValueError(f"loss_schedule must be '' for {loss}, which has no parameters, got {name!r}")
        choice("loss_schedule's parameter", name, sorted(has), hint=f"{loss} has no others")
    for term, arguments in terms.items():
        changed = {name: value for name, value in current.items() if name in arguments}
        for name in changed.keys() & learnt_numbers(term).keys():
            raise ValueError(f"loss_schedule names {name!r}, which {loss} learns; give it a number there")
        if changed:
            try:
                new = type(term)(**(arguments | changed))
            except ValueError as error:
                raise ValueError(f"loss_schedule at epoch {epoch}: {error}") from None
            for name in changed:
                setattr(term, name, getattr(new, name))


def check(loss: Objective, text: str) -> None:
    """Try all stages of a schedule on a copy of the loss. Raises ValueError as `loss_stages` and `apply`
    do."""
    loss = copy.deepcopy(loss) if text else loss
    for epoch in sorted({epoch for stages in loss_stages(text).values() for epoch, _ in stages}):
        apply(loss, text, epoch)


def _literal(name: str, text: str) -> Any:
    if text == "inf":
        return float("inf")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"loss_schedule must give {name} numbers or quoted names, got {text!r}") from None
