"""A network of soft swaps at work, layer by layer, and its matrices: one for every layer, and their product
(GroCo, figure 3, eq. 2 to 4)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from setclr_course.kit.inner import swapped


class Layer(NamedTuple):
    """The swaps that a layer makes, (s,) each, and the matrix that they are."""

    low: np.ndarray  # the wire for the smaller value
    high: np.ndarray  # the one for the larger
    q: np.ndarray  # how likely the two values are swapped
    matrix: np.ndarray  # (n, n)


class Run(NamedTuple):
    """A list on its way through L layers, of which `step` are behind it."""

    layers: list[Layer]
    values: np.ndarray  # (L + 1, n): the list, then what the wires hold after each layer
    products: np.ndarray  # (L + 1, n, n): the matrices of the layers up to there, multiplied
    step: int


def run(numbers: Sequence[float], beta: float, kind: str, step: int) -> Run:
    """The last product is `sorting_network`'s P."""
    x, product = np.array(numbers, float), np.eye(len(numbers))
    layers, values, products = [], [x], [product]
    for low, high in comparators(len(x), kind):
        q, matrix = swapped(beta * (x[low] - x[high])), np.eye(len(x))
        matrix[low, low] = matrix[high, high] = 1 - q
        matrix[low, high] = matrix[high, low] = q
        x, product = matrix @ x, matrix @ product
        layers.append(Layer(low, high, q, matrix))
        values.append(x)
        products.append(product)
    return Run(layers, np.array(values), np.array(products), min(step, len(layers)))


def comparators(n: int, kind: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The wires (low, high) that each layer compares, as in `setclr.inner.sorting`."""
    if kind == "odd-even":
        return [(np.arange(layer % 2, n - 1, 2), np.arange(layer % 2 + 1, n, 2)) for layer in range(n)]
    wire, layers = np.arange(n), []
    for block in range(1, n.bit_length()):
        for stride in (2**j for j in reversed(range(block))):
            first = wire[wire & stride == 0]
            falls = (first >> block) % 2
            layers.append((first + stride * falls, first + stride * (1 - falls)))
    return layers


def brief(probability: float) -> str:
    """Two decimals, but 0 and 1 as such."""
    text = f"{probability:.2f}"
    return text[0] if text.endswith(".00") else text.lstrip("0")
