"""The eigenvalues of two views as two lists, and all 720 matchings below their product (QARe, eq. 7)."""

from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.handles import Link, box
from setclr_course.kit.palette import GREY, PURPLE, VERMILION
from setclr_course.kit.panel import Drawing, Panel
from setclr_course.kit.parts import Part
from setclr_course.panels.sets.ring import SPREAD, degrees_of, draw_ring, ring_controls, ring_handles, vectors

EDGES = np.linspace(0.7, 2.3, 81)  # of the histogram, per entry of the tables


class Seen(NamedTuple):
    """What two views give: everything divided by 36, the entries of a table."""

    eigenvalues: np.ndarray  # (2, 6), ascending, of the tables 1 + A and 1 + B; not divided
    fits: np.ndarray  # (720,): the first is that of the true matching
    bound: float  # the eigenvalues multiplied in order


def spectra(**initial) -> Panel:
    """Two views on a circle, the eigenvalues of both, and the fit of every matching: ■ can be dragged."""
    return Panel(build, ring_controls(SPREAD, 0), (9, 4.6), initial, 3.4)


@cache
def orders() -> np.ndarray:
    return np.array(list(permutations(range(6))))


def seen(z: np.ndarray) -> Seen:
    one, two = 1 + z @ z.swapaxes(1, 2)
    P = orders()
    fits = (one * two[P[:, :, None], P[:, None, :]]).sum((1, 2)) / 36
    eigenvalues = np.linalg.eigvalsh(np.stack([one, two])).clip(0)
    return Seen(eigenvalues, fits, float(eigenvalues[0] @ eigenvalues[1]) / 36)


def build(figure, compact: bool) -> Drawing:
    if compact:
        axes = figure.subplot_mosaic([["fits"]])
    else:
        axes = figure.subplot_mosaic([["ring", "lists"], ["ring", "fits"]], width_ratios=(1.15, 1))
    ring = None if compact else draw_ring(axes["ring"], False)
    lists = None if compact else draw_eigenvalues(axes["lists"])
    fits = draw_fits(axes["fits"], compact)
    now: dict[str, Any] = {}

    def update(values: dict) -> str:
        z = vectors(degrees_of(values))
        found = seen(z)
        now.update(turn=values["turn"], seen=found)
        fits.move(found)
        if ring and lists:
            ring.move(z)
            lists.move(found)
        above = int((found.fits > found.fits[0] + 1e-9).sum())
        return (
            f"View 2 is turned by {values['turn']}°. The 720 matchings fit by {found.fits.min():.2f} to "
            f"{found.fits.max():.2f}, the true one by {found.fits[0]:.2f}; {above} fit better. The sorted "
            f"eigenvalues give {found.bound:.2f}, and none is above."
        )

    parts = [part for part in (ring, lists, fits) if part]
    artists = [artist for part in parts for artist in part.artists]
    handles = {} if compact else ring_handles(axes["ring"], now)
    return Drawing(artists, update, handles, lambda: [] if compact else links(axes["lists"], now))


def links(axis, now: dict) -> list[Link]:
    """Eigenvalues of the same rank."""
    found = []
    for j, (a, b) in enumerate(now["seen"].eigenvalues.T):
        marks = [box(axis, (j - 0.4, 0), (j + 0.4, max(a, b, 0.3)))]
        found.append(Link(marks, text=f"number {j + 1}: {a:.2f} × {b:.2f} = {a * b:.2f}"))
    return found


def draw_eigenvalues(axis) -> Part:
    """Both lists, side by side at each rank."""
    axis.set(xlim=(-0.6, 5.6), ylim=(0, 9), xticks=[], yticks=(0, 4, 8))
    axis.set_title("eigenvalues λ, both lists by size")
    for y, word, colour in ((0.82, "● of 1 + A", "#555555"), (0.66, "■ of 1 + B", PURPLE)):
        axis.text(0.02, y, word, color=colour, weight="bold", transform=axis.transAxes)
    places = [j + side for side in (-0.2, 0.2) for j in range(6)]
    bars = axis.bar(places, np.zeros(12), 0.38, color=[GREY] * 6 + [PURPLE] * 6)
    words = [axis.text(x, 0, "", ha="center", va="bottom", fontsize=8) for x in places]

    def move(found: Seen) -> None:
        for bar, word, value in zip(bars, words, found.eigenvalues.ravel()):
            bar.set_height(value)
            word.set(y=value + 0.1, text=f"{value:.1f}" if value > 0.05 else "0")

    return Part([*bars, *words], move)


def draw_fits(axis, compact: bool) -> Part:
    """All matchings by their fit, the true one, and the bound."""
    axis.set(xlim=(EDGES[0], EDGES[-1]), ylim=(0, 1.45), yticks=[], xlabel="fit: mean of (1 + A)(1 + B)")
    axis.spines["left"].set_visible(False)
    if not compact:
        axis.set_title("no matching gets past the eigenvalues")
    bars = axis.stairs(0 * EDGES[:-1], EDGES, fill=True, color="#cccccc")
    true = axis.plot([], [], color=VERMILION, linewidth=2)[0]
    bound = axis.plot([], [], color=PURPLE, linewidth=3)[0]
    size = 9 if compact else 10
    words = [
        axis.text(0, 1.42, "", color=PURPLE, va="top", weight="bold", fontsize=size),
        axis.text(0, 1.18, "", color=VERMILION, va="top", ha="right", weight="bold", fontsize=size),
    ]

    def move(found: Seen) -> None:
        heights = np.histogram(found.fits, EDGES)[0]
        bars.set_data(heights / max(heights.max(), 1))
        bound.set_data([found.bound] * 2, [0, 1.42])
        true.set_data([found.fits[0]] * 2, [0, 1.18])
        words[0].set(x=found.bound + 0.012, text=f"sorted λ\n{found.bound:.2f}")
        words[1].set(x=found.fits[0] - 0.012, text=f"true {found.fits[0]:.2f}")

    return Part([bars, true, bound, *words], move)
