"""Recorded trainings that differ in the loss: how far each loss has fallen, epoch by epoch, and what the
features were worth at the end."""

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import ipywidgets as widgets
import numpy as np
import pandas as pd

from setclr.explore.kit.panel import LABEL, WIDTH, Drawing, Panel, Picture, options, slider, still
from setclr.palette import BLUE, MIST, OCHRE, ORANGE, VERMILION
from setclr.recipes import PUBLISHED, RECIPES
from setclr.recipes.recipe import DEFAULTS
from setclr.reports.records import spread

Records = dict[str, dict[int, dict]]  # by name of the loss and by seed: what lies in data/results
ALL = "all seeds"
OWN = ("loss", "seed")  # fields in which recipes that are compared may differ
LOOKS = (("knn", BLUE, "o", -0.15), ("linear", ORANGE, "s", 0.15))


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


def common(records: Records) -> Records:
    """Those seeds alone that every loss has: only means over the same seeds may stand in one column.

    Raises ValueError if there is no such seed.
    """
    shared = set.intersection(*(set(runs) for runs in records.values()))
    if not shared:
        raise ValueError("records must share a seed, got none that every loss has")
    return {name: {seed: runs[seed] for seed in sorted(shared)} for name, runs in records.items()}


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


def deviation(records: Records, within: bool = False) -> float:
    """Standard deviation of the linear probes over seeds, of all losses together; NaN without two seeds.

    within: of what is left when that which a seed adds to all losses alike is taken away (least squares):
    the noise between losses trained with the same seeds.
    """
    rows = [(name, seed) for name, runs in records.items() for seed in sorted(runs)]
    seeds = sorted({seed for _, seed in rows})[1:] if within else []
    sides = np.array(
        [[*(n == name for name in records), *(s == seed for seed in seeds)] for n, s in rows], float
    )
    values = np.concatenate([accuracies(runs, "trained", "linear") for runs in records.values()])
    left = values - sides @ np.linalg.lstsq(sides, values, rcond=None)[0]
    freedom = len(values) - np.linalg.matrix_rank(sides)
    return float((left @ left / freedom) ** 0.5) if freedom else float("nan")


def gaps(records: Records, name: str, other: str) -> np.ndarray:
    """By how many points the linear probe of one loss is above the other's, seed by seed."""
    both = set(records.get(name, {})) & set(records.get(other, {}))
    first, second = ({seed: records[n][seed] for seed in both} if both else {} for n in (name, other))
    return np.subtract(accuracies(first, "trained", "linear"), accuracies(second, "trained", "linear"))


def pairs(records: Records) -> pd.DataFrame:
    """All pairs of losses that share a seed: the mean gap, the seeds, and `needed` = 2·r·√(2/seeds), r being
    the deviation within seeds; NaN where it is unknown."""
    r, rows = deviation(records, within=True), {}
    for pair in combinations(ranked(records), 2):
        if len(gap := gaps(records, *pair)):
            rows[pair] = {"gap": gap.mean(), "seeds": len(gap), "needed": 2 * r * (2 / len(gap)) ** 0.5}
    return pd.DataFrame.from_dict(rows, orient="index")


