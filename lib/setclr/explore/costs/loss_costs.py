"""Time and memory of every loss against the batch: lines over N, and what each costs at one N."""

from collections.abc import Callable
from functools import lru_cache

import ipywidgets as widgets
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import ConnectionPatch
from torch import Tensor

from setclr import losses
from setclr.explore.costs.tables import Table, at, growth, in_words
from setclr.explore.kit.controls import LABEL, log_slider
from setclr.explore.kit.panel import Drawing, Panel
from setclr.palette import BLUE, GREY, OCHRE, VERMILION
from setclr.reports import costs

QUICK = ("InfoNCE", "SparseCLR", "QARe", "GroCo", "MMCL")  # measured where no table is given


def loss_costs(
    seconds: Table | None = None, kept: Table | None = None, machine: str = "", **initial
) -> Panel:
    """What each loss costs, with a slider for the batch and a loss to look at.

    Without tables five losses are measured at small sizes, in about a second.

    Args:
        seconds: {loss: {N: seconds of forward and backward}}, as `costs.seconds` measures them.
        kept: {loss: {N: bytes kept for the backward pass}}, of the same losses and sizes.
        machine: what the seconds were measured on.

    Raises:
        ValueError: one table without the other, or tables of different losses or sizes, or of a single size.
    """
    if seconds is None and kept is None:
        seconds, kept = quick_tables()
        machine = costs.this_machine()
    seconds, kept = seconds or {}, kept or {}
    sizes = same_sizes(seconds, kept)
    ms = {name: {N: 1e3 * row[N] for N in sizes} for name, row in seconds.items()}
    megabytes = {name: {N: 1e-6 * kept[name][N] for N in sizes} for name in ms}
    low, high = sizes[0], sizes[-1]
    step = np.log10(high / low) / round(4 * np.log2(high / low))
    dropdown = widgets.Dropdown(options=list(seconds), description="loss looked at")
    dropdown.style.description_width = LABEL
    controls = {
        "images": log_slider("images N in a batch", high, low, high, step, {N: str(N) for N in sizes}),
        "loss": dropdown,
    }
    controls["images"].readout_format = ".0f"
    return Panel(
        lambda figure, compact: build(figure, compact, ms, megabytes, machine),
        controls,
        (9.5, 4.6),
        initial,
        4.2,
    )


def same_sizes(seconds: Table, kept: Table) -> list[int]:
    """The sizes of both tables, ascending."""
    found = {(name, *sorted(row)) for name, row in seconds.items()}
    sizes = {tuple(sorted(row)) for row in seconds.values()}
    if found != {(name, *sorted(row)) for name, row in kept.items()} or len(sizes) != 1:
        raise ValueError(
            "seconds and kept must have the same losses and the same sizes N, got "
            f"{sorted(seconds)} and {sorted(kept)}; costs.seconds and costs.kept_bytes measure them"
        )
    common = sizes.pop()
    if len(common) < 2:
        raise ValueError(f"seconds must hold two sizes N or more, got {common}")
    return list(common)


@lru_cache
def quick_tables() -> tuple[Table, Table]:
    sizes = (16, 32, 64)
    chosen: dict[str, Callable[[Tensor], Tensor]] = {name: losses.BY_NAME[name]() for name in QUICK}
    kept: Table = {
        name: {N: costs.kept_bytes(loss, costs.points(N, 32)) for N in sizes} for name, loss in chosen.items()
    }
    return costs.seconds(chosen, sizes, 32, budget=0.02), kept


