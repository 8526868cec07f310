"""Recorded trainings that differ in the loss: how far each loss has fallen, epoch by epoch, and what the
features were worth at the end."""

import json
import re
from pathlib import Path

import ipywidgets as widgets
import numpy as np
import pandas as pd

from setclr.evaluation.records import spread
from setclr.explore.palette import BLUE, GREY, MIST, OCHRE, ORANGE, VERMILION
from setclr.explore.panel import LABEL, WIDTH, Drawing, Panel, options, slider
from setclr.recipe import DEFAULTS
from setclr.recipes import PUBLISHED, RECIPES

Records = dict[str, dict[int, dict]]  # by name of the loss and by seed: what lies in data/results
ALL = "all seeds"
OWN = ("loss", "seed")  # fields in which recipes that are compared may differ


def recorded_curves(records: Records | None = None, **initial) -> Panel:
    """The records of `read`, with a choice of the loss and of the seed, and a slider for the epoch.

    Losses have units and zeros of their own, so a curve shows which part of its whole fall a loss has behind
    it: 0 after the first epoch, 1 after the last, whatever the unit and the zero. Without records it shows
    three made-up ones.
    """
    records = records or made_up()
    last = max(record["epochs"] for runs in records.values() for record in runs.values())
    if last < 2:
        raise ValueError("records must be of 2 epochs or more, got 1: a curve needs two points")
    names = ranked(records)
    seeds = sorted({seed for runs in records.values() for seed in runs})
    controls = {
        "loss": widgets.Dropdown(options=names, value=names[0], description="loss"),
        "epoch": slider("epoch", last, 1, last, 1, {1: "first", last: "last"}),
    }
    controls["loss"].style.description_width, controls["loss"].layout.width = LABEL, WIDTH
    if len(seeds) > 1:
        controls["seeds"] = options("seeds", [ALL, *(f"seed {seed}" for seed in seeds)])
    return Panel(lambda figure, compact: build(figure, compact, records), controls, (9.6, 4.5), initial, 3.4)


def read(folder: str | Path, prefix: str = "compare-conv4-") -> Records:
    """The records FOLDER/PREFIX-NAME-seedS.json, as many as there are.

    Raises:
        FileNotFoundError: there is none.
        ValueError: they differ in more than loss and seed and cannot be compared.
    """
    found, first = {}, None
    for path in sorted(Path(folder).glob(f"{prefix}*-seed*.json")):
        name, seed = re.fullmatch(r"(.+)-seed(\d+)", path.stem.removeprefix(prefix)).groups()
        record = json.loads(path.read_text())
        alike = {**DEFAULTS, **record["recipe"], "trained for": record["epochs"]}
        alike |= {key: record[key] for key in ("images", "pixels")}
        alike = {key: value for key, value in alike.items() if key not in OWN}
        first = first or alike
        other = [key for key in alike if alike[key] != first.get(key)]
        if other:
            raise ValueError(f"{path.name} differs from the first record in {', '.join(other)}")
        found.setdefault(name, {})[int(seed)] = record
    if not found:
        raise FileNotFoundError(f"{folder}: no {prefix}*.json; python -m setclr campaign makes them")
    return found


def accuracies(runs: dict[int, dict], row: str, column: str) -> list[float]:
    """In per cent, a value a seed."""
    return [record["accuracy_percent"][row][column] for _, record in sorted(runs.items())]


def ranked(records: Records) -> list[str]:
    """The names of the losses, the best linear probe (mean over the seeds) first."""
    return sorted(records, key=lambda name: -np.mean(accuracies(records[name], "trained", "linear")))


def standings(records: Records) -> pd.DataFrame:
    """Means over the seeds, the best linear probe first; `gain` is how far it is above untrained features."""
    rows = {}
    for name in ranked(records):
        knn, linear = (np.mean(accuracies(records[name], "trained", column)) for column in ("knn", "linear"))
        gain = linear - np.mean(accuracies(records[name], "untrained", "linear"))
        rows[name] = {"kNN": knn, "linear": linear, "gain": gain, "seeds": len(records[name])}
    return pd.DataFrame.from_dict(rows, orient="index")


