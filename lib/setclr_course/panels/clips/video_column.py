"""The recorded runs on moving-patches: what the features know of the photograph and of the motion."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import BLUE, GREEN, GREY, INK
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page

Scores = Mapping[str, Mapping[str, Mapping[str, list[float]]]]  # by row, thing and measure: (seeds,) per cent
THINGS = ("photograph", "motion")
MEASURES = ("retrieval@1", "linear", "ten crops")
LEVELS = {"50 %": 0.5, "95 %": 0.95, "99 %": 0.99}
TOP = -0.7  # y of the dot by which the line is dragged


def read_scores(folder: str | Path, data: str = "moving-patches") -> dict:
    """The accuracies of all records of those videos in the folder. Raises ValueError where a record is
    damaged; FileNotFoundError where there are none."""
    from setclr_course.papers.tables import recorded, video_scores

    found = recorded(folder, "video", data)
    return {name.replace("moving-", ""): video_scores(kept) for name, kept in found.items()}


def made_up() -> dict:
    """Scores of the same kind, for trying the panel out."""
    noise = np.random.default_rng(5)
    means = {
        "rgb-infonce": (30, 34),
        "rgb-mmcl": (28, 30),
        "flow-infonce": (12, 55),
        "rgb-untrained": (14, 12),
    }
    return {
        name: {
            thing: {m: list(mean + 4 * k + 2 * noise.standard_normal(3)) for k, m in enumerate(MEASURES)}
            for thing, mean in zip(THINGS, pair)
        }
        for name, pair in means.items()
    }


class video_column(Panel):
    """A row for each run: of photograph and of motion a dot for each seed, and an interval for their mean.

    Args:
        scores: as `read_scores` gives them; made-up ones by default.
        classes: how many photographs and motions there are; guessing is right for one in so many.
    """

    size, row_height = (9, 4.6), 4.2
    mosaic, row_mosaic = "photograph motion", "motion"
    in_sight = 2
    knobs = {
        "measure": options("measure", MEASURES),
        "line": slider("line at", 50, 0, 100, 1, {0: "none", 100: "all right"}),
        "interval": options("interval", LEVELS, "95 %"),
    }

    def __init__(self, scores: Scores | None = None, classes: tuple[int, int] = (18, 9), **initial: Any):
        self.scores, self.classes = scores or made_up(), classes
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, list[np.ndarray]]:
        """For each thing, row by row, (seeds,) per cent."""
        measure = values["measure"]
        return {thing: [np.array(of[thing][measure]) for of in self.scores.values()] for thing in THINGS}

    def draw(self, page: Page, values: dict, now: dict) -> None:
        rows, pieces = len(self.scores), []
        titles = "dots: seeds, bar: interval", "dotted: guessing, green: drag it"
        for thing, found, title, classes in zip(THINGS, now.values(), titles, self.classes):
            label = f"{'' if page.row else 'right about the '}{thing}, per cent"
            plot = page.plot(
                thing, (0, 101), (rows - 0.4, -0.9), "" if page.row else title, label,
                xticks=range(0, 101, 20), yticks=dict(enumerate(self.scores)),
            )  # fmt: skip
            plot.level(100 / classes, colour=GREY, width=1, dash="dot")
            half = [half_width(x, LEVELS[values["interval"]]) for x in found]
            middle = np.column_stack([[x.mean() for x in found], np.arange(rows)])
            ends = np.column_stack([half, np.zeros(rows)])
            bars = plot.segments(middle - ends, middle + ends, INK, 2.5)
            which = np.repeat(np.arange(rows), [len(x) for x in found])
            beside = np.concatenate([np.linspace(-0.15, 0.15, len(x)) for x in found])
            dots = plot.dots(np.column_stack([np.concatenate(found), which + beside]), BLUE, size=8)
            pieces.append([(bars[k], dots[which == k]) for k in range(rows)])
        plot.level(values["line"], colour=GREEN, to=TOP, width=2.5)
        at = values["line"], TOP
        plot.dots(at, GREEN, size=13).handle("line", at, along="x", label="the line")
        for name, photograph, motion, one, other in zip(self.scores, *now.values(), *pieces):
            said = f"{name}: photograph {photograph.mean():.1f}, motion {motion.mean():.1f} per cent"
            page.link(said, *one, *other)

    def say(self, values: dict, now: dict) -> str:
        measure, line = values["measure"], values["line"]
        above = sum(x.mean() > line for x in now["motion"])
        photo = {name: x.mean() for name, x in zip(self.scores, now["photograph"])}
        best = max(photo, key=photo.__getitem__)
        wide = np.mean([half_width(x, LEVELS[values["interval"]]) for x in now["motion"]])
        return (
            f"By {measure}, {above} of {len(self.scores)} are right about the motion in over {line} per cent "
            f"of clips. Best about the photograph: {best}, {photo[best]:.1f}. The {values['interval']} "
            f"interval of a mean about the motion is on average ± {wide:.1f}."
        )


def half_width(x: Sequence[float], level: float) -> float:
    """Of Student's interval for the mean of (seeds,); 0 for one seed."""
    n = len(x)
    return 0.0 if n < 2 else float(stdtrit(n - 1, (1 + level) / 2) * np.std(x, ddof=1) / n**0.5)
