"""The end of a search: final runs seed by seed, and the gaps from one loss to all others with intervals."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import BLACK, DUSK, GREEN, PALE, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.panels.trained.ringed_rows import ringed_rows, rows_plot
from setclr_course.panels.trained.rulers import holding, ring

LEVEL = 0.05


class Against(NamedTuple):
    """The chosen loss, and all others by the same measure."""

    base: int
    runs: list[np.ndarray]  # of each loss, those that learnt, by seed
    gaps: dict[int, Any]  # by loss: the row of `comparing.pairs`, a the loss and b the chosen one
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
        best_first = learnt.groupby("name")["knn"].mean().sort_values(ascending=False).index
        self.names = list(dict.fromkeys([*best_first, *runs["name"]]))
        self.runs = {word: [learnt.loc[learnt["name"] == name, column].to_numpy() for name in self.names]
                     for word, column in MEASURES.items()}  # fmt: skip
        turned = table.rename(columns={"a": "b", "b": "a"})
        turned[["difference", "low", "high"]] = -table[["difference", "high", "low"]].to_numpy()
        self.pairs = pd.concat([table, turned])
        self.limits = holding(learnt[[*MEASURES.values()]], 0.08)
        self.reach = 1.08 * float(table[["low", "high"]].abs().to_numpy().max())
        n = len(self.names)
        self.knobs = {
            "loss": slider("compared with", n, 1, n, 1, {1: "first", n: "last"}),
            "measure": options("features measured by", MEASURES),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Against:
        """The gaps of all others to the chosen loss."""
        base, found = values["loss"] - 1, self.pairs[self.pairs["metric"] == MEASURES[values["measure"]]]
        mine = found[found["b"] == self.names[base]].itertuples()
        gaps = {self.names.index(gap.a): gap for gap in mine}
        return Against(base, self.runs[values["measure"]], gaps, len(found) // 2)

    def draw(self, page: Page, values: dict, now: Against) -> None:
        plot = rows_plot(
            page, "runs", self.names, self.limits, "a dot for each seed", "right on test images, %"
        )
        lost = [k for k, found in enumerate(now.runs) if not len(found)]
        plot.text(self.limits[0], lost, ["every run collapsed"] * len(lost), DUSK, "small", "start", right=6)
        rows = ringed_rows(plot, self.names, now.runs, now.base, "loss", lambda y: y + 1)
        dots = self.draw_gaps(page, now)
        for k, (name, found) in enumerate(zip(self.names, now.runs)):
            said = [f"{name}: {found.mean():.1f} % over {len(found)} seeds"] if len(found) else []
            over = [*rows[k]]
            if k in now.gaps:
                over.append(dots[[*now.gaps].index(k)])
                said.append(
                    f"{told(now.gaps[k])} from {self.names[now.base]}, p after Holm {now.gaps[k].holm:.2g}"
                )
            if said:
                page.link("; ".join(said), *over)

    def draw_gaps(self, page: Page, now: Against) -> Mark:
        """The gaps to the chosen loss: filled, on a black interval, where Holm's test keeps it."""
        title, label = f"filled: told apart from {self.names[now.base]}", "points above the chosen loss"
        plot = rows_plot(page, "gaps", self.names, (-self.reach, self.reach), title, label)
        plot.line([0, 0], [-0.5, len(self.names) - 0.5], GREEN, 1.5, "dash")
        ring(plot, (0, now.base), GREEN)
        ys, gaps = list(now.gaps), list(now.gaps.values())
        low, mean, high = (np.column_stack([[getattr(gap, of) for gap in gaps], ys])
                           for of in ("low", "difference", "high"))  # fmt: skip
        kept, colours = [gap.holm <= LEVEL for gap in gaps], [colour_of(gap.a) for gap in gaps]
        plot.segments(low, high, [BLACK if yes else PALE for yes in kept], 3)
        fill = [colour if yes else WHITE for colour, yes in zip(colours, kept)]
        return plot.dots(mean, fill, size=10, edge=colours)

    def say(self, values: dict, now: Against) -> str:
        name, own = self.names[now.base], now.runs[now.base]
        if not len(own):
            return f"{name}: every run collapsed, so it has no gaps."
        kept = [f"{gap.a} {told(gap)}" for gap in now.gaps.values() if gap.holm <= LEVEL]
        said = f": {', '.join(kept)}" if kept else ""
        return (
            f"{name}: {own.mean():.1f} % by {values['measure']}, the mean of {len(own)} seeds. Of its "
            f"{len(now.gaps)} gaps Holm's test of all {now.questions} pairs keeps {len(kept)}{said}."
        )


def told(gap: Any) -> str:
    """A gap and its interval in words."""
    return f"{gap.difference:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})"


def made_up() -> pd.DataFrame:
    """Final runs of losses that nobody has trained."""
    noise, rows = np.random.default_rng(6), []
    for name, mean in {"p": 58.0, "q": 56.5, "r": 56.2, "s": 53.0}.items():
        for seed in range(5):
            knn, linear = mean + noise.normal(0, 0.5), mean + 2 + noise.normal(0, 0.5)
            rows.append((f"loss {name}", seed, knn, linear, False))
    return pd.DataFrame(rows, columns=["name", "seed", "knn", "linear", "collapsed"])
