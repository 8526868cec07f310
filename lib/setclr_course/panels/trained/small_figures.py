"""Tables and curves of the papers, trained again in small: a row for each setting, a dot for each seed, and
beside them what the paper printed."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from setclr_course.kit.palette import BLUE, GREEN, GREY, ORANGE
from setclr_course.panels.trained.comparison import MEASURES
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.seeds import seed_rows
from setclr_course.search.statistics import holm, paired

Figures = Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]  # by title: `papers.figures.frame` and `printed`
Apart = dict[str, tuple[float, float]]  # by row: the mean difference, and p after Holm
LEVEL = 0.05
HEAD = {"kNN in the head's outputs": "knn-projection"}
FARTHEST = 4.0  # rows apart, in heights of a row where there are most


def small_figures(figures: Figures | None = None, **initial) -> Panel:
    """Every row of a figure compared with one of them, which is chosen by dragging: by runs paired by seed,
    with Holm's correction for all rows of the figure.

    Args:
        figures: by title, what `papers.figures.frame` and `papers.figures.printed` give; made-up ones by
            default. The first has three rows or more. If all have it, kNN in the head's outputs is offered.

    Raises:
        ValueError: a figure has no records.
    """
    figures = made_up() if figures is None else figures
    if empty := [title for title, (frame, _) in figures.items() if frame.empty]:
        raise ValueError(f"figures must have records, got none of {empty[0]}; leave it out, or train small-…")
    controls = {
        "figure": options("figure", figures),
        "row": slider("compared with the row", 100, 0, 100, 5, {0: "top", 100: "bottom"}),
        "measure": options("measured by", measures_of(figures)),
    }
    return Panel(partial(build, figures=figures), controls, (9, 4.4), initial, 4.0, 2)


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


def measures_of(figures: Figures) -> dict[str, str]:
    """The columns that all figures have, by their names for a reader."""
    return MEASURES | (HEAD if all("knn-projection" in frame for frame, _ in figures.values()) else {})


def rows_of(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(frame["row"]))


def seeds_of(frame: pd.DataFrame, row: str, column: str) -> pd.Series:
    """The accuracies of a row's runs that did not diverge, by seed."""
    return frame[frame["row"] == row].set_index("seed")[column].dropna()


def theirs_of(printed: pd.DataFrame, row: str, column: str) -> pd.Series:
    """What the paper prints of a row: one number or none."""
    return printed.reindex(index=[row], columns=[column])[column].dropna()


def told_apart(frame: pd.DataFrame, base: str, column: str) -> Apart:
    """Of every other row that shares two seeds with this one: the mean difference, and p after Holm."""
    ours, found = seeds_of(frame, base, column), {}
    for row in rows_of(frame):
        both = pd.concat([seeds_of(frame, row, column), ours], axis=1, join="inner").to_numpy()
        if row != base and len(both) > 1:
            found[row] = paired(both[:, 0], both[:, 1])
    adjusted = holm([one.p for one in found.values()])
    return {row: (one.difference, p) for (row, one), p in zip(found.items(), adjusted)}


def build(figure, compact: bool, figures: Figures) -> Drawing:
    named = [rows_of(frame) for frame, _ in figures.values()]
    most, longest = max(map(len, named)), max(sum(named, []), key=len)
    ours, theirs = (figure.subplots(), None) if compact else figure.subplots(1, 2, width_ratios=[1.6, 1])
    parts = [Rows(ours, most, spans(figures, 0), BLUE, longest)]
    ours.set_xlabel("here, %", fontsize=9)
    if theirs is not None:
        parts.append(Rows(theirs, most, spans(figures, 1), ORANGE))
        theirs.set_xlabel("in the paper, at its size, %", fontsize=9)
    measures = measures_of(figures)
    grip = ours.plot([], [], "o", color=GREEN, markersize=10, fillstyle="none", markeredgewidth=2)[0]
    now: dict = {}

    def update(values: dict) -> str:
        (frame, printed), column = figures[values["figure"]], measures[values["measure"]]
        rows = rows_of(frame)
        base = chosen(values, rows)
        numbers = [seeds_of(frame, row, column).to_numpy() for row in rows]
        now.update(rows=rows, numbers=numbers, base=rows[base], step=parts[0].step(rows))
        now["apart"] = told_apart(frame, rows[base], column)
        parts[0].show(rows, numbers, base)
        if theirs is not None:
            parts[1].show(rows, [theirs_of(printed, row, column) for row in rows], base)
        grip.set_data([numbers[base].mean() if len(numbers[base]) else np.nan], [base * now["step"]])
        return sentence(values, numbers[base], rows[base], now["apart"])

    def at(values: dict) -> tuple[float, float]:
        frame, column = figures[values["figure"]][0], measures[values["measure"]]
        rows = rows_of(frame)
        base = chosen(values, rows)
        return float(np.nan_to_num(seeds_of(frame, rows[base], column).mean())), base * parts[0].step(rows)

    def back(x: float, y: float) -> list[float]:
        return [100 * y / now["step"] / max(len(now["rows"]) - 1, 1)]

    handle = Handle(ours, ("row",), at, "y", back, "the row")
    artists = [artist for part in parts for artist in part.artists]
    return Drawing([*artists, grip], update, {"row": handle}, lambda: links(ours, now))


