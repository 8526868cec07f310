"""Rows of runs, a dot for each seed, and how far each row is above one of them, paired by seed: the losses at
the end of a search, or the settings of a paper's table, trained again in small."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.palette import BLACK, DUSK, GREEN, PALE, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, options, slider
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.panels.trained.rulers import holding, ring, rows_plot

Figures = Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]  # by title: `papers.figures.frame` and `printed`
LEVEL = 0.05
HEAD = {"kNN in the head's outputs": "knn-projection"}


class Rows(NamedTuple):
    """A figure by one measure, in per cent."""

    names: list[str]
    here: list[np.ndarray]  # of each row, the runs that learnt, by seed
    printed: np.ndarray  # (rows,): what the paper prints, or nan
    gaps: list[pd.DataFrame]  # to each row, as `told_apart` gives them


class paired_gaps(Panel):
    """All rows' runs on the left, and on the right how far each is above the chosen one, paired by seed: the
    mean gap and its interval, filled where Holm's test keeps it, and the gap that the paper prints. The
    slider has a stop for each row of the longest figure; in others it goes from top to bottom, too.

    Args:
        runs: those of `search.comparing.read`, whose pairs are one family of questions; or figures of papers,
            in which the gaps to the chosen row are one. Made-up figures by default. If all have it, kNN in
            the head's outputs is offered.

    Raises:
        ValueError: a figure has no records, or no two losses have two seeds in common that learnt.
    """

    size, mosaic, row_mosaic, row_height, in_sight = (9, 4.4), "here gaps", "gaps", 4.0, 2

    def __init__(self, runs: pd.DataFrame | Figures | None = None, **initial: Any):
        figures, pairs = final(runs) if isinstance(runs, pd.DataFrame) else (runs or made_up(), None)
        if empty := [title for title, (frame, _) in figures.items() if frame.empty]:
            raise ValueError(f"figures must have records, got none of {empty[0]}; leave it out, or train it")
        heads = all("knn-projection" in frame for frame, _ in figures.values())
        measures = MEASURES | (HEAD if heads else {})
        self.rows = {(title, word): rows_of(figure, column, pairs)
                     for title, figure in figures.items() for word, column in measures.items()}  # fmt: skip
        most = max(2, *(len(rows.names) for rows in self.rows.values()))
        self.size, self.steps = (9, min(4.4, 1.7 + 0.35 * most)), most - 1
        self.limits = holding(np.concatenate([x for rows in self.rows.values() for x in rows.here]))
        self.title = next(iter(figures))
        self.family = "" if pairs is None else f" of all {(pairs['metric'] == 'knn').sum() // 2} pairs"
        self.knobs = {"figure": options("figure", figures)} if len(figures) > 1 else {}
        self.knobs |= {
            "row": slider("compared with the row", most, 1, most, 1, {1: "top", most: "bottom"}),
            "measure": options("features measured by", measures),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> tuple[Rows, int]:
        """The figure, and the row that the others are compared with."""
        rows = self.rows[values.get("figure", self.title), values["measure"]]
        return rows, round((values["row"] - 1) / self.steps * (len(rows.names) - 1))

    def draw(self, page: Page, values: dict, now: tuple[Rows, int]) -> None:
        rows, base = now
        seeds, dots, gaps = self.draw_runs(page, *now), self.draw_gaps(page, *now), rows.gaps[base]
        for name, here, over in zip(rows.names, rows.here, seeds):
            if name in gaps.index:
                gap = gaps.loc[name]
                said = f", {told(gap)} from {rows.names[base]}, p after Holm {gap.holm:.2g}"
                page.link(f"{mean_of(name, here)}{said}", *over, dots[gaps.index.get_loc(name)])
            elif len(here):
                page.link(mean_of(name, here), *over)

    def draw_runs(self, page: Page, rows: Rows, base: int) -> list[tuple[Mark, Mark]]:
        """A dot for each seed, and a ring round the mean of the chosen row, which is dragged to others."""
        plot = rows_plot(page, "here", rows.names, self.limits, "a dot for each seed", "right, %")
        lost = [k for k, here in enumerate(rows.here) if not len(here)]
        plot.text(self.limits[0], lost, ["no run learnt"] * len(lost), DUSK, "small", "start", right=6)
        at, last = float(np.mean(self.limits if base in lost else rows.here[base])), len(rows.names) - 1
        plot.line([at, at], [-0.5, last + 0.5], GREEN, 1.5, "dash")
        grip = ring(plot, (at, base), GREEN, 19)
        grip.handle("row", (at, base), along="y", to=lambda x, y: [1 + self.steps * y / max(last, 1)], step=1,
                    ends=(0, last), label="the row")  # fmt: skip
        return seed_rows(plot, rows.here, [colour_of(name) for name in rows.names])

    def draw_gaps(self, page: Page, rows: Rows, base: int) -> Mark:
        """The gaps to the chosen row: filled, on a black interval, where Holm's test keeps it."""
        name, gaps, limits = rows.names[base], rows.gaps[base], reach(rows)
        ys = [rows.names.index(other) for other in gaps.index]
        printed = np.column_stack([rows.printed[ys] - rows.printed[base], ys])
        printed = printed[np.isfinite(printed[:, 0])] + (0, 0.25)
        label = "points above it; ◆ in the paper" if len(printed) else "points above it"
        plot = rows_plot(page, "gaps", rows.names, limits, f"filled: told apart from {name}", label)
        plot.line([0, 0], [-0.5, len(rows.names) - 0.5], GREEN, 1.5, "dash")
        ring(plot, (0, base), GREEN)
        found = gaps[["low", "difference", "high"]].clip(*limits).to_numpy().T
        low, mean, high = (np.column_stack([x, ys]) for x in found)
        kept, colours = gaps["holm"] <= LEVEL, [colour_of(other) for other in gaps.index]
        plot.segments(low, high, np.where(kept, BLACK, PALE).tolist(), 3)
        plot.dots(printed, BLACK, "◆", 11)
        return plot.dots(mean, np.where(kept, colours, WHITE).tolist(), edge=colours)

    def say(self, values: dict, now: tuple[Rows, int]) -> str:
        rows, base = now
        name, here, gaps = rows.names[base], rows.here[base], rows.gaps[base]
        if not len(here):
            return f"{name}: no run learnt, so it has no gaps."
        kept = [f"{gap.Index} {told(gap)}" for gap in gaps[gaps["holm"] <= LEVEL].itertuples()]
        said = f": {', '.join(kept)}" if kept else ""
        return (
            f"{values.get('figure', self.title)} by {values['measure']}, {mean_of(name, here)}. Holm's test"
            f"{self.family} keeps {len(kept)} of {len(gaps)} gaps to it{said}."
        )


