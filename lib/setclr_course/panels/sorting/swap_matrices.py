"""A sorting network at work, layer by layer, and its matrices: one for every layer, and their product (GroCo,
figure 3, eq. 2 to 4). Drawn by `sorting_wires`."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection, PolyCollection

from setclr.inner.sorting import comparators, swap_probability
from setclr_course.kit.palette import OCHRE, ORANGE
from setclr_course.pixels.parts import SHADES, Part

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
PITCH = 1.7  # distance of two layers, in distances of two wires


class Layer(NamedTuple):
    """One layer of a network at work on a list of n values."""

    swaps: list[tuple[int, int, float]]  # wire for the smaller, wire for the larger, swap probability
    matrix: np.ndarray  # P_l (n, n)
    values: np.ndarray  # (n,), after it
    product: np.ndarray  # P_l ⋯ P_1


@lru_cache(maxsize=2**8)
def layers_of(numbers: tuple[float, ...], beta: float, kind: str) -> list[Layer]:
    """The network at work, layer by layer; the last product is `sorting_network`'s P."""
    x, product = torch.tensor(numbers, dtype=torch.float64), np.eye(len(numbers))
    place, layers = torch.arange(len(x)), []
    for low, high in comparators(len(x), kind):
        q = swap_probability(beta * (x[low] - x[high])).tolist()
        swaps = list(zip(place[low].tolist(), place[high].tolist(), q))
        matrix = np.eye(len(x))
        for a, b, swap in swaps:
            matrix[[a, a, b, b], [a, b, b, a]] = 1 - swap, swap, 1 - swap, swap
        x, product = torch.from_numpy(matrix) @ x, matrix @ product
        layers.append(Layer(swaps, matrix, x.numpy(), product))
    return layers


def brief(probability: float) -> str:
    """Two decimals, but 0 and 1 as such."""
    text = f"{probability:.2f}"
    return text[0] if text.endswith(".00") else text.lstrip("0")


def draw_matrices(axis, n: int) -> Part:
    """The layers' matrices below their valves, and their product right of the wires, row beside wire.

    Moved as the wires are, and returns what is to be written as they do.
    """
    left, side = PITCH * n + 1.3, 1.3
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    cell = np.array([[column, row] for row in range(n) for column in range(n)])[:, None] + corners
    small = [cell * side / n + [PITCH * (l + 0.5) - side / 2, n - 0.2] for l in range(n)]
    mesh = PolyCollection(
        list(np.concatenate([cell + [left - 0.5, -0.5], *small])),
        cmap=SHADES,
        clim=(0, 1),
        linewidths=0,
        antialiaseds=False,
    )
    axis.add_collection(mesh)
    column = (corners[[0, 1, 2, 3, 0]] - 0.5) * [1, n] + [left, (n - 1) / 2]
    frame = axis.add_collection(LineCollection([column], colors=ORANGE, linewidths=2.4))
    axis.text(left - 0.5, n - 0.3, "framed: where the first number is", color=OCHRE, fontsize=9, va="top")
    axis.text(left - 0.5, n + 0.15, "rows and columns of P sum to 1", fontsize=9, va="top")
    axis.text(left - 0.5, n + 0.6, "last values = P × list", fontsize=9, va="top")

    def move(layers: list[Layer], step: int, held: list[np.ndarray]) -> list:
        shown = np.full((n + 1, n, n), np.nan)
        shown[0] = layers[step - 1].product if step else np.eye(n)
        shown[1 : step + 1] = [layer.matrix for layer in layers[:step]] or shown[:0]
        mesh.set_array(np.ma.masked_invalid(shown.ravel()))
        names = [f"P{l + 1}".translate(SUBSCRIPTS) for l in range(step)]
        factors = [names[-1], "⋯", names[0]] if step > 2 else names[::-1]
        title = [(f"P = {' '.join(factors) or 'identity'}", (left + (n - 1) / 2, -1.3), False)]
        under = [(name, (PITCH * (l + 0.5), n + 1.4), False) for l, name in enumerate(names)]
        above = [(f"layer {l + 1}", (PITCH * (l + 0.5), -0.9), False) for l in range(len(layers))]
        header = [(f"{value:.3g}", (left + i, -0.75), False) for i, value in enumerate(held[0])]
        cells = [(brief(value), (left + c, r), value < 0.5) for (r, c), value in np.ndenumerate(shown[0])]
        return title + under + above + header + cells

    return Part([mesh, frame], move)
