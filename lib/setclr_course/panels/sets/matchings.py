"""All matchings of two small tables, and their bounds by eigenvalues (QARe, eq. 5 and 7)."""

from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np


class Fits(NamedTuple):
    """Everything per cell of the N × N tables, but for the eigenvalues."""

    values: np.ndarray  # (N!,): the first is that of the true matching
    eigenvalues: np.ndarray  # (2, N), ascending
    lower: float  # one list of eigenvalues times the other reversed
    upper: float  # both in order


@cache
def renamings(N: int) -> np.ndarray:
    """(N!, N²): for each matching, which cell of a flat table takes the place of each."""
    orders = np.array(list(permutations(range(N))))
    return (N * orders[:, :, None] + orders[:, None, :]).reshape(len(orders), -1)


def fits(one: np.ndarray, two: np.ndarray) -> Fits:
    """How well table two (N, N), its rows and columns renamed together, fits table one."""
    cells = one.size
    values = two.ravel()[renamings(len(one))] @ one.ravel() / cells
    a, b = np.linalg.eigvalsh(np.stack([one, two])).round(12) + 0.0  # no −0
    return Fits(values, np.stack([a, b]), float(a @ b[::-1] / cells), float(a @ b / cells))
