"""One near negative in a crowd of far ones: how much of InfoNCE's push is left for it."""

import numpy as np

from setclr_course.kit.palette import GREY, INK, OF_LOSS
from setclr_course.kit.panel import Page, Panel, log_slider

NEAR = 0.8  # similarity of the near negative to the anchor; that of the far ones is 0
MANY = np.geomspace(1, 1024, 61)  # far negatives


class crowd(Panel):
    """How many far negatives there are can be dragged."""

    size, row_height = (9, 3.8), 3.4
    mosaic, widths, row_mosaic, in_sight = "parts curve", (1, 1.7), "curve", 2
    knobs = {
        "far": log_slider("far negatives", 1, 1, 1024, np.log10(2), {1: "1", 16: "16", 128: "128"}),
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, 0.1, {0.1: ".1", 0.5: "SimCLR .5"}),
    }

    def solve(self, values: dict) -> np.ndarray:
        """The near one's part of the push on all negatives: beside each of MANY far ones, and the chosen."""
        power = np.exp(NEAR / values["temperature"])
        return power / (power + np.append(MANY, values["far"]))

    def draw(self, page: Page, values: dict, now: np.ndarray) -> None:
        part, colour = now[-1], OF_LOSS["InfoNCE"]
        how: dict = {"xticks": {0: "near", 1: "far ones"}, "yticks": {0: "0", 0.5: "½", 1: "all"}}
        parts = page.plot("parts", (-0.7, 1.7), (0, 1.12), "who gets the push", **how)
        bars = parts.bars([0, 1], [part, 1 - part], [colour, GREY], 0.7)
        parts.text([0, 1], [part, 1 - part], [f"{part:.0%}", f"{1 - part:.0%}"], rise="bottom", up=2)
        title = "the more far ones, the less for the near one"
        how = {"xticks": (1, 10, 100, 1000), "yticks": {0: "0", 0.5: "½", 1: "all"}, "log": "x"}
        curve = page.plot(
            "curve", (0.8, 1300), (0, 1.12), title, "far negatives", "push on the near ✕", **how
        )
        curve.line(MANY, now[:-1], colour)
        dot = curve.dots([values["far"], part], INK, "✕", 16)
        dot.handle("far", (values["far"], part), along="x", label="how many far negatives there are")
        page.link(f"the near one gets {part:.1%} of the push", bars[0], dot)

    def say(self, values: dict, now: np.ndarray) -> str:
        return (
            f"One near ✕ at similarity {NEAR}, {values['far']:.0f} far at 0, temperature "
            f"{values['temperature']:.2g}: the near one gets {now[-1]:.1%} of the push on all negatives."
        )
