"""What the weight β of QARe does to a batch: gradient descent on InfoNCE + β·QARe (QARe, eq. 7 and 17)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import DUSK, GREY, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sets.descent import GRID, SIMILARITIES, STEPS, draw_walk, path, points
from setclr_course.panels.sets.two_views import draw_dots

N = 8


class Walk(NamedTuple):
    """The batch at a step; over all steps (STEPS + 1, 2) for β = 0 and for this β:"""

    z: np.ndarray  # (2, N, 2)
    within: np.ndarray  # the mean cosine within a view
    nce: np.ndarray  # InfoNCE


class qare_descent(Panel):
    """Eight things on a circle pulled by InfoNCE and by β times QARe, with sliders for β and for time."""

    size, row_height = (9, 3.7), 5.0
    mosaic, widths = "circle within InfoNCE", (1.15, 1, 1)
    row_mosaic = "circle circle; circle circle; circle circle; within InfoNCE; within InfoNCE"
    marks = {0.0: "none", 1.125: "paper 1.125"}
    knobs = {
        "beta": slider("weight β of QARe", 1.125, 0.0, 4.0, GRID, marks),
        "step": slider("step of gradient descent", 10, 0, STEPS, 1),
        "similarity": options("similarity", SIMILARITIES),
    }

    def solve(self, values: dict) -> Walk:
        found, both = path(N, values["similarity"]), [0, round(values["beta"] / GRID)]
        z = points(found.angles[values["step"], both[1]])
        return Walk(z, found.within[:, both], found.nce[:, both])

    def draw(self, page: Page, values: dict, now: Walk) -> None:
        draw_dots(page, "circle", now.z, "the batch")
        titles = "mean cosine" if page.row else "mean cosine within a view", "InfoNCE"
        equal = "all points equal", f"all points equal: log {2 * N - 1}"
        for name, title, limits, ticks, said, level, curves in zip(
            ("within", "InfoNCE"), titles, ((-0.3, 1.2), (1.3, 2.95)), ((0, 0.5, 1), (1.5, 2, 2.5)),
            equal, (1, np.log(2 * N - 1)), (now.within, now.nce),
        ):  # fmt: skip
            plot = page.plot(name, (-3, 83), limits, title, "step", xticks=(0, 40, 80), yticks=ticks)
            plot.line([0, STEPS], level, GREY, 1, "dot")
            if not page.row:
                plot.text(STEPS, level, said, DUSK, anchor="end", rise="bottom", up=7)
            draw_walk(plot, curves, values["step"], VERMILION, name)

    def say(self, values: dict, now: Walk) -> str:
        at = values["step"]
        return (
            f"Step {at} of InfoNCE + {values['beta']:g} · QARe({values['similarity']}): the mean cosine "
            f"within a view is {now.within[at, 1]:+.2f} (InfoNCE alone: {now.within[at, 0]:+.2f}), InfoNCE "
            f"is {now.nce[at, 1]:.2f} (alone: {now.nce[at, 0]:.2f}); after {STEPS} steps they are "
            f"{now.within[-1, 1]:+.2f} and {now.nce[-1, 1]:.2f}."
        )
