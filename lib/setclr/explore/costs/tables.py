"""Tables of what losses cost by the size of the batch, and how their numbers are written."""

import numpy as np

Table = dict[str, dict[int, float]]  # name of a loss, images N of a batch, what it costs


def at(table: Table, N: float) -> np.ndarray:
    """Every loss at N, on straight lines between the measured sizes, both axes logarithmic."""
    known = [(np.log(list(row)), np.log(list(row.values()))) for row in table.values()]
    return np.exp([np.interp(np.log(N), sizes, costs) for sizes, costs in known])


def growth(row: dict[int, float]) -> float:
    """The exponent p of N^p over the last step of the measured sizes."""
    (a, b), (x, y) = list(row)[-2:], list(row.values())[-2:]
    return float(np.log(y / x) / np.log(b / a))


def in_words(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
