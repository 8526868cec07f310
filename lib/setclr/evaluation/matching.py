"""Matching two views of many things one to one (QARe, table 1)."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional as F


def matching_accuracy(a: Tensor, b: Tensor) -> float:
    """Fraction of things whose two views the best one-to-one assignment brings together.

    Row i of a and of b, both (N, D), is thing i; rows are compared by cosine similarity.
    Raises ValueError where the shapes differ or are not (N, D). Cost: O(N³), the Hungarian algorithm.
    """
    if a.ndim != 2 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"a and b must both be (N, D), got {tuple(a.shape)} and {tuple(b.shape)}")
    similarity = F.normalize(a.double(), dim=1) @ F.normalize(b.double(), dim=1).T
    row, column = linear_sum_assignment(similarity.numpy(force=True), maximize=True)
    return float(np.mean(row == column))
