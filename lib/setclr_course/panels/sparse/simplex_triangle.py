"""Softmax and sparsemax of three scores: two paths through the triangle of probabilities, and the water level
that makes some of them exactly zero (QARe, section 4.2, eq. 15 and 16)."""

import numpy as np
import torch
from matplotlib.collections import PolyCollection

from setclr.inner import sparsemax
from setclr_course.kit.palette import BLUE, SKY, VERMILION
from setclr_course.panels.sparse.words import brief, signed
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])  # of probability 1 for score 1, 2, 3
BESIDE_CORNER = np.array([[-0.11, -0.14], [1.11, -0.14], [0.5, 1.0]])
FINE = np.geomspace(1e-2, 1e3, 300)  # 1/τ along the path of the softmax
NEVER = 1e-3  # the smallest difference of scores that is not a tie
BOTTOM, TOP = -2.4, 0.25  # what is seen of the pillars, counted from the highest score


def simplex_triangle(**initial) -> Panel:
    """The sparsemax and the softmax of (x₁, x₂, 0)/τ as points of a triangle and as pillars in water."""
    marks: dict[float, str] = {-2: "−2", 0: "0, like score 3", 2: "2"}
    controls = {
        "x1": slider("score x₁", 1.0, -2.0, 2.0, 0.1, marks),
        "x2": slider("score x₂", 0.6, -2.0, 2.0, 0.1, marks),
        "temperature": log_slider(
            "temperature τ", 1, 0.1, 10, marks={0.12: "hard", 1: "SparseCLR: always 1", 8: "soft"}
        ),
    }
    return Panel(build, controls, (9, 4.1), initial, 5.2)


