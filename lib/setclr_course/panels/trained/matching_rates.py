"""Four losses alone and with QARe, at one learning rate or each at its own: a dot for each seed, and the gain
by QARe (QARe, table 1)."""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.palette import BLACK, BLUE, GREY, ORANGE, PALE, WHITE
from setclr_course.kit.panel import Page, Panel, options
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.rulers import holding, round_ones, rows_plot
from setclr_course.search.statistics import Paired, paired

Rows = Mapping[str, Mapping[str, Any]]  # of data/results/matching/rates.json
LOSSES = ("Triplet", "InfoNCE", "NTLogistic", "SparseCLR")
PATCHES = {"as they come": "none", "normalised first": "image"}
OWN = "each its own"
QUESTIONS = len(LOSSES) * len(PATCHES)


class Loss(NamedTuple):
    """A loss alone and with QARe."""

    rates: list[str]
    right: list[np.ndarray]  # (seeds,) per cent
    cosine: list[float]  # of two different things, the mean over the seeds
    gain: Paired  # one of QUESTIONS intervals that hold at once


def read_rows(results: str | Path) -> Rows:
    return json.loads(Path(results, "matching", "rates.json").read_text())["rows"]


def found(rows: Rows, patches: str, rate: str = OWN) -> dict[str, Loss]:
    """Of each loss what was found on the test things at that rate, or at the rate that each arm chose."""
    losses = {}
    for name in LOSSES:
        arms = [rows[f"{name}{more}, normalised {PATCHES[patches]}"] for more in ("", " + QARe")]
        rates = [f"{arm['chosen']:g}" if rate == OWN else rate for arm in arms]
        alone, both = runs = [arm["report"][at] for arm, at in zip(arms, rates)]
        gain = paired(both["matched_percent"], alone["matched_percent"], questions=QUESTIONS)
        cosine = [float(np.mean(run["mean_cosine"])) for run in runs]
        losses[name] = Loss(rates, [np.array(run["matched_percent"]) for run in runs], cosine, gain)
    return losses


class matching_rates(Panel):
    """On the left the runs of each loss, alone and with QARe; on the right the mean gain of a seed, with an
    interval: all eight, of both kinds of patches, hold at once with 95 % probability.

    Args:
        rows: as `read_rows` gives them; made-up ones by default.
        pixels: per cent that normalised pixels match without a network, for a dotted line.
    """

    size, mosaic, row_mosaic, row_height = (9, 4.4), "seeds gains", "gains", 3.4

    def __init__(self, rows: Rows | None = None, pixels: float | None = None, **initial: Any):
        rows, self.pixels = rows or made_up(), pixels
        rates = [OWN, *next(iter(rows.values()))["report"]]
        self.found = {at: found(rows, *at) for at in product(PATCHES, rates)}
        right = [x for losses in self.found.values() for loss in losses.values() for x in loss.right]
        self.limits = holding(np.concatenate(right))
        self.reach = holding([gains_of(losses) for losses in self.found.values()])
        self.knobs = {"rate": options("learning rate", rates), "patches": options("patches", PATCHES)}
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, Loss]:
        return self.found[values["patches"], values["rate"]]

    def draw(self, page: Page, values: dict, now: dict[str, Loss]) -> None:
        names = []
        for name, loss in now.items():
            names += [f"{name}, {loss.rates[0]}", f"+ QARe, {loss.rates[1]}"]
        title = "dots: seeds" + "; dotted: normalised pixels" * (self.pixels is not None)
        plot = rows_plot(page, "seeds", names, self.limits, title, "matched, %")
        if self.pixels is not None:
            plot.line([self.pixels] * 2, [-0.6, len(names) - 0.4], GREY, dash="dot")
        runs = [right for loss in now.values() for right in loss.right]
        dots = seed_rows(plot, runs, [BLUE, ORANGE] * len(now))
        rows = dict(zip(np.arange(0.5, len(names), 2).tolist(), now))
        title, below = "filled: its interval leaves out 0", "points that QARe adds"
        y, ticks = (len(names) - 0.3, -0.7), round_ones(self.reach, 6)
        gap = page.plot("gains", self.reach, y, title, below, "", ticks, rows, frame="bottom")
        gap.line([0, 0], [-0.6, len(names) - 0.4], GREY)
        mean, low, high = (np.column_stack([x, list(rows)]) for x in gains_of(now).T)
        sure = low[:, 0] * high[:, 0] > 0
        bars = gap.segments(low, high, np.where(sure, BLACK, PALE).tolist(), 3)
        means = gap.dots(mean, np.where(sure, ORANGE, WHITE).tolist(), edge=ORANGE)
        for k, (name, loss) in enumerate(now.items()):
            page.link(told(name, loss), *dots[2 * k], *dots[2 * k + 1], bars[k], means[k])

    def say(self, values: dict, now: dict[str, Loss]) -> str:
        said = "; ".join(told(name, loss) for name, loss in now.items())
        return f"Patches {values['patches']}, rate: {values['rate']}. {said}."


def gains_of(losses: dict[str, Loss]) -> np.ndarray:
    """(losses, 3): the mean gain, and the ends of its interval."""
    return np.array([loss.gain[:3] for loss in losses.values()])


def told(name: str, loss: Loss) -> str:
    alone, both = (f"{right.mean():.1f} % at {rate}" for right, rate in zip(loss.right, loss.rates))
    gain = loss.gain
    return f"{name} {alone}, with QARe {both}: {gain.difference:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})"


def made_up() -> Rows:
    """Rows of the same kind that nobody has measured."""
    noise, rows = np.random.default_rng(3), {}
    for name, more, first in product(LOSSES, ("", " + QARe"), PATCHES.values()):
        runs = [{"matched_percent": noise.normal(50, 3, 4), "mean_cosine": [0.1]} for _ in range(2)]
        report = dict(zip(("0.001", "0.01"), runs))
        rows[f"{name}{more}, normalised {first}"] = {"chosen": 0.01, "report": report}
    return rows
