"""How a sorting network is drawn: wires, valves between them, beads on them, the stream of the first number.

Beads and valves are boxes that are filled from below: with the probability that the first number is there,
and with that of a swap. Wire i is at y = i, layer l at x = PITCH · l.
"""

import numpy as np

from setclr_course.kit.palette import BLUE, GREY, INK, ORANGE, PALE, WHITE
from setclr_course.kit.scene import Mark, Page, Piece, Plot, Words
from setclr_course.panels.sorting.network import Layer, Run, brief

PITCH = 1.7  # from one layer to the next, in distances of two wires
BEAD, VALVE = (0.76, 0.76), (0.72, 0.5)  # width and height
ALONG = np.linspace(0, 1, 9)
BEND = ALONG * ALONG * (3 - 2 * ALONG)


def draw_wires(page: Page, now: Run, who: str, title: str, y: tuple[float, float]) -> list[Piece]:
    """The plot "wires", with limits y; `who` is the first number. Returns the n beads where it is now."""
    long, n = now.values.shape
    plot = page.plane("wires", (-0.6, PITCH * n + 0.6), y, title)
    wires = np.arange(n)
    plot.segments(at(0, wires), at(long - 1, wires), PALE, 1.2)
    draw_stream(plot, now)
    for l, layer in enumerate(now.layers):
        draw_valves(plot, layer, l, l < now.step, page.row)
    return draw_beads(plot, now, sorted({0, now.step}) if page.row else list(range(long)), who)


def at(layer: float | np.ndarray, wire: np.ndarray) -> np.ndarray:
    return np.stack(np.broadcast_arrays(PITCH * layer, wire), -1)


def draw_stream(plot: Plot, now: Run) -> None:
    """The first number's ways from wire to wire, as broad as their probability."""
    ways = [
        (l, origin, to, flow)
        for l, (layer, before) in enumerate(zip(now.layers[: now.step], now.products))
        for (to, origin), flow in np.ndenumerate(layer.matrix * before[:, 0])
        if flow > 0.004
    ]
    on = np.array([(l, wire, flow) for l, wire, to, flow in ways if to == wire]).reshape(-1, 3)
    half = np.stack([np.zeros(len(on)), BEAD[1] / 2 * on[:, 2]], 1)
    plot.boxes(at(on[:, 0], on[:, 1]) - half, at(on[:, 0] + 1, on[:, 1]) + half, ORANGE, opacity=0.45)
    for side in (-1, 1):  # two marks: ways that cross would cut holes into one another
        rings = [bent(l, origin, to, flow) for l, origin, to, flow in ways if (to - origin) * side > 0]
        plot.area(rings, ORANGE, 0.45)


def bent(layer: int, origin: int, to: int, flow: float) -> np.ndarray:
    """The outline of a way from one wire to another."""
    middle, half = at(layer + ALONG, origin + (to - origin) * BEND), np.array([0, BEAD[1] / 2 * flow])
    return np.concatenate([middle + half, (middle - half)[::-1]])


def draw_valves(plot: Plot, layer: Layer, l: int, passed: bool, small: bool) -> None:
    """An arrow for every swap, towards the larger value; those of the layers passed are filled."""
    stride = int(np.abs(layer.high - layer.low).max(initial=1))
    aside = np.minimum(layer.low, layer.high) % stride - (stride - 1) / 2  # or they would overlap
    x = l + 0.5 + 0.04 * aside
    plot.arrows(at(x, layer.low), at(x, layer.high), BLUE if passed else PALE, 1.4)
    if passed:
        middles = at(x, (layer.low + layer.high) / 2)
        filled(plot, middles, VALVE, layer.q, BLUE, BLUE)
        if not small:
            plot.text(middles[:, 0], middles[:, 1], [brief(q) for q in layer.q], size="small")


def draw_beads(plot: Plot, now: Run, columns: list[int], who: str) -> list[Piece]:
    """What the wires hold after so many layers as the columns say; empty where that is still to come."""
    n, seen = now.values.shape[1], [l for l in columns if l <= now.step]
    places = at(np.repeat(columns, n), np.tile(np.arange(n), len(columns)))
    edges = np.repeat([GREY if l < now.step else INK if l == now.step else PALE for l in columns], n)
    first, values = now.products[seen][..., 0].ravel(), now.values[seen].ravel()
    shares = np.zeros(len(places))
    shares[: len(first)] = first
    beads = filled(plot, places, BEAD, shares, ORANGE, edges.tolist())
    whole = (np.repeat(seen, n) == 0) | (np.abs(values - values.round()) < 0.005)
    said = [f"{value:.3g}" if short else f"{value:.1f}" for value, short in zip(values, whole)]
    plot.text(places[: len(first), 0], places[: len(first), 1], said, size="small")
    for k, (value, share) in enumerate(zip(values, first)):
        text = f"place {k % n + 1} after layer {seen[k // n]}: {value:.2f}, {who} with {share:.2f}"
        plot.page.link(text, beads[k])
    return [beads[n * columns.index(now.step) + wire] for wire in range(n)]


def filled(
    plot: Plot, middles: np.ndarray, size: tuple[float, float], shares: np.ndarray, colour: str, edges: Words
) -> Mark:
    """Boxes of this width and height, filled from below to these shares. Returns the boxes."""
    corner = np.array([-size[0] / 2, size[1] / 2])
    boxes = plot.boxes(middles + corner, middles - corner, WHITE, edges)
    level = np.stack([np.full(len(shares), size[0] / 2), size[1] * (0.5 - shares)], 1)
    some = shares > 0.004
    plot.boxes((middles + corner)[some], (middles + level)[some], colour, opacity=0.5)
    return boxes
