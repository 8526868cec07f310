"""A sorting network as wires and valves: one value's way through it, and the matrices of its layers (GroCo,
figures 3 and 6, eq. 2 to 4)."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from setclr.inner.sorting import KINDS
from setclr_course.panels.sorting.swap_matrices import PITCH, draw_matrices, layers_of
from setclr_course.panels.sorting.wires import DIGITS, draw_wires
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.outlines import ink, written
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import bare

NUMBERS = (6, 1, 4, 2, 8, 3, 7, 5)  # begins with the four numbers of figure 6


def sorting_wires(numbers: Sequence[float] = NUMBERS, **initial) -> Panel:
    """Numbers on their way through a sorting network, with sliders for the layer, the softness and the first
    number, whose whereabouts are drawn; around them the matrices of the layers and their product."""
    numbers = tuple(float(x) for x in numbers)
    n = len(numbers)
    controls = {
        "layer": slider("after layer", n, 0, n, 1, {0: "the list", n: "all layers"}),
        "beta": log_slider("inverse temperature β", 1, 0.1, 1000, 0.1, {0.13: "soft", 1: "1", 800: "hard"}),
        "first": slider("first number", numbers[0], min(numbers) - 1, max(numbers) + 1, 0.25),
        "kind": options("network", KINDS[: 1 if n & (n - 1) else 2]),
    }
    x, y = limits(n, compact=False)
    row_x, row_y = limits(n, compact=True)
    width = min(8.4, 0.5 * (x[1] - x[0]))
    height = width * (y[0] - y[1]) / (x[1] - x[0])
    row_height = 3.3 * (row_y[0] - row_y[1]) / (row_x[1] - row_x[0]) + 0.3
    draw = partial(build, numbers=numbers)
    return Panel(draw, controls, (width, height), initial, row_height)


def limits(n: int, compact: bool) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of the x and y axes: wire i is at y = i, layer l at x = PITCH·l."""
    if compact:
        return (-0.6, PITCH * n + 0.6), (n - 0.3, -0.7)
    return (-0.6, (PITCH + 1) * n + 1.2), (n + 1.7, -1.7)


def build(figure, compact: bool, numbers: tuple[float, ...]) -> Drawing:
    n = len(numbers)
    axis = figure.subplots()
    bare(axis, *limits(n, compact))
    parts = [draw_wires(axis, n, compact)] + ([] if compact else [draw_matrices(axis, n)])
    black, white = ink(axis, "black"), ink(axis, "white")

    def update(values: dict) -> str:
        x = (values["first"], *numbers[1:])
        layers = layers_of(x, values["beta"], values["kind"])
        step = min(values["layer"], len(layers))
        held = [np.array(x), *(layer.values for layer in layers[:step])]
        labels = [label for part in parts for label in part.move(layers, step, held)]
        for pen, dark in ((black, False), (white, True)):
            ours = [(text, centre) for text, centre, on_dark in labels if on_dark == dark]
            texts, centres = [text for text, _ in ours], [centre for _, centre in ours]
            pen.set_path(written(texts, centres, DIGITS[compact], down=True))

        p = layers[step - 1].product[:, 0] if step else np.eye(n)[0]
        return (
            f"After layer {step} of {len(layers)} ({values['kind']}) at β = {values['beta']:.4g} the wires "
            f"hold {', '.join(f'{value:.3g}' for value in held[-1])}. The first number, {x[0]:g}, is most "
            f"likely at place {p.argmax() + 1}, with probability {p.max():.2f}, and spread over "
            f"{1 / (p * p).sum():.1f} places."
        )

    return Drawing([artist for part in parts for artist in part.artists] + [black, white], update)