def deviation(records: Records, column: str = "linear") -> float:
    """Standard deviation over seeds, of all losses together; NaN where no loss has two seeds."""
    columns = [accuracies(runs, "trained", column) for runs in records.values()]
    squares = sum(np.sum((np.array(values) - np.mean(values)) ** 2) for values in columns)
    freedom = sum(len(values) - 1 for values in columns)
    return float((squares / freedom) ** 0.5) if freedom else float("nan")


def beside(rows: dict[str, str | None], records: Records) -> pd.DataFrame:
    """Rows of papers' tables by name, with what the loss of that name got here; None: nothing to compare."""
    lines = {}
    for row, name in rows.items():
        theirs, found = RECIPES[row], records.get(name)
        ours = spread(accuracies(found, "trained", "linear")) if found else "–"
        where = f"{theirs.data}, {theirs.encoder}, {theirs.epochs} epochs"
        lines[row] = {"the paper's data": where, "published": str(PUBLISHED[row]), "ours: linear": ours}
    return pd.DataFrame.from_dict(lines, orient="index")


def losses(record: dict) -> np.ndarray:
    return np.array([row["loss"] for row in record["history"]])


def behind(values: np.ndarray) -> np.ndarray:
    """The part of the change from the first to the last value that lies behind it, at every value."""
    return (values - values[0]) / (values[-1] - values[0] or 1)


def build(figure, compact: bool, records: Records) -> Drawing:
    left, right = (figure.subplots(), None) if compact else figure.subplots(1, 2, width_ratios=[1, 1.25])
    last = max(record["epochs"] for runs in records.values() for record in runs.values())
    left.set(xlim=(0.5, last + 0.5), ylim=(-0.1, 1.25), xlabel="epoch", yticks=[0, 0.5, 1])
    left.set_xticks([1, *range(5, last, 5), last] if last > 5 else range(1, last + 1))
    left.set_yticklabels(["0 %", "50 %", "100 %"])
    if not compact:
        left.set_title("part of its own fall that lies behind the loss")
    for runs in records.values():
        for record in runs.values():
            curve = behind(losses(record))
            left.plot(range(1, len(curve) + 1), curve, color="#d8d8d8", linewidth=0.8, zorder=0)
    most = max(map(len, records.values()))
    curves = [left.plot([], [], color=VERMILION, linewidth=1.8)[0] for _ in range(most)]
    dots = left.plot([], [], "o", color="black", markersize=6)[0]
    words = left.text(0.98, 0.06, "", transform=left.transAxes, ha="right", va="bottom", fontsize=9)
    moving = [*curves, dots, words]
    if right is not None:
        rows = draw_accuracies(right, records)
        band = right.axhspan(0, 1, color=MIST, zorder=-1)
        circles, squares = (
            right.plot([], [], marker, color=colour, markersize=9, markeredgecolor="black")[0]
            for marker, colour in (("o", BLUE), ("s", ORANGE))
        )
        moving += [band, *rows, circles, squares]

    def update(values: dict) -> str:
        name, epoch, chosen = values["loss"], values["epoch"], values.get("seeds", ALL)
        runs = records[name]
        shown = {s: r for s, r in runs.items() if chosen in (ALL, f"seed {s}")}
        for curve in curves:
            curve.set_data([], [])
        for curve, record in zip(curves, shown.values()):
            part = behind(losses(record))
            curve.set_data(range(1, len(part) + 1), part)
        series = [losses(record) for record in shown.values()]
        now = [min(epoch, len(values)) - 1 for values in series]
        dots.set_data([at + 1 for at in now], [behind(v)[at] for v, at in zip(series, now)])
        if right is not None:
            mark(right, band, circles, squares, ranked(records).index(name), shown)
        if not shown:
            words.set_text(f"{name}: not recorded\nwith {chosen}")
            return f"{name}, {chosen}, epoch {epoch}: not recorded (yet)."
        first, here, end = (
            float(np.mean([v[at] for v, at in zip(series, places)]))
            for places in ([0] * len(series), now, [-1] * len(series))
        )
        part = (here - first) / (end - first or 1)
        words.set_text(f"{name}\nloss {here:.4g} after epoch {epoch}\n({first:.4g} at first, {end:.4g} last)")
        knn, linear = (spread(accuracies(shown, "trained", column)) for column in ("knn", "linear"))
        who = ", ".join(map(str, sorted(shown)))
        return (
            f"{name}, {chosen} ({who}), after epoch {epoch} of {last}: loss {here:.4g}, "
            f"{abs(part):.0%} of its way from {first:.4g} to {end:.4g}. Last epoch: kNN {knn} %, "
            f"linear probe {linear} %."
        )

    return Drawing(moving, update)


