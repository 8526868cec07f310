"""A search's trials: what the learning rate and a loss's own knob are worth, on real training."""

from collections.abc import Mapping
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from setclr_course.kit.palette import BLACK, VERMILION
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, cell, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, cell_outlines, cells, frames, numbers, write

Trials = Mapping[str, pd.DataFrame]  # of `experiments.searches.tried`: by loss, a row for each run


def knob_curves(trials: Trials | None = None, **initial) -> Panel:
    """Accuracies on validation images over the learning rate and the knob of each loss: a map of all
    settings, and the curve along the knob at the chosen rate, with bars where several seeds are recorded.

    Args:
        trials: of `experiments.searches.tried`; made-up ones by default. Each loss has the same number of
            rates and of knob values, and a run with seed 0 at all of them.
    """
    trials = made_up() if trials is None else trials
    rates, values = axes_of(next(iter(trials.values())))
    controls = {
        "loss": options("loss", trials),
        "knob": slider("the loss's knob", 2, 1, len(values), 1, {1: "least", len(values): "most"}),
        "rate": slider("learning rate", len(rates), 1, len(rates), 1,
                       {i: f"{rate:g}" for i, rate in enumerate(rates, 1)}),
        "measure": options("features measured by", MEASURES),
    }  # fmt: skip
    return Panel(partial(build, trials=trials), controls, (9, 4.1), initial, 3.6, 3)


def made_up() -> dict[str, pd.DataFrame]:
    """Trials of the same kind that nobody has made: two losses, best in the middle and towards one end."""
    noise, found = np.random.default_rng(4), {}
    knobs = {
        "infonce": ("temperature", (0.05, 0.1, 0.2, 0.5, 1.0)),
        "groco": ("beta", (0.0625, 0.25, 1.0, 4.0, 16.0)),
    }
    for (name, (knob, values)), best in zip(knobs.items(), ((1, 1), (2, 2))):
        rows = []
        for (i, lr), (j, value) in product(enumerate((3e-4, 1e-3, 3e-3, 1e-2)), enumerate(values)):
            for seed in range(3 if i == best[0] else 1):
                knn = 52 - 4 * (i - best[0]) ** 2 - 3 * (j - best[1]) ** 2 + noise.normal(0, 0.7)
                rows.append({"seed": seed, "lr": lr, "hyperparameter": knob, "value": value, "knn": knn,
                             "linear": knn + 2, "collapsed": knn < 25})  # fmt: skip
        found[name] = pd.DataFrame(rows)
    return found


def axes_of(runs: pd.DataFrame) -> tuple[list[float], list[float]]:
    """The rates and the values of the knob, each from the smallest."""
    return sorted(runs["lr"].unique()), sorted(runs["value"].unique())


def seeds_of(runs: pd.DataFrame, rate: float, value: float, column: str) -> np.ndarray:
    """The accuracies of that setting, (seeds,), NaN where a run diverged."""
    return runs.loc[(runs["lr"] == rate) & (runs["value"] == value), column].to_numpy(float)


def first_seed(runs: pd.DataFrame, column: str) -> np.ndarray:
    """(rates, values): the trials among which the search chose."""
    trials = runs[runs["seed"] == 0]
    return trials.pivot(index="lr", columns="value", values=column).to_numpy(float)


def chosen(runs: pd.DataFrame) -> tuple[int, int]:
    """The rate and the value, as places, whose trial has the best kNN: what the search goes on with."""
    knn = first_seed(runs, "knn")
    rate, value = np.unravel_index(np.nanargmax(knn), knn.shape)
    return int(rate), int(value)


