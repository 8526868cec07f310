"""Recorded trainings as a race: how far each loss has fallen, epoch by epoch, and what the features were
worth at the end."""

from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import DUSK, GREY, MIST, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained import comparison
from setclr_course.panels.trained.comparison import PROBE_FIRST, Records, accuracies, colour_of, fall
from setclr_course.panels.trained.rulers import holding, round_ones


class Race(NamedTuple):
    chosen: int  # loss, the best linear probe first
    heights: np.ndarray  # (losses,): the part of its fall that each has behind it
    seeds: list[list[float]]  # the features of each by one measure, in per cent
    untrained: float


class recorded_curves(Panel):
    """The records of `comparison.read`: the epochs play, and a loss is chosen by its row.

    Losses have units and zeros of their own, so a curve shows which part of its whole fall a loss has behind
    it: 0 after the first epoch, 1 after the last, the mean over its seeds. Without records it shows
    made-up ones.

    Raises:
        ValueError: the records are of one loss or have one epoch, or differ in their number.
    """

    size, mosaic, widths, row_mosaic, row_height = (9, 4.6), "curves rows", (1, 1.1), "curves", 3.8
    in_sight, play = 1, "epoch"

    def __init__(self, records: Records | None = None, **initial: Any):
        records = records or comparison.made_up(6)
        if len(records) < 2:
            raise ValueError("records must be of two losses or more, got one; there is no race")
        epochs = {len(record["history"]) for runs in records.values() for record in runs.values()}
        self.last = max(epochs)
        if len(epochs) > 1 or self.last < 2:
            raise ValueError(f"records must be of the same number of epochs, 2 or more, got {sorted(epochs)}")
        self.names = comparison.ranked(records)
        runs = [records[name] for name in self.names]
        self.falls = np.stack([fall(some) for some in runs])
        self.losses = [np.mean([comparison.losses(one) for one in some.values()], axis=0) for some in runs]
        self.found: dict[str, list[list[float]]] = {}
        self.untrained: dict[str, float] = {}
        for word, column in PROBE_FIRST.items():
            self.found[word] = [accuracies(some, "trained", column) for some in runs]
            before = [x for some in runs for x in accuracies(some, "untrained", column)]
            self.untrained[word] = float(np.mean(before))
        n, last = len(self.names), self.last
        self.knobs = {
            "epoch": slider("epoch", max(last // 4, 1), 1, last, 1, {1: "first", last: "last"}),
            "row": slider("row, from the top", n, 1, n, 1, {1: self.names[0], n: self.names[-1]}),
            "measure": options("features measured by", PROBE_FIRST),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Race:
        heights, word = self.falls[:, values["epoch"] - 1], values["measure"]
        return Race(values["row"] - 1, heights, self.found[word], self.untrained[word])

    def draw(self, page: Page, values: dict, now: Race) -> None:
        curves, rows = self.draw_curves(page, values["epoch"], now), self.draw_rows(page, now)
        for k, (name, height) in enumerate(zip(self.names, now.heights)):
            page.link(f"{name}: {height:.0%} of its fall", *curves[k], rows[k])

    def draw_curves(self, page: Page, epoch: int, now: Race) -> dict[int, tuple]:
        """All curves up to the epoch, the chosen one thick; each with its end."""
        first = self.names[int(now.heights.argmax())]
        said = {1: "all begin at 0 %", self.last: "all at their end"}.get(epoch, f"{first} has fallen most")
        ticks = [1, *range(5, self.last, 5), self.last] if self.last > 5 else range(1, self.last + 1)
        plot = page.plot("curves", (0.5, self.last + 0.5), holding(self.falls), said, "epoch",
                         "part of its own fall behind a loss", xticks=ticks,
                         yticks={0.0: "0 %", 0.5: "50 %", 1.0: "100 %"})  # fmt: skip
        drawn = {}
        for k in sorted(range(len(self.names)), key=lambda k: k == now.chosen):  # the chosen one above
            width, size, faint = (2.6, 12, None) if k == now.chosen else (1, 5, 0.5)
            colour, curve = colour_of(self.names[k]), self.falls[k, :epoch]
            line = plot.line(range(1, epoch + 1), curve, colour, width, opacity=faint)
            end = plot.dots([(epoch, curve[-1])], colour, size=size, opacity=faint)
            drawn[k] = line, end[:]
        end.handle("epoch", (epoch, now.heights[now.chosen]), along="x", label="the epoch")
        plot.note(f"{self.names[now.chosen]} {now.heights[now.chosen]:.0%}", "bottom right", bold=True)
        return drawn

    def draw_rows(self, page: Page, now: Race) -> Mark:
        """A row for each loss with a dot for each seed, the best linear probe on top; dashed: untrained."""
        n, numbers = len(self.names), [*self.untrained.values(), *sum(sum(self.found.values(), []), [])]
        x, best = holding(numbers), self.names[int(np.argmax([np.mean(seeds) for seeds in now.seeds]))]
        plot = page.plot("rows", x, (n + 0.2, -0.6), f"{best} has the best features",
                         "accuracy at the end, %; a dot for each seed", xticks=round_ones(x),
                         yticks=dict(enumerate(self.names)), frame="bottom")  # fmt: skip
        colours = [MIST if k == now.chosen else WHITE for k in range(n)]
        bands = plot.bars(np.arange(n), x[1], colours, wide=0.96, base=x[0], flat=True)
        bands.handle("row", (x[0], now.chosen), along="y", to=lambda x, y: [y + 1], ends=(0, n - 1),
                     label="the row")  # fmt: skip
        plot.line([now.untrained] * 2, [-0.5, n + 0.2], GREY, 1.2, "dash")
        plot.text(now.untrained, n - 0.12, "untrained", DUSK, "small", "start", right=5)
        seed_rows(plot, now.seeds, [colour_of(name) for name in self.names])
        return bands

    def say(self, values: dict, now: Race) -> str:
        from setclr.experiments.records import spread  # which needs torch

        k, epoch, means = now.chosen, values["epoch"], [np.mean(seeds) for seeds in now.seeds]
        place = 1 + int((now.heights > now.heights[k]).sum())
        start, here, end = self.losses[k][[0, epoch - 1, -1]]
        among = f", number {place} of {len(means)} in falling" if 1 < epoch < self.last else ""
        return (
            f"{self.names[k]}, after epoch {epoch} of {self.last}: loss {here:.4g}, {now.heights[k]:.0%} of "
            f"its way from {start:.4g} to {end:.4g}{among}. Its features by the {values['measure']}: "
            f"{spread(now.seeds[k])} %, number {1 + sum(mean > means[k] for mean in means)}."
        )
