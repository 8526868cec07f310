"""One positive and one negative: three losses as curves of the gap between them (GroCo, figure 5, eq. 7,
8 and 10)."""

import numpy as np

from setclr_course.kit.inner import swapped
from setclr_course.kit.palette import DUSK, GREY, INK, OF_LOSS
from setclr_course.kit.panel import Page, Panel, Plot, log_slider, slider

GAP = np.linspace(-2, 2, 201)  # d⁻ − d⁺ of cosine distances; right of 0 the order is correct
TOP = 6  # of all axes
COLOURS = OF_LOSS["InfoNCE"], INK, OF_LOSS["GroCo"]

CURVES = (  # eq. 7, 8 and 10, by gap and parameter; the parameter; values of it that are shown in grey
    ("contrastive", lambda gap, tau: np.logaddexp(0, -gap / tau), "temperature", "τ", (0.1, 0.5, 2)),
    ("triplet", lambda gap, margin: np.maximum(margin - gap, 0), "margin", "r", (0, 0.5, 1)),
    ("GroCo", lambda gap, beta: -np.log(swapped(beta * gap)), "beta", "β", (0.5, 2, 8)),
)


class pair_curves(Panel):
    """The three losses of figure 5, each with its own parameter, above the force each exerts on the gap."""

    least = 0.62
    size, row_height = (9, 4.4), 5.2
    mosaic = "contrastive triplet GroCo; contrastive-force triplet-force GroCo-force"
    heights = (1.4, 1)
    row_mosaic = "contrastive GroCo; contrastive-force GroCo-force"
    knobs = {
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, marks={0.5: ".5", 0.1: ".1", 2: "2"}),
        "margin": slider("margin r", 0.5, 0.0, 2.0, 0.05, {0.5: ".5", 1: "1"}),
        "beta": log_slider("inverse temperature β", 1, 0.1, 100, marks={1: "paper 1", 8: "8"}),
    }

    def solve(self, values: dict) -> np.ndarray:
        """(3, 2, 201): each loss at GAP, and its force, minus the slope."""
        losses = [function(GAP, values[control]) for _, function, control, *_ in CURVES]
        return np.array([(loss, 0 - np.gradient(loss, GAP)) for loss in losses])

    def draw(self, page: Page, values: dict, now: np.ndarray) -> None:
        for (name, function, _, symbol, fixed), (loss, force), colour in zip(CURVES, now, COLOURS):
            upper = axes(page, name, name, loss)
            for value in fixed:
                upper.line(GAP[::4], function(GAP[::4], value), GREY, 1)
            upper.line(GAP, loss, colour, 3)
            at = np.linspace(-0.8, -2, len(fixed))  # beside one another as well as below
            heights = [min(function(*one), 5.5) for one in zip(at, fixed)]
            words = [f"{symbol}={x:g}" for x in fixed]
            upper.text(at, heights, words, DUSK, "small", "start", "bottom", 3, halo=True)
            title = "force" if page.row else f"{name}: force"  # narrow pages put it far below its curve
            axes(page, f"{name}-force", title, force).line(GAP, force, colour, 3)

    def say(self, values: dict, now: np.ndarray) -> str:
        words = [
            f"{name} ({symbol}={values[control]:.3g}) pulls with {np.interp(1.0, GAP, force):.2f}"
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
