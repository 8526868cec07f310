"""Pillars in water: what stands above the level is a candidate's share (QARe, eq. 15)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES
from setclr_course.kit.inner import level
from setclr_course.kit.palette import BLUE, GREEN, INK, MIST, WHITE
from setclr_course.kit.panel import Page, Panel, slider
from setclr_course.panels.sparse.candidates import faces

HEIGHTS = dict(zip(NAMES, (0.85, 0.55, 0.75, -0.4, 0.3, 0.65)))  # the similarity of each to the anchor
LEAST, MOST = 0.05, 1.4  # of the dry parts together
BOTTOM, TOP = -1.35, 1.6  # of the picture of the pillars
DRY, WET = GREEN, "#b5b5b5"


class Water(NamedTuple):
    """Six pillars (6,) and the level."""

    heights: np.ndarray
    t: float
    dry: np.ndarray  # of each, above the level


class water(Panel):
    """Six pillars, as high as the similarities, in water: their tops and the level can be dragged."""

    size, row_height = (9, 4.4), 3.9
    mosaic, widths, row_mosaic = "pillars stack", (3.4, 1), "pillars"
    knobs = {
        "total": slider("dry parts together", 0.45, LEAST, MOST, 0.05, {1.0: "1"}),
        **{
            name: slider(f"similarity of {name}", height, -1.0, 1.0, 0.05) for name, height in HEIGHTS.items()
        },
    }

    def solve(self, values: dict) -> Water:
        heights = np.array([values[name] for name in NAMES])
        t = float(level(heights, values["total"]))
        return Water(heights, t, (heights - t).round(12).clip(0))

    def draw(self, page: Page, values: dict, now: Water) -> None:
        heights, t, dry = now
        places, end = np.arange(6), 5.6 if page.row else 7
        title = "" if page.row else "what stands above the water is the share"
        yticks = (-1, 0, 1)
        plot = page.plot("pillars", (-0.6, end), (BOTTOM, TOP), title, "", "similarity to ★", yticks=yticks)
        wet = plot.bars(places, heights, WET, 0.6, BOTTOM)
        tips = plot.bars(places, heights, DRY, 0.6, heights - dry)
        plot.boxes((-0.6, BOTTOM), (end, t), MIST, opacity=0.55)
        surface = plot.line([-0.6, end], t, BLUE, 2)
        points = np.column_stack([places, heights])
        plot.photographs(points, faces(), 0.62, "bottom", up=10)
        plot.text(places, BOTTOM, NAMES, size="small", anchor="start", turn=90, up=4)
        plus = plot.dots(points[:1], INK, "✚", 15)
        crosses = plot.dots(points[1:], [DRY if d > 0 else WHITE for d in dry[1:]], "✕", 14, INK)
        if not page.row:
            plot.text(6.95, t, f"level\nt = {t:.2f}", BLUE, anchor="end", rise="bottom", up=12)

        def to(x: float, y: float) -> list[float]:
            return [float((heights - y).clip(0).sum())]

        ends = float(level(heights, MOST)), float(level(heights, LEAST))
        how: dict = {"along": "y", "to": to, "ends": ends, "step": 0.05, "label": "the water level"}
        surface.handle("level", (6.2, t), "total", **how)

        stack = page.plot("stack", (-0.5, 0.6), (-0.15, MOST), "dry parts together", frame="")
        above = dry.cumsum()
        stack.line([-0.46, 0.46], 0, INK, 1)
        parts = stack.bars(np.zeros(6), above, DRY, 0.8, above - dry, edge=WHITE)
        stack.line([-0.46, 0.46], 1, INK, 1, "dash")
        stack.text(0.49, 1, "1", anchor="start", bold=True)
        words = [name if d > 0.1 else "" for name, d in zip(NAMES, dry)]
        stack.text(0, above - dry / 2, words, WHITE, bold=True)
        stack.text(0, -0.04, f"{above[-1]:.2f}", rise="top", bold=True)

        for j, name in enumerate(NAMES):
            sign = plus if name == "cat" else crosses
            sign.handle(name, points[j], along="y", label=f"top of {name}")
            said = f"{name}: similarity s = {heights[j]:.2f}, above the water q = {dry[j]:.2f}"
            page.link(said, wet[j], tips[j], *([parts[j]] if dry[j] > 0 else []))

    def say(self, values: dict, now: Water) -> str:
        above = [f"{name} {dry:.2f}" for name, dry in zip(NAMES, now.dry) if dry > 0]
        under = [name for name, dry in zip(NAMES, now.dry) if dry == 0]
        verdict = {-1: ", not yet 1", 0: "", 1: ", more than 1"}[int(np.sign(round(values["total"] - 1, 9)))]
        rest = f" {', '.join(under).capitalize()}: exactly 0." if under else ""
        together = f"{', '.join(above)}; together {values['total']:.2f}{verdict}."
        return f"The water stands at t = {now.t:.2f}. Above it: {together}{rest}"
