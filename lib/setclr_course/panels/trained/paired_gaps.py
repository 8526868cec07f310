"""The end of a search: final runs seed by seed, and the gaps from one loss to all others with intervals."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from setclr_course.kit.palette import BLACK, GREEN, GREY, VERMILION
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part
from setclr_course.pixels.seeds import seed_rows
from setclr_course.search.comparing import pairs

LEVEL = 0.05


class Gap(NamedTuple):
    """How far a loss is above another, in points, by runs paired by seed."""

    mean: float
    low: float  # of the interval; those of all pairs together hold with probability 95 %
    high: float
    p: float  # after Holm, for all pairs


def paired_gaps(runs: pd.DataFrame | None = None, **initial) -> Panel:
    """Every loss's runs on the left, and on the right how far each is above the chosen one, paired by seed:
    the mean gap and its interval, filled where Holm's test of *all* pairs keeps it (`comparing.pairs`).

    Args:
        runs: of `experiments.comparing.read`; made-up ones by default.

    Raises:
        ValueError: there are fewer than two losses with two seeds in common that learnt.
    """
    runs = made_up() if runs is None else runs
    names = list(runs[~runs["collapsed"]].groupby("name")["knn"].mean().sort_values(ascending=False).index)
    names += [name for name in dict.fromkeys(runs["name"]) if name not in names]
    table = pairs(runs)
    if table.empty:
        raise ValueError("runs must hold two losses with two seeds in common, got none that learnt in both")
    tables = {word: table[table["metric"] == metric] for word, metric in MEASURES.items()}
    controls = {
        "loss": slider("compared with", len(names), 1, len(names), 1, {1: "first", len(names): "last"}),
        "measure": options("features measured by", MEASURES),
    }
    return Panel(partial(build, runs=runs, names=names, tables=tables), controls, (9, 4), initial, 3.8, 2)


def made_up() -> pd.DataFrame:
    """Final runs of losses that nobody has trained."""
    noise, rows = np.random.default_rng(6), []
    for name, mean in {"p": 58.0, "q": 56.5, "r": 56.2, "s": 53.0}.items():
        for seed in range(5):
            knn, linear = mean + noise.normal(0, 0.5), mean + 2 + noise.normal(0, 0.5)
            rows.append(
                {"name": f"loss {name}", "seed": seed, "knn": knn, "linear": linear, "collapsed": False}
            )
    return pd.DataFrame(rows)


def gaps_to(base: str, table: pd.DataFrame) -> dict[str, Gap]:
    """Every other name's gap to `base`, of one metric of `comparing.pairs`."""
    found = {}
    for pair in table.itertuples():
        if base == pair.b:
            found[pair.a] = Gap(pair.difference, pair.low, pair.high, pair.holm)
        elif base == pair.a:
            found[pair.b] = Gap(-pair.difference, -pair.high, -pair.low, pair.holm)
    return found


def build(figure, compact: bool, runs: pd.DataFrame, names: list[str], tables: Mapping) -> Drawing:
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1]) if not compact else (None, figure.subplots())
    parts: list[Runs | Intervals] = [Intervals(right, names, tables)]
    if left is not None:
        parts.append(Runs(left, names, runs))
        right.set_yticks([])
    first = right if left is None else left
    first.set_yticks(range(len(names)), names, fontsize=9)
    now: dict = {}

    def update(values: dict) -> str:
        base, column = names[values["loss"] - 1], MEASURES[values["measure"]]
        now.update(base=base, gaps=gaps_to(base, tables[values["measure"]]), found=accuracies(runs, column))
        for part in parts:
            part.show(values["loss"] - 1, now)
        return sentence(values, now, len(tables[values["measure"]]))

    def at(values: dict) -> tuple[float, float]:
        numbers = accuracies(runs, MEASURES[values["measure"]])[names[values["loss"] - 1]]
        x = 0.0 if left is None else numbers.mean() if len(numbers) else np.mean(left.get_xlim())
        return float(x), values["loss"] - 1

    handle = Handle(first, ("loss",), at, "y", lambda x, y: (y + 1,), "the loss")
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, {"loss": handle}, lambda: links(left, right, names, now))


def accuracies(runs: pd.DataFrame, column: str) -> dict[str, np.ndarray]:
    """By name, those of the runs that learnt, by seed."""
    learnt = runs[~runs["collapsed"]].sort_values("seed")
    return {name: learnt.loc[learnt["name"] == name, column].to_numpy(float) for name in set(runs["name"])}


