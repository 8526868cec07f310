"""The losses, one family a file, each a thin layer over an inner problem. `parse` reads their repr."""

import ast
import operator
from collections import ChainMap

from setclr.checks import choice
from setclr.losses.base import Objective, SetLoss
from setclr.losses.baselines import BASELINES, Baseline
from setclr.losses.linear import LinearAssignment
from setclr.losses.margin import MMCL
from setclr.losses.ordering import GroCo
from setclr.losses.pairwise import InfoNCE, NTLogistic, Triplet
from setclr.losses.quadratic import QARe
from setclr.losses.relatives import DCL, HCL, AlignUniform, HardNegatives, InvaSpread
from setclr.losses.sparse import SparseCLR
from setclr.losses.transport import IOT

LOSSES = (
    LinearAssignment,
    Triplet,
    NTLogistic,
    InfoNCE,
    SparseCLR,
    QARe,
    GroCo,
    IOT,
    MMCL,
    AlignUniform,
    HardNegatives,
    InvaSpread,
    DCL,
    HCL,
)
BY_NAME = {loss.__name__: loss for loss in LOSSES}

__all__ = [*BY_NAME, "Baseline", "Objective", "SetLoss", "parse"]
NAMED = ChainMap(BY_NAME, BASELINES)  # what is registered in BY_NAME is found, too

EXAMPLE = "an expression such as 'InfoNCE(temperature=0.5)'"


def parse(text: str) -> Objective:
    """The loss that an expression such as "InfoNCE(temperature=0.2)" or "InfoNCE() + 0.5 * GroCo()"
    describes, or a baseline such as "Rotation()".

    Only their names, literals, `+` and `*` are understood, so text from a file or a command line is
    safe.

    Raises:
        ValueError: a misspelt loss (the nearest is named), an unknown argument or anything else.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, AttributeError):
        raise ValueError(f"loss must be {EXAMPLE}, got {text!r}") from None
    loss = _evaluate(tree, text)
    if not isinstance(loss, Objective):
        raise ValueError(f"loss must be {EXAMPLE}, got {text!r}")
    return loss


def _evaluate(node: ast.expr, text: str):
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as op, right=right):
            combine = operator.add if isinstance(op, ast.Add) else operator.mul
            try:
                return combine(_evaluate(left, text), _evaluate(right, text))
            except TypeError:
                raise ValueError(f"loss {text!r}: losses are added, and multiplied by numbers") from None
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(value))]):
            return float(value)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            loss = NAMED[choice("loss", name, NAMED)]
            try:
                return loss(
                    *(_evaluate(a, text) for a in args), **{k.arg: _evaluate(k.value, text) for k in keywords}
                )
            except TypeError as error:
                raise ValueError(f"loss {text!r}: {str(error).replace('__init__', name)}") from None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Constant(value=value):
            return value
    raise ValueError(f"loss must be made of losses, numbers, + and *, got {ast.unparse(node)!r} in {text!r}")
