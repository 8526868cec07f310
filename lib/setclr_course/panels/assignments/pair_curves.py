"""One positive and one negative: three losses as curves of the gap between them (GroCo, figure 5, eq. 7,
8 and 10)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.inner import swapped
from setclr_course.kit.palette import BLUE, DUSK, GREY, ORANGE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page, Plot

GAP = np.linspace(-2, 2, 201)  # d⁻ − d⁺ of cosine distances; right of 0 the order is correct
TOP = 6  # of all axes


def contrastive(gap, temperature):
    """log(1 + e^{−gap/τ}) (GroCo, eq. 7)."""
    return np.logaddexp(0, -gap / temperature)


def triplet(gap, margin):
    """max(r − gap, 0) (GroCo, eq. 8)."""
    return np.maximum(margin - gap, 0)


def groco(gap, beta):
    """−log(arctan(β·gap)/π + ½) (GroCo, eq. 10)."""
    return -np.log(swapped(beta * gap))


CURVES = [
    ("contrastive", contrastive, "temperature", "τ", (0.1, 0.5, 2)),
    ("triplet", triplet, "margin", "r", (0, 0.5, 1)),
    ("GroCo", groco, "beta", "β", (0.5, 2, 8)),
]


class Curve(NamedTuple):
    loss: np.ndarray  # (201,) at GAP
    force: np.ndarray  # minus its slope


class pair_curves(Panel):
    """The three losses of figure 5, each with its own parameter, above the force each exerts on the gap."""

    size, row_height = (9, 4.4), 5.2
    mosaic = "contrastive triplet GroCo; contrastive-force triplet-force GroCo-force"
    heights = (1.4, 1)
    row_mosaic = "contrastive GroCo; contrastive-force GroCo-force"
    knobs = {
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, marks={0.5: ".5", 0.1: ".1", 2: "2"}),
        "margin": slider("margin r", 0.5, 0.0, 2.0, 0.05, {0.5: ".5", 1: "1"}),
        "beta": log_slider("inverse temperature β", 1, 0.1, 100, marks={1: "paper 1", 8: "8"}),
    }

    def solve(self, values: dict) -> list[Curve]:
        losses = [function(GAP, values[control]) for _, function, control, *_ in CURVES]
        return [Curve(loss, 0 - np.gradient(loss, GAP)) for loss in losses]

    def draw(self, page: Page, values: dict, now: list[Curve]) -> None:
        for (name, function, _, symbol, fixed), (loss, force) in zip(CURVES, now):
            upper = axes(page, name, name if page.row else f"{name}: loss", loss)
            grey = [function(GAP, value)[::4] for value in fixed]
            for y in grey:
                upper.line(GAP[::4], y, GREY, 1)
            upper.line(GAP, loss, BLUE, 3)
            if not page.row:
                starts, words = [min(y[0], 5.5) for y in grey], [f"{symbol}={value:g}" for value in fixed]
                upper.text(-2, starts, words, DUSK, "small", "start", "bottom", right=3, halo=True)
            lower = axes(page, f"{name}-force", "force" if page.row else f"{name}: force", force)
            lower.line(GAP, force, ORANGE, 3)

    def say(self, values: dict, now: list[Curve]) -> str:
        words = [
            f"{name} ({symbol}={values[control]:.2g}) pulls with {np.interp(1.0, GAP, force):.2f}"
            for (name, _, control, symbol, _), (_, force) in zip(CURVES, now)
        ]
        return "Once the negative is farther than the positive by 1: " + ", ".join(words) + "."


def axes(page: Page, name: str, title: str, y: np.ndarray) -> Plot:
    """A plot for curves of the gap; it says how high y goes, if that is beyond it."""
    plot = page.plot(
        name, (-2, 2), (-0.3, TOP), title, "gap d⁻ − d⁺", xticks=range(-2, 3), yticks=(0, 2, 4, 6)
    )
    plot.line([0, 0], [-0.3, TOP], GREY, 1, "dot")
    if y.max() > TOP:
        plot.note(f"up to {y.max():.0f}", "top right", DUSK, "small")
    return plot
