"""How many negatives, and how soft: the paper's results beside quantities to compute (GroCo, table 8a)."""

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

from setclr_course.kit.palette import VERMILION
from setclr_course.kit.png import Picture, still

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
    """The paper's table as a matrix, and beside it each measure, (4, 9) over NEGATIVES and BETAS, under its
    title; the paper's best pairs are framed in all of them."""

    def draw(figure) -> str:
        grid = {"kNN accuracy in the paper, per cent": ACCURACY, **measures}
        for axis, (title, values) in zip(figure.subplots(-(-len(grid) // 2), 2).flat, grid.items()):
            low, high = np.nanmin(values), np.nanmax(values)
            norm = LogNorm(low, high) if high > 100 * low > 0 else Normalize(low, high)
            axis.pcolormesh(range(len(BETAS)), range(len(NEGATIVES)), np.ma.masked_invalid(values), norm=norm)
            axis.set(title=title, ylim=(len(NEGATIVES) - 0.5, -0.5))
            axis.set_xticks(range(len(BETAS)), [f"{beta:.3g}".lstrip("0") for beta in BETAS], fontsize=8)
            axis.set_yticks(range(len(NEGATIVES)), NEGATIVES, fontsize=8)
            axis.tick_params(length=0)
            axis.set_xlabel("inverse temperature β", fontsize=8)
            axis.set_ylabel("negatives N", fontsize=8)
            for row, column in BEST:
                edge: dict = {"edgecolor": VERMILION, "linewidth": 2.5}
                axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, **edge))
            for (row, column), value in np.ndenumerate(values):
                if not np.isnan(value):
                    colour = "black" if norm(value) > 0.5 else "white"
                    text = f"{value:.1f}" if high > 10 else f"{value:.2g}" if low < 0.01 else f"{value:.2f}"
                    axis.text(
                        column, row, text.lstrip("0"), ha="center", va="center", fontsize=8, color=colour
                    )
        pairs = ", ".join(f"({NEGATIVES[row]}, {BETAS[column]:g})" for row, column in BEST)
        along = "; ".join(
            f"{title}: {', '.join(f'{values[best]:.3g}' for best in BEST)}" for title, values in grid.items()
        )
        return f"Negatives against inverse temperature. At the paper's best pairs (N, β) {pairs}: {along}."

    return still(draw, (9, 1.95 * -(-(len(measures) + 1) // 2)))
