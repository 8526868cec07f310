"""Recorded trainings as a race: how far each loss has fallen, epoch by epoch, and what the features were
worth at the end."""

from functools import partial

import numpy as np
from matplotlib.collections import LineCollection

from setclr.experiments.records import spread
from setclr_course.kit.palette import GREY, MIST
from setclr_course.panels.trained.comparison import (
    Records,
    accuracies,
    colour_of,
    losses,
    made_up,
    progress,
    ranked,
)
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, Mark, box, dot, line
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

MEASURES = {"linear probe": "linear", "kNN": "knn"}


def recorded_curves(records: Records | None = None, **initial) -> Panel:
    """The records of `comparison.read`: the epochs play, and a loss is chosen by its row.

    Losses have units and zeros of their own, so a curve shows which part of its whole fall a loss has behind
    it: 0 after the first epoch, 1 after the last, the mean over its seeds. Without records it shows
    made-up ones.

    Raises:
        ValueError: no record has two epochs, or those of a loss differ in their number.
    """
    records = records or made_up(6)
    falls = {name: fall(name, runs) for name, runs in records.items()}
    last = max(map(len, falls.values()))
    if last < 2:
        raise ValueError("records must be of 2 epochs or more, got 1: a curve needs two points")
    names = ranked(records)
    n = len(names)
    controls = {"epoch": slider("epoch", max(last // 4, 1), 1, last, 1, {1: "first", last: "last"})}
    if n > 1:
        controls["row"] = slider("row, from the top", n, 1, n, 1, {1: names[0], n: names[-1]})
    controls["measure"] = options("features measured by", MEASURES)
    drawing = partial(build, records=records, falls=falls)
    return Panel(drawing, controls, (9, 4.6), initial, 3.8, 1, play="epoch")


def fall(name: str, runs: dict[int, dict]) -> np.ndarray:
    """After every epoch the part of the loss's fall that lies behind it: the mean over the runs."""
    lengths = {len(losses(record)) for record in runs.values()}
    if len(lengths) > 1:
        raise ValueError(f"runs of a loss must be of the same epochs, got {sorted(lengths)} of {name}")
    return np.mean([progress(losses(record)) for record in runs.values()], axis=0)


def build(figure, compact: bool, records: Records, falls: dict[str, np.ndarray]) -> Drawing:
    left, right = (figure.subplots(), None) if compact else figure.subplots(1, 2, width_ratios=[1, 1.1])
    parts, names = [draw_curves(left, falls, compact)], ranked(records)
    if right is not None:
        parts.append(draw_rows(right, records))
    now: dict = {}

    def update(values: dict) -> str:
        name = chosen(values)
        now.update(values)
        for part in parts:
            part.move(name, values)
        return sentence(name, values, records, falls)

    def chosen(values: dict) -> str:
        return names[values.get("row", 1) - 1]

    def at(values: dict) -> tuple[float, float]:
        return values["epoch"], height(falls[chosen(values)], values["epoch"])

    handles = {"epoch": Handle(left, ("epoch",), at, along="x", label="the epoch")}
    if right is not None and len(names) > 1:
        low = right.get_xlim()[0]
        handles["row"] = Handle(right, ("row",), lambda v: (low, v["row"]), along="y", label="the row")
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(left, right, names, falls, now["epoch"]))


def height(curve: np.ndarray, epoch: int) -> float:
    return float(curve[min(epoch, len(curve)) - 1])


def place(name: str, falls: dict[str, np.ndarray], epoch: int) -> int:
    """1 for the loss with the largest part of its fall behind it, and so on."""
    return 1 + sum(height(curve, epoch) > height(falls[name], epoch) for curve in falls.values())


def sentence(name: str, values: dict, records: Records, falls: dict[str, np.ndarray]) -> str:
    epoch, measure, last = values["epoch"], values["measure"], max(map(len, falls.values()))
    start, here, end = mean_losses(records[name], epoch)
    values_of = {n: np.mean(accuracies(r, "trained", MEASURES[measure])) for n, r in records.items()}
    best = 1 + sum(value > values_of[name] for value in values_of.values())
    among = f", number {place(name, falls, epoch)} of {len(falls)} in falling" if 1 < epoch < last else ""
    return (
        f"{name}, after epoch {epoch} of {last}: loss {here:.4g}, {height(falls[name], epoch):.0%} of its "
        f"way from {start:.4g} to {end:.4g}{among}. Its features by the {measure}: "
        f"{spread(accuracies(records[name], 'trained', MEASURES[measure]))} %, number {best}."
    )


def mean_losses(runs: dict[int, dict], epoch: int) -> tuple[float, float, float]:
    """After the first epoch, this one and the last, the mean over the runs."""
    series = np.mean([losses(record) for record in runs.values()], axis=0)
    return float(series[0]), float(series[min(epoch, len(series)) - 1]), float(series[-1])


def links(left, right, names: list[str], falls: dict[str, np.ndarray], epoch: int) -> list[Link]:
    """The curve of each loss, so far as it is drawn, and its row."""
    found = []
    for y, name in enumerate(names, 1):
        points = list(zip(range(1, epoch + 1), falls[name][:epoch]))
        curve: list[Mark] = [line(left, a, b) for a, b in zip(points, points[1:])] or [dot(left, points[0])]
        low, high = right.get_xlim() if right is not None else (0, 0)
        row = [box(right, (low, y - 0.45), (high, y + 0.45))] if right is not None else []
        said = f"{name}: {height(falls[name], epoch):.0%} of its fall"
        found.append(Link([*curve, *row], text=said))
    return found


def draw_curves(axis, falls: dict[str, np.ndarray], compact: bool) -> Part:
    """All curves up to the epoch, the chosen one in its loss's colour."""
    last = max(map(len, falls.values()))
    low, high = (f([curve.min() for curve in falls.values()] + [curve.max() for curve in falls.values()])
                 for f in (min, max))  # fmt: skip
    axis.set(xlim=(0.5, last + 0.5), ylim=(low - 0.06, high + 0.06), xlabel="epoch", yticks=[0, 0.5, 1])
    axis.set_xticks([1, *range(5, last, 5), last] if last > 5 else range(1, last + 1))
    axis.set_yticklabels(["0 %", "50 %", "100 %"])
    if not compact:
        axis.set_ylabel("part of its own fall behind a loss")
    title = axis.set_title("", fontsize=9 if compact else 11)
    others = axis.add_collection(LineCollection([], colors="#b4b4b4", linewidths=1))
    curve, mark = axis.plot([], [], linewidth=2.6)[0], axis.plot([], [], "o", markersize=9)[0]
    word = axis.text(0.98, 0.04, "", transform=axis.transAxes, ha="right", fontsize=10, weight="bold")

    def move(name: str, values: dict) -> None:
        epoch = values["epoch"]
        drawn = {n: np.c_[range(1, len(y) + 1), y][:epoch] for n, y in falls.items()}
        others.set_segments([points for n, points in drawn.items() if n != name])
        curve.set_data(*drawn[name].T)
        mark.set_data([epoch], [height(falls[name], epoch)])
        for artist in (curve, mark, word):
            artist.set_color(colour_of(name))
        word.set_text(f"{name} {height(falls[name], epoch):.0%}")
        first = max(falls, key=lambda n: height(falls[n], epoch))
        ends = {1: "all begin at 0 %", last: "all at their end"}
        title.set_text(f"epoch {epoch}: {ends.get(epoch, f'{first} has fallen most')}")

    return Part([others, curve, mark, word, title], move)


def draw_rows(axis, records: Records) -> Part:
    """A row for each loss with a dot for each seed, the best linear probe on top; dashed: untrained."""
    names = ranked(records)
    every = [x for runs in records.values() for row in ("trained", "untrained")
             for column in MEASURES.values() for x in accuracies(runs, row, column)]  # fmt: skip
    room = 0.06 * (max(every) - min(every))
    axis.set(xlim=(min(every) - room, max(every) + room), ylim=(len(names) + 0.6, 0.4),
             xlabel="accuracy at the end, %; a dot for each seed")  # fmt: skip
    axis.set_yticks(range(1, len(names) + 1), names, fontsize=9)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    title = axis.set_title("")
    shade = axis.axhspan(0, 1, color=MIST, zorder=-1)
    before = axis.axvline(0, color=GREY, linestyle="--", linewidth=1.2)
    word = axis.text(0, len(names) + 0.5, "", fontsize=9, color="#555555", ha="right", va="bottom")
    dots = [axis.plot([], [], "o", color=colour_of(name), markersize=6)[0] for name in names]

    def move(_: str, values: dict) -> None:
        column = MEASURES[values["measure"]]
        shade.set(y=values.get("row", 1) - 0.5, height=1)
        for y, (name, marks) in enumerate(zip(names, dots), 1):
            found = accuracies(records[name], "trained", column)
            marks.set_data(found, [y] * len(found))
        untrained = float(np.mean([x for r in records.values() for x in accuracies(r, "untrained", column)]))
        before.set_xdata([untrained, untrained])
        word.set_text("untrained ")
        word.set_x(untrained)
        means = {name: np.mean(accuracies(records[name], "trained", column)) for name in names}
        title.set_text(f"{max(means, key=means.__getitem__)} has the best features")

    return Part([shade, before, word, *dots, title], move)
