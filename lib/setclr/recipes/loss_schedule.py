"""Parameters of a loss that change while it trains, as MMCL's bandwidth does on CIFAR-100.

"bandwidth: 25, 2.5 from 75, 0.25 from 125" is 25 in epochs 0 to 74 (counted from 0), 2.5 from epoch 75 on and
0.25 from epoch 125 on. Several parameters are separated by ";".
"""

import ast
import copy
import inspect

from setclr.checks import choice
from setclr.losses.base import SetLoss, WeightedSum

Stages = dict[str, list[tuple[int, object]]]


def loss_stages(text: str) -> Stages:
    """What a schedule says: for each parameter, the epochs its values hold from, rising, each with its value.

    Raises:
        ValueError: the text is not of the form above, an epoch is no whole number or not later than the one
            before, or a parameter comes twice.
    """
    if not isinstance(text, str):
        raise ValueError(f"loss_schedule must be a text such as 'bandwidth: 25, 2.5 from 75', got {text!r}")
    stages: Stages = {}
    for part in filter(str.strip, text.split(";")):
        name, colon, values = (piece.strip() for piece in part.partition(":"))
        if not colon or not name.isidentifier():
            raise ValueError(
                "loss_schedule must name a parameter and its values, 'bandwidth: 25, 2.5 from 75', "
                f"got {part.strip()!r}"
            )
        if name in stages:
            raise ValueError(f"loss_schedule must name each parameter once, got {name} twice")
        stages[name] = _values(name, values)
    return stages


def apply(loss: SetLoss, text: str, epoch: int) -> None:
    """Give each scheduled parameter its value of this epoch (0-based), in every term of the loss that has it.

    A term is made anew with the new values to learn whether it takes them; the old one gets them, so the loss
    stays the same object.

    Raises:
        ValueError: no term has such a parameter (the nearest is named), or a term refuses a value.
    """
    now = {name: _at(stages, epoch) for name, stages in loss_stages(text).items()}
    terms = [(term, _arguments(term)) for term in _terms(loss)]
    has = {name for _, arguments in terms for name in arguments}
    for name in now:
        if not has:
            raise ValueError(f"loss_schedule names {name!r}, and {loss} has no parameters")
        choice("loss_schedule's parameter", name, sorted(has), hint=f"these are those of {loss}")
    for term, arguments in terms:
        changed = {name: value for name, value in now.items() if name in arguments}
        if changed:
            try:
                new = type(term)(**(arguments | changed))
            except ValueError as error:
                raise ValueError(f"loss_schedule at epoch {epoch}: {error}") from None
            for name in changed:
                setattr(term, name, getattr(new, name))


def check(loss: SetLoss, text: str) -> None:
    """Go through all stages on a copy of the loss. Raises ValueError as `loss_stages` and `apply` do."""
    loss = copy.deepcopy(loss)
    for epoch in sorted({epoch for stages in loss_stages(text).values() for epoch, _ in stages}):
        apply(loss, text, epoch)


def _values(name: str, text: str) -> list[tuple[int, object]]:
    stages: list[tuple[int, object]] = []
    for piece in text.split(","):
        value, *since = (word.strip() for word in piece.split(" from "))
        epoch = _literal(name, since[0]) if len(since) == 1 else 0
        if len(since) != (1 if stages else 0) or type(epoch) is not int:
            raise ValueError(
                f"loss_schedule must give {name} a first value, then each with the epoch it holds from, "
                f"'25, 2.5 from 75', got {text!r}"
            )
        if stages and epoch <= stages[-1][0]:
            raise ValueError(
                f"loss_schedule must give {name} values from rising epochs, got {epoch} after {stages[-1][0]}"
            )
        stages.append((epoch, _literal(name, value)))
    return stages


def _literal(name: str, text: str):
    if text == "inf":
        return float("inf")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ValueError(f"loss_schedule must give {name} numbers or quoted names, got {text!r}") from None


def _at(stages: list[tuple[int, object]], epoch: int):
    return next(value for start, value in reversed(stages) if start <= epoch)


def _terms(loss: SetLoss) -> list[SetLoss]:
    return list(loss.losses) if isinstance(loss, WeightedSum) else [loss]


def _arguments(term: SetLoss) -> dict:
    return {name: getattr(term, name) for name in inspect.signature(type(term)).parameters}
