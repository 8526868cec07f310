"""The best matching made soft: all N! matchings together, or every row by itself (QARe, eq. 4 and 13)."""

from functools import lru_cache
from itertools import product
from math import lgamma, log
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from setclr.inner import linear_assignment
from setclr_course.kit.palette import BLACK, BLUE, GREEN, SKY, VERMILION
from setclr_course.panels.assignments.things import random_things
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cell_outlines, cells, frames

LARGEST = 6
TEMPERATURE, DECADE = (0.005, 50), 0.1
CURVE = np.logspace(np.log10(TEMPERATURE[0]), np.log10(TEMPERATURE[1]), 81)
SHOWN = (0.004, 62)  # ends of the temperature's axis, with room for the markers
LOSS = (0.01, 200)  # ends of the loss's axis
THINGS = random_things(948, LARGEST, spread=0.9)  # no best matching of the first N is the true one
PAIR = np.array([to_rgba(VERMILION), to_rgba(SKY)])


class Kind(NamedTuple):
    """One of the two ways to match, as the panel shows it."""

    words: str
    matrix: str
    symbol: str
    marker: str
    colour: str


KINDS = {
    "one-to-one": Kind("one to one", "mean of all N! matchings", "◆", "D", BLUE),
    "batch-hard": Kind("each row alone", "softmax of each row", "▲", "^", GREEN),
}


class Softened(NamedTuple):
    loss: float  # per thing
    matrix: np.ndarray  # (N, N), rows sum to 1


def softened_assignment(**initial) -> Panel:
    """A few things matched softly, one to one and every row alone, with both losses over the temperature."""
    controls = {
        "temperature": log_slider(
            "temperature τ", 0.05, *TEMPERATURE, DECADE, {0.05: "InfoNCE .05", 0.5: ".5", 5: "5"}
        ),
        "N": slider("things N", 5, 2, LARGEST, 1),
    }
    for mining, n in product(KINDS, range(2, LARGEST + 1)):
        curve(mining, n)  # so that no event has to wait for it
    return Panel(build, controls, (9, 4.8), initial, 5.2)


@lru_cache(maxsize=2**12)
def soften(mining: str, temperature: float, n: int) -> Softened:
    """The loss of the first n things as in eq. 4, or eq. 13 with its exp, and the mean matching behind it."""
    S = torch.cdist(*THINGS[:, :n])
    solved = linear_assignment(S, temperature, mining)
    return Softened(float(S.trace() - solved.value) / n, solved.matrix.numpy())


@lru_cache
def curve(mining: str, n: int) -> np.ndarray:
    """(81, 2): temperature and loss."""
    return np.array([(t, soften(mining, float(t), n).loss) for t in CURVE])


def build(figure, compact: bool) -> Drawing:
    planes, matrices = list(KINDS), [mining + " matrix" for mining in KINDS]
    if compact:
        axes = figure.subplot_mosaic([planes, matrices, ["loss"] * 2], height_ratios=[1.1, 1.5, 1.5])
    else:
        rows = [[plane, matrix, "loss"] for plane, matrix in zip(planes, matrices)]
        axes = figure.subplot_mosaic(rows, width_ratios=[1.55, 1, 1.75])
    soft = {
        mining: (
            draw_things(axes[mining], mining, compact),
            draw_weights(axes[mining + " matrix"], mining, compact),
        )
        for mining in KINDS
    }
    losses = draw_losses(axes["loss"], compact)

    def update(values: dict) -> str:
        temperature, n = values["temperature"], values["N"]
        now = {mining: soften(mining, temperature, n) for mining in KINDS}
        for mining, parts in soft.items():
            for part in parts:
                part.move(now[mining].matrix)
        losses.move({mining: solved.loss for mining, solved in now.items()}, temperature, n)
        (one, A), (rows, B) = now.values()
        columns = B.sum(0)
        return (
            f"{n} things at temperature {temperature:.3g}. One-to-one: loss {one:.3f}, {A.trace() / n:.0%} "
            f"of the weight on true pairs, every column sums to 1. Each row alone: loss {rows:.3f}, "
            f"{B.trace() / n:.0%} on true pairs, columns sum to between {columns.min():.2f} and "
            f"{columns.max():.2f}."
        )

    parts = [*(part for pair in soft.values() for part in pair), losses]
    return Drawing([artist for part in parts for artist in part.artists], update)


