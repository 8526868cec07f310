"""Two views as two shapes: the table of similarities within each, and what it does not notice (QARe,
figure 1b)."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, PURPLE
from setclr_course.kit.panel import Mark, Page, Panel
from setclr_course.panels.sets.two_views import Ring


class Shapes(NamedTuple):
    """Two views, and how they are compared."""

    z: np.ndarray  # (2, 6, 2)
    tables: np.ndarray  # (2, 6, 6): similarities within a view
    pairs: float  # the mean similarity of ● with its ■
    mismatch: float  # the mean of (A − B)²


class two_shapes(Panel):
    """Six photographs in two views on a circle, and the similarities within each view: ■ can be dragged."""

    least = flat = 0.7
    size, row_height = (9, 4.3), 4.6
    mosaic, widths, heights = "ring A B; ring bars bars", (1.6, 1, 1), (1.3, 1)
    row_mosaic = "ring; B"
    ring = Ring(np.zeros(6, int), turn=30)
    knobs = ring.knobs

    def solve(self, values: dict) -> Shapes:
        z = self.ring.vectors(values)
        A, B = tables = z @ z.swapaxes(1, 2)
        return Shapes(z, tables, float((z[0] * z[1]).sum(-1).mean()), float(((A - B) ** 2).mean()))

    def draw(self, page: Page, values: dict, now: Shapes) -> None:
        views = self.ring.draw(page, values)
        tables = [self.draw_table(page, view, now.tables[view]) for view in (0, 1)]
        for i, j in combinations(range(6), 2):
            A, B = now.tables[:, i, j]
            said, both = f"{NAMES[i]} and {NAMES[j]}: A = {A:.2f} in view 1, B = {B:.2f} in view 2", [i, j]
            cells = [table[both, both[::-1]] for table in tables]
            page.link(said, *cells, lit=[view[both] for view in views])
        for row, name in enumerate(NAMES):
            page.link(f"{name}: its row", views[1][row], lit=[table[row] for table in tables])

        title = "how far from equal: the pairs, and the shapes"
        bars = page.plot("bars", (0, 2.25), (1.5, -0.7), title, xticks=(0, 1, 2), frame="bottom")
        found = [1 - now.pairs, now.mismatch]
        bars.bars([0, 1], found, [GREY, PURPLE], 0.4, flat=True)
        bars.text(found, [0, 1], [f"{value:.2f}" for value in found], anchor="start", right=5, bold=True)
        words = "pairs: 1 − mean similarity of ● and ■", "shapes: mean (A − B)²"
        bars.text(0, [-0.25, 0.75], words, anchor="start", rise="bottom")

    def draw_table(self, page: Page, view: int, table: np.ndarray) -> Mark:
        """The similarities within a view, the photographs at rows and columns."""
        name = "AB"[view]
        plane = page.plane(name, (-1.6, 5.5), (5.5, -1.6), f"{name}: within view {view + 1} {'●■'[view]}")
        short = (f"{value:.1f}".removesuffix(".0") for value in (table.round(1) + 0.0).flat)
        words = [word.replace("0.", ".") for word in short]
        for way in (1, -1):
            plane.photographs([(-1.05, i)[::way] for i in range(6)], two_views()[view], 0.9)
        return plane.cells(table, -1, 1, words)

    def say(self, values: dict, now: Shapes) -> str:
        return (
            f"View 2 is turned by {values['turn']}°. The mean similarity of ● with its ■ is {now.pairs:.2f}; "
            f"the mean of (A − B)² over the tables is {now.mismatch:.3f}."
        )
