"""The losses, one family a file, each a thin layer over an inner problem. `parse` reads their repr."""

import inspect
from collections import ChainMap

from setclr.losses.base import Objective, SetLoss
from setclr.losses.baselines import BASELINES, Baseline
from setclr.losses.linear import LinearAssignment
from setclr.losses.margin import MMCL
from setclr.losses.ordering import GroCo
from setclr.losses.pairwise import InfoNCE, NTLogistic, SupCon, Triplet
from setclr.losses.parsing import read
from setclr.losses.quadratic import QARe
from setclr.losses.relatives import DCL, HCL, AlignUniform, HardNegatives, InvaSpread
from setclr.losses.sparse import SparseCLR
from setclr.losses.transport import IOT

OTHERS = (AlignUniform, HardNegatives, InvaSpread, DCL, HCL)
LOSSES = (LinearAssignment, Triplet, NTLogistic, InfoNCE, SupCon, SparseCLR, QARe, GroCo, IOT, MMCL, *OTHERS)
BY_NAME: dict[str, type[Objective]] = {loss.__name__: loss for loss in LOSSES}

__all__ = [*BY_NAME, "Baseline", "Objective", "SetLoss", "capabilities", "parse"]
NAMED: ChainMap[str, type[Objective]] = ChainMap(BY_NAME, BASELINES)  # sees what BY_NAME gets later, too


def parse(text: str) -> Objective:
    """The loss that an expression such as "InfoNCE(temperature=0.2)" or "InfoNCE() + 0.5 * GroCo()"
    describes, or a baseline such as "Rotation()".

    It is made of calls of their names, by place or by name, with numbers (float('inf') and learnable(0.07), a
    parameter that begins there, among them), quoted names, True, False and None; of sums of losses; and of
    products and fractions of a loss and a number. So text from a file or a command line is safe.

    Raises ValueError: a misspelt loss (the nearest is named), an unknown argument, one that comes twice, more
    than 1,000 characters or 400 parts, or anything else.
    """
    return read(text, dict(NAMED))


def capabilities() -> str:
    """A Markdown table, made from the classes, of what each loss takes."""
    columns = {"more than two views": "views", "`keys`": "keys", "`memory`": "memory", "`labels`": "labels"}
    rows = [["loss", *columns, "`positive_views`"], ["---", *[":-:"] * (len(columns) + 1)]]
    for loss in LOSSES:
        has = [kind in loss.takes for kind in columns.values()]
        has.append("positive_views" in inspect.signature(loss).parameters)
        rows.append([f"`{loss.__name__}`", *("✓" if x else "–" for x in has)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