def build(figure, compact: bool, trials: Trials) -> Drawing:
    rates, knob_values = axes_of(next(iter(trials.values())))
    span = np.concatenate([runs[list(MEASURES.values())].to_numpy(float).ravel() for runs in trials.values()])
    low, high = np.nanmin(span), np.nanmax(span)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.1]) if not compact else (None, figure.subplots())
    curve = draw_curve(right, len(rates), len(knob_values), (low, high), compact)
    parts = [curve]
    if left is not None:
        parts.insert(0, draw_map(left, len(rates), len(knob_values), (low, high)))
        left.set_yticks(range(len(rates)), [f"{rate:g}" for rate in reversed(rates)])
        left.set_ylabel("learning rate")
    now: dict = {}

    def update(values: dict) -> str:
        runs, column = trials[values["loss"]], MEASURES[values["measure"]]
        now.update(runs=runs, column=column, rate=values["rate"] - 1)
        for part in parts:
            part.move(runs, column, values["rate"] - 1, values["knob"] - 1, values["loss"])
        return sentence(values, runs, column)

    def row(values: dict) -> tuple[float, float]:
        return values["knob"] - 1, len(rates) - values["rate"]

    def height(values: dict) -> tuple[float, float]:
        runs, column = trials[values["loss"]], MEASURES[values["measure"]]
        return values["knob"] - 1, mean_at(runs, column, values["rate"] - 1, values["knob"] - 1, low)

    handles = {"knob": Handle(right, ("knob",), height, "x", lambda x, y: (x + 1,), "the knob")}
    if left is not None:
        to = lambda x, y: (x + 1, len(rates) - y)  # noqa: E731
        setting = Handle(left, ("knob", "rate"), row, "plane", to, "the setting")
        handles = {"setting": setting} | handles
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(left, right, now, low))


def mean_at(runs: pd.DataFrame, column: str, rate: int, value: int, nothing: float) -> float:
    """The mean over the seeds of the setting, or `nothing` where all diverged."""
    rates, values = axes_of(runs)
    kept = seeds_of(runs, rates[rate], values[value], column)
    kept = kept[~np.isnan(kept)]
    return float(kept.mean()) if len(kept) else nothing


def draw_map(axis: Axes, rates: int, values: int, span: tuple[float, float]) -> Part:
    """All settings with seed 0: the chosen one ringed, the one that is looked at framed, × for collapsed."""
    mesh = cells(axis, rates, values, span[1], span[0])
    axis.set_aspect("auto")
    texts = numbers(axis, rates, values, 9)
    ring = axis.plot([], [], "o", color=VERMILION, fillstyle="none", markersize=30, markeredgewidth=1.6)[0]
    frame = frames(axis, [(0, 0)], BLACK, 3)
    below, knob = value_words(axis, values, rates - 0.44)
    axis.set_title("first seed; ring: chosen; ×: collapsed", fontsize=10)

    def move(runs: pd.DataFrame, column: str, rate: int, value: int, loss: str) -> None:
        table = first_seed(runs, column)[::-1]
        mesh.set_array(np.nan_to_num(table, nan=span[0]))
        write(texts, table, sum(span) / 2, ".0f")
        lost = runs[runs["seed"] == 0].pivot(index="lr", columns="value", values="collapsed").to_numpy()[::-1]
        for text, collapsed in zip(texts, lost.ravel()):
            if collapsed:
                text.set_text(text.get_text().replace("nan", "") + "×")
        best_rate, best_value = chosen(runs)
        ring.set_data([best_value], [rates - 1 - best_rate])
        frame.set_segments(cell_outlines([(rates - 1 - rate, value)]))
        spell(below, knob, runs)

    return Part([mesh, *texts, ring, frame, *below, knob], move)


