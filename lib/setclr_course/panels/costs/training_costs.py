"""What pretraining at ImageNet's size costs: an estimate from counted operations, not measured."""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from setclr import models
from setclr_course.kit.palette import BLUE, GREEN, GREY, INK, PALE, PURPLE, VERMILION
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, options, slider

IMAGES = 1_281_167  # of ImageNet's training set
PLANS = {"2x224": (2, 0), "3x224": (3, 0), "4x224": (4, 0), "2x224+6x96": (2, 6)}  # groco, table 5
COLOURS = dict(zip(PLANS, (BLUE, GREEN, VERMILION, PURPLE)))
PEAK = {"A6000": 155, "A100": 312, "H100": 989}  # Tflop/s of their data sheets, bfloat16, not sparse
GPUS = (1, 128)
DAYS = (0.0005, 3000)  # of the axis
KNOWN = {1 / 24: "an hour", 1: "a day", 30: "a month", 365: "a year"}
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
            "utilisation": slider("used of the peak, %", used, 1, 50, 0.1, {used: "GroCo"}),
            "views": options("views", PLANS),
            "gpu": options("GPU", PEAK),
        }
        longest = {"views": "2x224+6x96", "epochs": 800}  # page 12 asks how many GPUs bring it under a day
        self.also = [longest, *({**longest, "gpus": 2**k} for k in range(8))]
        super().__init__(**initial)

    def solve(self, values: dict) -> Cost:
        return cost(**values)

    def draw(self, page: Page, values: dict, now: Cost) -> None:
        lines, (bars, crops) = self.draw_days(page, values, now), self.draw_image_costs(page)
        for k, name in enumerate(PLANS):
            days = cost(**values | {"views": name}).days
            page.link(f"{name}: {duration(days)}", lines[k], bars[k], crops[k], views=name)

    def draw_days(self, page: Page, values: dict, now: Cost) -> list[Mark]:
        """A line for each choice of views, the chosen one thick."""
        title, gpus = "twice the GPUs, half the days", [2**k for k in range(8)]
        plot = page.plot("days", (0.9, 145), DAYS, title, "GPUs", "estimate", gpus, KNOWN, log="x y")
        plot.segments([(0.9, day) for day in KNOWN], [(145, day) for day in KNOWN], GREY, 0.8)
        lines = []
        for name, colour in COLOURS.items():
            ends = [cost(**values | {"gpus": many, "views": name}).days for many in GPUS]
            dash = "dash" if name == "2x224+6x96" else ""  # it nearly covers that of 3x224
            lines.append(plot.line(GPUS, ends, colour, 4 if name == values["views"] else 1.5, dash))
        point = values["gpus"], now.days
        mark = plot.dots(point, COLOURS[values["views"]], size=17)
        mark.handle("gpus", point, along="x", label="how many GPUs")
        plot.dots([PAPER_GPUS, PAPER_HOURS / 24], INK, "◆", 9)
        plot.note("◆ GroCo's own: 2x224,\n100 epochs, 8 A6000, 22 hours", "bottom left", size="small")
        said = f"{values['views']}: {duration(now.days)}\n{in_two_digits(now.images_per_s)} images/s"
        plot.note(said, "top right", bold=True)
        return lines

    def draw_image_costs(self, page: Page) -> tuple[Mark, Mark]:
        """What an image costs in each choice of views: full views, then small crops."""
        title, below = "six small crops: about a full view", "Gflop an image; grey: 96 px"
        rows, ticks = dict(enumerate(PLANS)), range(0, 101, 20)
        plot = page.plot("images", (0, 105), (3.6, -0.6), title, below, "", ticks, rows, room=(8, 0, 0, 0))
        full = [views * count()[224] / 1e9 for views, _ in PLANS.values()]
        every = [per_image(name) / 1e9 for name in PLANS]
        bars = plot.bars(list(rows), full, list(COLOURS.values()), 0.6, flat=True)
        return bars, plot.bars(list(rows), every, PALE, 0.6, full, flat=True)

    def say(self, values: dict, now: Cost) -> str:
        return (
            f"Estimate: {values['epochs']} epochs of ImageNet in {values['views']} views are "
            f"{values['epochs'] * IMAGES * per_image(values['views']) / 1e18:.1f} · 10¹⁸ operations. "
            f"{values['gpus']:.3g} {values['gpu']} at {values['utilisation']:.3g} % of {PEAK[values['gpu']]} "
            f"Tflop/s would need {duration(now.days)}, if the loaders bring "
            f"{in_two_digits(now.images_per_s)} images a second."
        )


@cache
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
    return 100 * cost(PAPER_GPUS, PAPER_EPOCHS, 100, "2x224", "A6000").days / (PAPER_HOURS / 24)


def in_two_digits(number: float) -> str:
    """An estimate is not known better."""
    return f"{float(f'{number:.2g}'):,.0f}"


def duration(days: float) -> str:
    """In days, or in hours or minutes where there are not two of them."""
    units = {"days": days, "hours": 24 * days, "minutes": 1440 * days}
    unit, number = next((word, many) for word, many in units.items() if many >= 2 or word == "minutes")
    return f"{number:,.0f} {unit}" if number > 20 else f"{number:.1f} {unit}"
