"""Tables of what losses cost by the size of the batch, how their numbers are written, and in which colour."""

import numpy as np

from setclr_course.kit.palette import GREY, OF_LOSS, PURPLE

Table = dict[str, dict[int, float]]  # name of a loss, images N of a batch, what it costs


def same_sizes(seconds: dict[str, dict[int, list[float]]], kept: Table) -> list[int]:
    """The sizes of both tables, ascending."""
    found = {(name, *sorted(row)) for name, row in seconds.items()}
    sizes = {tuple(sorted(row)) for row in seconds.values()}
    if found != {(name, *sorted(row)) for name, row in kept.items()} or len(sizes) != 1:
        raise ValueError(
            "seconds and kept must have the same losses and the same sizes N, got "
            f"{sorted(seconds)} and {sorted(kept)}; costs.seconds and costs.kept_bytes measure them"
        )
    common = sizes.pop()
    if len(common) < 2:
        raise ValueError(f"seconds must hold two sizes N or more, got {common}")
    return list(common)


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


def is_term(name: str) -> bool:
    """Whether that is a regulariser, which stands beside a loss and never alone."""
    return name.startswith("QARe")


def colour_of(name: str) -> str:
    """That of the loss which a form such as "MMCL exact" or "InfoNCE + QARe" belongs to."""
    return PURPLE if "QARe" in name else OF_LOSS.get(name.split(",")[0].split(" ")[0], GREY)


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Heights in [0, 1] moved until they are `gap` apart, in their order."""
    order, moved = np.argsort(heights, kind="stable"), np.array(heights, float)
    for low, high in zip(order, order[1:]):
        moved[high] = max(moved[high], moved[low] + gap)
    top = 1.0
    for k in order[::-1]:
        moved[k] = top = min(moved[k], top)
        top -= gap
    return moved


def limits(*tables: Table) -> tuple[float, float]:
    """Ends of a logarithmic axis: a little more than the tables' range."""
    values = [value for table in tables for row in table.values() for value in row.values()]
    return min(values) / 1.3, max(values) * 1.3


def rungs(low: float, high: float) -> dict[float, str]:
    """Ticks of a logarithmic axis: decades, or finer where there are few."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high) + 1)
    found: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5)):
        found = [x for x in np.outer(decades, steps).ravel().tolist() if low <= x <= high]
        if len(found) > 2:
            break
    return {x: in_words(x) for x in found}
