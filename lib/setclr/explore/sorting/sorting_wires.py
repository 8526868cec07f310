"""A sorting network as wires and valves: one value's way through it, and the matrices of its layers (GroCo,
figures 3 and 6, eq. 2 to 4)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.path import Path

from setclr.explore.kit.outlines import ink, written
from setclr.explore.kit.panel import Drawing, Panel, log_slider, options, slider
from setclr.explore.kit.parts import bare
from setclr.explore.sorting.swap_matrices import PITCH, Layer, brief, draw_matrices, layers_of
from setclr.inner.sorting import KINDS
from setclr.palette import BLUE, GREY, ORANGE

NUMBERS = (6, 1, 4, 2, 8, 3, 7, 5)  # begins with the four numbers of figure 6
BEAD, VALVE = 0.38, 0.29  # radii, in distances of two wires
BROAD = 0.46  # of the beads in a row's smaller picture
DIGITS = (0.34, 0.43)  # size of the numbers' font; in a row's smaller picture
VALVES = LinearSegmentedColormap.from_list("valves", ["white", BLUE], 40)
TURN = np.linspace(0, 2 * np.pi, 25)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)], axis=-1)
HEAD = np.array([[0, 0.02], [-0.09, -0.16], [0.09, -0.16]])  # of an arrow that points to larger y
HALF = np.linspace(0, np.pi, 181)  # half the angle of a segment of the circle
SEGMENT = (HALF - np.sin(HALF) * np.cos(HALF)) / np.pi  # and its share of the disc
ALONG = np.linspace(0, 1, 13)
BEND = ALONG * ALONG * (3 - 2 * ALONG)


def sorting_wires(numbers: Sequence[float] = NUMBERS, **initial) -> Panel:
    """Numbers on their way through a sorting network, with sliders for the layer, the softness and the first
    number, whose whereabouts are drawn; below and beside it the matrices of the layers and their product."""
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
        labels = [label for _, show in parts for label in show(layers, step, held)]
        for pen, dark in ((black, False), (white, True)):
            ours = [(text, centre) for text, centre, on_dark in labels if on_dark == dark]
            pen.set_path(written(*zip(*ours), DIGITS[compact], down=True) if ours else Path(np.zeros((0, 2))))

        p = layers[step - 1].product[:, 0] if step else np.eye(n)[0]
        return (
            f"After layer {step} of {len(layers)} ({values['kind']}) at β = {values['beta']:.4g} the wires "
            f"hold {', '.join(f'{value:.3g}' for value in held[-1])}. The first number, {x[0]:g}, is most "
            f"likely at place {p.argmax() + 1}, with probability {p.max():.2f}, and spread over "
            f"{1 / (p * p).sum():.1f} places."
        )

    return Drawing([artist for artists, _ in parts for artist in artists] + [black, white], update)


def draw_wires(axis, n: int, compact: bool) -> tuple[list[Artist], Callable]:
    """Wires, valves and beads, and the mist of the first number; `show` returns what is written on them."""
    radius = BROAD if compact else BEAD
    wires = LineCollection([], colors="#c4c4c4", linewidths=1.2)
    mist = PolyCollection([], facecolors=ORANGE, alpha=0.45, linewidths=0)
    bars = LineCollection([], linewidths=1.3)
    heads = PolyCollection([], linewidths=0)
    valves = PolyCollection([], edgecolors=BLUE, linewidths=0.9, cmap=VALVES, clim=(0, 1))
    beads = PolyCollection([], facecolors="white", linewidths=0.8)
    inside = PolyCollection([], facecolors=ORANGE, linewidths=0)
    artists = [wires, mist, bars, heads, valves, beads, inside]
    for depth, artist in enumerate(artists):
        artist.set_zorder(1 + depth / 10)
        axis.add_collection(artist)

    def show(layers: list[Layer], step: int, held: list[np.ndarray]) -> list:
        x, low, high, q = valve_places(layers).T
        passed = x < PITCH * step
        colours = np.where(passed, BLUE, "#dddddd")
        bars.set_segments(np.stack([np.stack([x, low], -1), np.stack([x, high], -1)], axis=1))
        bars.set_color(colours)
        way = np.stack([np.ones_like(x), np.sign(high - low)], -1)
        heads.set_verts(np.stack([x, high], -1)[:, None] + HEAD * way[:, None])
        heads.set_facecolor(colours)
        middle = np.stack([x, (low + high) / 2], axis=-1)[passed]
        valves.set_verts(middle[:, None] + VALVE * CIRCLE)
        valves.set_array(q[passed])

        wires.set_segments([[(0, i), (PITCH * len(layers), i)] for i in range(n)])
        mist.set_verts(streams(layers[:step]))
        centres = np.array([[(PITCH * l, i) for i in range(n)] for l in range(len(layers) + 1)])
        columns = sorted({0, step}) if compact else range(len(layers) + 1)  # of beads; between them drops
        p = np.array([np.eye(n)[0], *(layer.product[:, 0] for layer in layers[:step])]).clip(0, 1)
        filled, drops = levels(centres[: step + 1], p, radius), BEAD * np.sqrt(p).reshape(-1, 1, 1) * CIRCLE
        bead = np.isin(np.arange(step + 1), columns).repeat(n)[:, None, None]
        inside.set_verts(np.where(bead, filled, centres[: step + 1].reshape(-1, 1, 2) + drops))
        beads.set_verts(centres[columns].reshape(-1, 1, 2) + radius * CIRCLE)
        colours = np.array([GREY] * step + ["black"] + ["#dddddd"] * (len(layers) - step))
        beads.set_edgecolor(np.repeat(colours[columns], n))
        labels = [
            (f"{value:.3g}" if l == 0 or abs(value - round(value)) < 0.005 else f"{value:.1f}", centre, False)
            for l in columns[: step + 1]
            for value, centre in zip(held[l], centres[l])
        ]
        if not compact:
            labels += [(brief(q), at, q > 0.6) for q, at in zip(q[passed], middle)]
        return labels

    return artists, show


def valve_places(layers: list[Layer]) -> np.ndarray:
    """(v, 4): where on the x axis each valve stands, side by side where bars would overlap; the place for the
    smaller value, that for the larger, and the swap probability."""
    rows = []
    for l, layer in enumerate(layers):
        stride = max((abs(a - b) for a, b, _ in layer.swaps), default=1)
        for a, b, q in layer.swaps:
            aside = min(a, b) % stride - (stride - 1) / 2
            rows.append((PITCH * (l + 0.5 + 0.06 * aside), a, b, q))
    return np.array(rows)


def streams(layers: list[Layer]) -> np.ndarray:
    """Outlines (s, 26, 2) of the first number's ways from place to place, as broad as the probability that
    flows there: of certainty, as broad as a bead."""
    here, outlines = np.eye(len(layers[0].matrix))[0] if layers else None, []
    for l, layer in enumerate(layers):
        for to, origin in np.argwhere(layer.matrix * here > 0.004):
            half = BEAD * layer.matrix[to, origin] * here[origin]
            middle = np.stack([PITCH * (l + ALONG), origin + (to - origin) * BEND], axis=-1)
            outlines.append(np.concatenate([middle + [0, half], middle[::-1] - [0, half]]))
        here = layer.product[:, 0]
    return np.array(outlines).reshape(-1, 2 * len(ALONG), 2)


def levels(centres, filled, radius: float) -> np.ndarray:
    """Outlines (c, 25, 2) of what is in beads of this radius, filled from below to these fractions."""
    half = np.interp(np.ravel(filled), SEGMENT, HALF)[:, None]
    turn = np.pi / 2 + half * np.linspace(-1, 1, len(TURN))
    return np.reshape(centres, (-1, 1, 2)) + radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
