"""Tables of what losses cost by the size of the batch, how their numbers are written, and in which colour."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from setclr_course.kit.palette import GREY, OF_LOSS, PURPLE

Table = Mapping[str, Mapping[int, Any]]  # by loss and by images N of a batch: a cost, or `quartiles`


def quartiles(runs: Any) -> np.ndarray:
    """Half of the runs lie between the first and the last number; between them is the median."""
    return np.quantile(runs, (0.25, 0.5, 0.75))


def middles(table: Table) -> np.ndarray:
    """(losses, 3, sizes): the quartiles; a single cost is all three."""
    found = [[np.broadcast_to(cost, 3) for cost in row.values()] for row in table.values()]
    return np.swapaxes(found, 1, 2)


def at(table: Table, N: float) -> np.ndarray:
    """Every loss at N, on straight lines between the measured sizes, both axes logarithmic."""
    known = [(np.log(list(row)), np.log(list(row.values()))) for row in table.values()]
    return np.exp([np.interp(np.log(N), sizes, costs) for sizes, costs in known])


def growth(row: Mapping[int, float]) -> float:
    """The exponent p of N^p over the last step of the measured sizes."""
    (a, b), (x, y) = list(row)[-2:], list(row.values())[-2:]
    return float(np.log(y / x) / np.log(b / a))


def in_words(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def is_term(name: str) -> bool:
    """Whether that is a regulariser, which stands beside a loss and never alone."""
    return name.startswith("QARe")


def colour_of(name: str) -> str:
    """That of the loss which a form such as "MMCL exact" or "InfoNCE + QARe" belongs to."""
    return PURPLE if "QARe" in name else OF_LOSS.get(name.split(",")[0].split(" ")[0], GREY)