def reach(rows: Rows) -> tuple[float, float]:
    """Twice as far as the largest gap, here or in the paper."""
    means, printed = [x.mean() for x in rows.here if len(x)], rows.printed[np.isfinite(rows.printed)]
    far = 2 * max(np.ptp(x) for x in (means, printed) if len(x)) or 1.0
    return -far, far


def mean_of(name: str, here: np.ndarray) -> str:
    return f"{name}: {here.mean():.1f} %, the mean of {len(here)} seeds"


def told(gap: Any) -> str:
    """A gap and its interval in words."""
    return f"{gap.difference:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})"


def rows_of(figure: tuple[pd.DataFrame, pd.DataFrame], column: str, pairs: pd.DataFrame | None) -> Rows:
    frame, printed = figure
    names = list(dict.fromkeys(frame["row"]))
    here = [frame.loc[frame["row"] == name, column].dropna().to_numpy() for name in names]
    theirs = printed.reindex(index=names, columns=[column])[column].to_numpy()
    if pairs is None:
        gaps = [told_apart(frame, base, column) for base in names]
    else:
        found = pairs[pairs["metric"] == column].set_index("a")
        gaps = [found[found["b"] == base] for base in names]
    return Rows(names, here, theirs, gaps)


def told_apart(frame: pd.DataFrame, base: str, column: str) -> pd.DataFrame:
    """The gaps to this row of all others that share two seeds with it, as `search.comparing.pairs` has them:
    one family of questions."""
    from setclr_course.search import comparing  # in a package that needs torch

    wide = frame.pivot(index="seed", columns="row", values=column)[frame["row"].unique()]
    couples = [(row, base) for row in wide.columns.drop(base)]
    return comparing.told_apart(wide, couples).set_index("a")


def final(runs: pd.DataFrame) -> tuple[Figures, pd.DataFrame]:
    """The runs of a search as a figure, the best row first, and the gaps of its pairs, both ways round."""
    from setclr_course.search.comparing import pairs  # which needs torch

    table = pairs(runs)
    if table.empty:
        raise ValueError("runs must hold two losses with two seeds in common, got none that learnt in both")
    turned = table.rename(columns={"a": "b", "b": "a"})
    turned[["difference", "low", "high"]] = -table[["difference", "high", "low"]].to_numpy()
    measures = [*MEASURES.values()]
    learnt = runs.assign(row=runs["name"], **runs[measures].mask(runs["collapsed"]))
    best_first = learnt.groupby("row")["knn"].mean().sort_values(ascending=False).index
    frame = learnt.set_index("row").loc[best_first].reset_index()
    return {"final runs": (frame, pd.DataFrame(columns=measures, dtype=float))}, pd.concat([table, turned])


def made_up() -> Figures:
    """Figures of the same kind that nobody has measured."""
    noise, found = np.random.default_rng(2), {}
    for title, means in {"table A": (50, 54, 58, 53), "table B": (51, 57, 57.5)}.items():
        rows = [f"setting {letter}" for letter, _ in zip("pqrs", means)]
        lines = [{"row": row, "seed": seed, "knn": mean + noise.normal(), "linear": mean + 3 + noise.normal()}
                 for row, mean in zip(rows, means) for seed in range(3)]  # fmt: skip
        theirs = pd.DataFrame({"knn": np.add(means, 5.0), "linear": np.add(means, 14.0)}, index=rows)
        found[title] = pd.DataFrame(lines), theirs
    return found
