"""How a sorting network is drawn: wires, valves between them, beads on them, the stream of the first number.

Beads and valves are boxes that are filled from below: with the probability that the first number is there,
and with that of a swap. Wire i is at y = i, layer l at x = PITCH · l.
"""

import numpy as np

from setclr_course.kit.palette import BLUE, GREY, INK, ORANGE, PALE, WHITE
from setclr_course.kit.scene import Mark, Page, Plot
from setclr_course.panels.sorting.five import beside
from setclr_course.panels.sorting.network import Run, brief

PITCH = 1.7  # from one layer to the next, in distances of two wires
BEAD, VALVE = (0.76, 0.76), (0.72, 0.5)  # width and height


def draw_wires(page: Page, now: Run, who: str, y: tuple[float, float]) -> Mark:
    """The plot "wires", with limits y; `who` is the first number. Returns the n beads where it is now."""
    n = len(now.swaps)
    plot = page.plane("wires", (-0.6, PITCH * n + 0.6), y, "places, the closest belongs on top")
    plot.segments(at(0, np.arange(n)), at(n, np.arange(n)), PALE, 1.2)
    draw_stream(plot, now)
    for layer, q in enumerate(now.swaps):
        wires, passed = np.arange(layer % 2, n - 1, 2), layer < now.step
        plot.arrows(at(layer + 0.5, wires), at(layer + 0.5, wires + 1), BLUE if passed else PALE, 1.4)
        if passed:
            middles = at(layer + 0.5, wires + 0.5)
            filled(plot, middles, VALVE, q, BLUE, BLUE)
            if not page.row:
                plot.text(middles[:, 0], middles[:, 1], [brief(share) for share in q], size="small")
    columns = {0, now.step} if page.row else range(n + 1)
    return {layer: draw_beads(plot, now, layer, who) for layer in sorted(columns)}[now.step]


def at(layer: float | np.ndarray, wire: np.ndarray) -> np.ndarray:
    return beside(PITCH * layer, wire)


def draw_stream(plot: Plot, now: Run) -> None:
    """The first number's ways from wire to wire, as broad as their probability."""
    flows = now.matrices[: now.step] * now.products[: now.step, None, :, 0]
    for side in (-1, 0, 1):  # three marks: ways that cross would cut holes into one another
        layer, to, origin = np.nonzero(flows * np.eye(len(now.swaps), k=-side) > 0.004)
        one, two = at(layer, origin), at(layer + 1, to)
        half = beside(0, BEAD[1] / 2 * flows[layer, to, origin])
        if len(half):
            plot.area(np.stack([one - half, two - half, two + half, one + half], 1), ORANGE, 0.45)


def draw_beads(plot: Plot, now: Run, layer: int, who: str) -> Mark:
    """What the wires hold after that layer; empty where it is still to come."""
    values, passed = now.values[layer], layer <= now.step
    places, shares = at(layer, np.arange(len(values))), now.products[layer, :, 0] * passed
    beads = filled(plot, places, BEAD, shares, ORANGE, INK if layer == now.step else GREY if passed else PALE)
    if passed:
        words = [f"{value:.1f}" if layer else f"{value:.3g}" for value in values]
        plot.text(places[:, 0], places[:, 1], words, size="small")
        for k, (value, share) in enumerate(zip(values, shares)):
            said = f"place {k + 1} after layer {layer}: {value:.2f}, {who} with {share:.2f}"
            plot.page.link(said, beads[k])
    return beads


def filled(
    plot: Plot, middles: np.ndarray, size: tuple[float, float], shares: np.ndarray, colour: str, edge: str
) -> Mark:
    """Boxes of this width and height, filled from below to these shares. Returns the boxes."""
    corner, some = np.array([-size[0] / 2, size[1] / 2]), shares > 0.004
    boxes = plot.boxes(middles + corner, middles - corner, WHITE, edge)
    level = beside(size[0] / 2, size[1] * (0.5 - shares))
    plot.boxes((middles + corner)[some], (middles + level)[some], colour, opacity=0.5)
    return boxes
