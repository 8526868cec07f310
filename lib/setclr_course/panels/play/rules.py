"""The losses of the playground, each with its knobs, and what it says of points."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit import losses
from setclr_course.kit.losses import Answer, gradient, partners

RULES: dict[str, tuple[Any, ...]] = {  # the formula, and the knobs that it takes
    "InfoNCE": (losses.info_nce, "temperature"),
    "SparseCLR": (losses.sparse_clr, "margin"),
    "GroCo": (losses.groco, "beta", "negatives"),
    "IOT": (losses.iot_both, "temperature", "rounds"),
    "MMCL": (losses.mmcl, "width", "C", "kernel"),
    "LinearAssignment": (losses.cheapest_assignment, "margin"),
    "Triplet": (losses.triplet, "margin"),
    "NTLogistic": (losses.nt_logistic, "temperature"),
    "SupCon": (losses.sup_con, "temperature"),
}
OF_TWO_VIEWS = "LinearAssignment", "MMCL"  # a matching, a solver for each point: of views 1 and 2 alone


class Seen(NamedTuple):
    """What a loss, with its regulariser, says of points x (M, E), and how these lie."""

    shares: np.ndarray  # (M, M): what each gives to each, as shares of its row
    gradient: np.ndarray  # (M, E): along the sphere
    value: float
    first: int  # so many points have a partner for their nearest
    align: float  # mean squared distance of partners
    uniform: float  # log of the mean of exp(−2 distance²) within a view; the lower, the more evenly spread


def solved(S: np.ndarray, labels: np.ndarray, views: int, v: Mapping[str, Any]) -> Answer:
    """The loss that the knobs `v` choose; things of one of the labels (n,) are one thing, or of one class."""
    formula, *names = RULES[v["loss"]]
    how = [v[name] for name in names]
    true = partners(S, views)
    if v["loss"] in OF_TWO_VIEWS:
        part = 2 * len(labels)
        found = formula(S[:part, :part], partners(S[:part, :part]), *how)
        shares, slope = (np.pad(table, (0, len(S) - part)) for table in found[:2])
        return found._replace(shares=shares, slope=slope)
    if v["loss"] == "SupCon":
        of = np.tile(labels, views)
        true = (of[:, None] == of) - np.eye(len(S))
    return formula(S, true, *how)


def seen(x: np.ndarray, labels: np.ndarray, views: int, v: Mapping[str, Any]) -> Seen:
    """That loss, + v["qare"] · QARe, of unit vectors x (M, E)."""
    S, n = x @ x.T, len(labels)
    true = partners(S, views)
    answer, spread = solved(S, labels, views, v), losses.qare(S, true)
    shares = answer.shares / answer.shares.sum(1, keepdims=True).clip(1e-12)
    nearest = np.where(true == 1, S, -np.inf).max(1)
    others = np.where(true + np.eye(len(S)) == 0, S, -np.inf).max(1)
    first = int((nearest > others + 1e-9).sum())
    apart = S.reshape(views, n, views, n).diagonal(0, 0, 2)[~np.eye(n, dtype=bool)]
    align, uniform = max(0.0, 2 - 2 * S[true == 1].mean()), np.log(np.exp(4 * apart - 4).mean(0)).mean()
    downhill = gradient(answer, x) + v["qare"] * gradient(spread, x)
    value = answer.value + v["qare"] * spread.value
    return Seen(
        shares.round(9), downhill, value, first, float(align), float(uniform)
    )  # equal shares, equal shades