def build(figure, compact: bool, ms: Table, megabytes: Table, machine: str) -> Drawing:
    """Lines, names, stems of time, stems of memory; or, compact, names and stems of time."""
    sizes = list(next(iter(ms.values())))
    names = sorted(ms, key=lambda name: ms[name][sizes[-1]])
    ms, megabytes = ({name: table[name] for name in names} for table in (ms, megabytes))
    reference = "InfoNCE" if "InfoNCE" in names else names[0]
    if compact:
        stems = Stems(figure.subplots(), ms, "ms", BLUE, named=True)
        parts: list[Stems | Lines] = [stems]
    else:
        left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.2, 0.5])
        stems = Stems(middle, ms, "ms", BLUE, named=True)
        lines = Lines(left, ms, "milliseconds" + f" ({machine})" * bool(machine))
        parts = [stems, Stems(right, megabytes, "MB kept", OCHRE), lines]
        for y, name in enumerate(names):
            link = ConnectionPatch(
                (sizes[-1], ms[name][sizes[-1]]), (stems.edge, y), "data", "data",
                axesA=left, axesB=middle, color=GREY, linewidth=0.5,
            )  # fmt: skip
            link.set_in_layout(False)
            figure.add_artist(link)

    def update(values: dict) -> str:
        N, name = values["images"], values["loss"]
        for part in parts:
            part.update(N, name)
        k, took, memory = names.index(name), at(ms, N), at(megabytes, N)
        ratio = took[k] / took[names.index(reference)]
        dearest = f"; {names[-1]} takes {in_words(took[-1])} ms" * (name != names[-1])
        return (
            f"At N = {N:.0f}, {name} takes {in_words(took[k])} ms, {ratio:.2f} times {reference}, and keeps "
            f"{in_words(memory[k])} MB for the way back{dearest}. From N = {sizes[-2]} to {sizes[-1]} "
            f"the time of {name} grows like N^{growth(ms[name]):.1f}, "
            f"its memory like N^{growth(megabytes[name]):.1f}."
        )

    return Drawing([artist for part in parts for artist in part.artists], update)


class Lines:
    """Time over N, every loss a line; that of the chosen loss is thick."""

    def __init__(self, axis, table: Table, title: str):
        self.table = table
        sizes = list(next(iter(table.values())))
        axis.set(xscale="log", yscale="log", xlabel="images N in a batch", title=title)
        axis.set_xticks(sizes, sizes, minor=False)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.minorticks_off()
        axis.margins(x=0.04)
        for row in table.values():
            axis.plot(sizes, row.values(), color=GREY, linewidth=1)
        self.line = axis.plot(sizes, sizes, "o-", color=VERMILION, markersize=4)[0]
        axis.set_ylim(*limits(table))
        self.now = axis.axvline(sizes[-1], color=BLUE, linewidth=1, linestyle="--")
        self.artists = [self.now, self.line]

    def update(self, N: float, name: str) -> None:
        self.line.set_ydata(list(self.table[name].values()))
        self.now.set_xdata([N, N])


class Stems:
    """Cost at one N on a logarithmic axis, a row for each loss, the dearest at the largest N on top."""

    def __init__(self, axis, table: Table, unit: str, colour: str, named: bool = False):
        self.table, self.unit, self.colour = table, unit, colour
        self.low, high = limits(table)
        decades = np.log10(high / self.low)
        self.edge = self.low / 10 ** (0.62 * decades)  # where the names begin
        axis.set(xscale="log", ylim=(-0.8, len(table) - 0.2), yticks=[])
        axis.set_xlim(self.edge if named else self.low, high * 10 ** ((0.2 if named else 0.02) * decades))
        ticks = 10.0 ** np.arange(np.ceil(np.log10(self.low)), np.log10(high))
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
        axis.minorticks_off()
        axis.spines["left"].set_visible(False)
        axis.spines["bottom"].set_bounds(self.low, axis.get_xlim()[1])
        self.title = axis.set_title("")
        self.stems = axis.add_collection(LineCollection([], linewidths=2))
        self.dots = axis.scatter([], [], zorder=3)
        self.values = []
        if named:
            for y, name in enumerate(table):
                axis.text(self.edge, y, f" {name}", va="center", fontsize=7.5)
            self.values = [axis.text(1, y, "", va="center", fontsize=7) for y in range(len(table))]
        self.room = 10 ** (0.03 * decades)
        self.artists = [self.stems, self.dots, self.title, *self.values]

    def update(self, N: float, name: str) -> None:
        now, rows = at(self.table, N), np.arange(len(self.table))
        colours = [VERMILION if other == name else self.colour for other in self.table]
        self.stems.set_segments([[(self.low, y), (x, y)] for x, y in zip(now, rows)])
        self.stems.set_color(colours)
        self.dots.set_offsets(np.stack([now, rows], axis=1))
        self.dots.set_facecolor(colours)
        self.dots.set_sizes([55 if other == name else 18 for other in self.table])
        self.title.set_text(f"{self.unit} at N = {N:.0f}")
        for text, x, other in zip(self.values, now, self.table):
            text.set(text=in_words(x), x=x * self.room ** (2 if other == name else 1))


def limits(table: Table) -> tuple[float, float]:
    """Ends of an axis: a little more than the table's range."""
    values = [value for row in table.values() for value in row.values()]
    return min(values) / 1.3, max(values) * 1.3
