"""All pairs of losses by their p-values, with the usual level and the steps that Holm's test has instead."""

from functools import partial

import numpy as np
import pandas as pd

from setclr_course.kit.palette import BLACK, GREY, OF_LOSS, VERMILION
from setclr_course.panels.trained.comparison import Records, learnt, made_up, pairs
from setclr_course.pixels.controls import log_slider, options
from setclr_course.pixels.handles import Handle, Link, dot
from setclr_course.pixels.panel import Drawing, Panel

MEASURES = {"linear probe": "linear", "kNN": "knn"}
ALL, LEARNT = "all", "those that learnt"
LEAST = 1e-5  # p-values below it are drawn there
Tables = dict[tuple[str, str], pd.DataFrame]  # of `pairs`, by measure and by who is compared


def holm_steps(records: Records | None = None, **initial) -> Panel:
    """The pairs of `comparison.pairs`, least p first: those below a flat line at the level, and those that
    Holm's test keeps, which stops at the first dot above its steps (Holm 1979).

    Without records it shows three made-up losses.

    Raises:
        ValueError: the records have no two losses with two seeds in common, so nothing is known of noise.
    """
    records = records or made_up()
    good = learnt(records)
    chosen = {ALL: records} | ({LEARNT: good} if 1 < len(good) < len(records) else {})
    tables = {(word, who): pairs(some, column).sort_values("p")
              for word, column in MEASURES.items() for who, some in chosen.items()}  # fmt: skip
    if any(table["p"].isna().any() or table.empty for table in tables.values()):
        raise ValueError("records must hold two losses or more with two seeds or more, or noise is unknown")
    marks = {0.005: "0.005", 0.05: "usual: 0.05", 0.5: "0.5"}
    controls = {
        "level": log_slider("level", 0.05, 0.0005, 0.5, 0.1, marks),
        "measure": options("features measured by", MEASURES),
    }
    if len(chosen) > 1:
        controls["compared"] = options("losses compared", chosen)
    collapsed = set(records) - set(good)
    return Panel(partial(build, tables=tables, collapsed=collapsed), controls, (9, 4.2), initial, 3.9, 3)


def kept(table: pd.DataFrame, level: float) -> int:
    """How many pairs Holm's test keeps; they are the first of the table."""
    return int((table["holm"] <= level).sum())


def build(figure, compact: bool, tables: Tables, collapsed: set[str]) -> Drawing:
    axis, most = figure.subplots(), max(map(len, tables.values()))
    axis.set(yscale="log", ylim=(LEAST / 1.7, 1.5), xlim=(0, most + 1))
    axis.set_xlabel("pairs, the least likely to be noise first")
    axis.set_ylabel("p: how likely noise is to do this", fontsize=9 if compact else 10)
    axis.set_yticks([1, 1e-1, 1e-2, 1e-3, 1e-4, LEAST], ["1", "0.1", "0.01", "0.001", "0.0001", "less"])
    axis.minorticks_off()
    title = axis.set_title("", fontsize=9 if compact else 11)
    flat = axis.plot([], [], "--", color=GREY, linewidth=1.6, label="the level, for one question")[0]
    steps = axis.plot([], [], color=VERMILION, linewidth=1.6, label="Holm's steps, for all of them")[0]
    kinds = {
        "kept by Holm": dict(color=BLACK),
        "below the level only": dict(color=BLACK, fillstyle="none"),
        "above it": dict(color="#bbbbbb"),
        "with a collapsed run": dict(color=OF_LOSS["SparseCLR"]),
    }
    size = 3.5 if compact else 5
    dots = {word: axis.plot([], [], "o", markersize=size, linestyle="", label=word, **kind)[0]
            for word, kind in kinds.items() if collapsed or "collapsed" not in word}  # fmt: skip
    if not compact:
        axis.legend(loc="lower right", fontsize=9, frameon=False)
    now: dict = {}

    def update(values: dict) -> str:
        table, level = tables[values["measure"], values.get("compared", ALL)], values["level"]
        now.update(table=table)
        n, k, usual = len(table), kept(table, level), int((table["p"] <= level).sum())
        flat.set_data([0, most + 1], [level, level])
        steps.set_data(np.arange(1, n + 1), level / np.arange(n, 0, -1))
        place(dots, table, k, usual, collapsed)
        full = f"{usual} of {n} pairs are below the level, {k} are kept by Holm's test"
        title.set_text(f"{usual} of {n} pairs; Holm: {k}" if compact else full)
        return sentence(values, n, usual, k)

    line = Handle(axis, ("level",), lambda v: (most, v["level"]), along="y", label="the level")
    artists = [flat, steps, *dots.values(), title]
    return Drawing(artists, update, {"level": line}, lambda: links(axis, now["table"]))


def place(dots: dict, table: pd.DataFrame, k: int, usual: int, collapsed: set[str]) -> None:
    """Each pair among the dots of its kind."""
    rank, heights = np.arange(len(table)), table["p"].clip(lower=LEAST).to_numpy()
    lost = np.array([bool(collapsed & set(pair)) for pair in table.index]) & (rank < k)
    shown = {"kept by Holm": (rank < k) & ~lost, "below the level only": (rank >= k) & (rank < usual),
             "above it": rank >= usual, "with a collapsed run": lost}  # fmt: skip
    for word, marks in dots.items():
        marks.set_data(rank[shown[word]] + 1, heights[shown[word]])


def sentence(values: dict, n: int, usual: int, k: int) -> str:
    return (
        f"By the {values['measure']}, {values.get('compared', ALL)}: of {n} pairs {usual} have a p up to "
        f"{values['level']:.3g}, and Holm's test for all {n} questions keeps {k}."
    )


def links(axis, table: pd.DataFrame) -> list[Link]:
    """Every dot with the names of its pair."""
    found = []
    for rank, (pair, row) in enumerate(zip(table.index, table.itertuples()), 1):
        better, worse = pair if row.gap >= 0 else pair[::-1]
        said = f"{better} above {worse}: {abs(row.gap):.1f} points, p {row.p:.2g}, after Holm {row.holm:.2g}"
        found.append(Link([dot(axis, (rank, max(row.p, LEAST)))], text=said))
    return found
