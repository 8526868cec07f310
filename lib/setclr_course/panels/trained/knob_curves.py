"""A search's trials: what the learning rate and a loss's own knob are worth, on real training."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.palette import BLACK, PALE, VERMILION, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, options, slider
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.panels.trained.rulers import holding, ring, round_ones

CIRCLE = 0.36 * np.exp(2j * np.pi * np.linspace(0, 1, 49))


class Search(NamedTuple):
    """The trials of a loss; rates, values and seeds from the least."""

    knob: str
    rates: list[float]
    values: list[float]
    seeds: np.ndarray  # (measures, rates, values, seeds) per cent, NaN without a run or where it diverged
    collapsed: np.ndarray  # (rates, values): whether the run of the first seed did
    chosen: tuple[int, int]  # the setting whose first seed has the best kNN: what the search goes on with


Shown = tuple[Search, np.ndarray, np.ndarray, tuple[int, int]]


class knob_curves(Panel):
    """Accuracies on validation images over the learning rate and the knob of each loss: a map of all
    settings, and the curve along the knob at the chosen rate.

    Args:
        trials: by loss, of `search.searches.tried`; made-up ones by default. Each loss has a run with seed
            0 at all of its rates and knob values. Where it has fewer than others, further stops are its last.
    """

    size, mosaic, widths, row_mosaic, in_sight = (9, 4.1), "map curve", (1, 1.1), "curve", 3

    def __init__(self, trials: Mapping[str, pd.DataFrame] | None = None, **initial: Any):
        trials = made_up() if trials is None else trials
        self.searches = {loss: searched(runs) for loss, runs in trials.items()}
        every = np.concatenate([one.seeds.ravel() for one in self.searches.values()])
        self.limits, self.span = holding(every, 0.08), holding(every, 0)
        rates, n = (max(len(one[part]) for one in self.searches.values()) for part in (1, 2))
        self.knobs = {
            "loss": options("loss", trials),
            "knob": slider("the loss's knob, value number", 2, 1, n, 1, {1: "least", n: "most"}),
            "rate": slider("learning rate, value number", rates, 1, rates, 1, {1: "least", rates: "most"}),
            "measure": options("features measured by", MEASURES),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Shown:
        """By one measure: first seeds (rates, values); all (values, seeds) at the framed rate; the frame."""
        search = self.searches[values["loss"]]
        found = search.seeds[list(MEASURES).index(values["measure"])]
        rate, knob = (min(values[name], n) - 1 for name, n in zip(("rate", "knob"), found.shape))
        return search, found[..., 0], found[rate], (rate, knob)

    def draw(self, page: Page, values: dict, now: Shown) -> None:
        search, table, seeds, at = now
        cells, dots = self.draw_map(page, search, table, at), self.draw_curve(page, values, now)
        for i, j in np.ndindex(table.shape):
            reached = f"{table[i, j]:.1f} %" if np.isfinite(table[i, j]) else "it diverged"
            lit = [dots[j :: len(seeds)]] if i == at[0] else []
            said = f"rate {search.rates[i]:g}, {search.knob} {search.values[j]:g}: {reached}"
            page.link(said, cells[i, j], *lit)

    def draw_map(self, page: Page, search: Search, table: np.ndarray, at: tuple[int, int]) -> Mark:
        """All settings with the first seed: the chosen one ringed, the one that is looked at framed."""
        rows, columns = table.shape
        plot = page.plot(
            "map", (-0.55, columns - 0.45), (-0.55, rows - 0.45), "first seed; ring: chosen; ×: collapsed",
            search.knob, "learning rate", words(search.values), words(search.rates), frame="",
        )  # fmt: skip
        crosses = np.where(search.collapsed, "×", "")
        said = [f"{x:.0f}{cross}".replace("nan", "") for x, cross in zip(table.flat, crosses.flat)]
        cells = plot.cells(table, *self.span, said)
        circle = CIRCLE + complex(*search.chosen[::-1])
        plot.line(circle.real, circle.imag, VERMILION, 2.5)
        plot.frames([at], WHITE, 6)
        frame = plot.frames([at], BLACK, 3)
        frame.handle("setting", at[::-1], "knob", "rate", to=lambda x, y: (x + 1, y + 1), label="the setting")
        return cells

    def draw_curve(self, page: Page, values: dict, now: Shown) -> Mark:
        """The means along the knob, bold at the chosen rate, with a dot for each seed."""
        (search, table, seeds, (rate, at)), colour = now, colour_of(values["loss"])
        places = np.arange(len(search.values))
        plot = page.plot(
            "curve", (-0.4, len(places) - 0.6), self.limits,
            f"{values['loss']}: bold at rate {search.rates[rate]:g}", search.knob,
            "right on validation images, %", words(search.values), round_ones(self.limits),
        )  # fmt: skip
        for row in np.delete(table, rate, 0):
            plot.line(places, row, PALE, 1.2)
        means = np.ma.masked_invalid(seeds).mean(1).filled(np.nan)
        point, ends = (at, np.nan_to_num(means[at], nan=self.span[0])), (0, len(places) - 1)
        grip = ring(plot, point, BLACK, 17)
        grip.handle("knob", point, along="x", to=lambda x, y: [x + 1], ends=ends, label="the knob")
        plot.line(places, means, colour, 3)
        return plot.dots(np.stack(np.broadcast_arrays(places, seeds.T), -1), colour, size=7)

    def say(self, values: dict, now: Shown) -> str:
        (search, table, seeds, (rate, at)), (i, j) = now, now[0].chosen
        here, along = seeds[at][np.isfinite(seeds[at])], table[rate][np.isfinite(table[rate])]
        of_seeds = f"{values['measure']} ({len(here)} of {seeds.shape[1]} seeds)"
        reached = f"{here.mean():.1f} % by {of_seeds}" if len(here) else "it diverged"
        moved = f"the knob moves it by {np.ptp(along):.1f} points" if len(along) else "every run diverged"
        return (
            f"{values['loss']} with {search.knob} {search.values[at]:g} at rate {search.rates[rate]:g}: "
            f"{reached}. Chosen by kNN: {search.knob} {search.values[j]:g} at {search.rates[i]:g}, "
            f"{table[i, j]:.1f} %. At rate {search.rates[rate]:g} {moved}."
        )


def words(numbers: list[float]) -> dict[float, str]:
    return {place: f"{number:g}" for place, number in enumerate(numbers)}


def searched(runs: pd.DataFrame) -> Search:
    wide = runs.pivot(index=["lr", "value"], columns="seed", values=[*MEASURES.values()])
    rates, values = (sorted(set(runs[column])) for column in ("lr", "value"))
    seeds = wide.to_numpy(float).reshape(len(rates), len(values), len(MEASURES), -1).transpose(2, 0, 1, 3)
    lost = runs[runs["seed"] == 0].pivot(index="lr", columns="value", values="collapsed").to_numpy(bool)
    i, j = np.unravel_index(np.nanargmax(seeds[0, ..., 0]), lost.shape)
    return Search(runs["hyperparameter"].iloc[0], rates, values, seeds, lost, (int(i), int(j)))


def made_up() -> dict[str, pd.DataFrame]:
    """Trials of the same kind that nobody has made: two losses, best in the middle and towards one end."""
    noise, found, rates = np.random.default_rng(4), {}, np.array([3e-4, 1e-3, 3e-3, 1e-2])
    for name, knob, values, best in (("infonce", "temperature", [0.05, 0.1, 0.2, 0.5, 1.0], (1, 1)),
                                     ("groco", "beta", [0.0625, 0.25, 1.0, 4.0, 16.0], (2, 2))):  # fmt: skip
        i, j, seed = np.indices((4, 5, 3)).reshape(3, -1)
        knn = 52 - 4 * (i - best[0]) ** 2 - 3 * (j - best[1]) ** 2 + noise.normal(0, 0.7, len(seed))
        runs = pd.DataFrame({"seed": seed, "lr": rates[i], "value": np.take(values, j), "knn": knn})
        runs = runs[(seed == 0) | (i == best[0])]
        found[name] = runs.assign(hyperparameter=knob, linear=runs["knn"] + 2, collapsed=runs["knn"] < 25)
    return found
