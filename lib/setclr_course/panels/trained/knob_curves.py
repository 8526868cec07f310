"""A search's trials: what the learning rate and a loss's own knob are worth, on real training."""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import BLACK, PALE, VERMILION, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.panels.trained.rulers import holding, ring, round_ones

Trials = Mapping[str, pd.DataFrame]  # of `experiments.searches.tried`: by loss, a row for each run
CIRCLE = 0.36 * np.exp(2j * np.pi * np.linspace(0, 1, 49))


class Search(NamedTuple):
    """The trials of a loss; rates, values and seeds from the least."""

    knob: str
    rates: list[float]
    values: list[float]
    seeds: np.ndarray  # (measures, rates, values, seeds) per cent, NaN without a run or where it diverged
    means: np.ndarray  # (measures, rates, values) over the seeds
    deviations: np.ndarray  # NaN where there are fewer than two
    collapsed: np.ndarray  # (rates, values): whether the run of the first seed did
    chosen: tuple[int, int]  # the setting whose first seed has the best kNN: what the search goes on with


class Shown(NamedTuple):
    """By one measure; the last three at the chosen rate."""

    search: Search
    table: np.ndarray  # (rates, values) of the first seeds
    seeds: np.ndarray  # (values, seeds)
    means: np.ndarray  # (values,)
    deviations: np.ndarray


