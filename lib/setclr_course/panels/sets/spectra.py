"""The eigenvalues of two views as two lists, and all 720 matchings below their product (QARe, eq. 5, 7)."""

from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from setclr.checks import choice
from setclr_course.kit.cast import NAMES
from setclr_course.kit.palette import DUSK, GREY, PALE, PURPLE, VERMILION
from setclr_course.kit.panel import Page, Panel
from setclr_course.panels.sets.two_views import FIRST, SPREAD, Ring, wrapped

ORDERS = np.array(list(permutations(range(6))))  # every matching; the first is the true one
PLACES = np.transpose([wrapped(FIRST + SPREAD), wrapped(FIRST)]).tolist()  # of each ■: at first, beside its ●


class Compared(NamedTuple):
    """How the tables of both views are called, and the axes of fits and eigenvalues."""

    tables: tuple[str, str]
    below: str
    fits: tuple[float, float]
    ticks: tuple[float, ...]
    eigenvalues: tuple[float, float]


BY = {
    "cosine": Compared(("1 + A", "1 + B"), "(1 + A)(1 + B)", (0.7, 2.3), (1, 1.5, 2), (0, 13)),
    "euclidean": Compared(("A", "B"), "A · B", (-2.1, 3.1), (-1, 0, 1, 2), (-6.5, 12.5)),
}


class Fits(NamedTuple):
    """Everything per entry of the tables, but for the eigenvalues."""

    values: np.ndarray  # (720,)
    eigenvalues: np.ndarray  # (2, 6), ascending
    lower: float  # one list of eigenvalues times the other reversed
    upper: float  # both in order


class spectra(Panel):
    """Two views on a circle, the eigenvalues of both, and the fit of every matching: ■ can be dragged.

    Args:
        similarity: within a view, "cosine", or "euclidean" for distances.
    """

    least = 0.85
    size, row_height = (9, 4.6), 3.4
    mosaic, widths, row_mosaic = "ring lists; ring fits", (1.15, 1), "fits"
    ring = Ring(SPREAD, turn=0)
    knobs = ring.knobs
    also = [dict(zip(NAMES, places)) for places in product(*PLACES)]  # page 04 puts one after another there

    def __init__(self, similarity: str = "cosine", **initial: Any):
        self.similarity = choice("similarity", similarity, BY)
        super().__init__(**initial)

    def solve(self, values: dict) -> Fits:
        z = self.ring.vectors(values)
        cosines = z @ z.swapaxes(1, 2)
        tables = 1 + cosines if self.similarity == "cosine" else np.sqrt((2 - 2 * cosines).clip(0))
        renamed = tables[1][ORDERS[:, :, None], ORDERS[:, None, :]]
        a, b = eigenvalues = np.linalg.eigvalsh(tables).round(12) + 0.0  # no −0
        fits = (tables[0] * renamed).mean((1, 2))
        return Fits(fits, eigenvalues, float(a @ b[::-1] / 36), float(a @ b / 36))

    def draw(self, page: Page, values: dict, now: Fits) -> None:
        self.ring.draw(page, values)
        (one, two), below, limits, ticks, y = BY[self.similarity]
        lists = page.plot("lists", (-0.6, 5.6), y, "eigenvalues λ, both lists by size", yticks=(0, 4, 8, 12))
        lists.key((f"● of {one}", DUSK), (f"■ of {two}", PURPLE))
        ranks, bars = np.arange(6), []
        for side, row, colour in zip((-0.2, 0.2), now.eigenvalues, (GREY, PURPLE)):
            bars.append(lists.bars(ranks + side, row, colour, wide=0.38))
            words = [f"{value:.1f}" if abs(value) > 0.05 else "0" for value in row]
            lists.text(ranks + side, row.clip(0), words, size="small", rise="bottom", right=20 * side)
        for rank, (a, b) in enumerate(now.eigenvalues.T):
            page.link(f"number {rank + 1}: λ {a:.2f} × μ {b:.2f} = {a * b:.2f}", *(bar[rank] for bar in bars))

        title, below = "no matching gets past the eigenvalues", f"fit: mean of {below}"
        plot = page.plot("fits", limits, (0, 1.45), title, below, xticks=ticks, frame="bottom")
        heights, edges = np.histogram(now.values, np.linspace(*limits, 81))
        plot.steps(heights / max(heights.max(), 1), edges, PALE)
        plot.level(now.upper, f"sorted λ\n{now.upper:.2f}", PURPLE, 1.42, width=3)
        plot.level(now.values[0], f"true {now.values[0]:.2f}", VERMILION, 1.18, side="left")
        if self.similarity == "euclidean":
            plot.level(now.lower, f"one reversed\n{now.lower:.2f}", PURPLE, 1.42, width=3)

    def say(self, values: dict, now: Fits) -> str:
        reverse = f" One list reversed, they give {now.lower:.2f}, and none is below."
        above = int((now.values > now.values[0] + 1e-9).sum())
        return (
            f"View 2 is turned by {values['turn']}°. The 720 matchings fit by {now.values.min():.2f} to "
            f"{now.values.max():.2f}, the true one by {now.values[0]:.2f}; {above} fit better. The sorted "
            f"eigenvalues give {now.upper:.2f}, and none is above."
            f"{reverse * (self.similarity == 'euclidean')}"
        )
