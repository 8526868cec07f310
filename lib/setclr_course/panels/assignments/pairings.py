"""Six photographs whose second views can be dragged, matched one to one and each row alone, hard or soft
(QARe, eq. 3, 4, 12 and 13)."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from setclr.inner import linear_assignment
from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import INK, OF_LOSS
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Link, cell, free, line
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, frames
from setclr_course.pixels.riders import riders

N = len(NAMES)
CIRCLES = np.array([(-0.5, 0.45), (1.05, -0.65), (-0.25, -0.45), (0.6, 0.25), (1.2, 0.8), (-1.1, -0.15)])
SQUARES = {"cat": (-0.65, -0.05), "coffee": (1.4, -0.6), "astronaut": (0.35, -0.9), "rocket": (0.45, 0.8),
           "temple": (1.3, 0.3), "flower": (-1.3, 0.35)}  # fmt: skip
WIDE, TALL = 1.6, 1.0  # the squares move from −WIDE to WIDE and from −TALL to TALL
WAYS = {"one-to-one": "one to one", "batch-hard": "each row alone"}
COLOURS = dict(zip(WAYS, (OF_LOSS["LinearAssignment"], OF_LOSS["InfoNCE"])))
SEEN = 0.02  # lines of a smaller share are not drawn
TOP = 0.7  # of the bars


class Paired(NamedTuple):
    """The pairing of one picture."""

    squares: np.ndarray  # (N, 2)
    weights: dict[str, np.ndarray]  # (N, N) for each way: rows sum to 1
    loss: dict[str, float]  # for each photograph


def pairings(**initial) -> Panel:
    """Six ● and six ■, which can be dragged: who is matched with whom, one to one and each row alone."""
    controls = {
        "temperature": log_slider(
            "temperature τ", 0.005, 0.005, 0.5, 0.1, {0.005: "hard", 0.05: ".05", 0.5: ".5"}
        ),
        "margin": slider("margin", 0.0, 0.0, 0.6, 0.05, {0: "none", 0.5: "Triplet .5"}),
    }
    for name, (x, y) in SQUARES.items():
        controls[f"{name} x"] = slider(f"{name} ■, to the right", x, -WIDE, WIDE, 0.05)
        controls[f"{name} y"] = slider(f"{name} ■, up", y, -TALL, TALL, 0.05)
    return Panel(build, controls, (9, 5.4), initial, 4.9)


def paired(values: dict) -> Paired:
    squares = np.array([(values[f"{name} x"], values[f"{name} y"]) for name in NAMES])
    distance = torch.cdist(torch.tensor(CIRCLES), torch.tensor(squares))
    cost = distance + values["margin"] * torch.eye(N, dtype=distance.dtype)
    solved = {way: linear_assignment(cost, values["temperature"], way) for way in WAYS}
    return Paired(
        squares,
        {way: found.matrix.numpy() for way, found in solved.items()},
        {way: max(float(cost.trace() - found.value), 0.0) / N for way, found in solved.items()},
    )


def build(figure, compact: bool) -> Drawing:
    one, rows = WAYS
    if compact:
        layout, heights = [["plane"] * 2, [one, rows], ["bars"] * 2], [2.3, 1.5, 0.8]
        axes = figure.subplot_mosaic(layout, height_ratios=heights)
    else:
        layout, heights = [["plane", one], ["plane", rows], ["bars", "bars"]], [2.0, 2.0, 0.9]
        axes = figure.subplot_mosaic(layout, height_ratios=heights, width_ratios=(2.1, 1))
    bare(axes["plane"], (-1.8, 1.8), (-1.15, 1.35))
    if not compact:
        axes["plane"].set_title("drag a ■: who is matched with whom?")
    parts = [draw_pairs(axes["plane"], compact), draw_bars(axes["bars"], compact)]
    parts += [draw_weights(axes[way], way, compact) for way in WAYS]
    now: dict[str, Paired] = {}

    def update(values: dict) -> str:
        now["paired"] = paired(values)
        for part in parts:
            part.move(now["paired"])
        return sentence(now["paired"], values)

    handles = {name: free(axes["plane"], name, f"{name} ■") for name in NAMES}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(axes, now["paired"]))


def links(axes: dict, now: Paired) -> list[Link]:
    """A cell of either matrix, the same cell of the other, and the pair in the plane."""
    found = []
    for i, j in np.ndindex(N, N):
        said = ", ".join(f"{word} {now.weights[way][i, j]:.2f}" for way, word in WAYS.items())
        marks = [cell(axes[way], i, j) for way in WAYS]
        pair = line(axes["plane"], CIRCLES[i], now.squares[j])
        found.append(Link(marks, [pair], f"● {NAMES[i]}, ■ {NAMES[j]}: {said}"))
    return found


def sentence(now: Paired, values: dict) -> str:
    one = now.weights["one-to-one"].argmax(1)
    wrong = [f"{NAMES[i]} with {NAMES[j]}" for i, j in enumerate(one) if i != j]
    wanted = np.bincount(now.weights["batch-hard"].argmax(1), minlength=N)
    twice = [NAMES[j] for j in range(N) if wanted[j] > 1]
    moved = [
        f"{name} ■ to ({x:g}, {y:g})"
        for name, (x, y) in zip(NAMES, now.squares)
        if not np.allclose(SQUARES[name], (x, y))  # a browser rounds
    ]
    return (
        f"Temperature {values['temperature']:.3g}, margin {values['margin']:.2f}. One to one: loss "
        f"{now.loss['one-to-one']:.3f}, wrong pairs: {', '.join(wrong) or 'none'}. Each row alone: loss "
        f"{now.loss['batch-hard']:.3f}, wanted by more than one: {', '.join(twice) or 'nobody'}. "
        f"Moved: {', '.join(moved) or 'nothing'}."
    )


def draw_pairs(axis, compact: bool) -> Part:
    """The photographs and their lines: black one to one, pale blue beneath each row alone."""
    size, face, thick = (6, 0.34, 0.6) if compact else (10, 0.28, 1.0)
    faces = [riders(axis, view, face, 0.06) for view in two_views()]
    faces[0].move(CIRCLES)
    lines = {way: axis.add_collection(LineCollection([], zorder=5)) for way in reversed(WAYS)}
    signs = {"color": INK, "markersize": size, "markeredgecolor": "white", "linestyle": "none", "zorder": 6}
    dots, squares = axis.plot(*CIRCLES.T, "o", **signs)[0], axis.plot([], [], "s", **signs)[0]

    def move(now: Paired) -> None:
        faces[1].move(now.squares)
        squares.set_data(*now.squares.T)
        for way, collection in lines.items():
            rows, columns = (now.weights[way] > SEEN).nonzero()
            share = now.weights[way][rows, columns]
            opaque, width = (1.0, 2.6) if way == "one-to-one" else (0.35, 9)
            collection.set_segments(np.stack([CIRCLES[rows], now.squares[columns]], 1))
            collection.set(
                colors=[(*to_rgb(COLOURS[way]), opaque * p**0.5) for p in share],
                linewidths=thick * width * share,
            )

    return Part([*faces[1].artists, *lines.values(), dots, squares], move)


def draw_weights(axis, way: str, compact: bool) -> Part:
    """The shares as a matrix, the truth framed, the sums of its columns below."""
    mesh = cells(axis, N, N)
    axis.set_ylim(N + 0.4, -0.5)  # a line more, for the sums
    axis.spines[:].set_visible(False)
    axis.set_title(
        WAYS[way] if compact else f"{WAYS[way]}: ● by ■", color=COLOURS[way], weight="bold", fontsize=10
    )
    if not compact:
        axis.set_yticks([*range(N), N], [f"{name} ●" for name in NAMES] + ["sum"], fontsize=9)
        axis.tick_params(length=0)
    true = frames(axis, [(i, i) for i in range(N)], "white", 1.2)
    sums = [axis.text(j, N, "", ha="center", va="center", fontsize=7.5) for j in range(N)]

    def move(now: Paired) -> None:
        mesh.set_array(now.weights[way])
        for text, total in zip(sums, now.weights[way].sum(0)):
            text.set_text(f"{total:.1f}")

    return Part([mesh, true, *sums], move)


def draw_bars(axis, compact: bool) -> Part:
    """Both losses: what the true pairs cost more than the cheapest choice."""
    axis.set(xlim=(0, TOP * (2.6 if compact else 1.5)), ylim=(-0.6, 1.6), xticks=[], yticks=[])
    axis.spines[["bottom"]].set_visible(False)
    if not compact:
        axis.set_title("loss for each photograph: what the true pairs cost too much", fontsize=10)
    bars = axis.barh((1, 0), (0, 0), color=list(COLOURS.values()), height=0.7)
    size = 9 if compact else 10
    texts = [
        axis.text(0, y, "", va="center", color=COLOURS[way], fontsize=size) for y, way in zip((1, 0), WAYS)
    ]

    def move(now: Paired) -> None:
        for bar, text, (way, loss) in zip(bars, texts, now.loss.items()):
            bar.set_width(min(loss, TOP))
            text.set(x=min(loss, TOP) + 0.01, text=f"{WAYS[way]}: {loss:.3f}")

    return Part([*bars, *texts], move)
