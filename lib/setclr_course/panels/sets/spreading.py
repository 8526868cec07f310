"""What QARe does to a batch beside InfoNCE: six photographs on a circle walk downhill (QARe, eq. 17)."""

from typing import Any

import numpy as np

from setclr_course.kit.atlas import STOPS, evenly
from setclr_course.kit.circle import unit
from setclr_course.kit.palette import DUSK, GREY, OF_LOSS
from setclr_course.kit.panel import Page, Panel, slider
from setclr_course.panels.sets.descent import BETAS, GRID, STEPS, path
from setclr_course.panels.sets.two_views import draw_views

TITLES = {
    "cosine": "QARe spreads a view sooner, to the same end",
    "euclidean": "QARe of distances draws a view together",
}


class spreading(Panel):
    """Gradient descent on InfoNCE + γ · QARe: the batch after so many steps, and its crowding so far.

    Args:
        similarity: within a view, "cosine", or "euclidean" for the version of distances.
    """

    size, row_height = (9, 4.2), 5.0
    mosaic, widths = "ring curves", (1, 1.1)
    row_mosaic = "ring; ring; ring; curves; curves"
    play = "step"
    knobs = {
        "weight": slider("weight γ of QARe", 1.125, 0.0, 4.0, GRID, {1.125: "paper"}),
        "step": slider("step", 8, 0, STEPS, 1),
    }
    also = [{"weight": float(b), "step": k} for b in BETAS for k in evenly(STEPS + 1, STOPS, [])]  # all play

    def __init__(self, similarity: str = "cosine", **initial: Any):
        self.similarity = similarity
        super().__init__(**initial)

    def solve(self, values: dict) -> tuple[np.ndarray, np.ndarray]:
        """The batch at the step (2, 6, 2), and the mean similarity within a view over all steps
        (STEPS + 1, 2), of InfoNCE alone and with QARe."""
        found, k = path(self.similarity), round(values["weight"] / GRID)
        return unit(np.rad2deg(found.angles[values["step"], k])), found.within[:, [0, k]]

    def draw(self, page: Page, values: dict, now: tuple[np.ndarray, np.ndarray]) -> None:
        z, within = now
        draw_views(page.plane("ring", (-1.5, 1.5)), z)
        title = "" if page.row else TITLES[self.similarity]
        ylabel = "" if page.row else "mean similarity within a view"
        ticks: dict = {"xticks": range(0, 81, 20), "yticks": (-0.2, 0, 0.5, 1)}
        curves = page.plot("curves", (-2, 82), (-0.35, 1.05), title, "step", ylabel, **ticks)
        curves.line([0, STEPS], -0.2, GREY, 1, "dot")
        steps, (alone, curve), colour = np.arange(STEPS + 1), within.T, OF_LOSS["QARe"]
        curves.line(steps, alone, GREY)
        curves.line(steps, curve, colour, 2.6)
        curves.text(22, alone[16], "InfoNCE alone", DUSK, anchor="start", rise="bottom", halo=True)
        if not page.row:
            curves.text(STEPS, -0.22, "the least that six points can have", DUSK, anchor="end", rise="top")
        at = values["step"], curve[values["step"]]
        curves.dots([at], colour, size=14).handle("step", at, along="x")

    def say(self, values: dict, now: tuple[np.ndarray, np.ndarray]) -> str:
        alone, within = now[1].T
        k, apart = values["step"], np.rad2deg(np.arccos((now[0][0] * now[0][1]).sum(-1).clip(-1, 1))).mean()
        return (
            f"Step {k} downhill on InfoNCE + {values['weight']:g} · QARe: the mean similarity within a view "
            f"is {within[k]:+.2f} (without {alone[k]:+.2f}); after {STEPS} steps it is {within[-1]:+.2f} "
            f"(without {alone[-1]:+.2f}). Partners are {apart:.1f}° apart."
        )
