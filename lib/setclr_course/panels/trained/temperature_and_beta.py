"""Short trainings at several temperatures τ of InfoNCE and several β of GroCo: what each does to the loss,
to the accuracy and to the similarities of positives and negatives."""

import copy
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from setclr import views
from setclr.data import ImageSet
from setclr.evaluation import features, knn
from setclr.experiments.run import Run, new_run
from setclr.recipes import ImageRecipe
from setclr.seeding import seeded
from setclr_course.kit.palette import FIELD, GREY, INK, OF_LOSS, VERMILION
from setclr_course.kit.tiles import decoded
from setclr_course.panels.trained import quick_training
from setclr_course.panels.trained.quick_training import quick_sets
from setclr_course.pixels.controls import log_slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel

TEMPERATURES = (0.004, 0.02, 0.1, 0.5, 2.5)  # equal steps on a logarithmic slider
BETAS = (0.0625, 0.25, 1.0, 4.0, 16.0)
LOSSES = {"InfoNCE": "InfoNCE(temperature={})", "GroCo": "GroCo(beta={}, negatives=10)"}
SYMBOLS = {"InfoNCE": "τ", "GroCo": "β"}
CONTROLS = {"InfoNCE": "temperature", "GroCo": "beta"}
BATCH = 256  # images whose similarities are shown
EDGES = np.linspace(-1, 1, 41)
PLATE = {"facecolor": "white", "linewidth": 0, "pad": 0.5}  # of a number, so that no line crosses it


class Outcome(NamedTuple):
    """What a short training came to."""

    losses: list[float]  # of the epochs
    knn: float  # accuracy in 0..1, k=10, T=0.1
    positives: np.ndarray  # (BATCH,) cosines of the two views of an image
    negatives: np.ndarray  # (BATCH · (BATCH - 1),) cosines of views of two images


Grid = dict[tuple[str, float], Outcome]  # by loss and by its τ or β


def temperature_and_beta(grid: Grid | None = None, untrained: Outcome | None = None, **initial) -> Panel:
    """What τ does to InfoNCE, in the upper row, and β to GroCo, below, with a slider for each.

    Args:
        grid: the trainings that the sliders walk through, of both losses or of one; the values of a loss must
            be equally far apart on a logarithmic scale.
        untrained: its accuracy is drawn as a line.

    Without arguments it trains for two epochs on some patches, in seconds.

    Raises:
        ValueError: a loss has fewer than two values, or they are not equally far apart.
    """
    if grid is None:
        grid, untrained = quick_grid()
    controls = {}
    names = [name for name in LOSSES if values_of(grid, name)]
    for name in names:
        word, usual = {"InfoNCE": ("temperature τ", 0.1), "GroCo": ("steepness β", 1.0)}[name]
        values = values_of(grid, name)
        steps = np.diff(np.log10(values))
        if len(values) < 2 or np.ptp(steps) > 1e-6:
            raise ValueError(f"grid must hold equal steps of {SYMBOLS[name]} on a log scale, got {values}")
        start = min(values, key=lambda value: abs(np.log(value / usual)))
        marks = {value: f"{value:g}" for value in values}
        controls[CONTROLS[name]] = log_slider(word, start, values[0], values[-1], float(steps.mean()), marks)
    drawing = partial(build, grid=grid, untrained=untrained, names=names)
    heights = 0.5 + 2.1 * len(names), 0.8 + 1.8 * len(names)
    return Panel(drawing, controls, (9, heights[0]), initial, heights[1], 2)


def outcome(run: Run, train: ImageSet, test: ImageSet) -> Outcome:
    """What a run came to: kNN on the test images with the training images as neighbours, and similarities.

    The similarities are those that the loss sees: of two views of BATCH training images, with batch norms
    that take the statistics of the batch.
    """
    bank, queries = (features(run.encoder, part.images) for part in (train, test))
    predicted = knn(bank, train.labels, queries, k=min(10, len(bank)), temperature=0.1)
    images = decoded(train.sample(min(BATCH, len(train))))
    x = views.augment(images, views.preset(run.recipe.views), seeded(1234))
    model = copy.deepcopy(nn.Sequential(run.encoder, run.head)).cpu().train()
    with torch.no_grad():
        a, b = F.normalize(torch.stack([model(view) for view in x]), dim=-1)
    cosines = (a @ b.T).numpy()
    other = ~np.eye(len(images), dtype=bool)
    accuracy = float((predicted == test.labels).float().mean())
    return Outcome([row["loss"] for row in run.rows], accuracy, cosines.diagonal().copy(), cosines[other])


