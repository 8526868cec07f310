"""The recorded column of MMCL's table 4, epoch by epoch: what the choice of the epoch does to a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setclr.recipes import PUBLISHED
from setclr_course.kit.palette import GREY, INK, MIST, OF_LOSS
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.kit.seeds import seed_rows
from setclr_course.papers.tables import graph_curves, recorded

Curves = Mapping[str, np.ndarray]  # (seeds, epochs) per cent, by loss; one epoch where nothing is learnt
RULES = ("this epoch", "the best so far")
COLOURS = {loss.lower(): colour for loss, colour in OF_LOSS.items()} | {"graphcl": OF_LOSS["InfoNCE"]}


def read_column(folder: str | Path, data: str = "mutag") -> dict[str, np.ndarray]:
    """The curves of all graph recipes of that set which have a record in the folder. Raises ValueError where
    a record is damaged; FileNotFoundError where there are none."""
    found = recorded(folder, "graph", data)
    return {name.split(f"-{data}-")[-1]: np.array(graph_curves(kept)) for name, kept in found.items()}


def made_up() -> dict[str, np.ndarray]:
    """Curves of the same kind, for trying the panel out."""
    chance, epochs = np.random.default_rng(3), {"graphcl": 20, "mmcl": 20, "groco": 20, "untrained": 1}
    return {name: chance.normal(85, 1.5, (5, many)) for name, many in epochs.items()}


class graph_column(Panel):
    """A row for each loss: a dot for each seed, its mean, and what the paper printed for that data set.

    Args:
        curves: as `read_column` gives them; made-up ones by default.
    """

    size, row_height, play = (9, 4.3), 4.2, "epoch"

    def __init__(self, curves: Curves | None = None, data: str = "mutag", **initial: Any):
        self.curves = curves or made_up()
        rows = [PUBLISHED.get(f"mmcl-table4-{data}-{name}") for name in self.curves]
        self.printed = {y: (row.numbers["svm"], row.spread["svm"]) for y, row in enumerate(rows) if row}
        ends = [mean + side * spread for mean, spread in self.printed.values() for side in (-1, 1)]
        every = np.concatenate([ends, *map(np.ravel, self.curves.values())])
        self.limits = every.min() - 0.5, every.max() + 0.5
        last = max(x.shape[1] for x in self.curves.values())
        self.knobs = {
            "rule": options("take", RULES),
            "epoch": slider("epoch", last, 1, last, 1, {1: "first", last: "last"}),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, dict[str, np.ndarray]]:
        """For each rule and loss: (seeds,) accuracies."""
        seen = {name: x[:, : values["epoch"]] for name, x in self.curves.items()}
        this = {name: x[:, -1] for name, x in seen.items()}
        return dict(zip(RULES, (this, {name: x.max(1) for name, x in seen.items()})))

    def draw(self, page: Page, values: dict, now: dict) -> None:
        title = "dots: seeds · thick line: their mean · field: what the paper printed"
        low, high = self.limits
        ticks, rows = [x for x in range(0, 101, 2) if low < x < high], dict(enumerate(self.curves))
        plot = page.plot("plot", self.limits, (len(rows) - 0.4, -0.6), "" if page.row else title,
                         "accuracy of the SVM in per cent", xticks=ticks, yticks=rows)  # fmt: skip
        for y, (mean, spread) in self.printed.items():
            plot.boxes((mean - spread, y - 0.32), (mean + spread, y + 0.32), MIST)
            plot.line(mean, [y - 0.32, y + 0.32], GREY, 2.5)
        found = now[values["rule"]]
        colours = [COLOURS.get(name.split("+")[0].split("-")[0], INK) for name in found]
        for (name, seeds), pieces in zip(found.items(), seed_rows(plot, list(found.values()), colours)):
            page.link(f"{name}: {seeds.mean():.1f} %", *pieces)

    def say(self, values: dict, now: dict) -> str:
        means = {name: x.mean() for name, x in now[values["rule"]].items()}
        worst, *_, best = sorted(means, key=means.__getitem__)
        this, so_far = now.values()
        gain = np.mean([so_far[name] - this[name] for name in means if name != "untrained"])
        untrained = f" Untrained: {means['untrained']:.1f}." if "untrained" in means else ""
        return (
            f"Epoch {values['epoch']}, {values['rule']}: from {worst} {means[worst]:.1f} to {best} "
            f"{means[best]:.1f} per cent.{untrained} The best epoch so far is on average {gain:.1f} above "
            "this one."
        )