def gap_picture(records: Records, to: str = "infonce", reach: float = 6) -> Picture:
    """The gap from one loss to every other, a dot a seed; grey: where means are no more than noise. Gaps
    beyond `reach` points stand as a number."""
    names = [name for name in ranked(records) if name != to and len(gaps(records, name, to))]
    r = deviation(records, within=True)

    def draw(figure) -> str:
        axis, words = figure.subplots(), []
        axis.axvline(0, color="black", linewidth=1)
        for place, name in enumerate(names):
            gap = gaps(records, name, to)
            mean, needed = gap.mean(), 2 * r * (2 / len(gap)) ** 0.5
            axis.barh(
                place, 2 * np.nan_to_num(needed), 0.8, -np.nan_to_num(needed), color="#e4e4e4", zorder=0
            )
            axis.plot([mean, mean], [place - 0.35, place + 0.35], color=VERMILION, linewidth=2.5)
            axis.plot(gap, [place] * len(gap), "o", color=BLUE, markersize=5)
            if abs(mean) > reach:
                at = np.sign(mean) * 0.9 * reach
                axis.text(at, place, f"{mean:+.1f}", va="center", ha="center", color=VERMILION)
            words.append(f"{name} {mean:+.1f}{' (noise)' if abs(mean) <= needed else ''}")
        axis.set(xlim=(-reach, reach), ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)),
                 yticklabels=names, xlabel=f"linear probe: points above {to} with the same seed")  # fmt: skip
        return f"Mean gap to {to} with the same seeds: {', '.join(words)}."

    return still(draw, (8.6, 1 + 0.27 * len(names)))


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
        rows, show_seed = draw_accuracies(right, records)
        moving += rows

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
            show_seed(name, chosen)
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
            f"{round(100 * part)}% of its way from {first:.4g} to {end:.4g}. Last epoch: kNN {knn} %, "
            f"linear probe {linear} %."
        )

    return Drawing(moving, update)


def draw_accuracies(axis, records: Records) -> tuple[list, Callable[[str, str], None]]:
    """A row a loss, the best on top; returns what moves, and what moves it to a loss and to seeds."""
    names, every, moving = ranked(records), [], [axis.axhspan(0, 1, color=MIST, zorder=-1)]
    for column, colour, marker, shift in LOOKS:
        for y, name in enumerate(names):
            points = accuracies(records[name], "trained", column)
            every += [*points, *accuracies(records[name], "untrained", column)]
            moving += axis.plot(points, [y + shift] * len(points), f"{marker}-", color=colour, markersize=4.5,
                                linewidth=1.5, alpha=0.35)  # fmt: skip
    chosen = [axis.plot([], [], x[2], color=x[1], markersize=s)[0] for s in (4.5, 9) for x in LOOKS]
    for large in chosen[2:]:
        large.set_markeredgecolor("black")
    raw = next(iter(next(iter(records.values())).values()))["accuracy_percent"]["raw pixels"]["knn"]
    styles = (("#555555", ":"), (BLUE, "--"), (OCHRE, "--"))
    lines = [axis.axvline(raw, color=colour, linestyle=style, linewidth=1.2) for colour, style in styles]
    words = [axis.text(0.01, 0.12 - 0.045 * i, f"· · ·  raw pixels, kNN {raw:.1f} %", fontsize=8,
                       color=colour, transform=axis.transAxes, bbox={"color": "white", "pad": 0.5})
             for i, (colour, _) in enumerate(styles)]  # fmt: skip
    low, high = min(*every, raw), max(*every, raw)
    axis.set(xlim=(1.06 * low - 0.06 * high, 1.06 * high - 0.06 * low), ylim=(1.2 * len(names), -0.6),
             yticks=range(len(names)), yticklabels=names,
             xlabel="accuracy of the last epoch's features, %")  # fmt: skip
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_title("● kNN   ■ linear probe", fontsize=11)

    def show(loss: str, seeds: str) -> None:
        shown = {
            n: {s: r for s, r in runs.items() if seeds in (ALL, f"seed {s}")} for n, runs in records.items()
        }
        moving[0].set(y=names.index(loss) - 0.5, height=1)
        for k, (column, *_, shift) in enumerate(LOOKS):
            at = {n: accuracies(shown[n], "trained", column) for n in names}
            chosen[k].set_data([x for n in names for x in at[n]],
                               [y + shift for y, n in enumerate(names) for _ in at[n]])  # fmt: skip
            chosen[2 + k].set_data(at[loss], [names.index(loss) + shift] * len(at[loss]))
            before = np.mean([x for n in names for x in accuracies(shown[n], "untrained", column)])
            lines[1 + k].set_xdata([before, before])
            words[1 + k].set_text(f"- - -  untrained, {column} {before:.1f} %".replace("knn", "kNN"))

    return [*moving, *lines, *words, *chosen], show


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