def values_of(grid: Grid, name: str) -> list[float]:
    return sorted(value for loss, value in grid if loss == name)


def quick_grid(epochs: int = 2, n: int = 128) -> tuple[Grid, Outcome]:
    train, test = quick_sets(n)
    grid = {}
    for name, values in (("InfoNCE", TEMPERATURES), ("GroCo", BETAS)):
        for value in values:
            recipe = ImageRecipe(
                LOSSES[name].format(value), views="photo", epochs=epochs, lr=3e-3, last_norm=True
            )
            run = new_run(recipe, channels=3)
            quick_training.train(run, train, epochs)
            grid[name, value] = outcome(run, train, test)
    return grid, outcome(new_run(recipe, channels=3), train, test)


class Row:
    """The pictures of one loss: its curve, the accuracies of all its values, the similarities of one."""

    def __init__(self, axes, name: str, grid: Grid, untrained: Outcome | None, low: float, high: float):
        self.name, self.grid, self.values = name, grid, values_of(grid, name)
        dots, curve, bars = axes
        self.moving = []
        if curve is not None:
            self.curve = curve
            longest = max(len(one.losses) for one in grid.values())
            curve.set(xlim=(0.7, longest + 0.3), ylim=(-0.08, 1.45), yticks=[], xticks=[1, longest])
            dots.set_ylabel(name, fontsize=12, weight="bold")
            self.line = curve.plot([], [], "o-", color=OF_LOSS[name], markersize=4)[0]
            self.words = curve.text(
                0.98, 0.97, "", transform=curve.transAxes, ha="right", va="top", fontsize=9
            )
            accuracies = [100 * grid[name, value].knn for value in self.values]
            dots.plot(range(len(accuracies)), accuracies, "o-", color=GREY, linewidth=1, markersize=5)
            dots.set(xticks=range(len(accuracies)), ylim=(low, high), xlim=(-0.5, len(accuracies) - 0.5))
            dots.set_xticklabels([f"{value:g}" for value in self.values])
            dots.set_xlabel(SYMBOLS[name], labelpad=0)
            best = self.values[int(np.argmax(accuracies))]
            dots.set_title(f"kNN, %: best at {SYMBOLS[name]} = {best:g}", fontsize=10)
            if untrained:
                dots.axhline(100 * untrained.knn, color=GREY, linestyle=":")
                dots.text(-0.45, 100 * untrained.knn, "untrained", color="#555555", fontsize=8,
                          va="bottom")  # fmt: skip
            self.dot = dots.plot([], [], "o", color=OF_LOSS[name], markersize=10)[0]
            self.number = dots.text(0, 0, "", ha="center", va="bottom", weight="bold", fontsize=9, bbox=PLATE)
            self.moving = [self.line, self.words, self.dot, self.number]
        bars.set(xlim=(-1, 1), ylim=(0, 1.35), yticks=[], xticks=[-1, 0, 1])
        bars.spines["left"].set_visible(False)
        self.samples = {value: summed(grid[name, value]) for value in self.values}
        self.full, size = curve is not None, 9 if curve else 8
        below = bars.stairs(0 * EDGES[:-1], EDGES, fill=True, facecolor=FIELD[0], edgecolor=VERMILION)
        above = bars.stairs(0 * EDGES[:-1], EDGES, color=INK, linewidth=1.8)
        self.bars = [below, above]
        self.means = [bars.plot([], [], color=c, linewidth=1.2, linestyle=":")[0] for c in (VERMILION, INK)]
        self.said = [
            bars.text(0.02, y, "", transform=bars.transAxes, va="top", fontsize=size, color=c)
            for y, c in ((1, VERMILION), (0.9, INK))
        ]
        self.moving += [*self.bars, *self.means, *self.said]

    def place(self, value: float) -> int:
        """The number of the trained value nearest to this one."""
        return int(np.abs(np.log(np.array(self.values) / value)).argmin())

    def handle(self, control: str) -> Handle:
        """The dot of the chosen value, to be dragged from one to the next."""

        def at(values: dict) -> tuple[float, float]:
            number = self.place(values[control])
            return number, 100 * self.grid[self.name, self.values[number]].knn

        def to(x: float, y: float) -> list[float]:
            return [self.values[int(np.clip(round(x), 0, len(self.values) - 1))]]

        label = f"{SYMBOLS[self.name]} of {self.name}"
        return Handle(self.dot.axes, (control,), at, along="x", to=to, label=label)

    def show(self, value: float) -> str:
        at = self.place(value)
        value = self.values[at]
        one = self.grid[self.name, value]
        title = f"{self.name}, {SYMBOLS[self.name]} = {value:g}"
        means, spread, shapes = self.samples[value]
        for bar, line, shape, mean in zip(self.bars, self.means, shapes, means):
            bar.set_data(shape, EDGES)
            line.set_data([mean, mean], [0, 1.02])
        words = ("two images", "two views of one") if self.full else ("two images", "one image")
        self.said[0].set_text(f"{words[0]}: {means[0]:.2f} ± {spread:.2f}")
        self.said[1].set_text(f"{words[1]}: {means[1]:.2f}")
        if self.full:
            low, high = min(one.losses), max(one.losses)
            parts = [(x - low) / (high - low or 1) for x in one.losses]
            self.line.set_data(range(1, len(parts) + 1), parts)
            self.words.set_text(f"{title}\nfrom {one.losses[0]:.4g} to {one.losses[-1]:.4g}")
            self.dot.set_data([at], [100 * one.knn])
            self.number.set(x=at, y=100 * one.knn + 0.07 * np.diff(self.dot.axes.get_ylim())[0])
            self.number.set_text(f"{one.knn:.1%}")
        return (
            f"{title}: loss from {one.losses[0]:.4g} to {one.losses[-1]:.4g}, kNN {one.knn:.1%}, cosines of "
            f"negatives {means[0]:.2f} ± {spread:.2f}, of positives {means[1]:.2f}."
        )


