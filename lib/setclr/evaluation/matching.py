"""Matching two views of many things one to one (QARe, table 1)."""

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import choice


def matching_accuracy(a: Tensor, b: Tensor, distance: str = "cosine") -> float:
    """Fraction of things whose two views the best one-to-one assignment pairs.

    Row i of a and row i of b, both (N, D), are the two views of thing i. Rows are scaled to length 1. The
    cost of a pair is 1 − its cosine similarity ("cosine"), or its Euclidean distance ("euclidean") as in
    the paper (QARe, section 5.1). The two weigh long distances differently. Raises ValueError where the
    shapes differ or are not (N, D), or for another distance. Cost: O(N³), the Hungarian algorithm.

    >>> import torch
    >>> from setclr.evaluation import matching_accuracy
    >>> matching_accuracy(torch.eye(4), torch.eye(4)[[1, 0, 2, 3]])  # two of four find their own
    0.5
    """
    if a.ndim != 2 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"a and b must both be (N, D), got {tuple(a.shape)} and {tuple(b.shape)}")
    choice("distance", distance, ("cosine", "euclidean"))
    x, y = (F.normalize(view.double(), dim=1) for view in (a, b))
    cost = 1 - x @ y.T
    if distance == "euclidean":
        cost = (2 * cost).clamp(min=0).sqrt()
    from scipy.optimize import linear_sum_assignment  # takes a second

    row, column = linear_sum_assignment(cost.numpy(force=True))
    return float(np.mean(row == column))
