"""The eigenvalues of two views as two lists, and all 720 matchings below their product (QARe, eq. 7)."""

import numpy as np

from setclr_course.kit.palette import DUSK, GREY, PALE, PURPLE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sets.matchings import Fits, fits
from setclr_course.panels.sets.two_views import SPREAD, Ring

EDGES = np.linspace(0.7, 2.3, 81)  # of the histogram, per entry of the tables


class spectra(Panel):
    """Two views on a circle, the eigenvalues of both, and the fit of every matching: ■ can be dragged."""

    size, row_height = (9, 4.6), 3.4
    mosaic, widths, row_mosaic = "ring lists; ring fits", (1.15, 1), "fits"
    ring = Ring(SPREAD, turn=0)
    knobs = ring.knobs

    def solve(self, values: dict) -> Fits:
        z = self.ring.vectors(values)
        return fits(*(1 + z @ z.swapaxes(1, 2)))

    def draw(self, page: Page, values: dict, now: Fits) -> None:
        self.ring.draw(page, values)
        lists = page.plot("lists", (-0.6, 5.6), (0, 9), "eigenvalues λ, both lists by size", yticks=(0, 4, 8))
        lists.key(("● of 1 + A", DUSK), ("■ of 1 + B", PURPLE))
        ranks = np.arange(6)
        bars = [
            lists.bars(ranks + side, row, colour, wide=0.38)
            for side, row, colour in zip((-0.2, 0.2), now.eigenvalues, (GREY, PURPLE))
        ]
        for side, row in zip((-0.2, 0.2), now.eigenvalues):
            words = [f"{value:.1f}" if value > 0.05 else "0" for value in row]
            lists.text(ranks + side, row, words, size="small", rise="bottom")
        for rank, (a, b) in enumerate(now.eigenvalues.T):
            page.link(f"number {rank + 1}: {a:.2f} × {b:.2f} = {a * b:.2f}", *(bar[rank] for bar in bars))

        plot = page.plot("fits", (EDGES[0], EDGES[-1]), (0, 1.45), "no matching gets past the eigenvalues",
                         "fit: mean of (1 + A)(1 + B)", xticks=(1, 1.5, 2), frame="bottom")  # fmt: skip
        heights = np.histogram(now.values, EDGES)[0]
        plot.steps(heights / max(heights.max(), 1), EDGES, PALE)
        plot.level(now.upper, f"sorted λ\n{now.upper:.2f}", PURPLE, 1.42, width=3)
        plot.level(now.values[0], f"true {now.values[0]:.2f}", VERMILION, 1.18, side="left")

    def say(self, values: dict, now: Fits) -> str:
        above = int((now.values > now.values[0] + 1e-9).sum())
        return (
            f"View 2 is turned by {values['turn']}°. The 720 matchings fit by {now.values.min():.2f} to "
            f"{now.values.max():.2f}, the true one by {now.values[0]:.2f}; {above} fit better. The sorted "
            f"eigenvalues give {now.upper:.2f}, and none is above."
        )
