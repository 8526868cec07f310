"""Time and memory of every loss against the batch, with a line to drag along the curves."""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.palette import INK
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Piece
from setclr_course.panels.costs import cost_pictures
from setclr_course.panels.costs.cost_pictures import Table, colour_of, in_words, quartiles

if TYPE_CHECKING:
    from setclr_course.costs import Losses, Runs

QUICK = ("InfoNCE", "SparseCLR", "QARe", "GroCo", "MMCL")  # measured where no table is given


class Costs(NamedTuple):
    """What each loss costs at one N."""

    ms: np.ndarray
    megabytes: np.ndarray


class loss_costs(Panel):
    """What each loss costs at the batch that the reader drags to, compared with the first.

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
        from setclr_course import costs

        if seconds is None and kept is None:
            (seconds, kept), machine = quick_tables(), costs.this_machine()
        seconds, kept, self.machine = seconds or {}, kept or {}, machine
        measured, counted = ({name: list(row) for name, row in table.items()} for table in (seconds, kept))
        sizes = next(iter(measured.values()), [])
        if measured != counted or any(row != sizes for row in measured.values()) or len(sizes) < 2:
            raise ValueError(
                "seconds and kept must have the same losses and the same sizes N, two or more, got "
                f"{measured} and {counted}; costs.seconds and costs.kept_bytes measure them"
            )
        self.runs, self.ms, self.megabytes = {}, {}, {}
        for name, row in seconds.items():
            self.runs[name] = {N: 1e3 * quartiles(row[N]) for N in sizes}
            self.ms[name] = {N: found[1] for N, found in self.runs[name].items()}
            self.megabytes[name] = {N: 1e-6 * kept[name][N] for N in sizes}
        first, last = sizes[0], sizes[-1]
        marks: dict[float, str] = {N: str(N) for N in sizes}
        step = np.log10(last / first) / round(4 * np.log2(last / first))
        self.knobs = {
            "images": log_slider("images N in a batch", sizes[-2], first, last, step, marks),
            "loss": options("loss in the sentence", seconds),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Costs:
        N = values["images"]
        return Costs(cost_pictures.at(self.ms, N), cost_pictures.at(self.megabytes, N))

    def draw(self, page: Page, values: dict, now: Costs) -> None:
        if page.row:
            return self.draw_bars(page, now.ms)
        unit = "ms" + f" ({self.machine})" * bool(self.machine) + "; pale: half of the runs"
        time = self.draw_half(page, "time", unit, self.runs, now.ms, values)
        unit = "MB kept for the way back"
        memory = self.draw_half(page, "memory", unit, self.megabytes, now.megabytes, values)
        for k, name in enumerate(self.ms):
            said = f"{in_words(now.ms[k])} ms, {in_words(now.megabytes[k])} MB"
            page.link(f"{name} at N = {values['images']:.0f}: {said}", *time[k], *memory[k])

    def draw_half(
        self, page: Page, half: str, unit: str, table: Table, costs: np.ndarray, values: dict
    ) -> list[list[Mark | Piece]]:
        """The lines of a table, and beside each the loss and its cost at N; the marks of each loss."""
        N, names = values["images"], list(table)
        k = names.index(values["loss"]) or int(costs.argmax())  # beside itself stands the dearest
        title = f"{half}: {names[k]} is {in_words(costs[k] / costs[0])} times {names[0]}"
        plot = cost_pictures.lines_plot(page, half, title, unit, table, room=0.9)
        words = [f"{name} {in_words(cost)}" for name, cost in zip(names, costs)]
        drawn = cost_pictures.draw_lines(plot, table, words, values["loss"])
        plot.note(f"at {N:.0f}", "top right", size="small", bold=True)
        bottom, top = plot.about["y"]
        grip = N, bottom * (top / bottom) ** 0.04
        line = plot.line([N, N], [bottom, top], INK, 1.4, "dot")
        line.handle(half, grip, "images", along="x", label=f"the batch, in the {half}")
        dots = plot.dots([(N, cost) for cost in costs], [colour_of(name) for name in names], size=10)
        return [[*marks, dots[k]] for k, marks in enumerate(drawn)]

    def draw_bars(self, page: Page, ms: np.ndarray) -> None:
        """Time at one N, a bar for each loss, on the same logarithmic axis for all N."""
        every, places = cost_pictures.middles(self.ms), np.arange(len(ms))
        low, high = every.min() / 1.3, every.max()
        x, y = (low, high * (high / low) ** 0.3), (len(ms) - 0.4, -0.6)
        plot = page.plot("bars", x, y, xlabel="ms", yticks=dict(enumerate(self.ms)), log="x")
        plot.bars(places, ms, [colour_of(name) for name in self.ms], 0.6, low, flat=True)
        plot.text(ms, places, [in_words(cost) for cost in ms], size="small", anchor="start", right=4)

    def say(self, values: dict, now: Costs) -> str:
        name, names = values["loss"], list(self.ms)
        k, sizes = names.index(name), list(self.ms[name])
        compared = f", {now.ms[k] / now.ms[0]:.2f} times {names[0]}," * (k > 0)
        return (
            f"At N = {values['images']:.0f}, {name} takes {in_words(now.ms[k])} ms{compared} and keeps "
            f"{in_words(now.megabytes[k])} MB for the way back. From N = {sizes[-2]} to {sizes[-1]} the time "
            f"of {name} grows like N^{cost_pictures.growth(self.ms[name]):.1f}, its memory like "
            f"N^{cost_pictures.growth(self.megabytes[name]):.1f}."
        )


@cache
def quick_tables() -> "tuple[Runs, Table]":
    from setclr import losses
    from setclr_course import costs

    sizes = (16, 32, 64)
    chosen: Losses = {name: losses.BY_NAME[name]() for name in QUICK}
    points = {N: costs.points(N, 32) for N in sizes}
    kept = {name: {N: costs.kept_bytes(loss, z) for N, z in points.items()} for name, loss in chosen.items()}
    return costs.seconds(chosen, sizes, 32, budget=0.02), kept
