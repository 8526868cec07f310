"""The losses, one family a file, each a thin layer over an inner problem. `parse` reads their repr."""

import ast
import inspect
import operator
from collections import ChainMap

import torch
from torch import nn

from setclr.checks import choice
from setclr.losses.base import Objective, SetLoss
from setclr.losses.baselines import BASELINES, Baseline
from setclr.losses.linear import LinearAssignment
from setclr.losses.margin import MMCL
from setclr.losses.ordering import GroCo
from setclr.losses.pairwise import InfoNCE, NTLogistic, SupCon, Triplet
from setclr.losses.quadratic import QARe
from setclr.losses.relatives import DCL, HCL, AlignUniform, HardNegatives, InvaSpread
from setclr.losses.sparse import SparseCLR
from setclr.losses.transport import IOT

OTHERS = (AlignUniform, HardNegatives, InvaSpread, DCL, HCL)
LOSSES = (LinearAssignment, Triplet, NTLogistic, InfoNCE, SupCon, SparseCLR, QARe, GroCo, IOT, MMCL, *OTHERS)
BY_NAME: dict[str, type[Objective]] = {loss.__name__: loss for loss in LOSSES}

__all__ = [*BY_NAME, "Baseline", "Objective", "SetLoss", "capabilities", "parse"]
NAMED: ChainMap[str, type[Objective]] = ChainMap(BY_NAME, BASELINES)  # sees what BY_NAME gets later, too

EXAMPLE = "an expression such as 'InfoNCE(temperature=0.5)'"


def parse(text: str) -> Objective:
    """The loss that an expression such as "InfoNCE(temperature=0.2)" or "InfoNCE() + 0.5 * GroCo()"
    describes, or a baseline such as "Rotation()".

    Only their names, literals, `+`, `*`, `/` and `learnable(0.07)`, a parameter that begins there, are
    understood, so text from a file or a command line is safe.

    Raises ValueError: a misspelt loss (the nearest is named), an unknown argument or anything else.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, AttributeError):
        raise ValueError(f"loss must be {EXAMPLE}, got {text!r}") from None
    loss = _evaluate(tree, text)
    if not isinstance(loss, Objective):
        raise ValueError(f"loss must be {EXAMPLE}, got {text!r}")
    return loss


def capabilities() -> str:
    """A Markdown table, made from the classes, of what each loss takes."""
    columns = {"more than two views": "views", "`keys`": "keys", "`memory`": "memory", "`labels`": "labels"}
    rows = [["loss", *columns, "`positive_views`"], ["---", *[":-:"] * (len(columns) + 1)]]
    for loss in LOSSES:
        has = [kind in loss.takes for kind in columns.values()]
        has.append("positive_views" in inspect.signature(loss).parameters)
        rows.append([f"`{loss.__name__}`", *("✓" if x else "–" for x in has)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


COMBINE = {ast.Add: operator.add, ast.Mult: operator.mul, ast.Div: operator.truediv}


def _evaluate(node: ast.expr, text: str) -> object:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Div() as op, right=right):
            try:
                return COMBINE[type(op)](_evaluate(left, text), _evaluate(right, text))
            except TypeError:
                wanted = "losses are added, and multiplied or divided by numbers"
                raise ValueError(f"loss {text!r}: {wanted}") from None
        case ast.Call(func=ast.Name(id="learnable"), args=[ast.Constant(value=int() | float() as value)]):
            return nn.Parameter(torch.tensor(float(value)))
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(value))]):
            return float(value)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            loss = NAMED[choice("loss", name, NAMED)]
            try:
                named = {str(k.arg): _evaluate(k.value, text) for k in keywords}
                return loss(*(_evaluate(a, text) for a in args), **named)
            except TypeError as error:
                raise ValueError(f"loss {text!r}: {str(error).replace('__init__', name)}") from None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Constant(value=value):
            return value
    wrong = ast.unparse(node)
    raise ValueError(f"loss must be made of losses, numbers, +, * and /, got {wrong!r} in {text!r}")