def draw_accuracies(axis, records: Records) -> list:
    """A row a loss, the best on top; returns what must be drawn again over the moving band."""
    names = ranked(records)
    first = next(iter(next(iter(records.values())).values()))["accuracy_percent"]
    untrained = [r["accuracy_percent"]["untrained"] for runs in records.values() for r in runs.values()]
    lines = [("raw pixels, kNN", first["raw pixels"]["knn"], GREY, ":")]
    for column, word, colour in (("knn", "kNN", BLUE), ("linear", "linear", OCHRE)):
        lines.append((f"untrained, {word}", np.mean([row[column] for row in untrained]), colour, "--"))
    drawn = [axis.axvline(x, color=colour, linestyle=s, linewidth=1.2) for _, x, colour, s in lines]
    for place, (word, value, colour, style) in enumerate(lines):
        text = f"{'· · ·' if style == ':' else '- - -'}  {word} {value:.1f} %"
        shade = "#555555" if colour == GREY else colour
        drawn.append(axis.text(0.01, 0.12 - 0.045 * place, text, color=shade, fontsize=8,
                               transform=axis.transAxes, bbox={"color": "white", "pad": 0.5}))  # fmt: skip
    for column, colour, marker, shift in (("knn", BLUE, "o", -0.15), ("linear", ORANGE, "s", 0.15)):
        for place, name in enumerate(names):
            points = accuracies(records[name], "trained", column)
            y = [place + shift] * len(points)
            drawn += axis.plot([min(points), max(points)], y[:1] * 2, color=colour, linewidth=1.5)
            drawn += axis.plot(points, y, marker, color=colour, markersize=4.5, linestyle="none")
    every = [p for n in names for c in ("knn", "linear") for p in accuracies(records[n], "trained", c)]
    ends = min([*every, *(x for _, x, _, _ in lines)]), max(every)
    room = 0.06 * (ends[1] - ends[0])
    axis.set(xlim=(ends[0] - room, ends[1] + room), ylim=(1.2 * len(names), -0.6), yticks=range(len(names)),
             yticklabels=names, xlabel="accuracy of the last epoch's features, %")  # fmt: skip
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_title("● kNN   ■ linear probe", fontsize=11)
    return drawn


def mark(axis, band, circles, squares, place: int, shown: dict[int, dict]) -> None:
    """Move the band to a loss and enlarge the points of the seeds that are shown."""
    band.set(y=place - 0.5, height=1)
    for points, column, shift in ((circles, "knn", -0.14), (squares, "linear", 0.14)):
        values = accuracies(shown, "trained", column)
        points.set_data(values, [place + shift] * len(values))


def made_up() -> Records:
    """Three losses with two seeds each that nobody has measured."""
    rng, found = np.random.default_rng(0), {}
    for k, name in enumerate(("made-up loss A", "made-up loss B", "made-up loss C")):
        for seed in (0, 1):
            values = 10.0**-k * (3 + np.exp(-np.arange(10) / (2 + k)) + rng.normal(0, 0.01, 10))
            gain = [2 * k + rng.random() for _ in "ab"]
            found.setdefault(name, {})[seed] = {
                "epochs": 10,
                "history": [{"epoch": i + 1, "loss": float(v)} for i, v in enumerate(values)],
                "accuracy_percent": {
                    "raw pixels": {"knn": 30.0},
                    "untrained": {"knn": 31.0, "linear": 32.0},
                    "trained": {"knn": 38 + gain[0], "linear": 41 + gain[1]},
                },
            }
    return found
