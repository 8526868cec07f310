"""Time and memory of every loss against the batch, with a line to drag along the curves."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from setclr.losses import BY_NAME
from setclr_course import costs
from setclr_course.kit.palette import INK
from setclr_course.kit.panel import Page, Panel, options
from setclr_course.panels.costs import cost_pictures
from setclr_course.panels.costs.cost_pictures import Table, colour_of, in_words, middles, nearest, quartiles

QUICK = ("InfoNCE", "SparseCLR", "QARe", "GroCo", "MMCL")  # measured where no table is given


class Costs(NamedTuple):
    """What each loss costs at one N."""

    N: int
    ms: np.ndarray
    megabytes: np.ndarray


class loss_costs(Panel):
    """What each loss costs at the batch that the reader drags to, compared with the first.

    Without tables five losses are measured at small sizes, in about a second.

    Args:
        seconds: {loss: {N: seconds of each run of forward and backward}}, as `costs.seconds` measures them.
        kept: {loss: {N: bytes kept for the backward pass}}, of the same losses and sizes N, each twice the
            one before.
        machine: what the seconds were measured on.
    """

    size, row_height = (9, 4.8), 4.6
    mosaic, row_mosaic = "time memory", "bars"

    def __init__(
        self, seconds: costs.Runs | None = None, kept: Table | None = None, machine: str = "", **initial: Any
    ):
        if seconds is None or kept is None:
            (seconds, kept), machine = quick_tables(), costs.this_machine()
        self.names, self.sizes = list(seconds), list(next(iter(seconds.values())))
        ms = {name: {N: 1e3 * quartiles(runs) for N, runs in row.items()} for name, row in seconds.items()}
        megabytes = {name: {N: 1e-6 * size for N, size in kept[name].items()} for name in seconds}
        unit = "ms" + f" ({machine})" * bool(machine) + "; pale: half of the runs"
        self.halves = {"time": (unit, ms), "memory": ("MB kept for the way back", megabytes)}
        self.knobs = {
            "images": cost_pictures.batch_slider(self.sizes, self.sizes[-2]),
            "loss": options("loss in the sentence", self.names),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Costs:
        N = nearest(self.sizes, values["images"])
        return Costs(N, *(middles(table)[:, 1, self.sizes.index(N)] for _, table in self.halves.values()))

    def draw(self, page: Page, values: dict, now: Costs) -> None:
        if page.row:
            return self.draw_bars(page, now.ms)
        time = self.draw_half(page, "time", now.ms, now.N, values["loss"])
        memory = self.draw_half(page, "memory", now.megabytes, now.N, values["loss"])
        for k, name in enumerate(self.names):
            said = f"{in_words(now.ms[k])} ms, {in_words(now.megabytes[k])} MB"
            page.link(f"{name} at N = {now.N}: {said}", *time[k], *memory[k])

    def draw_half(self, page: Page, half: str, costs: np.ndarray, N: int, loss: str) -> list[list]:
        """The lines of a table, and beside each the loss and its cost at N; the marks of each loss."""
        names, (unit, table) = self.names, self.halves[half]
        k = names.index(loss) or int(costs.argmax())  # beside itself stands the dearest
        title = f"{half}: {names[k]} is {in_words(costs[k] / costs[0])} times {names[0]}"
        words = [f"{name} {in_words(cost)}" for name, cost in zip(names, costs)]
        plot = cost_pictures.lines_plot(page, half, title, unit, table, words)
        drawn = cost_pictures.draw_lines(plot, table, words, loss)
        plot.text(1, 1, f"at {N}", size="small", anchor="start", up=-2, bold=True, within=True)
        bottom, top = plot.about["y"]
        grip = N, bottom * (top / bottom) ** 0.04
        line = plot.line([N, N], [bottom, top], INK, 1.4, "dot")
        line.handle(half, grip, "images", along="x", label=f"the batch, in the {half}")
        dots = plot.dots([(N, cost) for cost in costs], [colour_of(name) for name in names], size=10)
        return [[*marks, dots[k]] for k, marks in enumerate(drawn)]

    def draw_bars(self, page: Page, ms: np.ndarray) -> None:
        """Time at one N, a bar for each loss, on the same logarithmic axis for all N."""
        every, places = middles(self.halves["time"][1])[:, 1], np.arange(len(ms))
        low, high = every.min() / 1.3, every.max()
        ticks = [tick for tick in (0.01, 0.1, 1, 10, 100, 1000, 10000) if low < tick < high]
        plot = page.plot("bars", (low, high * (high / low) ** 0.3), (len(ms) - 0.4, -0.6), "", "ms", "",
                         ticks, dict(enumerate(self.names)), log="x", room=(14, 0, 0, 0))  # fmt: skip
        plot.bars(places, ms, [colour_of(name) for name in self.names], 0.6, low, flat=True)
        plot.text(ms, places, [in_words(cost) for cost in ms], size="small", anchor="start", right=4)

    def say(self, values: dict, now: Costs) -> str:
        k = self.names.index(values["loss"])
        compared = f", {now.ms[k] / now.ms[0]:.2f} times {self.names[0]}," * (k > 0)
        return (
            f"At N = {now.N}, {self.names[k]} takes {in_words(now.ms[k])} ms{compared} and keeps "
            f"{in_words(now.megabytes[k])} MB for the way back."
        )


@cache
def quick_tables() -> tuple[costs.Runs, Table]:
    sizes = (16, 32, 64)
    chosen: costs.Losses = {name: BY_NAME[name]() for name in QUICK}
    points = {N: costs.points(N, 32) for N in sizes}
    kept = {name: {N: costs.kept_bytes(loss, z) for N, z in points.items()} for name, loss in chosen.items()}
    return costs.seconds(chosen, sizes, 32, budget=0.02), kept
