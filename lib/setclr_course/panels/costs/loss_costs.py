"""Time and memory of every loss against the batch, with a line to drag along the curves."""

from functools import lru_cache

import ipywidgets as widgets
import numpy as np

from setclr import losses
from setclr_course import costs
from setclr_course.kit.palette import INK
from setclr_course.panels.costs.tables import (
    Table,
    at,
    colour_of,
    growth,
    in_words,
    is_term,
    label_sizes,
    limits,
    spread,
)
from setclr_course.pixels.controls import LABEL, log_slider
from setclr_course.pixels.handles import Handle, Link, Mark, dot, line
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

QUICK = ("InfoNCE", "SparseCLR", "QARe", "GroCo", "MMCL")  # measured where no table is given


def loss_costs(
    seconds: costs.Runs | None = None, kept: Table | None = None, machine: str = "", **initial
) -> Panel:
    """What each loss costs at the batch that the reader drags to.

    Without tables five losses are measured at small sizes, in about a second.

    Args:
        seconds: {loss: {N: seconds of each run of forward and backward}}, as `costs.seconds` measures them.
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
    runs = {
        name: {N: costs.middle([1e3 * s for s in row[N]]) for N in sizes} for name, row in seconds.items()
    }
    megabytes = {name: {N: 1e-6 * kept[name][N] for N in sizes} for name in seconds}
    low, high = sizes[0], sizes[-1]
    step = np.log10(high / low) / round(4 * np.log2(high / low))
    dropdown = widgets.Dropdown(options=list(seconds), description="loss in the sentence")
    dropdown.style.description_width = LABEL
    controls = {
        "images": log_slider("images N in a batch", sizes[-2], low, high, step, {N: str(N) for N in sizes}),
        "loss": dropdown,
    }
    controls["images"].readout_format = ".0f"
    return Panel(
        lambda figure, compact: build(figure, compact, runs, megabytes, machine),
        controls,
        (9, 4.8),
        initial,
        4.6,
    )


def same_sizes(seconds: costs.Runs, kept: Table) -> list[int]:
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
def quick_tables() -> tuple[costs.Runs, Table]:
    sizes = (16, 32, 64)
    chosen: costs.Losses = {name: losses.BY_NAME[name]() for name in QUICK}
    kept: Table = {
        name: {N: costs.kept_bytes(loss, costs.points(N, 32)) for N in sizes} for name, loss in chosen.items()
    }
    return costs.seconds(chosen, sizes, 32, budget=0.02), kept


def build(figure, compact: bool, runs: dict, megabytes: Table, machine: str) -> Drawing:
    """Time over N, and beside it what is kept for the way back; or, compact, times at one N."""
    ms, low, high = (
        {name: {N: getattr(found, part) for N, found in row.items()} for name, row in runs.items()}
        for part in ("median", "low", "high")
    )
    if compact:
        bars = draw_bars(figure.subplots(), ms)
        return Drawing(bars.artists, lambda values: bars.move(values) or sentence(values, ms, megabytes))
    left, right = figure.subplots(1, 2)
    left.set_ylabel("ms" + f" ({machine})" * bool(machine) + "; pale: half of the runs")
    right.set_ylabel("MB kept for the way back")
    parts = [Curves(left, ms, (low, high)), Curves(right, megabytes)]
    figure.supxlabel(
        "images N in a batch" + "; dashed: a term beside a loss" * any(map(is_term, ms)), fontsize=10
    )
    now: dict = {}

    def update(values: dict) -> str:
        for part, words in zip(parts, (("take", "long"), ("keep", "much"))):
            part.update(values)
            part.title.set_text(part.compared(values["images"], *words))
        now.update(values)
        return sentence(values, ms, megabytes)

    handles = {
        words: part.handle(f"the batch, in the {words}") for words, part in zip(("time", "memory"), parts)
    }
    return Drawing(
        [artist for part in parts for artist in part.artists],
        update,
        handles,
        lambda: links(parts, now["images"], (low, high)),
    )


def links(parts: list["Curves"], N: float, runs: tuple[Table, Table]) -> list[Link]:
    """A loss: both of its curves, both of its names."""
    (time, memory), (low, high) = (at(part.table, N) for part in parts), (at(table, N) for table in runs)
    return [
        Link(
            [mark for part in parts for mark in part.marks[name]],
            [dot(part.axis, (N, values[k])) for part, values in zip(parts, (time, memory))],
            f"{name} at N = {N:.0f}: {in_words(time[k])} ms (half of the runs: {in_words(low[k])} to "
            f"{in_words(high[k])}), {in_words(memory[k])} MB",
        )
        for k, name in enumerate(parts[0].table)
    ]


def sentence(values: dict, ms: Table, megabytes: Table) -> str:
    N, name = values["images"], values["loss"]
    names, sizes = list(ms), list(ms[name])
    took, memory = at(ms, N)[names.index(name)], at(megabytes, N)[names.index(name)]
    reference = reference_of(ms)
    ratio = took / at(ms, N)[names.index(reference)]
    compared = f", {ratio:.2f} times {reference}," * (name != reference)
    return (
        f"At N = {N:.0f}, {name} takes {in_words(took)} ms{compared} and keeps "
        f"{in_words(memory)} MB for the way back. From N = {sizes[-2]} to {sizes[-1]} the time of {name} "
        f"grows like N^{growth(ms[name]):.1f}, its memory like N^{growth(megabytes[name]):.1f}."
    )


def reference_of(table: Table) -> str:
    return "InfoNCE" if "InfoNCE" in table else next(iter(table))


class Curves:
    """A cost over N, both axes logarithmic: a curve for each loss with its name and its value at one N."""

    def __init__(self, axis, table: Table, runs: tuple[Table, Table] | None = None):
        self.axis, self.table = axis, table
        sizes = self.sizes = list(next(iter(table.values())))
        low, high = limits(table)
        self.bottom, top = low / (high / low) ** 0.06, high * (high / low) ** 0.03  # room for handle, names
        decades = np.log10(sizes[-1] / sizes[0])
        self.right = [
            sizes[-1] * 10 ** (part * decades) for part in (0.03, 0.11, 0.9)
        ]  # of a name: lead, ends
        axis.set(xscale="log", yscale="log", ylim=(self.bottom, top), xlim=(sizes[0] / 1.1, self.right[2]))
        axis.yaxis.set_major_formatter("{x:g}")
        label_sizes(axis, sizes)
        axis.set_xlabel("")
        axis.spines["bottom"].set_bounds(axis.get_xlim()[0], sizes[-1])
        for name, row in table.items():
            own = name in losses.BY_NAME  # else it is a form of a loss: hollow dots
            style = {"color": colour_of(name), "linestyle": "--" if is_term(name) else "-", "linewidth": 1.5}
            fill = colour_of(name) if own else "white"
            axis.plot(sizes, list(row.values()), "o", markersize=4, markerfacecolor=fill, **style)
            if runs:
                axis.fill_between(sizes, *(list(part[name].values()) for part in runs), color=colour_of(name),
                                  alpha=0.25, linewidth=0)  # fmt: skip
        self.names(top)
        self.title = axis.set_title("", fontsize=9)
        self.now = axis.axvline(sizes[-1], color=INK, linewidth=1, linestyle=":")
        self.dots = axis.scatter([], [], s=40, zorder=4, edgecolors="white", facecolors=[])
        self.thick = axis.plot(sizes, sizes, linewidth=3)[0]
        self.artists = [self.thick, self.now, self.dots, self.title, self.head, *self.values]

    def names(self, top: float) -> None:
        """The losses' names beside the ends of their curves, moved apart, and room for their values."""
        span = np.log(top / self.bottom)
        ends = np.array([np.log(row[self.sizes[-1]] / self.bottom) / span for row in self.table.values()])
        heights = self.bottom * np.exp(0.92 * spread(ends / 0.92, 0.054) * span)  # clear of the head
        lead, start, end = self.right
        self.head = self.axis.text(end, self.bottom * np.exp(0.975 * span), "", va="center", ha="right",
                                   fontsize=8, weight="bold")  # fmt: skip
        self.values, self.marks = [], {}
        for (name, row), y in zip(self.table.items(), heights):
            last = row[self.sizes[-1]]
            self.axis.plot(
                [self.sizes[-1], lead, start / 1.01], [last, y, y], color=colour_of(name), linewidth=0.7
            )
            self.axis.text(start, y, f" {name}", va="center", fontsize=8)
            self.values.append(self.axis.text(end, y, "", va="center", ha="right", fontsize=8))
            points = list(row.items())
            curve = [line(self.axis, *ends) for ends in zip(points, points[1:])]
            self.marks[name] = [*curve, Mark(self.axis, "line", [(start, y), (end, y)])]

    def update(self, values: dict) -> None:
        N, now = values["images"], at(self.table, values["images"])
        self.now.set_xdata([N, N])
        self.head.set_text(f"at {N:.0f}")
        self.dots.set_offsets(np.stack([np.full(len(now), N), now], axis=1))
        self.dots.set_facecolor([colour_of(name) for name in self.table])
        self.thick.set(ydata=list(self.table[values["loss"]].values()), color=colour_of(values["loss"]))
        for text, value in zip(self.values, now):
            text.set_text(in_words(value))

    def compared(self, N: float, verb: str, adverb: str) -> str:
        """The dearest loss, or those that are equally dear, against the usual one."""
        now = {name: value for name, value in zip(self.table, at(self.table, N)) if not is_term(name)}
        usual, dearest = reference_of(self.table), max(now, key=lambda name: now[name])
        equals = sum(value > 0.995 * now[dearest] for value in now.values())
        who = f"{dearest} {verb}s" if equals == 1 else f"{equals} losses {verb}"
        return f"N = {N:.0f}: {who} {in_words(now[dearest] / now[usual])} times as {adverb} as {usual}"

    def handle(self, label: str) -> Handle:
        return Handle(
            self.axis, ("images",), lambda values: (values["images"], self.bottom * 1.2), "x", label=label
        )


def draw_bars(axis, ms: Table) -> Part:
    """Time at one N, a bar for each loss, on the same logarithmic axis for all N."""
    (low, high), names = limits(ms), list(ms)[::-1]
    axis.set(xscale="log", xlim=(low, high * (high / low) ** 0.2), xlabel="ms", ylim=(-0.6, len(ms) - 0.4))
    axis.set_yticks(range(len(ms)), names, fontsize=8)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.tick_params(axis="y", length=0)
    bars = axis.barh(names, 1, color=[colour_of(name) for name in names], height=0.6)
    texts = [axis.text(low, y, "", va="center", fontsize=8) for y in range(len(ms))]

    def move(values: dict) -> None:
        for bar, text, value in zip(bars, texts, at(ms, values["images"])[::-1]):
            bar.set_width(value)
            text.set(x=value * 1.1, text=in_words(value))

    return Part([*bars, *texts], move)
