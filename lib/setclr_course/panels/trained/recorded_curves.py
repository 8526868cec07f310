"""Recorded trainings as a race: how far each loss has fallen, epoch by epoch, and what the features were
worth at the end."""

from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import DUSK, GREY, MIST, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import (
    PROBE_FIRST,
    Records,
    accuracies,
    colour_of,
    losses,
    made_up,
    progress,
    ranked,
)
from setclr_course.panels.trained.rulers import holding, round_ones


class Measured(NamedTuple):
    """The features of all losses by one measure, in per cent."""

    seeds: list[list[float]]  # of each loss
    means: list[float]
    words: list[str]  # mean ± deviation
    untrained: float


class Race(NamedTuple):
    chosen: int  # loss, the best linear probe first
    heights: np.ndarray  # (losses,): the part of its fall that each has behind it
    features: Measured


class recorded_curves(Panel):
    """The records of `comparison.read`: the epochs play, and a loss is chosen by its row.

    Losses have units and zeros of their own, so a curve shows which part of its whole fall a loss has behind
    it: 0 after the first epoch, 1 after the last, the mean over its seeds. Without records it shows
    made-up ones.

    Raises:
        ValueError: no record has two epochs, or those of a loss differ in their number.
    """

    size, mosaic, widths, row_mosaic, row_height = (9, 4.6), "curves rows", (1, 1.1), "curves", 3.8
    in_sight, play = 1, "epoch"

    def __init__(self, records: Records | None = None, **initial: Any):
        records = records or made_up(6)
        self.names = ranked(records)
        falls = [fall(name, records[name]) for name in self.names]
        self.last = max(map(len, falls))
        if self.last < 2:
            raise ValueError("records must be of 2 epochs or more, got 1: a curve needs two points")
        runs = [[losses(record) for record in records[name].values()] for name in self.names]
        self.falls, self.losses = (
            np.stack([np.pad(curve, (0, self.last - len(curve)), "edge") for curve in curves])
            for curves in (falls, [np.mean(of_loss, axis=0) for of_loss in runs])
        )
        self.features = {word: measured(records, column) for word, column in PROBE_FIRST.items()}
        n, last = len(self.names), self.last
        ends: dict[float, str] = {1: "first", last: "last"}
        self.knobs = {"epoch": slider("epoch", max(last // 4, 1), 1, last, 1, ends)}
        if n > 1:
            ends = {1: self.names[0], n: self.names[-1]}
            self.knobs["row"] = slider("row, from the top", n, 1, n, 1, ends)
        self.knobs["measure"] = options("features measured by", PROBE_FIRST)
        super().__init__(**initial)

    def solve(self, values: dict) -> Race:
        heights = self.falls[:, values["epoch"] - 1]
        return Race(values.get("row", 1) - 1, heights, self.features[values["measure"]])

    def draw(self, page: Page, values: dict, now: Race) -> None:
        curves, rows = self.draw_curves(page, values["epoch"], now), self.draw_rows(page, now)
        for k, (name, height) in enumerate(zip(self.names, now.heights)):
            page.link(f"{name}: {height:.0%} of its fall", *curves[k], rows[k])

    def draw_curves(self, page: Page, epoch: int, now: Race) -> list[tuple]:
        """All curves up to the epoch, the chosen one thick; each with its end."""
        first = self.names[int(now.heights.argmax())]
        said = {1: "all begin at 0 %", self.last: "all at their end"}.get(epoch, f"{first} has fallen most")
        ticks = [1, *range(5, self.last, 5), self.last] if self.last > 5 else range(1, self.last + 1)
        limits = float(self.falls.min() - 0.06), float(self.falls.max() + 0.06)
        plot = page.plot("curves", (0.5, self.last + 0.5), limits, f"epoch {epoch}: " * (not page.row) + said,
                         "epoch", "part of its own fall behind a loss", xticks=ticks,
                         yticks={0.0: "0 %", 0.5: "50 %", 1.0: "100 %"})  # fmt: skip
        order = sorted(range(len(self.names)), key=lambda k: k == now.chosen)  # the chosen one above
        colours, drawn = [colour_of(name) for name in self.names], {}
        for k in order:
            width, size, faint = (2.6, 12, None) if k == now.chosen else (1, 5, 0.5)
            curve = plot.line(range(1, epoch + 1), self.falls[k, :epoch], colours[k], width, opacity=faint)
            end = plot.dots([(epoch, now.heights[k])], colours[k], size=size, opacity=faint)
            drawn[k] = curve, end[:]
        end.handle("epoch", (epoch, now.heights[now.chosen]), along="x", label="the epoch")
        word = f"{self.names[now.chosen]} {now.heights[now.chosen]:.0%}"
        plot.note(word, "bottom right", bold=True)
        return [drawn[k] for k in range(len(order))]

    def draw_rows(self, page: Page, now: Race) -> Mark:
        """A row for each loss with a dot for each seed, the best linear probe on top; dashed: untrained."""
        n, features = len(self.names), self.features.values()
        x = holding([x for one in features for x in [one.untrained, *sum(one.seeds, [])]])
        best = self.names[int(np.argmax(now.features.means))]
        plot = page.plot("rows", x, (n + 0.2, -0.6), f"{best} has the best features",
                         "accuracy at the end, %; a dot for each seed", xticks=round_ones(x),
                         yticks=dict(enumerate(self.names)), frame="bottom")  # fmt: skip
        ys = np.arange(n)
        colours = [MIST if k == now.chosen else WHITE for k in range(n)]
        bands = plot.bars(ys, x[1], colours, wide=0.96, base=x[0], flat=True)
        if n > 1:
            bands.handle("row", (x[0], now.chosen), along="y", to=lambda x, y: [y + 1], ends=(0, n - 1),
                         label="the row")  # fmt: skip
        plot.line([now.features.untrained] * 2, [-0.5, n + 0.2], GREY, 1.2, "dash")
        plot.text(now.features.untrained, n - 0.12, "untrained", DUSK, "small", "start", right=5)
        seed_rows(plot, now.features.seeds, [colour_of(name) for name in self.names])
        return bands

    def say(self, values: dict, now: Race) -> str:
        k, epoch, means = now.chosen, values["epoch"], now.features.means
        place = 1 + int((now.heights > now.heights[k]).sum())
        start, here, end = self.losses[k, [0, epoch - 1, -1]]
        among = f", number {place} of {len(means)} in falling" if 1 < epoch < self.last else ""
        return (
            f"{self.names[k]}, after epoch {epoch} of {self.last}: loss {here:.4g}, {now.heights[k]:.0%} of "
            f"its way from {start:.4g} to {end:.4g}{among}. Its features by the {values['measure']}: "
            f"{now.features.words[k]} %, number {1 + sum(mean > means[k] for mean in means)}."
        )


def measured(records: Records, column: str) -> Measured:
    from setclr.experiments.records import spread  # which needs torch

    seeds = [accuracies(records[name], "trained", column) for name in ranked(records)]
    before = [x for runs in records.values() for x in accuracies(runs, "untrained", column)]
    means = [float(np.mean(found)) for found in seeds]
    return Measured(seeds, means, [spread(found) for found in seeds], float(np.mean(before)))


def fall(name: str, runs: dict[int, dict]) -> np.ndarray:
    """After every epoch the part of the loss's fall that lies behind it: the mean over the runs."""
    lengths = {len(losses(record)) for record in runs.values()}
    if len(lengths) > 1:
        raise ValueError(f"runs of a loss must be of the same epochs, got {sorted(lengths)} of {name}")
    return np.mean([progress(losses(record)) for record in runs.values()], axis=0)
