"""Short trainings at several temperatures τ of InfoNCE and several β of GroCo: what each does to the loss,
to the accuracy and to the similarities of positives and negatives."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import Slider, log_slider
from setclr_course.kit.palette import DUSK, FIELD, GREY, INK, OF_LOSS, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.trained.rulers import holding, round_ones

if TYPE_CHECKING:
    from setclr_course.panels.trained.short_trainings import Grid, Outcome  # which need torch

EDGES = np.linspace(-1, 1, 41)


KNOBS = {"InfoNCE": ("temperature", "temperature τ", 0.1), "GroCo": ("beta", "steepness β", 1.0)}


class Trained(NamedTuple):
    """An outcome, as it is drawn."""

    value: float  # of τ or β
    losses: list[float]  # of the epochs
    knn: float  # per cent
    means: list[float]  # of the cosines of negatives and of positives
    deviation: float  # of those of negatives
    heights: list[np.ndarray]  # both histograms


class temperature_and_beta(Panel):
    """What τ does to InfoNCE, in the upper row, and β to GroCo, below, with a slider for each.

    Args:
        grid: the trainings that the sliders walk through, of both losses or of one; the values of a loss must
            be equally far apart on a logarithmic scale.
        untrained: its accuracy is drawn as a line.

    Without arguments it trains for two epochs on some patches, in seconds.

    Raises:
        ValueError: a loss has fewer than two values, or they are not equally far apart.
    """

    widths, in_sight = (1, 1, 1.35), 2

    def __init__(self, grid: "Grid | None" = None, untrained: "Outcome | None" = None, **initial: Any):
        if grid is None:
            from setclr_course.panels.trained.short_trainings import quick_grid

            grid, untrained = quick_grid()
        names = [name for name in KNOBS if any(loss == name for loss, _ in grid)]
        self.grid = {name: [summed(grid[key], key[1]) for key in sorted(grid) if key[0] == name]
                     for name in names}  # fmt: skip
        self.knobs = {KNOBS[name][0]: knob_of(name, self.grid[name]) for name in names}
        self.untrained = 100 * untrained.knn if untrained else np.nan
        low, high = holding([*(100 * one.knn for one in grid.values()), self.untrained], 0)
        room = max(high - low, 2)
        self.limits = low - 0.3 * room, high + 0.35 * room
        self.longest = max(len(one.losses) for one in grid.values())
        parts = ("knn", "loss", "cosines")
        self.mosaic = "; ".join(" ".join(f"{name}-{part}" for part in parts) for name in names)
        self.row_mosaic = "; ".join(f"{name}-cosines" for name in names)
        self.size, self.row_height = (9, 0.4 + 2.4 * len(names)), 0.8 + 1.8 * len(names)
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, int]:
        """By loss, the place of the value that was trained nearest to its knob's."""
        found = {name: (row, values[KNOBS[name][0]]) for name, row in self.grid.items()}
        return {name: min(range(len(row)), key=lambda k: abs(np.log(row[k].value / value)))
                for name, (row, value) in found.items()}  # fmt: skip

    def draw(self, page: Page, values: dict, now: dict[str, int]) -> None:
        for name, at in now.items():
            self.draw_accuracies(page, name, at)
            self.draw_loss(page, name, self.grid[name][at])
            draw_cosines(page, name, self.grid[name][at])

    def draw_accuracies(self, page: Page, name: str, at: int) -> None:
        """Of all values; the dot of the chosen one can be dragged from one to the next."""
        (control, label, _), row = KNOBS[name], self.grid[name]
        sign, last = label[-1], len(row) - 1
        best = max(row, key=lambda one: one.knn)
        plot = page.plot(
            f"{name}-knn", (-0.5, last + 0.5), self.limits, f"{name}: best at {sign} = {best.value:g}", sign,
            "kNN, %", {k: f"{one.value:g}" for k, one in enumerate(row)}, round_ones(self.limits, 5),
        )  # fmt: skip
        if self.untrained == self.untrained:
            plot.line([-0.5, last + 0.5], self.untrained, GREY, 2, "dot")
            plot.note("dotted: untrained", "bottom left", DUSK, "small")
        points = np.array([(k, one.knn) for k, one in enumerate(row)])
        plot.line(points[:, 0], points[:, 1], GREY, 1)
        dots = plot.dots(points, GREY, size=7)
        for k, one in enumerate(row):
            page.link(f"{sign} = {one.value:g}: kNN {one.knn:.1f}%", dots[k])
        plot.dots(points[at], OF_LOSS[name], size=14).handle(
            control, points[at], along="x", to=lambda x, y: [row[min(max(round(x), 0), last)].value],
            ends=(0, last), label=f"{sign} of {name}",
        )  # fmt: skip
        plot.text(at, row[at].knn, f"{row[at].knn:.1f}%", rise="bottom", up=9, bold=True, halo=True)

    def draw_loss(self, page: Page, name: str, one: Trained) -> None:
        """On its own scale, which its first and last values tell."""
        title = f"loss, {one.losses[0]:.4g} to {one.losses[-1]:.4g}"
        plot = page.plot(f"{name}-loss", (0.7, self.longest + 0.3), (-0.08, 1.08), title, "epoch",
                         xticks=(1, self.longest))  # fmt: skip
        low, high = min(one.losses), max(one.losses)
        points = np.array([(k, (x - low) / (high - low or 1)) for k, x in enumerate(one.losses, 1)])
        plot.line(points[:, 0], points[:, 1], OF_LOSS[name])
        plot.dots(points, OF_LOSS[name], size=6)

    def say(self, values: dict, now: dict[str, int]) -> str:
        return " ".join(said(name, self.grid[name][at]) for name, at in now.items())