class Runs:
    """Rows of dots, one for each seed, in the losses' colours; a line through all at the chosen mean."""

    def __init__(self, axis: Axes, names: list[str], runs: pd.DataFrame):
        learnt = runs.loc[~runs["collapsed"], list(MEASURES.values())].to_numpy()
        room = 0.08 * np.ptp(learnt)
        axis.set(xlim=(learnt.min() - room, learnt.max() + room), ylim=(len(names) - 0.5, -0.5))
        axis.set_xlabel("right on test images, %", fontsize=9)
        self.line = axis.plot([], [], color=GREEN, linewidth=1.5, linestyle="--")[0]
        self.grip = axis.plot([], [], "o", color=GREEN, markersize=11, fillstyle="none", markeredgewidth=2)[0]
        self.rows: Part = seed_rows(axis, [colour_of(name) for name in names])
        self.names, self.artists = names, [self.line, *self.rows.artists, self.grip]

    def show(self, base: int, now: dict) -> None:
        found = [now["found"][name] for name in self.names]
        self.rows.move(found)
        mean = [found[base].mean()] if len(found[base]) else []
        self.line.set_data(mean * 2, [-0.5, len(found) - 0.5][: 2 * len(mean)])
        self.grip.set_data(mean, [base] * len(mean))


class Intervals:
    """The gaps to the chosen loss: filled, with a black bar, where Holm's test keeps it, else hollow."""

    def __init__(self, axis: Axes, names: list[str], tables: Mapping[str, pd.DataFrame]):
        reach = 1.08 * max(table[["low", "high"]].abs().to_numpy().max() for table in tables.values())
        axis.set(xlim=(-reach, reach), ylim=(len(names) - 0.5, -0.5))
        axis.set_xlabel("points above the chosen loss", fontsize=9)
        axis.axvline(0, color=GREEN, linewidth=1.5, linestyle="--")
        self.bars = LineCollection([], linewidths=2.5)
        axis.add_collection(self.bars)
        self.kept = axis.plot([], [], "o", color=VERMILION, markersize=8)[0]
        self.open = axis.plot([], [], "o", color=GREY, fillstyle="none", markersize=7)[0]
        self.chosen = axis.plot([], [], "o", color=GREEN, fillstyle="none", markersize=11, markeredgewidth=2)[
            0
        ]
        self.title = axis.set_title("", fontsize=10)
        self.names, self.artists = names, [self.bars, self.kept, self.open, self.chosen, self.title]

    def show(self, base: int, now: dict) -> None:
        at = {name: y for y, name in enumerate(self.names)}
        gaps = now["gaps"]
        self.bars.set_segments([[(gap.low, at[name]), (gap.high, at[name])] for name, gap in gaps.items()])
        self.bars.set_color([BLACK if gap.p <= LEVEL else "#c4c4c4" for gap in gaps.values()])
        for dots, wanted in ((self.kept, True), (self.open, False)):
            shown = {name: gap.mean for name, gap in gaps.items() if (gap.p <= LEVEL) == wanted}
            dots.set_data(list(shown.values()), [at[name] for name in shown])
        self.chosen.set_data([0], [base])
        self.title.set_text(f"filled: told apart from {now['base']}")


def sentence(values: dict, now: dict, questions: int) -> str:
    base, gaps, numbers = now["base"], now["gaps"], now["found"][now["base"]]
    if not len(numbers):
        return f"{base}: every run collapsed, so it has no gaps."
    kept = [f"{name} {gap.mean:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})" for name, gap in gaps.items()
            if gap.p <= LEVEL]  # fmt: skip
    said = f": {', '.join(kept)}" if kept else ""
    return (
        f"{base}: {numbers.mean():.1f} % by {values['measure']}, the mean of {len(numbers)} seeds. Of its "
        f"{len(gaps)} gaps Holm's test of all {questions} pairs keeps {len(kept)}{said}."
    )


def links(left: Axes | None, right: Axes, names: list[str], now: dict) -> list[Link]:
    """Every loss with its mean and its gap; its runs and its gap light up together."""
    found = []
    for y, name in enumerate(names):
        numbers, marks = now["found"][name], []
        said = f"{name}: every run collapsed"
        if len(numbers):
            said = f"{name}: {numbers.mean():.1f} % over {len(numbers)} seeds"
            marks += [dot(left, (numbers.mean(), y))] if left is not None else []
        if name in now["gaps"]:
            gap = now["gaps"][name]
            marks.append(dot(right, (gap.mean, y)))
            said += f"; {gap.mean:+.1f} ({gap.low:+.1f} to {gap.high:+.1f}) from {now['base']}, "
            said += f"p after Holm {gap.p:.2g}"
        found += [Link(marks, text=said)] if marks else []
    return found
