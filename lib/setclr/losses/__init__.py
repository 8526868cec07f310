"""The losses, one family a file, each a thin layer over an inner problem; `parse` makes one from text."""

from setclr.checks import choice
from setclr.extras import RECIPES, loaded
from setclr.losses.base import Objective, SetLoss, check_labels
from setclr.losses.contrast import InfoNCE, NTLogistic, SigLIP, SupCon
from setclr.losses.linear import LinearAssignment
from setclr.losses.margin import MMCL
from setclr.losses.ordering import GroCo
from setclr.losses.own import Own, objective
from setclr.losses.parsing import read
from setclr.losses.quadratic import QARe
from setclr.losses.relatives import (
    HCL,
    AlignUniform,
    DebiasedInfoNCE,
    DecoupledInfoNCE,
    HardNegatives,
    InvaSpread,
)
from setclr.losses.sparse import SparseCLR
from setclr.losses.temperature import learnable
from setclr.losses.transport import IOT
from setclr.losses.triplet import Triplet

# All of them, in the order of tables; what is listed here can be parsed, imported from setclr, and is tested.
LOSSES = (LinearAssignment, Triplet, NTLogistic, SigLIP, InfoNCE, SupCon, SparseCLR, QARe, GroCo, IOT, MMCL,
          AlignUniform, HardNegatives, InvaSpread, DebiasedInfoNCE, HCL, DecoupledInfoNCE)  # fmt: skip
BY_NAME: dict[str, type[Objective]] = {loss.__name__: loss for loss in LOSSES}

__all__ = [*BY_NAME, "Objective", "Own", "SetLoss", "check_labels", "learnable", "objective", "parse"]


def class_named(name: str) -> type[Objective]:
    """The class of that name, also of the baselines that an installed package registers (`extras.loaded`)."""
    if name in BY_NAME:
        return BY_NAME[name]
    others = {key: kind for one in loaded(RECIPES) for key, kind in getattr(one, "losses", {}).items()}
    hint = "" if others else "the papers' baselines come with the course: clone the repository and run `make`"
    return {**BY_NAME, **others}[choice("loss", name, [*BY_NAME, *others], hint)]


def parse(text: str) -> Objective:
    """The loss or baseline that an expression describes.

    Examples are "InfoNCE(temperature=0.2)", "InfoNCE() + 0.5 * GroCo()" and the baseline "Rotation()". Only
    calls of losses, sums of losses, and products and fractions of a loss and a number are allowed. Arguments
    go by position or by name. They are numbers, quoted names, True, False or None; float('inf') and
    learnable(0.07), which is learnt and starts at 0.07, are numbers too. So text from a file or a command
    line is safe.

    >>> from setclr.losses import parse
    >>> parse("InfoNCE(0.5) + 1.125 * QARe()")
    InfoNCE(temperature=0.5) + 1.125 * QARe(similarity='cosine')

    Raises ValueError: a misspelt loss (the message names the nearest), an unknown argument, one given twice,
    more than 1,000 characters, or any other expression.
    """
    return read(text, class_named)