def summed(one: Outcome) -> tuple[list[float], float, list[np.ndarray]]:
    """Of the similarities: means of negatives and positives, the negatives' deviation, both histograms."""
    samples = one.negatives, one.positives
    return [float(x.mean()) for x in samples], float(one.negatives.std()), [heights(x) for x in samples]


def heights(sample: np.ndarray) -> np.ndarray:
    """The histogram over EDGES, its highest bar 1."""
    counts = np.histogram(np.clip(sample, -1, 1), EDGES)[0]
    return counts / counts.max()


def build(figure, compact: bool, grid: Grid, untrained: Outcome | None, names: list[str]) -> Drawing:
    if compact:
        column = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        axes = [(None, None, axis) for axis in column]
        for axis, name in zip(column, names):
            axis.set_ylabel(name)
    else:
        axes = figure.subplots(len(names), 3, width_ratios=[1, 1, 1.35], squeeze=False)
        axes[0][1].set_title("loss, on its own scale", fontsize=10)
        axes[0][2].set_title("cosines in a batch", fontsize=10)
        axes[-1][1].set_xlabel("epoch", labelpad=0)
        axes[-1][2].set_xlabel("cosine", labelpad=0)
    accuracies = [100 * one.knn for one in (*grid.values(), *([untrained] if untrained else []))]
    room = max(max(accuracies) - min(accuracies), 2)
    ends = min(accuracies) - 0.15 * room, max(accuracies) + 0.35 * room
    rows = {CONTROLS[name]: Row(part, name, grid, untrained, *ends) for part, name in zip(axes, names)}

    def update(values: dict) -> str:
        return " ".join(row.show(values[control]) for control, row in rows.items())

    handles = {} if compact else {control: row.handle(control) for control, row in rows.items()}
    return Drawing([artist for row in rows.values() for artist in row.moving], update, handles)