def draw_things(axis, mining: str, compact: bool) -> Part:
    """The things with a line for every pair, as thick as its weight; moved by the weights."""
    size = 7 if compact else 7.5
    bare(axis, (-1.66, 1.66), (-1.06, 1.06))
    axis.set_title(KINDS[mining].words, color=KINDS[mining].colour, weight="bold", fontsize=size + 2.5)
    if not compact and mining == "batch-hard":
        axis.set_xlabel("thick: much weight   blue: true pair", fontsize=8)
    lines = axis.add_collection(LineCollection([]))
    points = [
        axis.scatter([], [], s=1.9 * size**2, marker=m, c=c, edgecolors=BLACK, zorder=3, clip_on=False)
        for m, c in (("o", BLACK), ("s", "white"))
    ]
    kind = {"ha": "center", "va": "center_baseline", "fontsize": size, "weight": "bold", "zorder": 4}
    names = [
        axis.text(*point, str(i + 1), color=colour, **kind)
        for view, colour in zip(THINGS.tolist(), ("white", BLACK))
        for i, point in enumerate(view)
    ]

    def move(A: np.ndarray) -> None:
        n = len(A)
        circle, square = THINGS[:, :n].numpy()
        pairs = np.stack(np.broadcast_arrays(circle[:, None], square), 2).reshape(-1, 2, 2)
        colours = PAIR[np.eye(n, dtype=int).ravel()]
        colours[:, 3] = 0.15 + 0.85 * A.ravel().clip(0, 1)
        lines.set_segments(pairs)
        lines.set(colors=colours, linewidths=4 * A.ravel())
        for scatter, view in zip(points, (circle, square)):
            scatter.set_offsets(view)
        for k, name in enumerate(names):
            name.set_visible(k % LARGEST < n)

    return Part([lines, *points, *names], move)


def draw_weights(axis, mining: str, compact: bool) -> Part:
    """The weights as a matrix with the sums of its columns; moved by the weights."""
    mesh = cells(axis, LARGEST, LARGEST)
    axis.set_ylim(LARGEST + 0.4, -0.5)  # a line more, for the sums
    axis.spines[:].set_visible(False)
    if not compact:
        axis.set_title(KINDS[mining].matrix, fontsize=9)
    true = frames(axis, [], "white", 1)
    below = {"ha": "center", "va": "center", "fontsize": 7}
    sums = [axis.text(j, 0, "", **below) for j in range(LARGEST)]
    sums.append(axis.text(-0.65, 0, "sum", **{**below, "ha": "right"}))

    def move(A: np.ndarray) -> None:
        n = len(A)
        grid = np.full((LARGEST, LARGEST), np.nan)
        grid[:n, :n] = A
        mesh.set_array(grid)
        true.set_segments(cell_outlines((i, i) for i in range(n)))
        totals = [format(total, ".1f" if compact else ".2f") for total in A.sum(0)]
        for text, total in zip(sums, [*totals, *[""] * (LARGEST - n), "sum"]):
            text.set(text=total, y=n)

    return Part([mesh, true, *sums], move)


def draw_losses(axis, compact: bool) -> Part:
    """Both losses over the temperature; moved by the losses now, the temperature and N."""
    size = 8 if compact else 9
    axis.set(xscale="log", yscale="log", xlim=SHOWN, ylim=LOSS, xlabel="temperature τ")
    axis.tick_params(labelsize=size)
    axis.set_title("loss per thing", fontsize=size + 1)
    asymptotes = [axis.plot([], [], color=k.colour, linewidth=1.2, linestyle=":")[0] for k in KINDS.values()]
    curves, markers, words = [], [], []
    for y, kind in zip((0.86, 0.93), KINDS.values()):
        curves.append(axis.plot([], [], color=kind.colour)[0])
        dot = {"color": kind.colour, "markersize": 7 if compact else 9, "markeredgecolor": "white"}
        markers.append(axis.plot([], [], kind.marker, **dot)[0])
        words.append(axis.text(0.04, y, "", transform=axis.transAxes, color=kind.colour, fontsize=size))
    limit = axis.text(0.98, 0.04, "", transform=axis.transAxes, ha="right", color="#555555", fontsize=size)

    def move(losses: dict, temperature: float, n: int) -> None:
        slopes = lgamma(n + 1) / n, log(n)
        for asymptote, slope in zip(asymptotes, slopes):
            asymptote.set_data(TEMPERATURE, slope * np.array(TEMPERATURE))
        for (mining, loss), line, marker, text in zip(losses.items(), curves, markers, words):
            line.set_data(*curve(mining, n).T)
            marker.set_data([temperature], [loss])
            text.set_text(f"{KINDS[mining].symbol} {KINDS[mining].words}: {loss:.3g}")
        rows, one = f"{slopes[1]:.2f} τ", f"{slopes[0]:.2f} τ"
        limit.set_text(
            f"dotted: {rows} and {one}" if compact else f"dotted: τ log N = {rows}\nτ log(N!) / N = {one}"
        )

    return Part([*asymptotes, *curves, *markers, *words, limit], move)
