"""An anchor, its positive and five negatives on a circle: whom InfoNCE and SparseCLR push away, and how hard
(QARe, section 4.2)."""

from typing import Any

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from setclr.inner import sparsemax
from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREEN, GREY, INK, OF_LOSS, PINE
from setclr_course.pixels.circle import draw_circles
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Circle, Handle, Link, box, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

ANGLES = dict(zip(NAMES, (25, 60, -80, -150, 115, -55)))  # degrees from the anchor, which is on the right
LOSSES = ("InfoNCE", "SparseCLR")
OUTSIDE = 1.36  # the radius at which the photographs ride
FULL = 1.2  # of the bars


def pushes(**initial) -> Panel:
    """Where the candidates stand round an anchor, and the pull and the pushes of two losses: each candidate
    can be dragged along the circle."""
    controls = {"margin": slider("margin", 1.0, 0.0, 2.0, 0.1, {0.0: "none", 1.0: "authors' program"})}
    controls["temperature"] = log_slider("InfoNCE's temperature τ", 0.5, 0.05, 5, 0.1)
    for name, angle in ANGLES.items():
        controls[name] = slider(f"angle of {name}", angle, -180, 175, 5)
    return Panel(build, controls, (9, 4.2), initial, 3.9)


def solve(values: dict) -> dict[str, np.ndarray]:
    """For each loss the slopes (6,): what a candidate gets, for the positive less 1."""
    cosines = torch.tensor([values[name] for name in NAMES], dtype=torch.float64).deg2rad().cos()
    positive = torch.eye(6, dtype=torch.float64)[0]
    soft = (cosines / values["temperature"]).softmax(-1)
    sparse = sparsemax((cosines - values["margin"] * positive).round(decimals=12))
    return {"InfoNCE": (soft - positive).numpy(), "SparseCLR": (sparse - positive).numpy()}


def on_circle(values: dict, radius: float = 1.0) -> np.ndarray:
    angles = np.deg2rad([values[name] for name in NAMES])
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def build(figure, compact: bool) -> Drawing:
    ratios = {"height_ratios": (1.5, 1)} if compact else {"width_ratios": (1, 1.35)}
    left, right = figure.subplots(2, 1, **ratios) if compact else figure.subplots(1, 2, **ratios)
    parts = [draw_circle(left, compact), draw_bars(right, compact)]
    now: dict[str, Any] = {}

    def update(values: dict) -> str:
        now.update(values, slopes=solve(values))
        for part in parts:
            part.move(values, now["slopes"])
        return sentence(values, now["slopes"])

    handles = {name: handle(left, name) for name in NAMES}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(left, right, now))


def handle(axis, name: str) -> Handle:
    return Handle(axis, (name,), lambda values: on_circle(values)[NAMES.index(name)], Circle())


def links(left, right, now: dict) -> list[Link]:
    """Each candidate and its two bars."""
    found = []
    for j, (name, point) in enumerate(zip(NAMES, on_circle(now))):
        slopes = {loss: now["slopes"][loss][j] for loss in LOSSES}
        bars = [
            box(right, (j + side - 0.19, 0), (j + side + 0.19, slope or 0.03))
            for side, slope in zip((-0.2, 0.2), slopes.values())
        ]
        text = ", ".join(f"{loss} {slope:+.2f}" for loss, slope in slopes.items())
        found.append(Link([dot(left, point), *bars], text=f"{name}: {text}"))
    return found


def sentence(values: dict, slopes: dict[str, np.ndarray]) -> str:
    sparse, soft = slopes["SparseCLR"], slopes["InfoNCE"]
    pushed = [f"{name} {slope:.2f}" for name, slope in zip(NAMES[1:], sparse[1:]) if slope > 0]
    return (
        f"Margin {values['margin']:.1f}: SparseCLR pulls the cat with {-sparse[0]:.2f} and pushes "
        f"{', '.join(pushed) or 'nobody'}. InfoNCE pulls it with {-soft[0]:.2g} and pushes all five, the "
        f"farthest with {soft[1:].min():.2g}."
    )


