"""All pairs of losses by their p-values, with the usual level and the steps that Holm's test has instead."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.palette import BLACK, DUSK, GREEN, GREY, PALE, PINE, VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, log_slider, options
from setclr_course.panels.trained.comparison import PROBE_FIRST, Records, learnt, made_up, pairs

ALL, LEARNT = "all", "those that learnt"
LOWEST = 0.0005  # of the levels
LEAST = 1e-5  # p-values below it are drawn there


class Tested(NamedTuple):
    pairs: pd.DataFrame  # of `comparison.pairs`, the least p first
    usual: int  # so many of the first have a p up to the level
    kept: int  # and so many are kept by Holm's test


class holm_steps(Panel):
    """The pairs of `comparison.pairs`, least p first: those below a flat line at the level, and those that
    Holm's test keeps, which stops at the first dot above its steps (Holm 1979).

    Without records it shows three made-up losses.

    Raises:
        ValueError: the records have no two losses with two seeds in common, so nothing is known of noise.
    """

    size, row_height, in_sight = (9, 4.2), 3.9, 3

    def __init__(self, records: Records | None = None, **initial: Any):
        records = records or made_up()
        good = learnt(records)
        self.collapsed = set(records) - set(good)
        compared = {ALL: records} | ({LEARNT: good} if 1 < len(good) < len(records) else {})
        self.tables = {(word, who): pairs(some, column).sort_values("p")
                       for word, column in PROBE_FIRST.items() for who, some in compared.items()}  # fmt: skip
        if any(table["p"].isna().any() or table.empty for table in self.tables.values()):
            raise ValueError("records must hold two losses or more with two seeds or more; noise is unknown")
        self.most = max(map(len, self.tables.values()))
        self.knobs = {
            "level": log_slider("level", 0.05, LOWEST, 0.5, 0.1, {0.05: "usual: 0.05"}),
            "measure": options("features measured by", PROBE_FIRST),
        }
        if len(compared) > 1:
            self.knobs["compared"] = options("losses compared", compared)
        super().__init__(**initial)

    def solve(self, values: dict) -> Tested:
        table = self.tables[values["measure"], values.get("compared", ALL)]
        usual, kept = ((table[p] <= values["level"]).sum() for p in ("p", "holm"))
        return Tested(table, usual, kept)

    def draw(self, page: Page, values: dict, now: Tested) -> None:
        n, level, end = len(now.pairs), values["level"], self.most + 1
        step = 10 if self.most > 12 else 1
        plot = page.plot(
            "plot", (0, end), (min(LEAST, LOWEST / self.most) / 1.7, 1.5),
            f"of {n} pairs {now.usual} below the level, {now.kept} kept", "pairs, the least likely first",
            "p: how likely noise is to do this", xticks=range(step, end, step), log="y",
            yticks={1.0: "1", 0.1: "0.1", 0.01: "0.01", 0.001: "0.001", 0.0001: "0.0001", LEAST: "less"},
        )  # fmt: skip
        line = plot.line([0, end], level, GREY, 1.6, "dash")
        line.handle("level", (self.most, level), along="y", label="the level")
        ranks = np.arange(n)
        plot.line(ranks + 1, level / (n - ranks), VERMILION, 1.6)
        lost = np.array([bool(self.collapsed & set(pair)) for pair in now.pairs.index])
        mine = np.where(lost, GREEN, BLACK)  # of those that are kept
        edges = np.where(ranks < now.kept, mine, np.where(ranks < now.usual, BLACK, PALE))
        colours = np.where((ranks >= now.kept) & (ranks < now.usual), WHITE, edges)
        points = np.column_stack([ranks + 1, now.pairs["p"].clip(LEAST)])
        dots = plot.dots(points, colours.tolist(), size=7, edge=edges.tolist())
        for rank, pair in enumerate(now.pairs.itertuples()):
            better, worse = pair.Index if pair.gap >= 0 else pair.Index[::-1]
            said = f"{better} above {worse}: {abs(pair.gap):.1f} points, p {pair.p:.2g}"
            page.link(f"{said}, after Holm {pair.holm:.2g}", dots[rank])
        collapsed = [("● with a collapsed run", PINE)] if self.collapsed else []
        lines = ("– – the level, for one", DUSK), ("— Holm's steps, for all", VERMILION)
        kinds = ("● kept by Holm", BLACK), ("○ below the level only", BLACK), ("● above it", GREY)
        plot.key(*lines, *kinds, *collapsed, where="bottom right")

    def say(self, values: dict, now: Tested) -> str:
        said = f"By the {values['measure']}, {values.get('compared', ALL)}: of {len(now.pairs)} pairs "
        return said + (
            f"{now.usual} have a p up to {values['level']:.3g}, and Holm's test for all {len(now.pairs)} "
            f"questions keeps {now.kept}."
        )
