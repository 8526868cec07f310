"""Pillars in water: what stands above the level is a candidate's share (QARe, eq. 15)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from ipywidgets import ValueWidget
from matplotlib.collections import PolyCollection

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import BLUE, GREEN, INK, MIST
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Handle, Link, box
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

HEIGHTS = dict(zip(NAMES, (0.85, 0.55, 0.75, -0.4, 0.3, 0.65)))  # the similarity of each to the anchor
BOTTOM, TOP = -1.3, 1.75  # of the picture of the pillars
HALF = 0.3  # of a pillar's width
FULL = 1.5  # of the stack; a higher one ends there
DRY, WET = GREEN, "#b5b5b5"


def water(**initial) -> Panel:
    """Six pillars, as high as the similarities, in water: their tops and the level can be dragged."""
    controls = {"total": slider("dry parts together", 0.45, 0.05, 2.0, 0.05, {1.0: "1"})}
    for name, height in HEIGHTS.items():
        controls[name] = slider(f"similarity of {name}", height, -1.0, 1.0, 0.05)
    return Panel(build, controls, (9, 4.4), initial, 3.9)


def level_of(heights: np.ndarray, total: float = 1.0) -> float:
    """The level t above which the parts max(0, height − t) add up to `total`."""
    ordered = np.sort(heights)[::-1]
    levels = (ordered.cumsum() - total) / np.arange(1, len(ordered) + 1)
    return float(levels.max())  # with k pillars dry; a k too small or too large has a lower level


def build(figure, compact: bool) -> Drawing:
    left, *right = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(3.4, 1))
    parts = [draw_pillars(left, compact), *(draw_stack(axis) for axis in right)]
    now: dict[str, Any] = {}  # heights, level, dry parts

    def update(values: dict) -> str:
        heights = np.array([values[name] for name in NAMES])
        t = level_of(heights, values["total"])
        now.update(heights=heights, t=t, dry=(np.round(heights - t, 12)).clip(0))
        for part in parts:
            part.move(**now)
        return sentence(now, values["total"])

    def to_total(_: float, y: float) -> list[float]:
        return [float((now["heights"] - y).clip(0).sum())]

    where = 6.2, 5.75  # of the handle, and of the level's left end
    handles: dict[str, Handle] = {
        "level": Level(left, ("total",), lambda v: (where[0], now["t"]), "y", to_total, "the water level")
    }
    for j, name in enumerate(NAMES):
        handles[name] = top_of(left, name, j)
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(left, right, now))


def top_of(axis, name: str, j: int) -> Handle:
    return Handle(axis, (name,), lambda v: (j, v[name]), "y", label=f"top of {name}")


@dataclass(frozen=True)
class Level(Handle):
    """The surface of the water: it rises where less stands above it."""

    def nudged(self, controls: dict[str, ValueWidget], right: float, up: float) -> dict[str, Any]:
        return super().nudged(controls, -right, -up)


def links(left, right: list, now: dict) -> list[Link]:
    """Each pillar and its part of the stack."""
    found, below = [], 0.0
    for j, name in enumerate(NAMES):
        height, dry = now["heights"][j], now["dry"][j]
        marks = [box(left, (j - HALF, BOTTOM), (j + HALF, height))]
        if right and dry > 0 and below < FULL:
            marks.append(box(right[0], (-HALF, below), (HALF, min(below + dry, FULL))))
        below += dry
        found.append(Link(marks, text=f"{name}: similarity {height:.2f}, above the water {dry:.2f}"))
    return found


def sentence(now: dict, total: float) -> str:
    above = [f"{name} {dry:.2f}" for name, dry in zip(NAMES, now["dry"]) if dry > 0]
    under = [name for name, dry in zip(NAMES, now["dry"]) if dry == 0]
    verdict = {-1: ", not yet 1", 0: "", 1: ", more than 1"}[int(np.sign(round(total - 1, 9)))]
    rest = f" {', '.join(under).capitalize()}: exactly 0." if under else ""
    together = f"{', '.join(above)}; together {total:.2f}{verdict}."
    return f"The water stands at t = {now['t']:.2f}. Above it: {together}{rest}"


def draw_pillars(axis, compact: bool) -> Part:
    """The pillars in the water, a photograph on each."""
    axis.set(xlim=(-0.6, 5.6 if compact else 7.0), ylim=(BOTTOM, TOP), xticks=range(6), yticks=(-1, 0, 1))
    axis.tick_params(axis="x", length=0)
    axis.set_xticklabels(["" if compact else name for name in NAMES])
    axis.set_ylabel("similarity to ★")
    if not compact:
        axis.set_title("what stands above the water is the share")
    shapes = PolyCollection([], facecolors=[*[WET] * 6, *[DRY] * 6, MIST], zorder=1)
    shapes.set_alpha([*[1] * 12, 0.55])
    axis.add_collection(shapes)
    surface = axis.plot([], [], color=BLUE, linewidth=1.4, zorder=2)[0]
    word = axis.text(6.9, 0, "", color=BLUE, ha="right", va="top")
    signs = axis.scatter(np.zeros(5), np.zeros(5), marker="X", s=80, edgecolors=INK, linewidths=1.4, zorder=5)
    plus = axis.plot([], [], "P", color=INK, markersize=11, markeredgecolor="white", zorder=5)[0]
    one, two = two_views()
    faces = riders(axis, np.concatenate([two[:1], one[1:]]), 0.62, 0.12)

    def move(heights: np.ndarray, t: float, dry: np.ndarray) -> None:
        places = np.arange(6)
        bodies = [rectangle(j, BOTTOM, height) for j, height in zip(places, heights)]
        tips = [rectangle(j, height - d, height) for j, height, d in zip(places, heights, dry)]
        end = axis.get_xlim()[1]
        pool = [(-0.6, BOTTOM), (-0.6, t), (end, t), (end, BOTTOM)]
        shapes.set_verts([*bodies, *tips, pool])
        surface.set_data([-0.6, end], [t, t])
        word.set(text="" if compact else f"level t = {t:.2f}", y=t - 0.13)
        points = np.stack([places, heights], axis=1)
        signs.set(offsets=points[1:], facecolors=[DRY if d > 0 else "white" for d in dry[1:]])
        plus.set_data(points[:1, 0], points[:1, 1])
        faces.move(points)

    return Part([shapes, surface, *faces.artists, signs, plus, word], move)


def rectangle(j: Any, low: float, high: float) -> list[tuple[float, float]]:
    return [(j - HALF, low), (j - HALF, high), (j + HALF, high), (j + HALF, low)]


def draw_stack(axis) -> Part:
    """The dry parts on top of each other, and the mark that they must reach."""
    bare(axis)
    axis.set(xlim=(-0.58, 0.58), ylim=(-0.14, FULL + 0.2))
    axis.set_title("dry parts together")
    axis.plot([-0.4, 0.4], [0, 0], color=INK, linewidth=1)
    axis.plot([-0.4, 0.4], [1, 1], color=INK, linewidth=1, linestyle=(0, (4, 2)))
    axis.text(0.43, 1, "1", va="center", weight="bold")
    shapes = axis.add_collection(PolyCollection([], facecolors=DRY, edgecolors="white", linewidths=1.5))
    words = [axis.text(0, 0, "", color="white", ha="center", va="center", weight="bold") for _ in NAMES]
    sum_of = axis.text(0, -0.12, "", ha="center", va="bottom", weight="bold")

    def move(heights: np.ndarray, t: float, dry: np.ndarray) -> None:
        ends = np.concatenate([[0], dry.cumsum()])
        seen = ends.clip(max=FULL)
        shapes.set_verts([rectangle(0, low, high) for low, high in zip(seen, seen[1:])])
        for word, name, low, high in zip(words, NAMES, seen, seen[1:]):
            word.set(text=name if high - low > 0.09 else "", y=(low + high) / 2)
        sum_of.set_text(f"{ends[-1]:.2f}" + (" ↑" if ends[-1] > FULL else ""))

    return Part([shapes, *words, sum_of], move)
