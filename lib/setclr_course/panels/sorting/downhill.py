"""Five numbers let loose: their way downhill on InfoNCE and on GroCo, step by step (GroCo, figure 4)."""

from collections.abc import Collection
from typing import Any

import numpy as np

from setclr.checks import choice
from setclr_course.kit.palette import GREY, INK, OF_LOSS
from setclr_course.kit.panel import Mark, Page, Panel, Piece, log_slider, slider
from setclr_course.panels.sorting.five import FIVE, beside, draw_signs, faces, spread
from setclr_course.panels.sorting.walk import DRAWN, STEPS, walk

STARTS = {"cat": 0.0, "coffee": 1.5, "astronaut": 0.75, "rocket": -1.5, "temple": -0.75}
STRIDE = 5  # steps from one frame of the film to the next
MOSTLY = (-3.4, 6.2)  # limits of the picture; they walk farther only at temperatures above 1
FACE = 30  # steps, as broad as a photograph
LAST = FIVE.index("rocket")
DOES = {"InfoNCE": "shares out", "GroCo": "sorts"}
KNOBS = {
    "InfoNCE": ("temperature", log_slider("temperature τ of InfoNCE", 1, 0.1, 3, 0.05, {0.1: ".1", 1: "1"})),
    "GroCo": ("sharpness", log_slider("how sharply GroCo sorts", 1, 0.1, 10, 0.1, {1: "paper 1", 8: "8"})),
}


class downhill(Panel):
    """The five numbers' walks under both losses, or one; the starts can be dragged, the steps played."""

    play = "step"

    def __init__(self, losses: Collection[str] = ("InfoNCE", "GroCo"), **initial: Any):
        self.losses = [choice("losses", loss, KNOBS) for loss in losses]
        self.knobs = {
            "step": slider("step", STEPS, 0, STEPS, STRIDE),
            **dict(KNOBS[loss] for loss in losses),
            **{name: slider(f"start of {name}", s, -2.5, 2.5, 0.05) for name, s in STARTS.items()},
        }
        self.size, self.row_height = (4.5 * len(losses), 4.8), 2.7 * len(losses)
        self.mosaic, self.row_mosaic = " ".join(losses), ";".join(losses)
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, np.ndarray]:
        starts = tuple(values[name] for name in FIVE)
        return {loss: walk(loss, values[KNOBS[loss][0]], starts) for loss in self.losses}

    def draw(self, page: Page, values: dict, now: dict[str, np.ndarray]) -> None:
        every = np.concatenate(list(now.values()))
        y = min(MOSTLY[0], every.min() - 0.3), max(MOSTLY[1], every.max() + 1.5)
        drawn = [draw_walk(page, loss, places, values["step"], y) for loss, places in now.items()]
        for k, name in enumerate(FIVE):
            drawn[0][0][k].handle(name, (0, values[name]), along="y", label=f"start of {name}")
            moved = ", ".join(f"{loss} {places[-1, k] - places[0, k]:+.2f}" for loss, places in now.items())
            page.link(f"{name} is moved by {moved}", *(piece[k] for pieces in drawn for piece in pieces))

    def say(self, values: dict, now: dict[str, np.ndarray]) -> str:
        said = []
        for loss, places in now.items():
            here = places[values["step"]]
            lead = here[0] - here[1:].max()
            stands = f"✚ is {abs(lead):.1f} {'ahead' if lead > 0 else 'behind'}"
            said.append(f"{loss} has moved the rocket by {change(places, values['step'])}, and {stands}")
        knobs = " and ".join(f"{KNOBS[loss][0]} {values[KNOBS[loss][0]]:.2g} ({loss})" for loss in now)
        return f"After {values['step']} steps, at {knobs}: {'; '.join(said)}."


def draw_walk(
    page: Page, loss: str, places: np.ndarray, step: int, y: tuple[float, float]
) -> tuple[list[Piece], Mark]:
    """The five ways up to the present step: the signs at their starts, the photographs at their heads."""
    title, ylabel = f"{loss} {DOES[loss]}", "number: larger is closer to ★"
    ticks: dict = {"xticks": (0, 100, 200), "yticks": range(-2, 7, 2)}
    plot = page.plot(loss, (-12, 272), y, title, "step", ylabel, **ticks)
    plot.line([-12, 272], 0, GREY, 0.6, "dot")
    steps = DRAWN[step >= DRAWN]
    for k, width in enumerate((3.0, 1.4, 1.4, 2.2, 1.4)):
        colour = OF_LOSS[loss] if k == 0 else INK if k == LAST else GREY
        plot.line(steps, places[steps, k].round(2), colour, width, "dash" if k == LAST else "")
    gap = (0.165 if page.row else 0.102) * (y[1] - y[0])  # as high as a photograph
    column = spread(places[step], gap, y[0] + gap / 2, y[1] - 1.3 * gap)  # below the note
    plot.segments(beside(step + 2, places[step]), beside(step + 20, column), GREY, 0.8)
    shown = plot.photographs(beside(step + 38, column), faces(), FACE)
    ahead = places[: step + 1, 0] > places[: step + 1, 1:].max(1)  # the film does not tell its end
    leads = f"leads from step {ahead.argmax()}" if ahead.any() else "is not in front yet"
    plot.note(f"✚ {leads}")
    return draw_signs(plot, beside(0, places[0])), shown


def change(places: np.ndarray, step: int) -> str:
    """By how much the rocket has moved."""
    return f"{places[step, LAST] - places[0, LAST] + 0.0:+.2f}".replace("-0.00", "0.00")
