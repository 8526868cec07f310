"""Parser of the losses' expressions. The language is small, so that untrusted text is safe to read."""

import ast
from collections.abc import Callable
from typing import Any

from setclr.losses.base import Objective, SetLoss
from setclr.losses.temperature import Learnable, learnable

EXAMPLE = "an expression such as 'InfoNCE(temperature=0.5)'"
GRAMMAR = "losses are added, and multiplied or divided by a number"
LONGEST = 1000  # characters
NUMBERS = ("float", "learnable")  # calls that make a number
OLD = {"DCL": "DebiasedInfoNCE"}  # names in records and recipes of before
Known = Callable[[str], type[Objective]]  # the class of a name


def read(text: str, known: Known) -> Objective:
    """The loss that a text describes, with classes by name from `known`; see `losses.parse`."""
    return _objective(_tree(text), text, known)


def _tree(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise ValueError(f"loss must be {EXAMPLE}, got {text!r}")
    if len(text) > LONGEST:
        raise ValueError(f"loss must have at most {LONGEST} characters, got {len(text)}: {text[:40]!r}…")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last two: nested too deeply
        raise ValueError(f"loss must be {EXAMPLE}, got {text!r}") from None
    return tree


def _objective(node: ast.expr, text: str, known: Known) -> Objective:
    """The loss that the node describes: a call, or a sum, multiple or fraction of losses."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _set_loss(left, text, known) + _set_loss(right, text, known)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for factor, loss in ((left, right), (right, left)):
                if (value := _number(factor)) is not None:
                    return value * _set_loss(loss, text, known)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            if isinstance(value := _number(right), (int, float)):
                return _set_loss(left, text, known) / value
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name not in NUMBERS:
            made = known(OLD.get(name, name))
            names = [keyword.arg for keyword in keywords]
            for twice in {str(one) for one in names if names.count(one) > 1}:
                raise ValueError(f"loss {text!r} must name {twice} once, got it {names.count(twice)} times")
            named = {str(keyword.arg): _argument(keyword.value, text) for keyword in keywords}
            try:
                return made(*(_argument(arg, text) for arg in args), **named)
            except TypeError as error:
                raise ValueError(f"loss {text!r}: {str(error).replace('__init__', name)}") from None
    raise ValueError(f"loss must be {EXAMPLE}, got {ast.unparse(node)!r} in {text!r}; {GRAMMAR}")


def _set_loss(node: ast.expr, text: str, known: Known) -> SetLoss:
    loss = _objective(node, text, known)
    if not isinstance(loss, SetLoss):
        raise ValueError(f"loss {text!r}: {loss} is a baseline and stands alone; {GRAMMAR}")
    return loss


def _argument(node: ast.expr, text: str) -> Any:
    """The argument that the node describes: a number, a quoted name, None, True or False."""
    value = _number(node)
    if value is not None:
        return value
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, bool))):
        return node.value
    raise ValueError(
        f"loss {text!r}: an argument must be a number, a quoted name, True, False or None, "
        f"got {ast.unparse(node)!r}"
    )


def _number(node: ast.expr) -> float | Learnable | None:
    """The number that the node describes, which may be learnt; None if it is no number."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant("inf" | "-inf" | "nan" as value)]):
            return float(value)
        case ast.Call(func=ast.Name(id="learnable"), args=[start], keywords=[]):
            if isinstance(first := _number(start), (int, float)):
                return learnable(first)
    return None
