"""The curves of recorded trainings: how far each loss has fallen, epoch by epoch, and what the features were
worth at the end."""

import ipywidgets as widgets
import numpy as np

from setclr.explore.kit.controls import LABEL, WIDTH, options, slider
from setclr.explore.kit.panel import Drawing, Panel
from setclr.explore.kit.parts import Part
from setclr.explore.trained.comparison import Records, accuracies, losses, progress, ranked
from setclr.palette import BLUE, MIST, OCHRE, ORANGE, VERMILION
from setclr.reports.records import spread

ALL = "all seeds"
COLUMNS = (("knn", BLUE, "o", -0.15), ("linear", ORANGE, "s", 0.15))


def recorded_curves(records: Records | None = None, **initial) -> Panel:
    """The records of `comparison.read`, with a choice of loss and seed, and a slider for the epoch.

    Losses have units and zeros of their own, so a curve shows which part of its whole fall a loss has behind
    it: 0 after the first epoch, 1 after the last. Without records it shows three made-up ones.

    Raises:
        ValueError: no record has two epochs.
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


def of_seeds(runs: dict[int, dict], chosen: str) -> dict[int, dict]:
    """The runs of "all seeds", or the one of "seed S"."""
    return {seed: record for seed, record in runs.items() if chosen in (ALL, f"seed {seed}")}


def build(figure, compact: bool, records: Records) -> Drawing:
    left, right = (figure.subplots(), None) if compact else figure.subplots(1, 2, width_ratios=[1, 1.25])
    if not compact:
        left.set_title("part of its own fall that lies behind the loss")
    last = max(record["epochs"] for runs in records.values() for record in runs.values())
    curves = draw_curves(left, records, last)
    rows = draw_accuracies(right, records) if right is not None else None

    def update(values: dict) -> str:
        name, chosen = values["loss"], values.get("seeds", ALL)
        shown = of_seeds(records[name], chosen)
        curves.move(name, shown, values["epoch"], chosen)
        if rows is not None:
            rows.move(name, chosen)
        return sentence(name, chosen, shown, values["epoch"], last)

    return Drawing([*curves.artists, *(rows.artists if rows else [])], update)


def sentence(name: str, chosen: str, shown: dict[int, dict], epoch: int, last: int) -> str:
    if not shown:
        return f"{name}, {chosen}, epoch {epoch}: not recorded (yet)."
    start, here, end = mean_losses(shown, epoch)
    knn, linear = (spread(accuracies(shown, "trained", column)) for column in ("knn", "linear"))
    who = ", ".join(map(str, sorted(shown)))
    return (
        f"{name}, {chosen} ({who}), after epoch {epoch} of {last}: loss {here:.4g}, "
        f"{round(100 * (here - start) / (end - start or 1))}% of its way from {start:.4g} to {end:.4g}. Last "
        f"epoch: kNN {knn} %, linear probe {linear} %."
    )


def mean_losses(shown: dict[int, dict], epoch: int) -> tuple[float, float, float]:
    """After the first epoch, this one and the last, the mean over the runs."""
    series = [losses(record) for record in shown.values()]
    now = [values[min(epoch, len(values)) - 1] for values in series]
    start, end = (float(np.mean([values[at] for values in series])) for at in (0, -1))
    return start, float(np.mean(now)), end


def draw_curves(axis, records: Records, last: int) -> Part:
    """All curves in grey; moved by a loss, its runs, the epoch and the name of the seeds."""
    axis.set(xlim=(0.5, last + 0.5), ylim=(-0.1, 1.25), xlabel="epoch", yticks=[0, 0.5, 1])
    axis.set_xticks([1, *range(5, last, 5), last] if last > 5 else range(1, last + 1))
    axis.set_yticklabels(["0 %", "50 %", "100 %"])
    for runs in records.values():
        for record in runs.values():
            curve = progress(losses(record))
            axis.plot(range(1, len(curve) + 1), curve, color="#d8d8d8", linewidth=0.8, zorder=0)
    most = max(map(len, records.values()))
    curves = [axis.plot([], [], color=VERMILION, linewidth=1.8)[0] for _ in range(most)]
    dots = axis.plot([], [], "o", color="black", markersize=6)[0]
    words = axis.text(0.98, 0.06, "", transform=axis.transAxes, ha="right", va="bottom", fontsize=9)

    def move(name: str, shown: dict[int, dict], epoch: int, chosen: str) -> None:
        series = [losses(record) for record in shown.values()]
        for k, curve in enumerate(curves):
            part = progress(series[k]) if k < len(series) else np.empty(0)
            curve.set_data(range(1, len(part) + 1), part)
        now = [min(epoch, len(values)) - 1 for values in series]
        dots.set_data([at + 1 for at in now], [progress(values)[at] for values, at in zip(series, now)])
        if shown:
            start, here, end = mean_losses(shown, epoch)
            said = f"loss {here:.4g} after epoch {epoch}\n({start:.4g} at first, {end:.4g} last)"
            words.set_text(f"{name}\n{said}")
        else:
            words.set_text(f"{name}: not recorded\nwith {chosen}")

    return Part([*curves, dots, words], move)


def draw_accuracies(axis, records: Records) -> Part:
    """One row for each loss, the best on top; moved by a loss and the name of the seeds."""
    names, every, moving = ranked(records), [], [axis.axhspan(0, 1, color=MIST, zorder=-1)]
    for column, colour, marker, shift in COLUMNS:
        for y, name in enumerate(names):
            points = accuracies(records[name], "trained", column)
            every += [*points, *accuracies(records[name], "untrained", column)]
            moving += axis.plot(points, [y + shift] * len(points), f"{marker}-", color=colour, markersize=4.5,
                                linewidth=1.5, alpha=0.35)  # fmt: skip
    chosen = [axis.plot([], [], x[2], color=x[1], markersize=s)[0] for s in (4.5, 9) for x in COLUMNS]
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

    def move(loss: str, seeds: str) -> None:
        shown = {n: of_seeds(runs, seeds) for n, runs in records.items()}
        moving[0].set(y=names.index(loss) - 0.5, height=1)
        for k, (column, *_, shift) in enumerate(COLUMNS):
            at = {n: accuracies(shown[n], "trained", column) for n in names}
            chosen[k].set_data([x for n in names for x in at[n]],
                               [y + shift for y, n in enumerate(names) for _ in at[n]])  # fmt: skip
            chosen[2 + k].set_data(at[loss], [names.index(loss) + shift] * len(at[loss]))
            before = np.mean([x for n in names for x in accuracies(shown[n], "untrained", column)])
            lines[1 + k].set_xdata([before, before])
            words[1 + k].set_text(f"- - -  untrained, {column} {before:.1f} %".replace("knn", "kNN"))

    return Part([*moving, *lines, *words, *chosen], move)


def made_up() -> Records:
    """Three losses with two seeds each that nobody has measured."""
    rng, found = np.random.default_rng(0), Records()
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
