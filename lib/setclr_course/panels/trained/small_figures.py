"""Tables and curves of the papers, trained again in small: a row for each setting, a dot for each seed, and
beside them what the paper printed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import DUSK, GREEN
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.panels.trained.comparison import MEASURES, colour_of
from setclr_course.panels.trained.ringed_rows import ringed_rows, rows_plot
from setclr_course.panels.trained.rulers import holding

Figures = Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]  # by title: `papers.figures.frame` and `printed`
Apart = dict[str, tuple[float, float]]  # by row: the mean difference, and p after Holm
LEVEL = 0.05
HEAD = {"kNN in the head's outputs": "knn-projection"}


class Rows(NamedTuple):
    """A figure by one measure."""

    names: list[str]
    here: list[np.ndarray]  # of each row, the accuracies of the runs that did not diverge, by seed, per cent
    printed: list[np.ndarray]  # of each row, what the paper prints: one number or none
    apart: list[Apart]  # from each row


class small_figures(Panel):
    """Every row of a figure compared with one of them, which is chosen by dragging: by runs paired by seed,
    with Holm's correction for all rows of the figure.

    Args:
        figures: by title, what `papers.figures.frame` and `papers.figures.printed` give; made-up ones by
            default. If all have it, kNN in the head's outputs is offered.

    Raises:
        ValueError: a figure has no records.
    """

    size, mosaic, widths, row_mosaic, row_height = (9, 4.4), "here paper", (1.4, 1), "here", 4.0
    in_sight = 2

    def __init__(self, figures: Figures | None = None, **initial: Any):
        figures = made_up() if figures is None else figures
        if empty := [title for title, (frame, _) in figures.items() if frame.empty]:
            raise ValueError(
                f"figures must have records, got none of {empty[0]}; leave it out, or train small-…"
            )
        heads = all("knn-projection" in frame for frame, _ in figures.values())
        measures = MEASURES | (HEAD if heads else {})
        self.rows = {(title, word): rows_of(*figure, column)
                     for title, figure in figures.items() for word, column in measures.items()}  # fmt: skip
        ours = np.concatenate([x for rows in self.rows.values() for x in rows.here])
        theirs = np.concatenate([x for rows in self.rows.values() for x in rows.printed])
        self.limits, self.printed = holding(ours, 0.04), holding(theirs if len(theirs) else [0, 100], 0.04)
        self.knobs = {
            "figure": options("figure", figures),
            "row": slider("compared with the row", 100, 0, 100, 5, {0: "top", 100: "bottom"}),
            "measure": options("measured by", measures),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> tuple[Rows, int]:
        """The figure, and the row that the others are compared with."""
        rows = self.rows[values["figure"], values["measure"]]
        return rows, round(values["row"] / 100 * (len(rows.names) - 1))

    def draw(self, page: Page, values: dict, now: tuple[Rows, int]) -> None:
        (names, here, printed, apart), base = now
        told = sum(p <= LEVEL for _, p in apart[base].values())
        title = f"here: {told} of {len(apart[base])} told apart"
        ours = rows_plot(page, "here", names, self.limits, title, "right, %")
        theirs = rows_plot(page, "paper", names, self.printed, "in the paper", "right at its size, %")
        last = max(len(names) - 1, 1)
        rows = ringed_rows(ours, names, here, base, "row", lambda y: 100 * y / last)
        if not any(map(len, printed)):
            theirs.note("no numbers are printed", "middle middle", DUSK)
        for number in printed[base]:
            theirs.line([number, number], [-0.5, last + 0.5], GREEN, 1.5, "dash")
        beside = seed_rows(theirs, printed, [colour_of(name) for name in names])
        for name, found, one, other in zip(names, here, rows, beside):
            said = f"{name}: {np.sum(found) / max(len(found), 1):.1f} % over {len(found)} seeds"
            if name in apart[base]:
                gap, p = apart[base][name]
                said += f", {gap:+.1f} from {names[base]}, p after Holm {p:.2g}"
            if len(found):
                page.link(said, *one, *other)

    def say(self, values: dict, now: tuple[Rows, int]) -> str:
        rows, base = now
        apart, here = rows.apart[base], rows.here[base]
        found = [f"{row} {gap:+.1f}" for row, (gap, p) in apart.items() if p <= LEVEL]
        named = f": {', '.join(found)} points" if found else ""
        mean = f"has {here.mean():.1f} % by {values['measure']}" if len(here) else "diverged"
        return (
            f"{values['figure']} in small: {rows.names[base]} {mean}. Of {len(apart)} other "
            f"rows, paired by seed, Holm's test tells {len(found)} apart from it{named}."
        )


def rows_of(frame: pd.DataFrame, printed: pd.DataFrame, column: str) -> Rows:
    names = list(dict.fromkeys(frame["row"]))
    here = [frame.loc[frame["row"] == name, column].dropna().to_numpy() for name in names]
    theirs = printed.reindex(index=names, columns=[column])[column]
    return Rows(names, here, [np.array([x] if x == x else []) for x in theirs],
                [told_apart(frame, base, column) for base in names])  # fmt: skip


def told_apart(frame: pd.DataFrame, base: str, column: str) -> Apart:
    """Of every other row that shares two seeds with this one: the mean difference, and p after Holm."""
    from setclr_course.search.statistics import holm, paired  # in a package that needs torch

    by_seed = frame.pivot(index="seed", columns="row", values=column)
    found = {}
    for row in dict.fromkeys(frame["row"]):
        both = by_seed[[row, base]].dropna().to_numpy()
        if row != base and len(both) > 1:
            found[row] = paired(both[:, 0], both[:, 1])
    adjusted = holm([one.p for one in found.values()])
    return {row: (one.difference, p) for (row, one), p in zip(found.items(), adjusted)}


def made_up() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Figures of the same kind that nobody has measured."""
    noise, found = np.random.default_rng(2), {}
    for title, means in {"table A": (50, 54, 58, 53), "table B": (51, 57, 57.5)}.items():
        rows = [f"setting {letter}" for letter, _ in zip("pqrs", means)]
        lines = [{"row": row, "seed": seed, "knn": mean + noise.normal(), "linear": mean + 3 + noise.normal()}
                 for row, mean in zip(rows, means) for seed in range(3)]  # fmt: skip
        theirs = pd.DataFrame({"knn": np.add(means, 5.0), "linear": np.add(means, 14.0)}, index=rows)
        found[title] = pd.DataFrame(lines), theirs
    return found
