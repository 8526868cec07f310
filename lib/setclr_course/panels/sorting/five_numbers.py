"""Five numbers under two losses: one positive and four negative similarities that move (GroCo, figure 4)."""

import numpy as np

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.palette import BLUE, GREY, OCHRE, ORANGE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sorting.walk import DRAWN, PUSHES, STEPS, limits, walk

STARTS = (
    (0.0, -0.9, -0.3, 0.3, 0.8),
    (-0.05, -2.0, -0.1, 0.0, 0.1),
    (-0.9, 0.6, 0.7, 0.8, 0.9),
)  # the positive, the farthest negative, three others
MOSTLY = (-3.8, 8.2)  # limits of the picture; they walk farther only at learning rates above 0.3


class five_numbers(Panel):
    """The five numbers' walks under InfoNCE and under GroCo, with sliders for all that decides them."""

    size, row_height, mosaic, row_mosaic = (9, 3.8), 5.2, "InfoNCE GroCo", "InfoNCE; GroCo"
    knobs = {
        "temperature": log_slider("temperature τ", 1, 0.1, 10, 0.1, {0.1: ".1", 0.5: "SimCLR .5", 5: "5"}),
        "beta": log_slider("inverse temperature β", 1, 0.1, 100, 0.1, {1: "paper 1", 8: "8"}),
        "rate": log_slider("learning rate", 10**-0.5, 0.1, 1, 0.1, {1: "1", 0.1: ".1"}),
        "start": slider("start", 1, 1, len(STARTS), 1, {1: "mixed", 2: "one far away", 3: "all wrong"}),
    }

    def solve(self, values: dict) -> dict[str, np.ndarray]:
        start, knobs = STARTS[values["start"] - 1], (values["temperature"], values["beta"])
        return {loss: walk(loss, knob, start, values["rate"]) for loss, knob in zip(PUSHES, knobs)}

    def draw(self, page: Page, values: dict, now: dict[str, np.ndarray]) -> None:
        y = limits(now.values(), *MOSTLY)
        for loss, places in now.items():
            ticks: dict = {"xticks": range(0, STEPS + 1, 50), "yticks": range(-2, 9, 2)}
            plot = page.plot(loss, (0, STEPS), y, loss, "step of gradient descent", "similarity", **ticks)
            plot.line([0, STEPS], 0, GREY, 0.8, "dot")
            for near in places[DRAWN, 2:].T:
                plot.line(DRAWN, near, ORANGE, 1.5)
            plot.line(DRAWN, places[DRAWN, 1], VERMILION, 2.5, "dash")
            plot.line(DRAWN, places[DRAWN, 0], BLUE, 2.5)
            size = "small" if page.row else "normal"
            plot.key(("positive", BLUE), ("near negatives", OCHRE), size=size)
            far = f"farthest negative, moved by {moved(places):+.2f}"
            plot.key((far, VERMILION), where="bottom left", size=size)

    def say(self, values: dict, now: dict[str, np.ndarray]) -> str:
        words = [
            f"{loss} ({name} {values[name]:.2g}) moves the farthest negative by {moved(places):+.2f} "
            f"and leaves the positive {places[-1, 0] - places[-1, 1:].max():.1f} above the next"
            for (loss, places), name in zip(now.items(), ("temperature", "beta"))
        ]
        return f"After {STEPS} steps " + "; ".join(words) + "."


def moved(places: np.ndarray) -> float:
    """By how much the farthest negative has been."""
    return float(places[-1, 1] - places[0, 1])
