"""What a sorting network is drawn with: wires, valves between them, beads that swap places."""

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap

from setclr_course.kit.palette import BLUE, GREY, ORANGE
from setclr_course.panels.sorting.swap_matrices import PITCH, Layer, brief
from setclr_course.pixels.parts import Part

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
