"""The recorded runs on moving-patches: what the features know of the photograph and of the motion."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from setclr_course.kit.palette import BLUE, GREY, INK
from setclr_course.kit.panel import Page, Panel, options
from setclr_course.kit.seeds import seed_rows
from setclr_course.papers.tables import recorded, video_scores

Scores = Mapping[str, Mapping[str, Mapping[str, ArrayLike]]]  # by row, thing and measure: (seeds,) per cent
CLASSES = {"photograph": 18, "motion": 9}  # guessing is right for one in so many
MEASURES = ("retrieval@1", "linear", "ten crops")


def read_scores(folder: str | Path, data: str = "moving-patches") -> Scores:
    """The accuracies of all records of those videos in the folder. Raises ValueError where a record is
    damaged; FileNotFoundError where there are none."""
    found = recorded(folder, "video", data)
    return {name.replace("moving-", ""): video_scores(kept) for name, kept in found.items()}


def made_up() -> Scores:
    """Scores of the same kind, for trying the panel out."""
    chance = np.random.default_rng(5)
    rows = ("rgb-infonce", 30, 34), ("rgb-mmcl", 28, 30), ("flow-infonce", 12, 55), ("rgb-untrained", 14, 12)
    return {
        name: {thing: {measure: chance.normal(mean, 2, 3) for measure in MEASURES}
               for thing, mean in zip(CLASSES, means)}
        for name, *means in rows
    }  # fmt: skip


class video_column(Panel):
    """A row for each run: of photograph and of motion a dot for each seed, and an interval for their mean.

    Args:
        scores: as `read_scores` gives them; made-up ones by default.
    """

    size, row_height = (9, 4.6), 4.2
    mosaic, row_mosaic = "photograph motion", "motion"
    knobs = {"measure": options("measure", MEASURES)}

    def __init__(self, scores: Scores | None = None, **initial: Any):
        self.scores = scores or made_up()
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, list[np.ndarray]]:
        """For each thing, row by row, (seeds,) per cent."""
        measure = values["measure"]
        return {thing: [np.array(of[thing][measure]) for of in self.scores.values()] for thing in CLASSES}

    def draw(self, page: Page, values: dict, now: dict) -> None:
        y = np.arange(len(self.scores))
        titles, pieces = ("dots: seeds; cross: mean and interval", "dotted: guessing"), []
        for (thing, found), title, classes in zip(now.items(), titles, CLASSES.values()):
            below, rows = f"right about the {thing}, per cent", dict(enumerate(self.scores))
            plot = page.plot(thing, (0, 101), (len(y) - 0.4, -0.6), title, below, "", range(0, 101, 20), rows)
            plot.level(100 / classes, colour=GREY, width=1, dash="dot")
            means, half = np.array([(x.mean(), half_width(x)) for x in found]).T
            bars = plot.segments(np.stack([means - half, y], 1), np.stack([means + half, y], 1), INK, 2.5)
            pieces.append([(*row, bars[k]) for k, row in enumerate(seed_rows(plot, found, [BLUE] * len(y)))])
        for name, photograph, motion, one, other in zip(self.scores, *now.values(), *pieces):
            said = f"{name}: photograph {photograph.mean():.1f}, motion {motion.mean():.1f} per cent"
            page.link(said, *one, *other)

    def say(self, values: dict, now: dict) -> str:
        said = []
        for thing, found in now.items():
            name, numbers = max(zip(self.scores, found), key=lambda row: row[1].mean())
            said.append(f"{name} is right about the {thing} most often, in {numbers.mean():.1f} per cent")
        return f"By {values['measure']} {' and '.join(said)} of clips."


def half_width(x: Sequence[float]) -> float:
    """Of Student's interval at 95 % for the mean of (seeds,); 0 for one seed."""
    n = len(x)
    return 0.0 if n < 2 else float(stdtrit(n - 1, 0.975) * np.std(x, ddof=1) / n**0.5)
