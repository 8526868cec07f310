"""What QARe does to a batch beside InfoNCE: six photographs on a circle walk downhill (QARe, eq. 17)."""

from typing import Any

import numpy as np
import torch

from setclr_course.kit.palette import GREY, OF_LOSS
from setclr_course.panels.sets.descent import BETAS, STEPS, paths, points
from setclr_course.panels.sets.ring import draw_ring
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Handle, Link, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

STEP = float(BETAS[1])
PURPLE = OF_LOSS["QARe"]


def spreading(**initial) -> Panel:
    """Gradient descent on InfoNCE + γ · QARe: the batch after so many steps, and its crowding so far."""
    controls = {
        "weight": slider("weight γ of QARe", 1.125, 0.0, 4.0, STEP, {0.0: "none", 1.125: "paper 1.125"}),
        "step": slider("step", 8, 0, STEPS, 1),
    }
    return Panel(build, controls, (9, 4.2), initial, 4.6, play="step")


def course(weight: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles (STEPS + 1, 2, 6) in radians and the mean cosine within a view (STEPS + 1,)."""
    path, k = paths(6)["cosine"], round(weight / STEP)
    return path["angles"][:, k], path["within"][:, k]


def build(figure, compact: bool) -> Drawing:
    if compact:
        left, right = figure.subplots(2, 1, height_ratios=(1.7, 1))
    else:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
    ring, curves = draw_ring(left, compact, still=False), draw_curves(right, compact)
    now: dict[str, Any] = {}

    def update(values: dict) -> str:
        angles, within = course(values["weight"])
        k = values["step"]
        now.update(step=k, within=within)
        ring.move(points(torch.from_numpy(angles[k].copy())).numpy())
        curves.move(k, within)
        alone = course(0.0)[1]
        return (
            f"Step {k} downhill on InfoNCE + {values['weight']:g} · QARe: the mean similarity within a view "
            f"is {within[k]:+.2f} (without {alone[k]:+.2f}); after {STEPS} steps it is {within[-1]:+.2f} "
            f"(without {alone[-1]:+.2f})."
        )

    def at(values: dict) -> tuple[float, float]:
        return values["step"], course(values["weight"])[1][values["step"]]

    handles = {"step": Handle(right, ("step",), at, along="x")}
    return Drawing([*ring.artists, *curves.artists], update, handles, lambda: links(right, now))


def links(axis, now: dict) -> list[Link]:
    """The curve's points, with their values."""
    return [Link([dot(axis, (k, w))], text=f"step {k}: {w:+.2f}") for k, w in enumerate(now["within"])][::4]


def draw_curves(axis, compact: bool) -> Part:
    """The mean similarity within a view over the steps, without QARe in grey."""
    axis.set(xlim=(-3, STEPS + 3), ylim=(-0.35, 1.05), xlabel="step")
    alone = course(0.0)[1]
    axis.plot(alone, color=GREY)
    if not compact:
        axis.set_title("QARe spreads a view sooner, to the same end")
        axis.set_ylabel("mean similarity within a view")
        axis.text(14, alone[9], "InfoNCE alone", color="#555555")
        axis.axhline(-1 / 5, color=GREY, linewidth=0.8, linestyle=":")
        axis.text(STEPS, -0.22, "the least that six points can have: −0.2", ha="right", va="top")
    line = axis.plot([], [], color=PURPLE, linewidth=2.4)[0]
    point = axis.plot([], [], ".", color=PURPLE, markersize=18, markeredgecolor="white")[0]

    def move(k: int, within: np.ndarray) -> None:
        line.set_data(range(STEPS + 1), within)
        point.set_data([k], [within[k]])

    return Part([line, point], move)
