"""The recorded runs on moving-patches: what the features know of the photograph and of the motion."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from setclr_course.kit.palette import BLACK, BLUE, GREEN, GREY
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part
from setclr_course.search.statistics import paired

Scores = Mapping[str, Mapping[str, Mapping[str, list[float]]]]  # by row, thing and measure: (seeds,) per cent
MEASURES = ("retrieval@1", "linear", "ten crops")
LEVELS = {"50 %": 0.5, "95 %": 0.95, "99 %": 0.99}


def read_scores(folder: str | Path, data: str = "moving-patches") -> dict:
    """The accuracies of all records of those videos in the folder. Raises ValueError where a record is
    damaged; FileNotFoundError where there are none."""
    from setclr_course.papers.tables import recorded, video_scores

    found = recorded(folder, "video", data)
    return {name.replace("moving-", ""): video_scores(kept) for name, kept in found.items()}


def made_up() -> dict:
    """Scores of the same kind, for trying the panel out."""
    noise = np.random.default_rng(5)
    means = {
        "rgb-infonce": (30, 34),
        "rgb-mmcl": (28, 30),
        "flow-infonce": (12, 55),
        "rgb-untrained": (14, 12),
    }
    return {
        name: {
            thing: {m: list(mean + 4 * k + 2 * noise.standard_normal(3)) for k, m in enumerate(MEASURES)}
            for thing, mean in zip(("photograph", "motion"), pair)
        }
        for name, pair in means.items()
    }


def video_column(scores: Scores | None = None, classes: tuple[int, int] = (18, 9), **initial) -> Panel:
    """A row for each run: of photograph and of motion a dot for each seed, and an interval for their mean.

    Args:
        scores: as `read_scores` gives them; made-up ones by default.
        classes: how many photographs and motions there are; guessing is right for one in so many.
    """
    scores = scores or made_up()
    controls = {
        "measure": options("measure", MEASURES),
        "line": slider("line at", 50, 0, 100, 1, {0: "none", 100: "all right"}),
        "interval": options("interval", LEVELS, "95 %"),
    }
    return Panel(lambda f, compact: build(f, compact, scores, classes), controls, (9, 4.6), initial, 4.2, 2)


def half_width(x: Sequence[float], level: float) -> float:
    """Of Student's interval for the mean of (seeds,); 0 for one seed."""
    return 0.0 if len(x) < 2 else float(paired(x, [0.0] * len(x), level).high - np.mean(x))


def build(figure, compact: bool, scores: Scores, classes: tuple[int, int]) -> Drawing:
    things = ("motion",) if compact else ("photograph", "motion")
    axes = figure.subplots(1, len(things), sharey=True, squeeze=False)[0]
    names = list(scores)
    guess = dict(zip(("photograph", "motion"), (100 / n for n in classes)))
    parts = [draw_rows(axis, names, thing, guess[thing], compact) for axis, thing in zip(axes, things)]
    line = axes[-1].plot([], [], color=GREEN, linewidth=2)[0]
    knob = axes[-1].plot([], [], "o", color=GREEN, markersize=10, clip_on=False)[0]

    def update(values: dict) -> str:
        for part, thing in zip(parts, things):
            part.move(scores, thing, values["measure"], LEVELS[values["interval"]])
        line.set_data([values["line"]] * 2, [-0.7, len(names)])
        knob.set_data([values["line"]], [-0.7])
        return sentence(values, scores)

    at = lambda values: (values["line"], -0.7)  # noqa: E731
    handles = {} if compact else {"line": Handle(axes[-1], ("line",), at, "x", label="the line")}
    return Drawing([*(a for part in parts for a in part.artists), line, knob], update, handles)


def draw_rows(axis: Axes, names: list[str], thing: str, guess: float, compact: bool) -> Part:
    axis.set(xlim=(0, 101), ylim=(len(names) - 0.4, -0.9), yticks=range(len(names)))
    axis.set_yticklabels(names, fontsize=7 if compact else 9)
    axis.set_xlabel(f"right about the {thing}, per cent", fontsize=9)
    axis.axvline(guess, color=GREY, linewidth=1, linestyle=":")
    if not compact:
        axis.set_title("dots: seeds   bar: interval   dotted: guessing", fontsize=9)
    bars = [axis.plot([], [], color=BLACK, linewidth=2)[0] for _ in names]
    dots = [axis.plot([], [], "o", color=BLUE, markersize=5, alpha=0.8)[0] for _ in names]

    def move(scores: Scores, thing: str, measure: str, level: float) -> None:
        for y, name in enumerate(names):
            x = scores[name][thing][measure]
            mean, half = np.mean(x), half_width(x, level)
            bars[y].set_data([mean - half, mean + half], [y, y])
            dots[y].set_data(x, y + np.linspace(-0.15, 0.15, len(x)))

    return Part([*bars, *dots], move)


def sentence(values: dict, scores: Scores) -> str:
    measure, line = values["measure"], values["line"]
    means = {name: np.mean(of["motion"][measure]) for name, of in scores.items()}
    above = [name for name, mean in means.items() if mean > line]
    photo = {name: np.mean(of["photograph"][measure]) for name, of in scores.items()}
    best = max(photo, key=photo.__getitem__)
    wide = np.mean([half_width(of["motion"][measure], LEVELS[values["interval"]])
                    for of in scores.values()])  # fmt: skip
    return (
        f"By {measure}, {len(above)} of {len(scores)} are right about the motion in over {line} per cent "
        f"of clips. Best about the photograph: {best}, {photo[best]:.1f}. The {values['interval']} interval "
        f"of a mean about the motion is on average ± {wide:.1f}."
    )
