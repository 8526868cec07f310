"""The end of a search: final runs seed by seed, and the gaps from one loss to all others with intervals."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import BLACK, DUSK, GREEN, PALE, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Piece, Plot
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.panels.trained.rulers import holding, ring, round_ones

LEVEL = 0.05


class Gap(NamedTuple):
    """How far a loss is above another, in points, by runs paired by seed."""

    mean: float
    low: float  # of the interval; those of all pairs together hold with probability 95 %
    high: float
    p: float  # after Holm, for all pairs


class Against(NamedTuple):
    """The chosen loss, and all others by the same measure."""

    base: int
    runs: list[np.ndarray]  # of each loss, those that learnt, by seed
    gaps: dict[int, Gap]  # by loss
    questions: int  # pairs of losses


class paired_gaps(Panel):
    """Every loss's runs on the left, and on the right how far each is above the chosen one, paired by seed:
    the mean gap and its interval, filled where Holm's test of *all* pairs keeps it (`comparing.pairs`).

    Args:
        runs: of `experiments.comparing.read`; made-up ones by default.

    Raises:
        ValueError: there are fewer than two losses with two seeds in common that learnt.
    """

    size, mosaic, row_mosaic, row_height, in_sight = (9, 4), "runs gaps", "gaps", 3.8, 2

    def __init__(self, runs: pd.DataFrame | None = None, **initial: Any):
        from setclr_course.search.comparing import pairs  # which needs torch

        runs = made_up() if runs is None else runs
        table = pairs(runs)
        if table.empty:
            raise ValueError(
                "runs must hold two losses with two seeds in common, got none that learnt in both"
            )
        learnt = runs[~runs["collapsed"]].sort_values("seed")
        names = learnt.groupby("name")["knn"].mean().sort_values(ascending=False).index
        self.names = list(dict.fromkeys([*names, *runs["name"]]))
        self.runs = {word: [learnt.loc[learnt["name"] == name, column].to_numpy() for name in self.names]
                     for word, column in MEASURES.items()}  # fmt: skip
        self.pairs = {word: list(table[table["metric"] == column].itertuples())
                      for word, column in MEASURES.items()}  # fmt: skip
        self.limits = holding(np.concatenate([x for found in self.runs.values() for x in found]), 0.08)
        self.reach = 1.08 * float(table[["low", "high"]].abs().to_numpy().max())
        n = len(self.names)
        self.knobs = {
            "loss": slider("compared with", n, 1, n, 1, {1: "first", n: "last"}),
            "measure": options("features measured by", MEASURES),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Against:
        """The gaps of all others to the chosen loss."""
        base, found = values["loss"] - 1, self.pairs[values["measure"]]
        name, place = self.names[base], self.names.index
        gaps = {place(x.a): Gap(x.difference, x.low, x.high, x.holm) for x in found if x.b == name}
        gaps |= {place(x.b): Gap(-x.difference, -x.high, -x.low, x.holm) for x in found if x.a == name}
        return Against(base, self.runs[values["measure"]], gaps, len(found))

    def draw(self, page: Page, values: dict, now: Against) -> None:
        rows, dots = self.draw_runs(page, now), self.draw_gaps(page, now)
        for k, name in enumerate(self.names):
            said, over = f"{name}: every run collapsed", []
            if len(now.runs[k]):
                said, over = f"{name}: {now.runs[k].mean():.1f} % over {len(now.runs[k])} seeds", [*rows[k]]
            if k in now.gaps:
                gap = now.gaps[k]
                over.append(dots[[*now.gaps].index(k)])
                said += f"; {gap.mean:+.1f} ({gap.low:+.1f} to {gap.high:+.1f}) from {self.names[now.base]}, "
                said += f"p after Holm {gap.p:.2g}"
            if over:
                page.link(said, *over)

    def draw_runs(self, page: Page, now: Against) -> list[tuple[Piece, Piece]]:
        """Rows of dots, one for each seed; a line through all at the mean of the chosen loss."""
        plot = self.plot(page, "runs", self.limits, "right on test images, %", "a dot for each seed")
        own, last = now.runs[now.base], len(self.names) - 1
        point = float(own.mean() if len(own) else np.mean(self.limits)), now.base
        if len(own):
            plot.line([point[0]] * 2, [-0.5, last + 0.5], GREEN, 1.5, "dash")
        grip = ring(plot, point, GREEN, 19)
        grip.handle("loss", point, along="y", to=lambda x, y: [y + 1], ends=(0, last), label="the loss")
        lost = [k for k, found in enumerate(now.runs) if not len(found)]
        plot.text(self.limits[0], lost, ["every run collapsed"] * len(lost), DUSK, "small", "start", right=6)
        return seed_rows(plot, now.runs, [colour_of(name) for name in self.names])

    def draw_gaps(self, page: Page, now: Against) -> Mark:
        """The gaps to the chosen loss: filled, on a black interval, where Holm's test keeps it."""
        plot = self.plot(page, "gaps", (-self.reach, self.reach), "points above the chosen loss",
                         f"filled: told apart from {self.names[now.base]}")  # fmt: skip
        plot.line([0, 0], [-0.5, len(self.names) - 0.5], GREEN, 1.5, "dash")
        ring(plot, (0, now.base), GREEN)
        ys, gaps = list(now.gaps), list(now.gaps.values())
        mean, low, high = (np.column_stack([[gap[of] for gap in gaps], ys]) for of in range(3))
        kept, colours = [gap.p <= LEVEL for gap in gaps], [colour_of(self.names[k]) for k in ys]
        plot.segments(low, high, [BLACK if yes else PALE for yes in kept], 3)
        fill = [colour if yes else WHITE for colour, yes in zip(colours, kept)]
        return plot.dots(mean, fill, size=10, edge=colours)

    def plot(self, page: Page, name: str, x: tuple[float, float], xlabel: str, title: str) -> Plot:
        return page.plot(name, x, (len(self.names) - 0.5, -0.5), title, xlabel, xticks=round_ones(x),
                         yticks=dict(enumerate(self.names)), frame="bottom")  # fmt: skip

    def say(self, values: dict, now: Against) -> str:
        name, own = self.names[now.base], now.runs[now.base]
        if not len(own):
            return f"{name}: every run collapsed, so it has no gaps."
        kept = [f"{self.names[k]} {gap.mean:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})"
                for k, gap in now.gaps.items() if gap.p <= LEVEL]  # fmt: skip
        said = f": {', '.join(kept)}" if kept else ""
        return (
            f"{name}: {own.mean():.1f} % by {values['measure']}, the mean of {len(own)} seeds. Of its "
            f"{len(now.gaps)} gaps Holm's test of all {now.questions} pairs keeps {len(kept)}{said}."
        )


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