class Rows:
    """Rows of dots in one of the two fields, room for `most`, with a line through all at the mean of one.
    Fewer rows stand farther apart. Names have room for the `longest`; without one there are none."""

    def __init__(self, axis: Axes, most: int, span: tuple[float, float], colour: str, longest: str = ""):
        room = 0.04 * (span[1] - span[0])
        axis.set(xlim=(span[0] - room, span[1] + room), ylim=(most - 0.4, -0.7))
        # One tick that is not seen: the layout leaves as much room as it needs.
        axis.set_yticks([0], [longest], color="none", fontsize=9)
        axis.tick_params(axis="y", length=0)
        self.most, self.line = most, axis.plot([], [], color=GREEN, linewidth=1.5, linestyle="--")[0]
        self.dots = seed_rows(axis, [colour] * most)
        word: dict = dict(ha="right", va="center", fontsize=9, transform=axis.get_yaxis_transform())
        self.names = [axis.text(-0.02, 0, "", **word) for _ in range(most * bool(longest))]
        middle: dict = dict(ha="center", va="center", color=GREY, transform=axis.transAxes)
        self.nothing = axis.text(0.5, 0.5, "", **middle)
        self.artists = [self.line, *self.dots.artists, *self.names, self.nothing]

    def step(self, rows: list[str]) -> float:
        """How far apart the rows stand."""
        return min((self.most - 1) / max(len(rows) - 1, 1), FARTHEST)

    def show(self, rows: list[str], numbers: list, base: int) -> None:
        step = self.step(rows)
        self.dots.move(numbers, step)
        mean = [np.mean(numbers[base])] * 2 if len(numbers[base]) else []
        self.line.set_data(mean, [-0.5, (len(rows) - 1) * step + 0.5][: len(mean)])
        self.nothing.set_text("" if self.names or any(map(len, numbers)) else "no numbers are printed")
        for y, name in enumerate(self.names):
            name.set(text=rows[y] if y < len(rows) else "", y=y * step)


def chosen(values: dict, rows: list[str]) -> int:
    """The row that others are compared with."""
    return round(values["row"] / 100 * (len(rows) - 1))


def spans(figures: Figures, which: int) -> tuple[float, float]:
    """The least and the largest number of all figures, of ours (0) or of the papers (1)."""
    columns = list(measures_of(figures).values())
    tables = [both[which].reindex(columns=columns).to_numpy(float) for both in figures.values()]
    numbers = np.concatenate([table.ravel() for table in tables])
    numbers = numbers[~np.isnan(numbers)]
    return (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 100.0)


def sentence(values: dict, numbers: np.ndarray, base: str, found: Apart) -> str:
    apart = [f"{row} {gap:+.1f}" for row, (gap, p) in found.items() if p <= LEVEL]
    named = f": {', '.join(apart)} points" if apart else ""
    mean = f"has {numbers.mean():.1f} % by {values['measure']}" if len(numbers) else "diverged"
    return (
        f"{values['figure']} in small: {base} {mean}. Of {len(found)} other "
        f"rows, paired by seed, Holm's test tells {len(apart)} apart from it{named}."
    )


def links(axis: Axes, now: dict) -> list[Link]:
    """Every row with its mean, and how far it is from the chosen one."""
    found = []
    for y, (row, numbers) in enumerate(zip(now["rows"], now["numbers"])):
        if len(numbers):
            said = f"{row}: {numbers.mean():.1f} % over {len(numbers)} seeds"
            if row in now["apart"]:
                gap, p = now["apart"][row]
                said += f", {gap:+.1f} from {now['base']}, p after Holm {p:.2g}"
            found.append(Link([dot(axis, (numbers.mean(), y * now["step"]))], text=said))
    return found
