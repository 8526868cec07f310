"""Recorded trainings as a race: how far each loss has fallen, epoch by epoch, and what the features were
worth at the end."""

from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.palette import GREY, MIST, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, options, slider
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained import comparison
from setclr_course.panels.trained.comparison import PROBE_FIRST, Records, accuracies, colour_of, fall
from setclr_course.panels.trained.rulers import holding, round_ones, rows_plot


class Race(NamedTuple):
    chosen: int  # loss, the best linear probe first
    heights: np.ndarray  # (losses,): the part of its fall that each has done
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
        epochs = {len(record["history"]) for runs in records.values() for record in runs.values()}
        n, last = len(records), max(epochs)
        if n < 2 or len(epochs) > 1 or last < 2:
            raise ValueError(
                f"records must be of two losses and two epochs or more, got {n} of {sorted(epochs)}"
            )
        self.names = comparison.ranked(records)
        self.colours = [colour_of(name) for name in self.names]
        runs = [records[name] for name in self.names]
        self.falls = np.stack([fall(some) for some in runs])
        self.found, self.untrained = (
            {word: [accuracies(some, row, column) for some in runs] for word, column in PROBE_FIRST.items()}
            for row in ("trained", "untrained")
        )
        every = [seeds for of in (self.found, self.untrained) for rows in of.values() for seeds in rows]
        self.limits = holding(np.concatenate(every))
        self.knobs = {
            "epoch": slider("epoch", max(last // 4, 1), 1, last, 1, {1: "first", last: "last"}),
            "row": slider("row, from the top", n, 1, n, 1, {1: "top", n: "bottom"}),
            "measure": options("features measured by", PROBE_FIRST),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Race:
        word, heights = values["measure"], self.falls[:, values["epoch"] - 1]
        return Race(values["row"] - 1, heights, self.found[word], np.concatenate(self.untrained[word]).mean())

    def draw(self, page: Page, values: dict, now: Race) -> None:
        lines, ends = self.draw_curves(page, values["epoch"], now)
        rows = self.draw_rows(page, now)
        for k, (name, height) in enumerate(zip(self.names, now.heights)):
            page.link(f"{name}: {height:.0%} of its fall", lines[k], ends[k], rows[k])

    def draw_curves(self, page: Page, epoch: int, now: Race) -> tuple[list[Mark], Mark]:
        """All curves up to the epoch and their ends, and the chosen one thick above them."""
        k, last = now.chosen, self.falls.shape[1]
        first = self.names[int(now.heights.argmax())]
        said = {1: "all begin at 0 %", last: "all at their end"}.get(epoch, f"{first} has fallen most")
        plot = page.plot("curves", (0.5, last + 0.5), holding(self.falls), said, "epoch",
                         "part of its own fall behind a loss", xticks=[1, *round_ones((2, last))],
                         yticks={0.0: "0 %", 0.5: "50 %", 1.0: "100 %"})  # fmt: skip
        x, points = np.arange(1, epoch + 1), [(epoch, height) for height in now.heights]
        curves = zip(self.falls[:, :epoch], self.colours)
        lines = [plot.line(x, curve, colour, 1, opacity=0.5) for curve, colour in curves]
        ends = plot.dots(points, self.colours, size=5, opacity=0.5)
        plot.line(x, self.falls[k, :epoch], self.colours[k], 2.6)
        grip = plot.dots([points[k]], self.colours[k], size=12)
        grip.handle("epoch", points[k], along="x", label="the epoch")
        plot.note(f"{self.names[k]} {now.heights[k]:.0%}", "bottom right", bold=True)
        return lines, ends

    def draw_rows(self, page: Page, now: Race) -> Mark:
        """A row for each loss with a dot for each seed, the best linear probe on top; dashed: untrained."""
        (low, high), n = self.limits, len(self.names)
        best = self.names[int(np.argmax([np.mean(seeds) for seeds in now.seeds]))]
        title, label = f"{best} has the best features", "accuracy at the end, %; dashed: untrained"
        plot = rows_plot(page, "rows", self.names, self.limits, title, label)
        grounds = [MIST if k == now.chosen else WHITE for k in range(n)]
        bands = plot.bars(np.arange(n), high, grounds, wide=0.96, base=low, flat=True)
        bands.handle("row", (low, now.chosen), along="y", to=lambda x, y: [y + 1], ends=(0, n - 1),
                     label="the row")  # fmt: skip
        plot.line(now.untrained, [-0.5, n - 0.5], GREY, 1.2, "dash")
        seed_rows(plot, now.seeds, self.colours)
        return bands

    def say(self, values: dict, now: Race) -> str:
        from setclr_course.search.recorded import spread  # which needs torch

        k, epoch, last = now.chosen, values["epoch"], self.falls.shape[1]
        means, place = [np.mean(seeds) for seeds in now.seeds], 1 + (now.heights > now.heights[k]).sum()
        among = f", number {place} of {len(means)} in falling" if 1 < epoch < last else ""
        return (
            f"{self.names[k]}, after epoch {epoch} of {last}: {now.heights[k]:.0%} of its fall is "
            f"done{among}. Its features by the {values['measure']}: {spread(now.seeds[k])} %, number "
            f"{1 + sum(mean > means[k] for mean in means)}."
        )
