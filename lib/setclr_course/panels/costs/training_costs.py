"""What pretraining at ImageNet's size costs: an estimate from counted operations, not measured."""

from functools import cache
from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.palette import BLUE, DUSK, GREEN, GREY, INK, PURPLE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Piece

IMAGES = 1_281_167  # of ImageNet's training set
PLANS = {"2x224": (2, 0), "3x224": (3, 0), "4x224": (4, 0), "2x224+6x96": (2, 6)}  # groco, table 5
COLOURS = {"2x224": BLUE, "3x224": GREEN, "4x224": VERMILION, "2x224+6x96": PURPLE}
PEAK = {"A6000": 155, "A100": 312, "H100": 989}  # Tflop/s of their data sheets, bfloat16, not sparse
GPUS = (1, 128)
DAYS = (0.0005, 3000)  # of the axis
# The GroCo paper's section 4.1: 100 epochs of 2x224 in "approximately 22 hours" on 8 A6000.
PAPER_HOURS, PAPER_GPUS, PAPER_EPOCHS = 22, 8, 100


class Cost(NamedTuple):
    days: float
    images_per_s: float  # of all GPUs together


class training_costs(Panel):
    """Days and images per second against the number of GPUs, with sliders for what the estimate assumes."""

    size, row_height, in_sight = (9, 3.8), 3.6, 1
    mosaic, row_mosaic, widths = "days images", "days", (1.3, 1)

    def __init__(self, **initial):
        used = round(paper_utilisation(), 1)
        self.knobs = {
            "gpus": log_slider("GPUs", 8, *GPUS, np.log10(2), {1: "1", 8: "GroCo: 8", 128: "128"}),
            "epochs": slider("epochs", 100, 100, 800, 100, {100: "100", 800: "GroCo's longest"}),
            "utilisation": slider("used of the peak, %", used, 1, 50, 0.1, {used: "GroCo's 22 hours"}),
            "views": options("views", PLANS),
            "gpu": options("GPU", PEAK),
        }
        longest = {"views": "2x224+6x96", "epochs": 800}  # page 12 asks how many GPUs bring it under a day
        gpus = map(self.knobs["gpus"].stop, range(self.knobs["gpus"].stops))
        self.also = [longest, *({**longest, "gpus": many} for many in gpus)]
        super().__init__(**initial)

    def solve(self, values: dict) -> Cost:
        return cost(**values)

    def draw(self, page: Page, values: dict, now: Cost) -> None:
        lines, bars = draw_days(page, values, now), draw_image_costs(page, values["views"])
        for name in PLANS:
            days = cost(**values | {"views": name}).days
            page.link(f"{name}: {duration(days)}", lines[name], *bars[name], views=name)

    def say(self, values: dict, now: Cost) -> str:
        return (
            f"Estimate: {values['epochs']} epochs of ImageNet in {values['views']} views are "
            f"{values['epochs'] * IMAGES * per_image(values['views']):.1e} operations. {values['gpus']:.3g} "
            f"{values['gpu']} at {values['utilisation']:.3g} % of {PEAK[values['gpu']]} Tflop/s would need "
            f"{duration(now.days)}, if the loaders bring {now.images_per_s:,.0f} images a second."
        )


@cache
def count() -> dict[int, float]:
    """Operations of a view by its side in pixels, forwards and backwards, counted without running them.

    A multiplication and an addition are two. The model is ResNet-50 with GroCo's head, three layers of 2048.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from setclr import models

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


def draw_days(page: Page, values: dict, now: Cost) -> dict[str, Mark]:
    """A line for each choice of views, the chosen one thick; the lines by name."""
    title = "" if page.row else "twice the GPUs, half the days: drag the mark"
    days = {day: f"{day:,g}" for day in (0.01, 0.1, 1, 10, 100, 1000)}
    plot = page.plot("days", (0.9, 145), DAYS, title, "GPUs", "days (estimate)",
                     2 ** np.arange(8), days, log="x y")  # fmt: skip
    known = ((1, "a day", 140, "end"), (1 / 24, "an hour", 1, "start"), (30, "a month", 140, "end"))
    for day, word, at, side in known:
        plot.line([0.9, 145], [day, day], GREY, 0.8)
        plot.text(at, day, word, DUSK, "small", anchor=side, rise="bottom")
    lines = {}
    for name, colour in COLOURS.items():
        ends = [cost(**values | {"gpus": gpus, "views": name}).days for gpus in GPUS]
        dash = "dash" if name == "2x224+6x96" else ""  # it nearly covers that of 3x224
        lines[name] = plot.line(GPUS, ends, colour, 4 if name == values["views"] else 1.5, dash)
    point = (values["gpus"], now.days)
    plot.dots(point, COLOURS[values["views"]], size=17).handle(
        "gpus", point, along="x", label="how many GPUs"
    )
    plot.dots([PAPER_GPUS, PAPER_HOURS / 24], INK, "◆", 9)
    plot.note("◆ GroCo's own: 2x224,\n100 epochs, 8 A6000, 22 hours", "bottom left", size="small")
    plot.note(f"{values['views']}: {duration(now.days)}", "top right", bold=True)
    plot.note(f"{now.images_per_s:,.0f} images/s", "top right", bold=True, line=1)
    return lines


def draw_image_costs(page: Page, chosen: str) -> dict[str, list[Piece]]:
    """What an image costs in each choice of views, the chosen one thick; the bars by name."""
    title, below = "six small crops: about a full view", "Gflop an image; pale: 96 px"
    ticks: dict = {"xticks": range(0, 101, 20), "yticks": dict(enumerate(PLANS))}
    plot = page.plot("images", (0, 105), (3.6, -0.6), title, below, **ticks)
    bars = {}
    for y, (name, (full, small)) in enumerate(PLANS.items()):
        middle, end, half = full * count()[224] / 1e9, per_image(name) / 1e9, 0.4 if name == chosen else 0.25
        one = plot.boxes([0, y - half], [middle, y + half], COLOURS[name])
        two = plot.boxes([middle, y - half], [end, y + half], COLOURS[name], opacity=0.5)
        bars[name] = [one[0], two[0]] if small else [one[0]]
    return bars


def duration(days: float) -> str:
    """Days, or hours or minutes where that is easier to grasp."""
    if days < 1 / 12:
        return f"{24 * 60 * days:.0f} minutes"
    if days >= 2:
        return f"{days:.1f} days"
    return f"{24 * days:.0f} hours" if days > 10 / 24 else f"{24 * days:.1f} hours"
