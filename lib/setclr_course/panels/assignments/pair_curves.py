"""One positive and one negative: three losses as curves of the gap between them (GroCo, figure 5, eq. 7,
8 and 10)."""

import numpy as np

from setclr_course.kit.palette import BLUE, GREY, ORANGE
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel

GAP = np.linspace(-2, 2, 201)  # d⁻ − d⁺ of cosine distances; right of 0 the order is correct


def contrastive(gap, temperature):
    """log(1 + e^{−gap/τ}) (GroCo, eq. 7)."""
    return np.logaddexp(0, -gap / temperature)


def triplet(gap, margin):
    """max(r − gap, 0) (GroCo, eq. 8)."""
    return np.maximum(margin - gap, 0)


def groco(gap, beta):
    """−log(arctan(β·gap)/π + ½) (GroCo, eq. 10)."""
    return -np.log(np.arctan(beta * gap) / np.pi + 0.5)


CURVES = [
    ("contrastive", contrastive, "temperature", "τ", (0.1, 0.5, 2)),
    ("triplet", triplet, "margin", "r", (0, 0.5, 1)),
    ("GroCo", groco, "beta", "β", (0.5, 2, 8)),
]


def pair_curves(**initial) -> Panel:
    """The three losses of figure 5, each with its own parameter, above the force each exerts on the gap."""
    controls = {
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, marks={0.5: ".5", 0.1: ".1", 2: "2"}),
        "margin": slider("margin r", 0.5, 0.0, 2.0, 0.05, {0.5: ".5", 1: "1"}),
        "beta": log_slider("inverse temperature β", 1, 0.1, 100, marks={1: "paper 1", 8: "8"}),
    }
    return Panel(build, controls, (9, 4.4), initial)


def build(figure, compact: bool) -> Drawing:
    curves = [c for c in CURVES if not compact or c[0] != "triplet"]
    axes = figure.subplots(2, len(curves), sharex=True, sharey="row", squeeze=False, height_ratios=[1.4, 1])
    moving = []
    for (name, function, _, symbol, fixed), top, bottom in zip(curves, *axes):
        for value in fixed:
            top.plot(GAP, function(GAP, value), color=GREY, linewidth=0.8)
            if not compact:
                top.text(
                    -1.97,
                    min(function(-1.97, value), 5.6),
                    f"{symbol}={value:g}",
                    fontsize=8,
                    color="#555555",
                    va="bottom",
                )
        for axis in (top, bottom):
            axis.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
        top.set(title=name, ylim=(-0.1, 6))
        bottom.set(xlabel="gap d⁻ − d⁺", ylim=(-0.3, 6))
        moving.append((top.plot([], [], color=BLUE)[0], bottom.plot([], [], color=ORANGE)[0]))
    axes[0, 0].set_ylabel("loss")
    axes[1, 0].set_ylabel("force")

    def update(values: dict) -> str:
        words = []
        for (name, function, control, symbol, _), (loss, force) in zip(curves, moving):
            y = function(GAP, values[control])
            pull = 0 - np.gradient(y, GAP)
            loss.set_data(GAP, y)
            force.set_data(GAP, pull)
            words.append(
                f"{name} ({symbol}={values[control]:.2g}) pulls with {np.interp(1.0, GAP, pull):.2f}"
            )
        return "Once the negative is farther than the positive by 1: " + ", ".join(words) + "."

    return Drawing([artist for pair in moving for artist in pair], update)
