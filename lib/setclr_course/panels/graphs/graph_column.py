"""The recorded column of MMCL's table 4, epoch by epoch: what the choice of the epoch does to a table."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from setclr_course.kit.palette import GREEN, GREY, INK, MIST, OF_LOSS
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.seeds import seed_rows

Curves = Mapping[str, np.ndarray]  # (seeds, epochs) per cent, by loss; one epoch where nothing is learnt
TRACK = -0.7  # y of the line that the epoch is dragged along
RULES = ("this epoch", "the best so far")
SIGNS = {"graphcl": "InfoNCE", "sparseclr": "SparseCLR", "groco": "GroCo", "iot": "IOT", "mmcl": "MMCL"}


def read_column(folder: str | Path, data: str = "mutag") -> dict[str, np.ndarray]:
    """The curves of all graph recipes of that set which have a record in the folder. Raises ValueError where
    a record is damaged; FileNotFoundError where there are none."""
    from setclr_course.papers.tables import graph_curves, recorded

    found = recorded(folder, "graph", data)
    return {name.split(f"-{data}-")[-1]: np.array(graph_curves(kept)) for name, kept in found.items()}


def made_up() -> dict[str, np.ndarray]:
    """Curves of the same kind, for trying the panel out."""
    noise = np.random.default_rng(3)
    names = ("graphcl", "mmcl", "groco", "untrained")
    return {n: 85 + 1.5 * noise.standard_normal((5, 1 if n == "untrained" else 20)) for n in names}


def graph_column(curves: Curves | None = None, data: str = "mutag", **initial) -> Panel:
    """A row for each loss: a dot for each seed, its mean, and what the paper printed for that data set.

    Args:
        curves: as `read_column` gives them; made-up ones by default.
    """
    from setclr.recipes import PUBLISHED

    curves = curves or made_up()
    rows = {name: row for name, row in PUBLISHED.items() if name.startswith(f"mmcl-table4-{data}-")}
    printed = {name.split("-")[-1]: (row.numbers["svm"], row.spread["svm"]) for name, row in rows.items()}
    end = last(curves)
    controls = {
        "rule": options("take", RULES),
        "epoch": slider("epoch", end, 1, end, 1, {1: "first", end: "last"}),
    }
    return Panel(
        lambda figure, compact: build(figure, compact, curves, printed),
        controls,
        (9, 4.3),
        initial,
        4.2,
        2,
        play="epoch",
    )


def taken(curves: Curves, epoch: int, rule: str) -> dict[str, np.ndarray]:
    """(seeds,) for each loss: the accuracy at that epoch, or the best up to it."""
    seen = {name: x[:, :epoch] for name, x in curves.items()}
    return {name: x.max(1) if rule == RULES[1] else x[:, -1] for name, x in seen.items()}


def build(figure, compact: bool, curves: Curves, printed: Mapping[str, tuple[float, float]]) -> Drawing:
    axis, names = figure.subplots(), list(curves)
    low = min(x.min() for x in curves.values()) - 0.5
    high = max(x.max() for x in curves.values()) + 0.5
    axis.set(xlim=(low, high), ylim=(len(names) - 0.4, -0.9), yticks=range(len(names)))
    axis.set_yticklabels(names, fontsize=8 if compact else 10)
    axis.set_xlabel("accuracy of the SVM in per cent" + (" (larger is better)" if not compact else ""))
    for name, (mean, spread) in printed.items():
        if name in names:
            y = names.index(name)
            axis.fill_betweenx([y - 0.32, y + 0.32], mean - spread, mean + spread, color=MIST, linewidth=0)
            axis.plot([mean, mean], [y - 0.32, y + 0.32], color=GREY, linewidth=2)
    if not compact:
        axis.set_title(
            "dots: seeds   black line: their mean   pale field: what the paper printed", fontsize=10
        )
    colours = [OF_LOSS.get(SIGNS.get(name.split("+")[0].split("-")[0], ""), INK) for name in names]
    dots, end = seed_rows(axis, colours), max(last(curves), 2)
    knob = axis.plot([], [], "o", color=GREEN, markersize=10, clip_on=False, visible=not compact)[0]
    if not compact:
        axis.plot([low, high], [TRACK] * 2, color=GREEN, linewidth=1, zorder=0)
        axis.text(low, TRACK, "epoch ", color=GREEN, ha="right", va="center", fontsize=10)

    def update(values: dict) -> str:
        found = taken(curves, values["epoch"], values["rule"])
        dots.move(list(found.values()))
        knob.set_data(*np.array(at(values))[:, None])
        return sentence(values, found, curves)

    def at(values: dict) -> tuple[float, float]:
        return low + (high - low) * (values["epoch"] - 1) / (end - 1), TRACK

    def to(x: float, y: float) -> list[float]:
        return [1 + (x - low) / (high - low) * (end - 1)]

    return Drawing(
        [*dots.artists, knob], update, {"epoch": Handle(axis, ("epoch",), at, "x", to, "the epoch")}
    )


def last(curves: Curves) -> int:
    return max(x.shape[1] for x in curves.values())


def sentence(values: dict, found: Mapping[str, np.ndarray], curves: Curves) -> str:
    means = {name: x.mean() for name, x in found.items()}
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    now, so_far = (taken(curves, values["epoch"], rule) for rule in RULES)
    gain = np.mean([so_far[name] - now[name] for name in means if name != "untrained"])
    untrained = f" Untrained: {means['untrained']:.1f}." if "untrained" in means else ""
    return (
        f"Epoch {values['epoch']}, {values['rule']}: from {worst} {means[worst]:.1f} to {best} "
        f"{means[best]:.1f} per cent.{untrained} The best epoch so far is on average {gain:.1f} above this "
        "one."
    )
