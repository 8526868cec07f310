"""How many negatives, and how soft: the paper's results beside quantities to compute (GroCo, table 8a)."""

import numpy as np

from setclr_course.kit.palette import WHITE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured

NEGATIVES = (1, 5, 10, 20)
BETAS = (0.062, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16)  # as printed
NAN = float("nan")
ACCURACY = np.array(
    [
        [52.1, 52.2, 52.1, NAN, NAN, NAN, NAN, NAN, NAN],
        [NAN, 59.2, 59.6, 59.4, 59.2, NAN, NAN, NAN, NAN],
        [NAN, NAN, NAN, 60.1, 60.5, 60.2, NAN, NAN, NAN],
        [NAN, NAN, NAN, NAN, 54.6, 55.9, 58.6, 59.0, 53.0],
    ]
)  # kNN, k = 20, ImageNet, ResNet-50, 100 epochs; NaN: not in the table
BEST = [(row, int(column)) for row, column in enumerate(np.nanargmax(ACCURACY, axis=1))]


def beta_table(measures: dict[str, np.ndarray]) -> Picture:
    """The paper's table as a matrix, and beside it three measures, (4, 9) over NEGATIVES and BETAS, by their
    titles; shades are logarithmic, and the paper's best pairs are framed in all of them."""
    grid = {"kNN accuracy in the paper, per cent": ACCURACY, **measures}
    rows, columns = [str(n) for n in NEGATIVES], [f"{beta:.3g}".lstrip("0") for beta in BETAS]

    def draw(page: Page) -> str:
        for name, (title, values) in zip("abcd", grid.items()):
            below = "inverse temperature β; rows: negatives N"
            table = page.table(name, 4, 9, title, rows, columns, xlabel=below)
            low, high = np.nanmin(values), np.nanmax(values)
            digits = ".1f" if high > 10 else ".2g" if low < 0.01 else ".2f"
            words = ["" if np.isnan(x) else f"{x:{digits}}".lstrip("0") for x in values.round(4).flat]
            table.cells(np.log(values), np.log(low), np.log(high), words)
            empty = np.argwhere(np.isnan(values))[:, ::-1]
            table.boxes(empty - 0.51, empty + 0.51, WHITE)
            table.frames(BEST, width=2.5)
        pairs = ", ".join(f"({NEGATIVES[row]}, {BETAS[column]:g})" for row, column in BEST)
        along = "; ".join(
            f"{title}: {', '.join(f'{values[best]:.3g}' for best in BEST)}" for title, values in grid.items()
        )
        return f"Negatives against inverse temperature. At the paper's best pairs (N, β) {pairs}: {along}."

    return pictured(draw, "a b; c d", (9, 5))
