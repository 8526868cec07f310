"""Five things in a plane, seen twice and matched: the loss is by how much the true matching costs more than
the best one (QARe, section 3.3, eq. 2, 3, 9 and 12)."""

import numpy as np
import torch
from matplotlib.collections import LineCollection, PolyCollection
from torch import Tensor

from setclr.inner import linear_assignment
from setclr_course.kit.palette import BLACK, GREY, MIST, SKY, VERMILION, YELLOW
from setclr_course.panels.assignments.things import random_things
from setclr_course.pixels.controls import slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import SHADES, Part, bare, cell_outlines, cells, frames, numbers

N, MOVED = 5, 2  # ■3 is the one that the sliders move
SEED = 39637  # of the generator for draw 0, where no symbol hides a line
DEAR = 1.25  # cells that cost more are dark
STYLE = ("--", "-")  # of a wrong and of a right pair
COLOUR = np.array([VERMILION, SKY])


def assignment_plane(**initial) -> Panel:
    """The plane, its cost matrix and three matchings: the true one, the best one, and every row's choice."""
    controls = {
        "x": slider("x of ■3", 0.2, -1.5, 1.5, 0.05),
        "y": slider("y of ■3", -0.3, -0.9, 0.9, 0.05),
        "margin": slider("margin m", 0.0, 0.0, 0.6, 0.05, {0: "none", 0.5: "Triplet .5"}),
        "seed": slider("another draw", 0, 0, 9, 1),
    }
    return Panel(build, controls, (9, 5.2), initial, 5.6)


def five_things(x: float, y: float, seed: int) -> Tensor:
    """(2, 5, 2): a draw with ■3 put at (x, y)."""
    things = random_things(SEED + seed, N)
    things[1, MOVED] = torch.tensor([x, y], dtype=things.dtype)
    return things


def choices(S_m: Tensor) -> np.ndarray:
    """(3, N): the column that each row gets in the true matching, in the best one, and by itself."""
    best, alone = (linear_assignment(S_m, mining=m).matrix.argmax(1) for m in ("one-to-one", "batch-hard"))
    return torch.stack([torch.arange(len(S_m)), best, alone]).numpy()


def build(figure, compact: bool) -> Drawing:
    if compact:
        axes = figure.subplot_mosaic([["plane"], ["cost"], ["bars"]], height_ratios=[2.1, 2.3, 1])
    else:
        axes = figure.subplot_mosaic(
            [["plane", "cost"], ["bars", "bars"]], height_ratios=[3.3, 1.2], width_ratios=[1.6, 1]
        )
    plane = draw_plane(axes["plane"], compact)
    cost = draw_cost(axes["cost"], compact)
    bars = draw_bars(axes["bars"], compact)

    def update(values: dict) -> str:
        things = five_things(values["x"], values["y"], values["seed"])
        S_m = torch.cdist(*things) + values["margin"] * torch.eye(N, dtype=things.dtype)
        columns = choices(S_m)
        plane.move(things.numpy(), columns[1])
        cost.move(S_m.numpy(), columns)
        costs = bars.move(S_m.numpy(), columns, values["margin"])
        return sentence(values, columns, costs)

    return Drawing([*plane.artists, *cost.artists, *bars.artists], update)


def sentence(values: dict, columns: np.ndarray, costs: np.ndarray) -> str:
    wrong = [f"●{i + 1}–■{j + 1}" for i, j in enumerate(columns[1]) if i != j]
    taken, times = np.unique(columns[2], return_counts=True)
    twice = [f"■{j + 1}" for j in taken[times > 1]]
    place = f"({values['x']:.2f}, {values['y']:.2f})"
    return (
        f"Draw {values['seed']}, ■3 at {place}, margin {values['margin']:.2f}: the true matching costs "
        f"{costs[0]:.3f} per thing, the best one {costs[1]:.3f}, so the loss is {costs[0] - costs[1]:.3f}; "
        f"wrong pairs of the best: {', '.join(wrong) or 'none'}. Each row alone costs {costs[2]:.3f}, loss "
        f"{costs[0] - costs[2]:.3f}; wanted by more than one row: {', '.join(twice) or 'none'}."
    )


def draw_plane(axis, compact: bool) -> Part:
    size, area = (7, 80) if compact else (9, 178)
    bare(axis, (-1.66, 1.66), (-1.06, 1.06))
    if not compact:
        axis.set_title("● view 1 and ■ view 2: who belongs to whom?")
        for y, colour, style, words in (
            (0.0, GREY, "-", "true pair"),
            (0.2, SKY, "-", "best matching, right"),
            (0.5, VERMILION, "--", "best matching, wrong"),
        ):
            axis.plot([], [], color=colour, linestyle=style, label=words, linewidth=1 + 2 * (y > 0))
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.03)}
        axis.legend(**below, ncols=3, fontsize=9, handlelength=3.2, frameon=False)
    true = axis.add_collection(LineCollection([], colors=GREY, linewidths=1))
    best = axis.add_collection(LineCollection([], linewidths=2 if compact else 3))
    points = [
        axis.scatter(*np.zeros((2, N)), s=area, marker=m, c=c, edgecolors=BLACK, zorder=3)
        for m, c in (("o", [BLACK] * N), ("s", ["white"] * MOVED + [YELLOW] + ["white"] * (N - MOVED - 1)))
    ]
    kind = {"ha": "center", "va": "center_baseline", "fontsize": size, "weight": "bold", "zorder": 4}
    names = [[axis.text(0, 0, str(i + 1), color=c, **kind) for i in range(N)] for c in ("white", BLACK)]

    def move(things: np.ndarray, column: np.ndarray) -> None:
        right = (column == np.arange(N)).astype(int)
        true.set_segments(things.transpose(1, 0, 2))
        best.set_segments(np.stack([things[0], things[1, column]], 1))
        best.set(colors=COLOUR[right], linestyles=[STYLE[r] for r in right])
        for scatter, texts, view in zip(points, names, things):
            scatter.set_offsets(view)
            for text, position in zip(texts, view):
                text.set_position(position)

    return Part([true, best, *points, *names[0], *names[1]], move)


