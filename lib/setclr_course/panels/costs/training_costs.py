"""What pretraining at ImageNet's size costs: an estimate from counted operations, not measured."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from setclr import models
from setclr_course.kit.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, PURPLE, VERMILION
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

IMAGES = 1_281_167  # of ImageNet's training set
PLANS = {"2x224": (2, 0), "3x224": (3, 0), "4x224": (4, 0), "2x224+6x96": (2, 6)}  # groco, table 5
STYLES = {"2x224": (BLUE, "o"), "3x224": (GREEN, "s"), "4x224": (VERMILION, "^"), "2x224+6x96": (PURPLE, "D")}
PEAK = {"A6000": 155, "A100": 312, "H100": 989}  # Tflop/s of their data sheets, bfloat16, not sparse
GPUS = 2.0 ** np.arange(8)
DAYS = (0.0005, 3000)  # of the axis
# The GroCo paper's section 4.1: 100 epochs of 2x224 in "approximately 22 hours" on 8 A6000.
PAPER_HOURS, PAPER_GPUS, PAPER_EPOCHS = 22, 8, 100


class Cost(NamedTuple):
    days: float
    images_per_s: float  # of all GPUs together


def training_costs(**initial) -> Panel:
    """Days and images per second against the number of GPUs, with sliders for what the estimate assumes."""
    used = round(paper_utilisation(), 1)
    controls = {
        "gpus": log_slider("GPUs", 8, 1, 128, np.log10(2), {1: "1", 8: "GroCo: 8", 128: "128"}),
        "epochs": slider("epochs", 100, 100, 800, 100, {100: "100", 800: "GroCo's longest"}),
        "utilisation": slider("used of the peak, %", used, 1, 50, 0.1, {used: "GroCo's 22 hours"}),
        "views": options("views", PLANS),
        "gpu": options("GPU", PEAK),
    }
    return Panel(build, controls, (9, 3.8), initial, 3.6, 1)


@lru_cache
def count() -> dict[int, float]:
    """Operations of a view by its side in pixels, forwards and backwards, counted without running them.

    A multiplication and an addition are two. The model is ResNet-50 with GroCo's head, three layers of 2048.
    """
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        encoder, features = models.encoder("resnet50-imagenet")
        head = models.head(features, 2048, 2048, last_norm=True, layers=3, activation="relu")
        found = {}
        for side in (224, 96):
            with FlopCounterMode(display=False) as counter:
                head(encoder(torch.empty(2, 3, side, side))).sum().backward()
            found[side] = counter.get_total_flops() / 2
    return found


def per_image(views: str) -> float:
    """Operations of one image in all its views."""
    full, local = PLANS[views]
    return full * count()[224] + local * count()[96]


def cost(gpus: float, epochs: int, utilisation: float, views: str, gpu: str) -> Cost:
    """The estimate: operations over those done in a second. Scaling is perfect, the loader never holds up the
    GPUs, and the loss costs nothing."""
    speed = gpus * PEAK[gpu] * 1e12 * utilisation / 100 / per_image(views)
    return Cost(epochs * IMAGES / speed / 86400, speed)


def paper_utilisation() -> float:
    """The per cent of an A6000's peak that the paper's 22 hours imply."""
    seconds = 3600 * PAPER_HOURS * PAPER_GPUS
    return 100 * PAPER_EPOCHS * IMAGES * per_image("2x224") / seconds / (PEAK["A6000"] * 1e12)


def build(figure, compact: bool) -> Drawing:
    """Days against GPUs; not compact, what an image costs beside it."""
    if compact:
        left = figure.subplots()
        parts = [draw_days(left, gap="\n")]
    else:
        left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
        parts = [draw_days(left, gap=", "), draw_image_costs(right)]
        left.set_title("twice the GPUs, half the days: drag the mark", fontsize=10)

    def update(values: dict) -> str:
        for part in parts:
            part.move(values)
        found = cost(**values)
        return (
            f"Estimate: {values['epochs']} epochs of ImageNet in {values['views']} views are "
            f"{values['epochs'] * IMAGES * per_image(values['views']):.1e} operations. {values['gpus']:.3g} "
            f"{values['gpu']} at {values['utilisation']:.3g} % of {PEAK[values['gpu']]} Tflop/s would need "
            f"{duration(found.days)}, if the loaders bring {found.images_per_s:,.0f} images a second."
        )

    mark = Handle(left, ("gpus",), lambda v: (v["gpus"], cost(**v).days), along="x", label="how many GPUs")
    return Drawing([artist for part in parts for artist in part.artists], update, {"gpus": mark})


def draw_days(axis, gap: str) -> Part:
    """A line for each choice of views; moved by the controls. `gap` separates days from images per second."""
    axis.set(xscale="log", yscale="log", xlim=(0.9, 145), ylim=DAYS, xlabel="GPUs", ylabel="days (estimate)")
    axis.set_xticks([1, 2, 4, 8, 16, 32, 64, 128], [1, 2, 4, 8, 16, 32, 64, 128])
    axis.set_yticks([0.01, 0.1, 1, 10, 100, 1000], ["0.01", "0.1", "1", "10", "100", "1,000"])
    axis.minorticks_off()
    for days, word, at, side in ((1, "a day", 140, "right"), (1 / 24, "an hour", 1, "left"),
                                 (30, "a month", 140, "right")):  # fmt: skip
        axis.axhline(days, color=GREY, linewidth=0.7, zorder=0)
        axis.text(at, days * 1.1, word, color="#666666", ha=side, va="bottom", fontsize=8)
    star = axis.plot([PAPER_GPUS], [PAPER_HOURS / 24], "*", color="black", markersize=9, zorder=3)
    words = "★ GroCo's own: 2x224,\n100 epochs, 8 A6000, 22 hours"
    axis.text(0.03, 0.03, words, fontsize=8, transform=axis.transAxes)
    lines = {name: axis.plot([], [], color=colour)[0] for name, (colour, _) in STYLES.items()}
    lines["2x224+6x96"].set_linestyle("--")  # it nearly covers that of 3x224
    dots = {
        name: axis.plot([], [], mark, color=colour, markersize=13, clip_on=False)[0]
        for name, (colour, mark) in STYLES.items()
    }
    said = axis.text(0.98, 0.97, "", ha="right", va="top", weight="bold", transform=axis.transAxes)

    def move(values: dict) -> None:
        for name in PLANS:
            chosen = name == values["views"]
            days = [cost(**values | {"gpus": g, "views": name}).days for g in GPUS]
            lines[name].set_data(GPUS, days)
            lines[name].set(linewidth=3 if chosen else 1, zorder=2 if chosen else 1.5)
            dots[name].set_data([values["gpus"]], [cost(**values | {"views": name}).days])
            dots[name].set_visible(chosen)
        found = cost(**values)
        said.set_text(f"{values['views']}: {duration(found.days)}{gap}{found.images_per_s:,.0f} images/s")

    return Part([*lines.values(), *dots.values(), *star, said], move)


def draw_image_costs(axis) -> Part:
    """What an image costs in each choice of views; the mark at the chosen one is moved by the controls."""
    names = list(PLANS)[::-1]
    full = np.array([PLANS[name][0] * count()[224] / 1e9 for name in names])
    small = np.array([PLANS[name][1] * count()[96] / 1e9 for name in names])
    axis.barh(names, full, color=BLUE, height=0.6)
    axis.barh(names, small, left=full, color=ORANGE, height=0.6)
    axis.text(full[-1] - 1, 3, "224 px", color="white", ha="right", va="center", fontsize=8)
    axis.text(full[0] + small[0] / 2, 0, "96 px", ha="center", va="center", fontsize=8)
    for y, name in enumerate(names):
        colour, sign = STYLES[name]
        axis.plot(full[y] + small[y] + 5, y, sign, color=colour, markersize=9)
    axis.set(xlabel="Gflop an image; ◀ chosen", xlim=(0, 118), ylim=(-0.6, 3.6))
    axis.set_title("six small crops: about one full view", fontsize=10)
    mark = axis.plot([], [], "<", color=OCHRE, markersize=9, clip_on=False)[0]

    def move(values: dict) -> None:
        y = names.index(values["views"])
        mark.set_data([full[y] + small[y] + 13], [y])

    return Part([mark], move)


def duration(days: float) -> str:
    """Days, or hours or minutes where that is easier to grasp."""
    if days < 1 / 12:
        return f"{24 * 60 * days:.0f} minutes"
    if days >= 2:
        return f"{days:.1f} days"
    return f"{24 * days:.0f} hours" if days > 10 / 24 else f"{24 * days:.1f} hours"
