"""A network of soft swaps at work, layer by layer, and the product of its matrices (GroCo, figures 3 and 6,
eq. 2 to 4)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import swapped


class Run(NamedTuple):
    """A list of n numbers on its way through n layers, of which `step` are behind it."""

    swaps: list[np.ndarray]  # how likely each layer swaps wires k and k + 1, for k = 0, 2, … or 1, 3, …
    matrices: np.ndarray  # (n, n, n): the swaps of each layer
    values: np.ndarray  # (n + 1, n): the list, then what the wires hold after each layer
    products: np.ndarray  # (n + 1, n, n): the matrices of the layers up to there, multiplied
    step: int


def run(numbers: Sequence[float], beta: float, step: int) -> Run:
    """The last product is `sorting_network`'s P."""
    x, n = np.array(numbers, float), len(numbers)
    swaps, matrices, values, products = [], [], [x], [np.eye(n)]
    for layer in range(n):
        one = np.arange(layer % 2, n - 1, 2)
        two, matrix = one + 1, np.eye(n)
        q = swapped(beta * (x[one] - x[two]))
        matrix[one, one] = matrix[two, two] = 1 - q
        matrix[one, two] = matrix[two, one] = q
        x = matrix @ x
        swaps.append(q)
        matrices.append(matrix)
        values.append(x)
        products.append(matrix @ products[-1])
    return Run(swaps, np.array(matrices), np.array(values), np.array(products), step)


def brief(probability: float) -> str:
    """Two decimals, but 0 and 1 as such."""
    text = f"{probability:.2f}"
    return text[0] if text.endswith(".00") else text.lstrip("0")
