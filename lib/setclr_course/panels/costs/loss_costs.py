"""Time and memory of every loss against the batch, with a line to drag along the curves."""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.palette import INK, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Piece, Plot
from setclr_course.panels.costs.tables import (
    Table,
    at,
    colour_of,
    growth,
    in_words,
    is_term,
    limits,
    rungs,
    same_sizes,
    spread,
)

if TYPE_CHECKING:
    from setclr_course.costs import Losses, Runs

QUICK = ("InfoNCE", "SparseCLR", "QARe", "GroCo", "MMCL")  # measured where no table is given


class Costs(NamedTuple):
    """What each loss costs at one N, in ms and in MB. Half of its runs lie between low and high."""

    ms: np.ndarray
    low: np.ndarray
    high: np.ndarray
    megabytes: np.ndarray


class loss_costs(Panel):
    """What each loss costs at the batch that the reader drags to.

    Without tables five losses are measured at small sizes, in about a second.

    Args:
        seconds: {loss: {N: seconds of each run of forward and backward}}, as `costs.seconds` measures them.
        kept: {loss: {N: bytes kept for the backward pass}}, of the same losses and sizes.
        machine: what the seconds were measured on.

    Raises:
        ValueError: one table without the other, or tables of different losses or sizes, or of a single size.
    """

    size, row_height = (9, 4.8), 4.6
    mosaic, row_mosaic = "time memory", "bars"

    def __init__(
        self, seconds: "Runs | None" = None, kept: Table | None = None, machine: str = "", **initial: Any
    ):
        from setclr import losses
        from setclr_course import costs

        if seconds is None and kept is None:
            seconds, kept = quick_tables()
            machine = costs.this_machine()
        seconds, kept, self.machine = seconds or {}, kept or {}, machine
        self.sizes = sizes = same_sizes(seconds, kept)
        self.low, self.ms, self.high = (
            {name: {N: 1e3 * costs.middle(row[N])[part] for N in sizes} for name, row in seconds.items()}
            for part in range(3)
        )
        self.megabytes = {name: {N: 1e-6 * kept[name][N] for N in sizes} for name in seconds}
        self.forms = {name for name in seconds if name not in losses.BY_NAME}
        self.usual = "InfoNCE" if "InfoNCE" in seconds else next(iter(seconds))
        step = np.log10(sizes[-1] / sizes[0]) / round(4 * np.log2(sizes[-1] / sizes[0]))
        marks: dict[float, str] = {N: str(N) for N in sizes}
        self.knobs = {
            "images": log_slider("images N in a batch", sizes[-2], sizes[0], sizes[-1], step, marks),
            "loss": options("loss in the sentence", seconds),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Costs:
        tables = (self.ms, self.low, self.high, self.megabytes)
        return Costs(*(at(table, values["images"]) for table in tables))

    def draw(self, page: Page, values: dict, now: Costs) -> None:
        if page.row:
            return self.draw_bars(page, now)
        unit = "ms" + f" ({self.machine})" * bool(self.machine) + "; pale: half of the runs"
        title, times = self.compared(now.ms, "take", "long"), (self.ms, self.low, self.high)
        time = self.draw_curves(self.axes(page, "time", title, unit, *times), values, now.ms, *times)
        unit, title = "MB kept for the way back", self.compared(now.megabytes, "keep", "much")
        plot = self.axes(page, "memory", title, unit, self.megabytes)
        memory = self.draw_curves(plot, values, now.megabytes, self.megabytes)
        for k, name in enumerate(self.ms):
            said = f"{name} at N = {values['images']:.0f}: {in_words(now.ms[k])} ms (half of the runs: "
            said += f"{in_words(now.low[k])} to {in_words(now.high[k])}), {in_words(now.megabytes[k])} MB"
            page.link(said, *time[k], *memory[k])

    def axes(self, page: Page, name: str, title: str, unit: str, *tables: Table) -> Plot:
        """Both axes are logarithmic; they hold the tables, and at their ends a handle, names and numbers."""
        (low, high), first, last = limits(*tables), self.sizes[0], self.sizes[-1]
        x = first / 1.1, last * (last / first) ** 1.1
        y = low / (high / low) ** 0.06, high * (high / low) ** 0.03
        below = "images N in a batch" + "; dashed: beside a loss" * any(map(is_term, self.ms))
        ticks = {N: str(N) for N in self.sizes}
        return page.plot(name, x, y, title, below, unit, ticks, rungs(*y), log="x y", frame="left")

    def draw_curves(
        self, plot: Plot, values: dict, costs: np.ndarray, table: Table, *band: Table
    ) -> list[list[Mark | Piece]]:
        """A curve for each loss, its name and its cost at N beside it; the marks of each loss."""
        N, sizes, colours = values["images"], self.sizes, [colour_of(name) for name in table]
        bottom, top = plot.about["y"]
        for name, colour in zip(table if band else (), colours):
            low, high = (list(part[name].items()) for part in band)
            plot.area([low + high[::-1]], colour, 0.25)
        plot.line([plot.about["x"][0], sizes[-1]], [bottom, bottom], INK, 1)
        line = plot.line([N, N], [bottom, top], INK, 1.4, "dot")
        name, point = plot.about["name"], (N, bottom * (top / bottom) ** 0.04)
        line.handle(name, point, "images", along="x", label=f"the batch, in the {name}")
        names, curves = self.draw_names(plot, table, N, costs), []
        for (name, row), colour in zip(table.items(), colours):
            wide, dash = 4 if name == values["loss"] else 2, "dash" if is_term(name) else ""
            curves.append(plot.line(sizes, list(row.values()), colour, wide, dash))
            plot.dots(list(row.items()), WHITE if name in self.forms else colour, size=6, edge=colour)
        dots = plot.dots(np.stack([np.full(len(costs), N), costs], axis=1), colours, size=10)
        return [[curve, dots[k], *names[k]] for k, curve in enumerate(curves)]

    def draw_names(self, plot: Plot, table: Table, N: float, costs: np.ndarray) -> list[list[Piece]]:
        """The losses' names beside the ends of their curves, moved apart, and their costs at N."""
        (bottom, top), right, first, last = plot.about["y"], plot.about["x"][1], self.sizes[0], self.sizes[-1]
        ends = np.array([row[last] for row in table.values()])
        places = spread(np.log(ends / bottom) / np.log(top / bottom) / 0.92, 0.045)
        heights = bottom * (top / bottom) ** (0.92 * places)  # clear of the head
        lead, start = last * (last / first) ** 0.03, last * (last / first) ** 0.13
        for name, end, y in zip(table, ends, heights):
            plot.line([last, lead, start / 1.02], [end, y, y], colour_of(name), 1)
        names = plot.text([start] * len(table), heights, list(table), size="small", anchor="start")
        said = [in_words(cost) for cost in costs]
        numbers = plot.text([right] * len(table), heights, said, size="small", anchor="end")
        head = bottom * (top / bottom) ** 0.97
        plot.text(right, head, f"at {N:.0f}", size="small", anchor="end", bold=True)
        return [[names[k], numbers[k]] for k in range(len(table))]

    def compared(self, costs: np.ndarray, verb: str, adverb: str) -> str:
        """The dearest loss, or those that are equally dear, against the usual one."""
        now = {name: cost for name, cost in zip(self.ms, costs) if not is_term(name)}
        dearest = max(now, key=lambda name: now[name])
        equals = sum(cost > 0.995 * now[dearest] for cost in now.values())
        who = f"{dearest} {verb}s" if equals == 1 else f"{equals} losses {verb}"
        return f"{who} {in_words(now[dearest] / now[self.usual])} times as {adverb} as {self.usual}"

    def draw_bars(self, page: Page, now: Costs) -> None:
        """Time at one N, a bar for each loss, on the same logarithmic axis for all N."""
        (low, high), names, places = limits(self.ms), list(self.ms), np.arange(len(self.ms))
        bars = page.plot("bars", (low, high * (high / low) ** 0.3), (len(names) - 0.4, -0.6), "", "ms",
                         xticks=rungs(low, high), yticks=dict(enumerate(names)), log="x")  # fmt: skip
        bars.bars(places, now.ms, [colour_of(name) for name in names], 0.6, low, flat=True)
        bars.text(now.ms, places, [in_words(ms) for ms in now.ms], size="small", anchor="start", right=4)

    def say(self, values: dict, now: Costs) -> str:
        N, name, sizes, names = values["images"], values["loss"], self.sizes, list(self.ms)
        k, usual = names.index(name), names.index(self.usual)
        ratio = now.ms[k] / now.ms[usual]
        compared = f", {ratio:.2f} times {self.usual}," * (name != self.usual)
        return (
            f"At N = {N:.0f}, {name} takes {in_words(now.ms[k])} ms{compared} and keeps "
            f"{in_words(now.megabytes[k])} MB for the way back. From N = {sizes[-2]} to {sizes[-1]} the time "
            f"of {name} grows like N^{growth(self.ms[name]):.1f}, its memory like "
            f"N^{growth(self.megabytes[name]):.1f}."
        )


@cache
def quick_tables() -> "tuple[Runs, Table]":
    from setclr import losses
    from setclr_course import costs

    sizes = (16, 32, 64)
    chosen: Losses = {name: losses.BY_NAME[name]() for name in QUICK}
    kept: Table = {
        name: {N: costs.kept_bytes(loss, costs.points(N, 32)) for N in sizes} for name, loss in chosen.items()
    }
    return costs.seconds(chosen, sizes, 32, budget=0.02), kept
