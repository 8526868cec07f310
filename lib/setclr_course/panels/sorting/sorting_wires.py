"""A sorting network as wires and valves: one value's way through it, and the product of its layers (GroCo,
figures 3 and 6, eq. 2 to 4)."""

from collections.abc import Sequence
from typing import Any

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.palette import ORANGE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sorting.network import Run, brief, run
from setclr_course.panels.sorting.wires import PITCH, draw_wires

NUMBERS = (6, 1, 4, 2, 8, 3, 7, 5)  # begins with the four numbers of figure 6


class sorting_wires(Panel):
    """Numbers on their way through a sorting network, with sliders for the layer, the softness and the first
    number, whose whereabouts are drawn; beside them the product of the layers so far."""

    mosaic, row_mosaic = "wires P", "wires"

    def __init__(self, numbers: Sequence[float] = NUMBERS, **initial: Any):
        self.numbers = tuple(float(x) for x in numbers)
        n, first, low, high = len(self.numbers), self.numbers[0], min(self.numbers), max(self.numbers)
        soft = {0.13: "soft", 1: "1", 800: "hard"}
        self.knobs = {
            "layer": slider("after layer", n, 0, n, 1, {0: "the list", n: "all layers"}),
            "beta": log_slider("inverse temperature β", 1, 0.1, 1000, 0.1, soft),
            "first": slider("first number", first, low - 1, high + 1, 0.25),
            "kind": options("network", ("odd-even",) if n & (n - 1) else ("odd-even", "bitonic")),
        }
        self.widths = PITCH * n + 1.3, n + 0.4  # of wires and P, in distances of two wires
        scale = min(48, 832 / sum(self.widths))  # pixels
        self.size = (scale * sum(self.widths) + 32) / 96, ((n + 0.9) * scale + 52) / 96
        self.row_height = ((n + 0.9) * 317 / self.widths[0] + 60) / 96
        super().__init__(**initial)

    def solve(self, values: dict) -> Run:
        return run((values["first"], *self.numbers[1:]), values["beta"], values["kind"], values["layer"])

    def draw(self, page: Page, values: dict, now: Run) -> None:
        n, product = len(self.numbers), now.products[now.step]
        y = n - 0.3, -1.2
        beads = draw_wires(page, now, "the first number", "the way of the first number", y)
        middles = [PITCH * (l + 0.5) for l in range(len(now.layers))]
        names = ["layer 1", *(str(l + 2) for l in range(len(middles) - 1))]
        page["wires"].text(middles, -0.85, names, size="small")
        plot = page.plane("P", (-0.6, n - 0.4), y, "P: last values = P × list")
        table = plot.cells(product, words=[brief(p) for p in product.ravel()])
        plot.boxes([-0.5, -0.5], [0.5, n - 0.5], edge=ORANGE, width=2.5)
        plot.text(range(n), -0.8, [f"{x:.3g}" for x in now.values[0]], size="small")
        for place, p in enumerate(product[:, 0]):
            said = f"the first number at place {place + 1}: {p:.3f}"
            page.link(said, table[place, 0], lit=[beads[place]])

    def say(self, values: dict, now: Run) -> str:
        p = now.products[now.step, :, 0]
        held = ", ".join(f"{x:.3g}" for x in now.values[now.step])
        return (
            f"After layer {now.step} of {len(now.layers)} ({values['kind']}) at β = {values['beta']:.4g} the "
            f"wires hold {held}. The first number, {values['first']:g}, is most likely at place "
            f"{p.argmax() + 1}, with probability {p.max():.2f}, and spread over "
            f"{1 / (p * p).sum():.1f} places."
        )