def said(name: str, one: Trained) -> str:
    return (
        f"{name}, {KNOBS[name][1][-1]} = {one.value:g}: loss from {one.losses[0]:.4g} to "
        f"{one.losses[-1]:.4g}, kNN {one.knn:.1f}%, cosines of negatives {one.means[0]:.2f} ± "
        f"{one.deviation:.2f}, of positives {one.means[1]:.2f}."
    )


def draw_cosines(page: Page, name: str, one: Trained) -> None:
    title = f"{name}: cosines at {KNOBS[name][1][-1]} = {one.value:g}"
    plot = page.plot(f"{name}-cosines", (-1, 1), (0, 1.4), title, "cosine", xticks=(-1, 0, 1), frame="bottom",
                     room=(6, 0, 0, 0))  # fmt: skip
    plot.steps(one.heights[0], EDGES, FIELD[0])
    plot.line(np.repeat(EDGES, 2), [0, *np.repeat(one.heights[1], 2), 0], INK)
    for mean, colour in zip(one.means, (VERMILION, INK)):
        plot.level(mean, "", colour, 1.02, width=1.5, dash="dot")
    plot.key((f"two images: {one.means[0]:.2f} ± {one.deviation:.2f}", VERMILION),
             (f"two views of one: {one.means[1]:.2f}", INK))  # fmt: skip


def knob_of(name: str, row: list[Trained]) -> Slider:
    (_, label, usual), values = KNOBS[name], [one.value for one in row]
    steps = np.diff(np.log10(values))
    if len(values) < 2 or np.ptp(steps) > 1e-6:
        raise ValueError(f"grid must hold equal steps of {label[-1]} on a log scale, got {values}")
    start = min(values, key=lambda value: abs(np.log(value / usual)))
    marks = {value: f"{value:g}" for value in values}
    return log_slider(label, start, values[0], values[-1], float(steps.mean()), marks)


def summed(one: "Outcome", value: float) -> Trained:
    samples = one.negatives, one.positives
    means, deviation = [float(x.mean()) for x in samples], float(one.negatives.std())
    return Trained(value, one.losses, 100 * one.knn, means, deviation, [heights(x) for x in samples])


def heights(sample: np.ndarray) -> np.ndarray:
    """The histogram over EDGES, its highest bar 1."""
    counts = np.histogram(np.clip(sample, -1, 1), EDGES)[0]
    return counts / counts.max()
