"""The eigenvalues of two views as two lists, and all 720 matchings below their product (QARe, eq. 7)."""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from setclr_course.kit.palette import DUSK, GREY, PALE, PURPLE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sets.two_views import SPREAD, Ring

ORDERS = np.array(list(permutations(range(6))))
EDGES = np.linspace(0.7, 2.3, 81)  # of the histogram, per entry of the tables


class Spectra(NamedTuple):
    """Everything per entry of the 6 × 6 tables 1 + A and 1 + B, but for the eigenvalues."""

    z: np.ndarray  # (2, 6, 2): the views
    eigenvalues: np.ndarray  # (2, 6), ascending
    fits: np.ndarray  # (720,): the first is that of the true matching
    bound: float  # the eigenvalues multiplied in order


class spectra(Panel):
    """Two views on a circle, the eigenvalues of both, and the fit of every matching: ■ can be dragged."""

    size, row_height = (9, 4.6), 3.4
    mosaic, widths, row_mosaic = "ring lists; ring fits", (1.15, 1), "fits"
    ring = Ring(SPREAD, turn=0)
    knobs = ring.knobs

    def solve(self, values: dict) -> Spectra:
        z = self.ring.vectors(values)
        one, two = 1 + z @ z.swapaxes(1, 2)
        fits = (one * two[ORDERS[:, :, None], ORDERS[:, None, :]]).sum((1, 2)) / 36
        eigenvalues = np.linalg.eigvalsh(np.stack([one, two])).clip(0)
        return Spectra(z, eigenvalues, fits, float(eigenvalues[0] @ eigenvalues[1]) / 36)

    def draw(self, page: Page, values: dict, now: Spectra) -> None:
        self.ring.draw(page, values, now.z)
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

        fits = page.plot("fits", (EDGES[0], EDGES[-1]), (0, 1.45), "no matching gets past the eigenvalues",
                         "fit: mean of (1 + A)(1 + B)", xticks=(1, 1.5, 2), frame="bottom")  # fmt: skip
        heights = np.histogram(now.fits, EDGES)[0]
        fits.steps(heights / max(heights.max(), 1), EDGES, PALE)
        fits.level(now.bound, f"sorted λ\n{now.bound:.2f}", PURPLE, 1.42, width=3)
        fits.level(now.fits[0], f"true {now.fits[0]:.2f}", VERMILION, 1.18, side="left")

    def say(self, values: dict, now: Spectra) -> str:
        above = int((now.fits > now.fits[0] + 1e-9).sum())
        return (
            f"View 2 is turned by {values['turn']}°. The 720 matchings fit by {now.fits.min():.2f} to "
            f"{now.fits.max():.2f}, the true one by {now.fits[0]:.2f}; {above} fit better. The sorted "
            f"eigenvalues give {now.bound:.2f}, and none is above."
        )
