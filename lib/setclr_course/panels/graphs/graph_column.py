"""The recorded column of MMCL's table 4, epoch by epoch: what the choice of the epoch does to a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import GREEN, GREY, INK, MIST, OF_LOSS
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.kit.seeds import seed_rows

Curves = Mapping[str, np.ndarray]  # (seeds, epochs) per cent, by loss; one epoch where nothing is learnt
TRACK = -0.7  # y of the line that the epoch is dragged along
RULES = ("this epoch", "the best so far")
SIGNS = {"graphcl": "InfoNCE", "sparseclr": "SparseCLR", "groco": "GroCo", "iot": "IOT", "mmcl": "MMCL"}


def read_column(folder: str | Path, data: str = "mutag") -> dict[str, np.ndarray]:
    """The curves of all graph recipes of that set which have a record in the folder. Raises ValueError where
    a record is damaged; FileNotFoundError where there are none."""
    from setclr_course.papers.tables import graph_curves, recorded

    found = recorded(folder, "graph", data)
    return {name.split(f"-{data}-")[-1]: np.array(graph_curves(kept)) for name, kept in found.items()}


def made_up() -> dict[str, np.ndarray]:
    """Curves of the same kind, for trying the panel out."""
    noise = np.random.default_rng(3)
    names = ("graphcl", "mmcl", "groco", "untrained")
    return {n: 85 + 1.5 * noise.standard_normal((5, 1 if n == "untrained" else 20)) for n in names}


class graph_column(Panel):
    """A row for each loss: a dot for each seed, its mean, and what the paper printed for that data set.

    Args:
        curves: as `read_column` gives them; made-up ones by default.
    """

    size, row_height = (9, 4.3), 4.2
    in_sight, play = 2, "epoch"

    def __init__(self, curves: Curves | None = None, data: str = "mutag", **initial: Any):
        from setclr.recipes import PUBLISHED

        self.curves = curves or made_up()
        self.names = list(self.curves)
        rows = {name: row for name, row in PUBLISHED.items() if name.startswith(f"mmcl-table4-{data}-")}
        printed = {name.split("-")[-1]: (row.numbers["svm"], row.spread["svm"]) for name, row in rows.items()}
        self.printed = {name: both for name, both in printed.items() if name in self.names}
        ends = [mean + side * spread for mean, spread in self.printed.values() for side in (-1, 1)]
        every = [*ends, *(end for x in self.curves.values() for end in (x.min(), x.max()))]
        self.limits = min(every) - 0.5, max(every) + 0.5
        self.last = max(x.shape[1] for x in self.curves.values())
        self.knobs = {
            "rule": options("take", RULES),
            "epoch": slider("epoch", self.last, 1, self.last, 1, {1: "first", self.last: "last"}),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, dict[str, np.ndarray]]:
        """For each rule and loss: (seeds,) accuracies."""
        return {rule: taken(self.curves, values["epoch"], rule) for rule in RULES}

    def draw(self, page: Page, values: dict, now: dict) -> None:
        title, better, rows = "", "", {float(k): name for k, name in enumerate(self.names)}
        if not page.row:
            title = "dots: seeds · thick line: their mean · pale field: what the paper printed"
            better, rows[TRACK] = " (larger is better)", "epoch"
        low, high = self.limits
        step = max(1, int(high - low) // 5)
        ticks = [at for at in range(int(np.ceil(low)), int(high) + 1) if at % step == 0]
        plot = page.plot("plot", self.limits, (len(self.names) - 0.4, -0.9), title,
                         f"accuracy of the SVM in per cent{better}", xticks=ticks, yticks=rows)  # fmt: skip
        for name, (mean, spread) in self.printed.items():
            y = self.names.index(name) + np.array([-0.32, 0.32])
            plot.boxes((mean - spread, y[0]), (mean + spread, y[1]), MIST)
            plot.line([mean, mean], y, GREY, 2.5)
        colours = [OF_LOSS.get(SIGNS.get(name.split("+")[0].split("-")[0], ""), INK) for name in self.names]
        found = now[values["rule"]]
        for (name, seeds), pieces in zip(found.items(), seed_rows(plot, list(found.values()), colours)):
            page.link(f"{name}: {seeds.mean():.1f} %", *pieces)
        if page.row:
            return

        end = max(self.last, 2)
        plot.line(self.limits, TRACK, GREEN, 1.3)
        at = low + (high - low) * (values["epoch"] - 1) / (end - 1), TRACK

        def to(x: float, y: float) -> list[float]:
            return [1 + (x - low) / (high - low) * (end - 1)]

        plot.dots(at, GREEN, size=13).handle("epoch", at, along="x", to=to, label="the epoch")

    def say(self, values: dict, now: dict) -> str:
        means = {name: x.mean() for name, x in now[values["rule"]].items()}
        best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        this, so_far = now.values()
        gain = np.mean([so_far[name] - this[name] for name in means if name != "untrained"])
        untrained = f" Untrained: {means['untrained']:.1f}." if "untrained" in means else ""
        return (
            f"Epoch {values['epoch']}, {values['rule']}: from {worst} {means[worst]:.1f} to {best} "
            f"{means[best]:.1f} per cent.{untrained} The best epoch so far is on average {gain:.1f} above "
            "this one."
        )


def taken(curves: Curves, epoch: int, rule: str) -> dict[str, np.ndarray]:
    """(seeds,) for each loss: the accuracy at that epoch, or the best up to it."""
    seen = {name: x[:, :epoch] for name, x in curves.items()}
    return {name: x.max(1) if rule == RULES[1] else x[:, -1] for name, x in seen.items()}