class knob_curves(Panel):
    """Accuracies on validation images over the learning rate and the knob of each loss: a map of all
    settings, and the curve along the knob at the chosen rate, with bars where several seeds are recorded.

    Args:
        trials: of `experiments.searches.tried`; made-up ones by default. Each loss has the same number of
            rates and of knob values, and a run with seed 0 at all of them.
    """

    size, mosaic, widths, row_mosaic, in_sight = (9, 4.1), "map curve", (1, 1.1), "curve", 3

    def __init__(self, trials: Trials | None = None, **initial: Any):
        trials = made_up() if trials is None else trials
        self.searches = {loss: searched(runs) for loss, runs in trials.items()}
        first, *_ = every = [*self.searches.values()]
        means, wide = (np.stack([getattr(one, name) for one in every]) for name in ("means", "deviations"))
        seeds = np.concatenate([one.seeds.ravel() for one in every])
        self.limits = holding([*seeds, *(means - wide).ravel(), *(means + wide).ravel()], 0.08)
        self.span = float(np.nanmin(seeds)), float(np.nanmax(seeds))
        rates: dict[float, str] = {i: f"{rate:g}" for i, rate in enumerate(first.rates, 1)}
        n = len(first.values)
        self.knobs = {
            "loss": options("loss", trials),
            "knob": slider("the loss's knob", 2, 1, n, 1, {1: "least", n: "most"}),
            "rate": slider("learning rate", len(rates), 1, len(rates), 1, rates),
            "measure": options("features measured by", MEASURES),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Shown:
        search = self.searches[values["loss"]]
        k = list(MEASURES).index(values["measure"])
        at = k, values["rate"] - 1
        return Shown(search, search.seeds[k, ..., 0], *(x[at] for x in search[3:6]))

    def draw(self, page: Page, values: dict, now: Shown) -> None:
        search, several = now.search, now.seeds.shape[1]
        cells, dots = self.draw_map(page, values, now), self.draw_curve(page, values, now)
        for i, j in product(range(len(search.rates)), range(len(search.values))):
            found = [f"{name} {x:.1f} %" for name, x in zip(MEASURES, search.seeds[:, i, j, 0]) if x == x]
            said = f"rate {search.rates[i]:g}, {search.knob} {search.values[j]:g}"
            lit = [dots[j * several : (j + 1) * several]] if i == values["rate"] - 1 else []
            page.link(f"{said}: {', '.join(found) or 'it diverged'}", cells[i, j], *lit)

    def draw_map(self, page: Page, values: dict, now: Shown) -> Mark:
        """All settings with the first seed: the chosen one ringed, the one that is looked at framed."""
        search, (rows, columns) = now.search, now.table.shape
        plot = page.plot(
            "map", (-0.55, columns - 0.45), (-0.55, rows - 0.45), "first seed; ring: chosen; ×: collapsed",
            search.knob, "learning rate", words(search.values), words(search.rates), frame="",
        )  # fmt: skip
        said = (f"{x:.0f}{'×' * int(lost)}" for x, lost in zip(now.table.flat, search.collapsed.flat))
        cells = plot.cells(now.table, *self.span, [text.replace("nan", "") for text in said])
        circle = CIRCLE + complex(*search.chosen[::-1])
        plot.line(circle.real, circle.imag, VERMILION, 2.5)
        at = values["rate"] - 1, values["knob"] - 1
        plot.frames([at], WHITE, 6)
        frame = plot.frames([at], BLACK, 3)
        frame.handle("setting", at[::-1], "knob", "rate", to=lambda x, y: (x + 1, y + 1), label="the setting")
        return cells

    def draw_curve(self, page: Page, values: dict, now: Shown) -> Mark:
        """The accuracy along the knob, bold at the chosen rate, with a dot for each seed and bars of one
        standard deviation."""
        search, colour, at = now.search, colour_of(values["loss"]), values["knob"] - 1
        title = f"{values['loss']}: bold at rate {search.rates[values['rate'] - 1]:g}"
        places = np.arange(len(search.values))
        plot = page.plot(
            "curve", (-0.4, len(places) - 0.6), self.limits, title, search.knob,
            "right on validation images, %", words(search.values), round_ones(self.limits),
        )  # fmt: skip
        for rate, row in enumerate(now.table, 1):
            if rate != values["rate"]:
                plot.line(places, row, PALE, 1.2)
        point, ends = (at, np.nan_to_num(now.means[at], nan=self.span[0])), (0, len(places) - 1)
        grip = ring(plot, point, BLACK, 17)
        grip.handle("knob", point, along="x", to=lambda x, y: [x + 1], ends=ends, label="the knob")
        plot.line(places, now.means, colour, 3)
        low, high = (np.column_stack([places, now.means + way * now.deviations]) for way in (-1, 1))
        plot.segments(low, high, BLACK, 2)
        return plot.dots(np.stack(np.broadcast_arrays(places[:, None], now.seeds), -1), colour, size=7)

    def say(self, values: dict, now: Shown) -> str:
        search, (i, j), at = now.search, now.search.chosen, values["knob"] - 1
        mean, n, along = now.means[at], np.isfinite(now.seeds[at]).sum(), now.table[values["rate"] - 1]
        reached = "it diverged" if np.isnan(mean) else f"{mean:.1f} % by {values['measure']}"
        seeds = f", ± {now.deviations[at]:.1f} over {n} seeds" if n > 1 else ""
        moved = "every run diverged"
        if not np.isnan(along).all():
            moved = f"the knob moves it by {np.nanmax(along) - np.nanmin(along):.1f} points"
        rate = f"{search.rates[values['rate'] - 1]:g}"
        return (
            f"{values['loss']} with {search.knob} {search.values[at]:g} at rate {rate}: {reached}{seeds}. "
            f"Chosen by kNN: {search.knob} {search.values[j]:g} at {search.rates[i]:g}, "
            f"{now.table[i, j]:.1f} %. At rate {rate} {moved}."
        )


def words(numbers: list[float]) -> dict[float, str]:
    return {place: f"{number:g}" for place, number in enumerate(numbers)}


def searched(runs: pd.DataFrame) -> Search:
    rates, values, seeds = (sorted(set(runs[column])) for column in ("lr", "value", "seed"))
    found = np.full((len(MEASURES), len(rates), len(values), len(seeds)), np.nan)
    collapsed = np.zeros((len(rates), len(values)), bool)
    for run in runs.itertuples():
        at = rates.index(run.lr), values.index(run.value), seeds.index(run.seed)
        found[:, *at] = [getattr(run, column) for column in MEASURES.values()]
        collapsed[at[:2]] |= run.seed == 0 and run.collapsed
    counts = np.isfinite(found).sum(-1).astype(float)
    means = np.nansum(found, -1) / np.where(counts > 0, counts, np.nan)
    squares = np.nansum((found - means[..., None]) ** 2, -1)
    wide = np.sqrt(squares / np.where(counts > 1, counts - 1, np.nan))
    best = np.unravel_index(np.nanargmax(found[0, ..., 0]), collapsed.shape)
    knob = runs["hyperparameter"].iloc[0]
    return Search(knob, rates, values, found, means, wide, collapsed, (int(best[0]), int(best[1])))


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
