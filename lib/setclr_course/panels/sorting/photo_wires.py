"""Six photographs on the wires of a soft sorting network: drag their distances, see who ends where (GroCo,
figure 3, eq. 4)."""

from typing import Any

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, ORANGE
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, slider
from setclr_course.panels.sorting.five import beside
from setclr_course.panels.sorting.network import Run, brief, run
from setclr_course.panels.sorting.wires import draw_wires

START = (6.0, 1.0, 4.0, 2.0, 7.0, 3.0)  # distances from an anchor, on a scale from 0 to 9
MOST = 9.0


class photo_wires(Panel):
    """Drag the photographs along their bars; play the layers.

    Args:
        images: how many of the six photographs there are.
    """

    least = flat = 0.75
    size, row_height, row_mosaic = (9, 3.25), 2.8, "wires"
    mosaic, widths = "list wires table", (180, 420, 232)
    play = "layer"

    def __init__(self, images: int = 6, **initial: Any):
        self.names = NAMES[:images]
        self.height = (images + 0.1, -1.6)  # of all three plots: their rows stand beside one another
        self.knobs = {
            "layer": slider("after layer", images, 0, images, 1, {0: "the list", images: "all layers"}),
            "beta": log_slider("steepness β", 8, 0.08, 800, 0.1, {0.1: "coins", 8: "8", 600: "hard"}),
            **{name: slider(f"{name}, distance", at, 0.0, MOST, 0.25) for name, at in zip(self.names, START)},
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Run:
        return run([values[name] for name in self.names], values["beta"], values["layer"])

    def draw(self, page: Page, values: dict, now: Run) -> None:
        listed, product = self.draw_list(page, now.values[0]), now.products[now.step]
        beads = draw_wires(page, now, "the cat", self.height)
        table = self.draw_table(page, product)
        for (place, i), p in np.ndenumerate(product):
            said = f"{self.names[i]} at place {place + 1}: {p:.3f}"
            page.link(said, table[place, i], lit=[listed[i], beads[place]])

    def draw_list(self, page: Page, distances: np.ndarray) -> Mark:
        """A bar for each distance with the photograph at its end, which can be dragged."""
        plot = page.plot("list", (-1.3, MOST + 1.3), self.height, "distances", frame="")
        rows = np.arange(len(distances))
        plot.bars(rows, distances, GREY, 0.16, flat=True)
        points = beside(distances, rows)
        faces = plot.photographs(points, two_views()[0][: len(rows)], 2.2)
        for name, point in zip(self.names, points):
            faces.handle(name, point, along="x")
        plot.text(0, len(rows) - 0.3, "smaller is closer", size="small", anchor="start")
        return faces

    def draw_table(self, page: Page, product: np.ndarray) -> Mark:
        """Who is where: a column for each photograph, a row for each place."""
        n = len(product)
        plot = page.plane("table", (-0.5, n - 0.5), self.height, "who is at which place")
        table = plot.cells(product, words=[brief(p) for p in product.ravel()])
        plot.photographs([(i, -1.05) for i in range(n)], two_views()[0][:n], 0.86)
        plot.boxes([-0.5, -0.5], [0.5, n - 0.5], edge=ORANGE, width=2.5)
        plot.text(-0.5, n - 0.3, "framed: the cat, as on the wires", size="small", anchor="start", rise="top")
        return table

    def say(self, values: dict, now: Run) -> str:
        p, at_first = now.products[now.step, :, 0], now.values[0]
        true = 1 + (at_first < at_first[0]).sum()
        return (
            f"After layer {now.step} of {len(p)} at β = {values['beta']:.3g} the places hold "
            f"{', '.join(f'{x:.3g}' for x in now.values[now.step])}. The cat, at distance {values['cat']:g}, "
            f"belongs to place {true} and is there with probability {p[true - 1]:.2f}; it is most likely at "
            f"place {p.argmax() + 1}, with {p.max():.2f}."
        )