def shares(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sparsemax and softmax of lists (..., n)."""
    x = torch.from_numpy(scores)
    return sparsemax(x).numpy(), x.softmax(-1).numpy()


def milestones(x: np.ndarray) -> tuple[float, float]:
    """The temperatures at which the sparsemax of x/τ, on its way down, drops the worst of three scores and
    then the second: 0 where a tie forbids it."""
    best, second, worst = np.sort(x)[::-1]
    edge, corner = best + second - 2 * worst, best - second
    return (edge if second - worst > NEVER else corner), (corner if corner > NEVER else 0.0)


def build(figure, compact: bool) -> Drawing:
    if compact:
        plane, water = figure.subplots(2, 1, height_ratios=[1.15, 1])
    else:
        plane, water = figure.subplots(1, 2, width_ratios=[1, 1.1])
    triangle, pillars = draw_triangle(plane, compact), draw_pillars(water, compact)

    def update(values: dict) -> str:
        x, tau = np.array([values["x1"], values["x2"], 0.0]), values["temperature"]
        scores = np.round(x / tau, 12)  # so that a score that just touches the level gets 0, not 1e-16
        sparse, soft = shares(scores)
        triangle.move(x, sparse, soft)
        level = pillars.move(scores, sparse, soft)
        both = [", ".join(f"{p:.2g}" for p in point) for point in (sparse, soft)]
        return (
            f"Scores {x[0]:.1f}, {x[1]:.1f} and 0 at temperature {tau:.2g}. Sparsemax: {both[0]}, "
            f"{(sparse > 0).sum()} of 3 above the level {level:.2f}. Softmax: {both[1]}. "
            f"{journey(x)}."
        )

    return Drawing([*triangle.artists, *pillars.artists], update)


def journey(x: np.ndarray) -> str:
    """Where the path of the sparsemax goes as τ falls to 0."""
    (edge, corner), best = milestones(x), 1 + int(x.argmax())
    if edge == 0:
        return "Three equal scores stay in the centre"
    if corner == 0:
        return f"Sparsemax meets an edge at τ = {edge:.2g} and stops there, a tie"
    if corner == edge:
        return f"Sparsemax goes straight to corner {best} and is there at τ = {corner:.2g}"
    return f"Sparsemax meets an edge at τ = {edge:.2g} and is at corner {best} from τ = {corner:.2g} on"


def draw_triangle(axis, compact: bool) -> Part:
    """The triangle with both paths; moved by the scores at τ = 1 and by what both make of them at τ."""
    size = 8 if compact else 10
    bare(axis, (-0.24, 1.24), (-0.2, 1.06))
    axis.fill(*CORNERS.T, facecolor="#f4f4f4", edgecolor="black", linewidth=1, zorder=0)
    axis.plot(*CORNERS.mean(0), "+", color="black", markersize=8)
    start = axis.text(0, 0, "τ = ∞", fontsize=size - 1, ha="center", va="center")
    axis.text(-0.24, 0.97, "■ softmax", color=VERMILION, fontsize=size, weight="bold")
    axis.text(-0.24, 0.88, "● sparsemax", color=BLUE, fontsize=size, weight="bold")
    for (x, y), name, side in zip(CORNERS, "123", ("right", "left", "center")):
        axis.text(x, y + (0.03 if y else -0.03), f"all on {name}", fontsize=size, ha=side,
                  va="bottom" if y else "top")  # fmt: skip
    if not compact:
        axis.set_title("Softmax never touches an edge,\nsparsemax does, from its first ring on")
    soft_path = axis.plot([], [], color=VERMILION, linewidth=1.6)[0]
    sparse_path = axis.plot([], [], color=BLUE, linewidth=2.4)[0]
    stops = axis.plot([], [], "o", color="white", markeredgecolor=BLUE, markersize=6)[0]
    words = [axis.text(0, 0, "", color=BLUE, fontsize=size - 1, ha="center", va="center") for _ in range(2)]
    soft_point = axis.plot([], [], "s", color=VERMILION, markeredgecolor="white", markersize=size + 3)[0]
    sparse_point = axis.plot([], [], "o", color=BLUE, markeredgecolor="white", markersize=size - 1)[0]

    def move(x: np.ndarray, sparse: np.ndarray, soft: np.ndarray) -> None:
        edge, corner = milestones(x)
        reached = [tau for tau in (edge, corner) if tau]
        turns = shares(np.array([[0.0], *([1 / tau] for tau in reached)]) * x)[0] @ CORNERS
        sparse_path.set_data(*turns.T)
        stops.set_data(*turns[1:].T)
        ahead = turns[1] - turns[0] if reached else np.array([0.0, -1.0])
        start.set_position(turns[0] - ahead / np.linalg.norm(ahead) * [0.15, 0.08])
        soft_path.set_data(*(shares(FINE[:, None] * x)[1] @ CORNERS).T)
        sparse_point.set_data(*(sparse @ CORNERS)[:, None])
        soft_point.set_data(*(soft @ CORNERS)[:, None])
        words[0].set_text(f"τ = {edge:.2g}" if edge > corner else "")
        if edge > corner:
            words[0].set_position(beside_edge(turns[1], CORNERS[x.argmin()]))
        words[1].set_text(f"τ = {corner:.2g}" if corner else "")
        words[1].set_position(BESIDE_CORNER[x.argmax()])

    return Part([soft_path, sparse_path, stops, soft_point, sparse_point, start, *words], move)


def beside_edge(point: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """Where words stand outside the edge that a point lies on, away from the edge's ends."""
    middle = (CORNERS.sum(0) - opposite) / 2
    along = point - middle
    outside = (middle - opposite) / np.linalg.norm(middle - opposite)
    return middle + along * min(1, 0.25 / max(float(np.linalg.norm(along)), 1e-9)) + outside * [0.13, 0.08]


def draw_pillars(axis, compact: bool) -> Part:
    """The scores as pillars in water; moved by scores/τ and what both make of them. Returns the level."""
    size = 8 if compact else 10
    axis.set(xlim=(-0.6, 3.05), ylim=(BOTTOM, TOP), xticks=range(3), yticks=(-2, -1, 0), yticklabels=())
    axis.set_xticklabels([f"x{name}/τ" for name in "₁₂₃"], fontsize=size)
    axis.tick_params(axis="x", length=0)
    axis.set_ylabel("score x/τ", fontsize=size, labelpad=24 if compact else 36)
    scale = [axis.text(-0.7, y, "", fontsize=size, ha="right", va="center") for y in (-2, -1, 0)]
    if not compact:
        axis.set_title(
            "What stands above the water is the probability:\nthe level is where these add up to 1"
        )
    colours = ["#b5b5b5"] * 3 + [SKY] + [BLUE] * 3 + [VERMILION] * 3
    shapes = axis.add_collection(PolyCollection([], facecolors=colours))
    shapes.set_alpha([1] * 3 + [0.45] + [1] * 6)
    values = [
        axis.text(0, 0, "", fontsize=size, color=colour, ha="center", va="bottom", weight="bold")
        for colour in [BLUE] * 3 + [VERMILION] * 3
    ]
    words = axis.text(3.02, 0, "", fontsize=size - 1, ha="right", va="top")
    below = [axis.text(i - 0.12, BOTTOM + 0.05, "", fontsize=size - 1, ha="center") for i in range(3)]

    def move(scores: np.ndarray, sparse: np.ndarray, soft: np.ndarray) -> float:
        level, water = scores.max() - sparse.max(), -sparse.max()
        shapes.set_verts(boxes(scores, sparse, soft))
        for i, text in enumerate(values):
            p, left = (sparse[i], -0.12) if i < 3 else (soft[i - 3], 0.21)
            text.set(text=brief(p), position=(i % 3 + left, water + p + 0.02))
        for text, score in zip(below, scores):
            text.set_text(signed(f"{score:.3g}") + (" ↓" if score - scores.max() < BOTTOM else ""))
        for text in scale:
            text.set_text(signed(f"{round(scores.max() + text.get_position()[1], 2):g}"))
        words.set(text=signed(f"level T = {level:.2f}"), y=water - 0.03)
        return level

    return Part([shapes, *values, *below, *scale, words], move)


def boxes(scores: np.ndarray, sparse: np.ndarray, soft: np.ndarray) -> list:
    """The pillars, the water, and on it the two probabilities of each score, seen from the highest score."""
    height, water = np.maximum(scores - scores.max(), BOTTOM), -sparse.max()
    return [
        *(box(i - 0.3, BOTTOM, 0.36, height[i]) for i in range(3)),
        box(-0.6, BOTTOM, 3.65, water),
        *(box(i - 0.3, water, 0.36, water + sparse[i]) for i in range(3)),
        *(box(i + 0.14, water, 0.14, water + soft[i]) for i in range(3)),
    ]


def box(left: float, bottom: float, width: float, top: float) -> list[tuple[float, float]]:
    return [(left, bottom), (left + width, bottom), (left + width, top), (left, top)]