def draw_circle(axis, compact: bool) -> Part:
    """The anchor and its candidates; lines to those that SparseCLR moves, as thick as it moves them."""
    bare(axis, (-1.65, 1.65))
    draw_circles(axis, (1.0,))
    if not compact:
        axis.set_title("larger cosine is closer")
    lines = axis.add_collection(LineCollection([], colors=GREEN, zorder=2))
    star = axis.plot(1, 0, "*", color=INK, markersize=17, markeredgecolor="white", zorder=5)[0]
    one, two = two_views()
    riders(axis, one[:1], 0.34).move(np.array([[OUTSIDE + 0.02, -0.17]]))
    faces = riders(axis, np.concatenate([two[:1], one[1:]]), 0.34, -0.17)
    signs = axis.scatter(np.zeros(5), np.zeros(5), marker="X", s=95, edgecolors=INK, linewidths=1.5, zorder=5)
    plus = axis.plot([], [], "P", color=INK, markersize=12, markeredgecolor="white", zorder=5)[0]

    def move(values: dict, slopes: dict[str, np.ndarray]) -> None:
        points, sparse = on_circle(values), slopes["SparseCLR"]
        lines.set_segments([[(1, 0), point] for point in points])
        lines.set_linewidths(np.where(sparse == 0, 0, 0.6 + 8 * np.abs(sparse)))
        signs.set(offsets=points[1:], facecolors=[GREEN if s > 0 else "white" for s in sparse[1:]])
        plus.set_data(*points[:1].T)
        faces.move(on_circle(values, OUTSIDE))

    return Part([*faces.artists, lines, signs, plus, star], move)


def draw_bars(axis, compact: bool) -> Part:
    """What each loss does to each candidate: pushes upwards, the pull downwards."""
    axis.set(xlim=(-0.6, 5.6), ylim=(-FULL, FULL - 0.2), xticks=range(6), yticks=(-1, 0, 1))
    axis.set_xticklabels(["" if compact else name for name in NAMES])
    axis.tick_params(axis="x", length=0)
    axis.axhline(0, color=INK, linewidth=0.9)
    names: list[Text] = []
    if compact:
        one, two = two_views()
        below = np.stack([np.arange(6), np.full(6, -FULL)], axis=1)
        riders(axis, np.concatenate([two[:1], one[1:]]), 0.8, -0.6).move(below)
        axis.set_ylim(-FULL - 0.65, FULL - 0.2)
    else:
        axis.set_title("InfoNCE pushes all five, SparseCLR a few")
        axis.text(-0.5, 0.75, "push ↑", color=INK)
        axis.text(0.55, -0.8, "pull ↓", color=INK)
        for y, colour in ((-0.7, OF_LOSS["InfoNCE"]), (-0.85, PINE)):
            names.append(axis.text(5.5, y, "", color=colour, ha="right", weight="bold"))
    places = [j + side for side in (-0.2, 0.2) for j in range(6)]
    bars = axis.bar(places, np.zeros(12), 0.38, color=[OF_LOSS[loss] for loss in LOSSES for _ in range(6)])
    size = 8 if compact else 9
    words = [] if compact else [axis.text(x, 0, "", ha="center", fontsize=size) for x in places]

    def move(values: dict, slopes: dict[str, np.ndarray]) -> None:
        knobs = f"τ = {values['temperature']:.2g}", f"margin {values['margin']:.1f}"
        for name, loss, knob in zip(names, LOSSES, knobs):
            name.set_text(f"{loss}, {knob}")
        heights = np.concatenate([slopes[loss] for loss in LOSSES])
        for bar, height in zip(bars, heights):
            bar.set_height(height)
        for word, height in zip(words, heights):
            word.set(y=height + 0.03 if height >= 0 else height - 0.12, text=brief(height))
            word.set_color(INK if height else GREY)

    return Part([*bars, *words, *names], move)


def brief(slope: float) -> str:
    """In a few letters; only 0 is written 0."""
    return "0" if slope == 0 else f"{abs(slope):.2f}".removeprefix("0") if abs(slope) >= 0.005 else "<.01"