def draw_cost(axis, compact: bool) -> Part:
    mesh = cells(axis, N, N, high=2 * DEAR)
    mesh.set_cmap(SHADES.reversed())  # bright: near each other
    axis.set_xticks(range(N), [f"■{i + 1}" for i in range(N)], fontsize=8)
    axis.set_yticks(range(N), [f"●{i + 1}" for i in range(N)], fontsize=8)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    if not compact:
        axis.set_title("what each pair costs")
        axis.set_xlabel("blue, orange: best matching\nthin: true but missed   ○ row's cheapest", fontsize=9)
    texts = numbers(axis, N, N, 7 if compact else 9)
    under, true = frames(axis, [], "white", 2.4), frames(axis, [], BLACK, 1)
    framed = frames(axis, [], SKY, 2.5)
    circles = axis.scatter([], [], s=12 if compact else 22, facecolors="none")

    def move(S_m: np.ndarray, columns: np.ndarray) -> None:
        right = (columns[1] == np.arange(N)).astype(int)
        mesh.set_array(S_m)
        ink = np.where(S_m > DEAR, "white", "black")
        for text, value, colour in zip(texts, S_m.flat, ink.flat):
            text.set(text=format(value, ".1f" if compact else ".2f"), color=colour)
        for missed in (under, true):
            missed.set_segments(cell_outlines((i, i) for i in range(N) if not right[i]))
        framed.set_segments(cell_outlines(enumerate(columns[1])))
        framed.set(colors=COLOUR[right], linestyles=[STYLE[r] for r in right])
        circles.set_offsets(np.stack([columns[2] + 0.32, np.arange(N) - 0.32], 1))
        circles.set_edgecolors(ink[np.arange(N), columns[2]])

    return Part([mesh, *texts, under, true, framed, circles], move)


def draw_bars(axis, compact: bool) -> Part:
    """Costs per thing, pair by pair: the true matching on top, then the best one, then each row alone."""
    size = 8 if compact else 10
    names = ("true", "best", "each row") if compact else ("true matching", "best matching", "each row alone")
    axis.set_yticks((2, 1, 0), names, fontsize=size)
    axis.tick_params(length=0)
    axis.set(xlim=(0, 1.7), ylim=(-0.5, 2.5), xticks=[])
    axis.spines[:].set_visible(False)
    if not compact:
        axis.set_title(
            "cost per thing; the gap is the loss (hatched: wrong pairs, pale: the margin of right ones)",
            fontsize=11,
        )
    kinds = [  # wrong and right pairs, and the margin that right ones pay
        axis.add_collection(PolyCollection([], facecolors=c, edgecolors="white", hatch=h, linewidths=0.8))
        for c, h in ((VERMILION, "////"), (SKY, None), (MIST, None))
    ]
    gap = axis.add_collection(LineCollection([], colors=BLACK, linewidths=(1, 3, 3)))
    texts = [axis.text(0, y, "", va="center", fontsize=size) for y in (2, 1, 0)]
    below, above = np.array([2, 1, 0])[:, None] - 0.36, np.array([2, 1, 0])[:, None] + 0.36

    def move(S_m: np.ndarray, columns: np.ndarray, margin: float) -> np.ndarray:
        right = columns == np.arange(N)
        handicap = margin * right
        width = np.stack([S_m[np.arange(N), columns] - handicap, handicap], 2).reshape(3, 2 * N) / N
        end = width.cumsum(1)
        x, low, high = np.broadcast_arrays(end, below, above)
        boxes = np.stack([x - width, low, x - width, high, x, high, x, low], 2).reshape(3, N, 2, 4, 2)
        for kind, chosen in zip(kinds, (boxes[~right, 0], boxes[right, 0], boxes[right, 1])):
            kind.set_verts(chosen)
        cost = end[:, -1]
        gap.set_segments(
            [[(cost[0], -0.5), (cost[0], 2.5)], *[[(c, y), (cost[0], y)] for c, y in zip(cost[1:], (1, 0))]]
        )
        for text, c in zip(texts, cost):
            text.set_x(cost[0] + 0.015)
            text.set_text(f"loss {cost[0] - c:.3f}")
        texts[0].set_text(f"costs {cost[0]:.3f}")
        return cost

    return Part([*kinds, gap, *texts], move)
