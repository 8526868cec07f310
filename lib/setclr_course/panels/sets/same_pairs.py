"""Same pairs, different shapes: the pairs cost the same, the inner distances differ (QARe, figure 1b)."""

import numpy as np
from matplotlib.collections import LineCollection
from scipy.spatial.distance import cdist

from setclr_course.kit.palette import BLUE, GREY, ORANGE
from setclr_course.panels.sets.circle import name_views
from setclr_course.pixels.controls import slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import bare

KITE = np.array([[0.0, 1.1], [0.8, 0.1], [0.0, -0.9], [-0.8, 0.1]])  # view 1 of four things: a kite
SHIFT = 20.0  # degrees: the direction in which all of view 2 lies where nothing is spread
EDGES = np.array([(i, j) for i in range(4) for j in range(i)])
MEASURES = [
    ("cost of the true pairs, tr(S)", 2.4),
    (r"quadratic term tr($S_A S_B^T$)", 43.6),
    (r"mismatch of the shapes, $\Sigma\,(S_A - S_B)^2$", 11.6),
]


def same_pairs(**initial) -> Panel:
    """Two configurations with equal links between the views; a slider turns the links of the second apart."""
    marks = {-1.0: "all outwards", 0.0: "all the same way", 1.0: "all inwards"}
    controls = {
        "spread": slider("spread of the directions", 0.6, -1.0, 1.0, 0.05, marks),
        "length": slider("length r of a link", 0.5, 0.1, 0.6, 0.05),
    }
    return Panel(build, controls, (9, 3.7), initial, 4.8)


def second_view(spread: float, length: float) -> np.ndarray:
    """View 2, (4, 2): every point at distance `length` from its first view.

    All lie in one direction at spread 0; each turns the shorter way towards the centre of the set as spread
    goes to 1, and away from it as spread goes to −1.
    """
    inwards = KITE.mean(0) - KITE
    goal = np.rad2deg(np.arctan2(*np.sign(spread or 1) * inwards.T[::-1]))
    turn = (goal - SHIFT + 180) % 360 - 180
    angle = np.deg2rad(SHIFT + abs(spread) * turn)
    return KITE + length * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def measures(b: np.ndarray) -> tuple[float, float, float]:
    """Sum of the true pairs' distances, tr(S_A S_Bᵀ) and Σ (S_A − S_B)² of KITE and its second view b."""
    S_A, S_B = cdist(KITE, KITE), cdist(b, b)
    return cdist(KITE, b).trace(), (S_A * S_B).sum(), ((S_A - S_B) ** 2).sum()


def build(figure, compact: bool) -> Drawing:
    layout = [["left", "right"], *[[k, k] for k in range(3)]]
    if not compact:
        layout = [["left", "right", k] for k in range(3)]
    ratios = {"height_ratios": [3.4, 1, 1, 1]} if compact else {"width_ratios": [1, 1, 1.05]}
    axes = figure.subplot_mosaic(layout, **ratios)
    size = 8 if compact else 9
    sets = [draw_set(axes[side], side, size) for side in ("left", "right")]
    bars = [draw_bars(axes[k], *MEASURES[k], size) for k in range(3)]

    def update(values: dict) -> str:
        views = [second_view(spread, values["length"]) for spread in (0, values["spread"])]
        for b, (dots, inner, links) in zip(views, sets):
            dots.set_offsets(b)
            inner.set_segments(b[EDGES])
            links.set_segments(np.stack([KITE, b], axis=1))
        found = [measures(b) for b in views]
        for pair, (rectangles, texts) in zip(zip(*found), bars):
            for value, rectangle, text in zip(pair, rectangles, texts):
                rectangle.set_width(value)
                text.set_text(f" {abs(value):.2f}")
                text.set_x(value)
        (pairs, even, _), (_, quadratic, mismatch) = found
        return (
            f"Links of length {values['length']:.2f}, directions spread by {values['spread']:+.2f}: the pair "
            f"cost is {pairs:.2f} on both sides, the quadratic term {even:.1f} on the left and "
            f"{quadratic:.1f} on the right, the mismatch of the shapes 0 on the left and {abs(mismatch):.2f} "
            "on the right."
        )

    return Drawing([a for group in sets for a in group] + [a for r, t in bars for a in (*r, *t)], update)


def draw_set(axis, side: str, size: int) -> tuple:
    """View 1 with its inner edges, which stand still; returns the points, edges and links of view 2."""
    bare(axis, (-1.5, 1.5), (-1.6, 1.8))
    how = "" if size < 9 else {"left": ": shifted as one", "right": ": each its own way"}[side]
    axis.set_title(side + how, fontsize=size + 1, weight="bold", loc="center")
    name_views(axis, size)
    axis.add_collection(LineCollection(KITE[EDGES], colors=BLUE, linewidths=1.3))
    axis.scatter(*KITE.T, c=BLUE, s=7 * size, zorder=4)
    inner = axis.add_collection(LineCollection([], colors=ORANGE, linewidths=1.3, linestyles=(0, (4, 1.5))))
    links = axis.add_collection(LineCollection([], colors="black", linewidths=2.6))
    dots = axis.scatter([], [], c=ORANGE, marker="s", s=7 * size, zorder=4)
    return dots, inner, links


def draw_bars(axis, title: str, most: float, size: int) -> tuple:
    """One measure as two bars, which move with the numbers at their ends."""
    axis.set_title(title, fontsize=size)
    axis.set(xlim=(0, 1.2 * most), ylim=(1.6, -0.6), xticks=[])
    axis.set_yticks([0, 1], ["left", "right"], fontsize=size)
    axis.tick_params(length=0)
    axis.spines["bottom"].set_visible(False)
    rectangles = axis.barh([0, 1], [0, 0], height=0.72, color=[GREY, "black"])
    return tuple(rectangles), [axis.text(0, y, "", va="center", fontsize=size) for y in (0, 1)]
