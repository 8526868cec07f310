"""A sorting network as wires and valves: one value's way through it, and the matrices of its layers (GroCo,
figures 3 and 6, eq. 2 to 4)."""

from collections.abc import Sequence
from typing import Any

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.palette import OCHRE, ORANGE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.sorting.network import Run, brief, run
from setclr_course.panels.sorting.wires import PITCH, draw_wires

NUMBERS = (6, 1, 4, 2, 8, 3, 7, 5)  # begins with the four numbers of figure 6
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
APART = 2  # cells between the matrices of two layers


class sorting_wires(Panel):
    """Numbers on their way through a sorting network, with sliders for the layer, the softness and the first
    number, whose whereabouts are drawn; around them the matrices of the layers and their product."""

    mosaic, row_mosaic = "wires P; matrices words", "wires"

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
        wide = PITCH * n + 1.3, n + 0.4  # of wires and P, in distances of two wires
        scale = min(48, 832 / sum(wide))  # pixels
        below = (n + 3.5) * scale * PITCH / (n + APART) + 10  # of the matrices
        self.widths, self.heights = wide, ((n + 0.9) * scale + 36, below)
        self.size = (scale * sum(wide) + 32) / 96, (sum(self.heights) + 16) / 96
        self.row_height = ((n + 0.4) * 317 / wide[0] + 40) / 96
        super().__init__(**initial)

    def solve(self, values: dict) -> Run:
        return run((values["first"], *self.numbers[1:]), values["beta"], values["kind"], values["layer"])

    def draw(self, page: Page, values: dict, now: Run) -> None:
        n = len(self.numbers)
        y, title = (n - 0.3, -1.2), "the way of the first number"
        if page.row:
            y, title = (n - 0.3, -0.7), ""
        beads = draw_wires(page, now, "the first number", title, y)
        if not page.row:
            middles = [PITCH * (l + 0.5) for l in range(len(now.layers))]
            names = ["layer 1", *(str(l + 2) for l in range(len(middles) - 1))]
            beads.plot.text(middles, -0.85, names, size="small")
        table = draw_product(page, now, y)
        draw_matrices(page, now)
        for place, p in enumerate([] if page.row else now.products[now.step, :, 0]):
            bead = beads[now.step * n + place]
            page.link(f"the first number at place {place + 1}: {p:.3f}", table[place, 0], lit=[bead])

    def say(self, values: dict, now: Run) -> str:
        p = now.products[now.step, :, 0]
        held = ", ".join(f"{x:.3g}" for x in now.values[now.step])
        return (
            f"After layer {now.step} of {len(now.layers)} ({values['kind']}) at β = {values['beta']:.4g} the "
            f"wires hold {held}. The first number, {values['first']:g}, is most likely at place "
            f"{p.argmax() + 1}, with probability {p.max():.2f}, and spread over "
            f"{1 / (p * p).sum():.1f} places."
        )


def draw_product(page: Page, now: Run, y: tuple[float, float]) -> Mark:
    """The product of the layers so far, row beside wire, under the list; below, what is to be seen in it."""
    n, names = len(now.values[0]), layer_names(now.step)
    factors = [names[-1], "⋯", names[0]] if now.step > 2 else names[::-1]
    plot = page.plane("P", (-0.6, n - 0.4), y, f"P = {' '.join(factors) or 'identity'}")
    product = now.products[now.step]
    table = plot.cells(product, words=[brief(p) for p in product.ravel()])
    plot.boxes([-0.5, -0.5], [0.5, n - 0.5], edge=ORANGE, width=2.5)
    plot.text(range(n), -0.8, [f"{x:.3g}" for x in now.values[0]], size="small")
    words = page.plot("words", (0, 1), (0, 1), frame="")
    words.note("framed: where the first number is", colour=OCHRE, size="small")
    words.note("rows and columns of P sum to 1", size="small", line=1)
    words.note("last values = P × list", size="small", line=2)
    return table


def draw_matrices(page: Page, now: Run) -> None:
    """Of each layer passed its matrix, below its valves."""
    n = len(now.values[0])
    scale = (n + APART) / PITCH  # cells in the distance of two wires
    plot = page.plane("matrices", (-0.6 * scale, (PITCH * n + 0.6) * scale), (n + 3, -0.5))
    for l, layer in enumerate(now.layers[: now.step]):
        plot.cells(layer.matrix, at=((n + APART) * (l + 0.5) - (n - 1) / 2, 0))
    middles = [(n + APART) * (l + 0.5) for l in range(now.step)]
    plot.text(middles, n - 0.2, layer_names(now.step), size="small", rise="top")


def layer_names(step: int) -> list[str]:
    return [f"P{l + 1}".translate(SUBSCRIPTS) for l in range(step)]
