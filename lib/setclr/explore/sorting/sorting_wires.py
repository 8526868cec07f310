"""A sorting network as wires and valves: one value's way through it, and the matrices of its layers (GroCo,
figures 3 and 6, eq. 2 to 4)."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap

from setclr.explore.kit.controls import log_slider, options, slider
from setclr.explore.kit.outlines import ink, written
from setclr.explore.kit.panel import Drawing, Panel
from setclr.explore.kit.parts import Part, bare
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


def draw_wires(axis, n: int, compact: bool) -> Part:
    """Wires, valves and beads, and the mist of the first number.

    Moved by the layers, the number of those passed and what the wires hold after each; returns what is to be
    written: (text, centre, whether on dark).
    """
    wires = LineCollection([], colors="#c4c4c4", linewidths=1.2)
    mist = PolyCollection([], facecolors=ORANGE, alpha=0.45, linewidths=0)
    valves, beads = Valves(), Beads(BROAD if compact else BEAD)
    artists = [wires, mist, *valves.artists, *beads.artists]
    for depth, artist in enumerate(artists):
        artist.set_zorder(1 + depth / 10)
        axis.add_collection(artist)

    def move(layers: list[Layer], step: int, held: list[np.ndarray]) -> list:
        wires.set_segments([[(0, i), (PITCH * len(layers), i)] for i in range(n)])
        mist.set_verts(list(ways_of_first(layers[:step])))
        columns = sorted({0, step}) if compact else list(range(len(layers) + 1))  # of beads; others get drops
        q, middles = valves.move(layers, step)
        labels = beads.move(layers, step, held, columns)
        if not compact:
            labels += [(brief(p), at, p > 0.6) for p, at in zip(q, middles)]
        return labels

    return Part(artists, move)


class Valves:
    """A bar with an arrowhead for every swap, and a disc that is as blue as the swap is probable."""

    def __init__(self) -> None:
        self.bars = LineCollection([], linewidths=1.3)
        self.heads = PolyCollection([], linewidths=0)
        self.discs = PolyCollection([], edgecolors=BLUE, linewidths=0.9, cmap=VALVES, clim=(0, 1))
        self.artists = [self.bars, self.heads, self.discs]

    def move(self, layers: list[Layer], step: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the probabilities (v,) and the middles (v, 2) of the valves in the layers passed."""
        x, low, high, q = where_valves_stand(layers).T
        passed = x < PITCH * step
        colours = list(np.where(passed, BLUE, "#dddddd"))
        self.bars.set_segments(list(np.stack([np.stack([x, low], -1), np.stack([x, high], -1)], axis=1)))
        self.bars.set_color(colours)
        way = np.stack([np.ones_like(x), np.sign(high - low)], -1)
        self.heads.set_verts(list(np.stack([x, high], -1)[:, None] + HEAD * way[:, None]))
        self.heads.set_facecolor(colours)
        middles = np.stack([x, (low + high) / 2], axis=-1)[passed]
        self.discs.set_verts(list(middles[:, None] + VALVE * CIRCLE))
        self.discs.set_array(q[passed])
        return q[passed], middles


class Beads:
    """Discs for the values on the wires, filled to the probability that the first number is there; drops of
    that size where there is no disc."""

    def __init__(self, radius: float):
        self.radius = radius
        self.rims = PolyCollection([], facecolors="white", linewidths=0.8)
        self.inside = PolyCollection([], facecolors=ORANGE, linewidths=0)
        self.artists = [self.rims, self.inside]

    def move(self, layers: list[Layer], step: int, held: list[np.ndarray], columns: list[int]) -> list:
        """Returns the numbers to be written into the beads of these columns."""
        n = len(held[0])
        centres = np.array([[(PITCH * l, i) for i in range(n)] for l in range(len(layers) + 1)])
        p = np.array([np.eye(n)[0], *(layer.product[:, 0] for layer in layers[:step])]).clip(0, 1)
        filled = levels(centres[: step + 1], p, self.radius)
        drops = centres[: step + 1].reshape(-1, 1, 2) + BEAD * np.sqrt(p).reshape(-1, 1, 1) * CIRCLE
        bead = np.isin(np.arange(step + 1), columns).repeat(n)[:, None, None]
        self.inside.set_verts(list(np.where(bead, filled, drops)))
        self.rims.set_verts(list(centres[columns].reshape(-1, 1, 2) + self.radius * CIRCLE))
        colours = np.array([GREY] * step + ["black"] + ["#dddddd"] * (len(layers) - step))
        self.rims.set_edgecolor(list(np.repeat(colours[columns], n)))
        return [
            (f"{value:.3g}" if l == 0 or abs(value - round(value)) < 0.005 else f"{value:.1f}", centre, False)
            for l in columns[: step + 1]
            for value, centre in zip(held[l], centres[l])
        ]


def where_valves_stand(layers: list[Layer]) -> np.ndarray:
    """(v, 4): the x of each valve, side by side where bars would overlap; the wire for the smaller value, the
    one for the larger, and the swap probability."""
    rows = []
    for l, layer in enumerate(layers):
        stride = max((abs(a - b) for a, b, _ in layer.swaps), default=1)
        for a, b, q in layer.swaps:
            aside = min(a, b) % stride - (stride - 1) / 2
            rows.append((PITCH * (l + 0.5 + 0.06 * aside), a, b, q))
    return np.array(rows)


def ways_of_first(layers: list[Layer]) -> np.ndarray:
    """Outlines (s, 26, 2) of the first number's ways from wire to wire, as broad as their probability, where
    certainty is as broad as a bead."""
    outlines, here = [], np.eye(len(layers[0].matrix) if layers else 1)[0]
    for l, layer in enumerate(layers):
        for to, origin in np.argwhere(layer.matrix * here > 0.004):
            half = BEAD * layer.matrix[to, origin] * here[origin]
            middle = np.stack([PITCH * (l + ALONG), origin + (to - origin) * BEND], axis=-1)
            outlines.append(np.concatenate([middle + [0, half], middle[::-1] - [0, half]]))
        here = layer.product[:, 0]
    return np.array(outlines).reshape(-1, 2 * len(ALONG), 2)


def levels(centres, filled, radius: float) -> np.ndarray:
    """Outlines (c, 25, 2) of the contents of beads of this radius, filled from below to these fractions."""
    half = np.interp(np.ravel(filled), SEGMENT, HALF)[:, None]
    turn = np.pi / 2 + half * np.linspace(-1, 1, len(TURN))
    return np.reshape(centres, (-1, 1, 2)) + radius * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