def draw_curve(axis: Axes, rates: int, values: int, span: tuple[float, float], compact: bool) -> Part:
    """The accuracy along the knob: bold at the chosen rate, with a dot for each seed and bars of one standard
    deviation; thin and grey at the other rates."""
    room = 0.08 * (span[1] - span[0])
    axis.set(xlim=(-0.4, values - 0.6), ylim=(span[0] - room, span[1] + room), xticks=[])
    axis.set_ylabel("right on validation images, %", fontsize=9)
    others = LineCollection([], colors="#c4c4c4", linewidths=1)
    bars = LineCollection([], colors=BLACK, linewidths=2)
    axis.add_collection(others)
    axis.add_collection(bars)
    curve = axis.plot([], [], linewidth=2.2)[0]
    dots = axis.plot([], [], "o", markersize=4, alpha=0.7)[0]
    place = axis.plot([], [], "o", color=BLACK, markersize=10, fillstyle="none", markeredgewidth=2)[0]
    below, knob = value_words(axis, values, span[0] - 1.2 * room)
    title = axis.set_title("", fontsize=9 if compact else 11)

    def move(runs: pd.DataFrame, column: str, rate: int, value: int, loss: str) -> None:
        lr, stops = axes_of(runs)
        table, colour = first_seed(runs, column), colour_of(loss)
        others.set_segments(
            [np.column_stack([np.arange(values), row]) for i, row in enumerate(table) if i != rate]
        )
        found = [seeds_of(runs, lr[rate], stop, column) for stop in stops]
        means = [mean_at(runs, column, rate, j, np.nan) for j in range(values)]
        wide = [np.nanstd(x, ddof=1) if np.sum(~np.isnan(x)) > 1 else 0.0 for x in found]
        bars.set_segments([[(j, m - s), (j, m + s)] for j, (m, s) in enumerate(zip(means, wide)) if s])
        curve.set_data(np.arange(values), means)
        dots.set_data(
            np.concatenate([np.full(len(x), j) for j, x in enumerate(found)]), np.concatenate(found)
        )
        place.set_data([value], [mean_at(runs, column, rate, value, span[0])])
        for artist in (curve, dots):
            artist.set_color(colour)
        title.set_text(f"{loss} at rate {lr[rate]:g}" if compact else f"{loss}: bold at rate {lr[rate]:g}")
        spell(below, knob, runs)

    return Part([others, bars, curve, dots, place, title, *below, knob], move)


def value_words(axis: Axes, values: int, y: float) -> tuple[list[Text], Text]:
    """Texts under the axes for the values of the knob and for its name, which change with the loss."""
    words = [axis.text(j, y, "", ha="center", va="top", fontsize=9) for j in range(values)]
    name = axis.text(0.5, -0.1, "", ha="center", va="top", fontsize=10, transform=axis.transAxes)
    return words, name


def spell(words: list[Text], name: Text, runs: pd.DataFrame) -> None:
    for word, value in zip(words, axes_of(runs)[1]):
        word.set_text(f"{value:g}")
    name.set_text(runs["hyperparameter"].iloc[0])


def sentence(values: dict, runs: pd.DataFrame, column: str) -> str:
    rates, stops = axes_of(runs)
    rate, value, knob = rates[values["rate"] - 1], stops[values["knob"] - 1], runs["hyperparameter"].iloc[0]
    found, table = seeds_of(runs, rate, value, column), first_seed(runs, column)
    kept = found[~np.isnan(found)]
    reached = f"{kept.mean():.1f} % by {values['measure']}" if len(kept) else "it diverged"
    seeds = f", ± {kept.std(ddof=1):.1f} over {len(kept)} seeds" if len(kept) > 1 else ""
    i, j = chosen(runs)
    along = table[values["rate"] - 1]
    along = along[~np.isnan(along)]
    moved = f"the knob moves it by {np.ptp(along):.1f} points" if len(along) else "every run diverged"
    return (
        f"{values['loss']} with {knob} {value:g} at rate {rate:g}: {reached}{seeds}. "
        f"Chosen by kNN: {knob} {stops[j]:g} at {rates[i]:g}, {table[i, j]:.1f} %. At rate {rate:g} {moved}."
    )


def links(left: Axes | None, right: Axes, now: dict, low: float) -> list[Link]:
    """Every setting with its accuracies; those at the chosen rate with their place on the curve."""
    if left is None:
        return []
    runs, found = now["runs"], []
    (rates, values), tables = axes_of(runs), {name: first_seed(runs, of) for name, of in MEASURES.items()}
    for i, j in product(range(len(rates)), range(len(values))):
        there = [f"{name} {of[i, j]:.1f} %" for name, of in tables.items() if not np.isnan(of[i, j])]
        knob, accuracies = runs["hyperparameter"].iloc[0], ", ".join(there) or "it diverged"
        said = f"rate {rates[i]:g}, {knob} {values[j]:g}: {accuracies}"
        point = (j, mean_at(runs, now["column"], i, j, low))
        lit = [dot(right, point)] if i == now["rate"] else []
        found.append(Link([cell(left, len(rates) - 1 - i, j), *lit], text=said))
    return found
