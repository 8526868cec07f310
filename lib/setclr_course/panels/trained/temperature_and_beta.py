"""Short trainings at several temperatures τ of InfoNCE and several β of GroCo: what each does to the accuracy
and to the similarities of positives and negatives."""

from typing import Any

import numpy as np

from setclr_course.kit.palette import DUSK, FIELD, GREY, INK, OF_LOSS, VERMILION
from setclr_course.kit.panel import Page, Panel, Slider, log_slider
from setclr_course.panels.trained.rulers import holding, round_ones
from setclr_course.panels.trained.short_trainings import BETAS, TEMPERATURES, Grid, Outcome, made_up

EDGES = np.linspace(-1, 1, 41)
KNOBS = {"InfoNCE": ("temperature", "τ", TEMPERATURES), "GroCo": ("beta", "β", BETAS)}


def knob_of(label: str, values: tuple[float, ...]) -> Slider:
    """A slider that stops at these values only; it starts in their middle."""
    step, marks = float(np.log10(values[1] / values[0])), {value: f"{value:g}" for value in values[::2]}
    return log_slider(label, values[len(values) // 2], values[0], values[-1], step, marks)


class temperature_and_beta(Panel):
    """What τ does to InfoNCE, in the upper row, and β to GroCo, below, with a slider for each.

    Args:
        grid: the trainings that the sliders walk through, at all TEMPERATURES and BETAS; made-up ones by
            default.
        untrained: its accuracy is drawn as a line.
    """

    size, widths, in_sight, row_height = (9, 5.2), (1, 1.2), 2, 2.6
    mosaic, row_mosaic = "InfoNCE-knn InfoNCE-cosines; GroCo-knn GroCo-cosines", "InfoNCE-cosines"
    knobs = {"temperature": knob_of("temperature τ", TEMPERATURES), "beta": knob_of("steepness β", BETAS)}

    def __init__(self, grid: Grid | None = None, untrained: Outcome | None = None, **initial: Any):
        self.grid = grid or made_up()
        both = {key: (one.negatives, one.positives) for key, one in self.grid.items()}
        self.shapes = {key: [heights(x) for x in cosines] for key, cosines in both.items()}
        self.untrained = 100 * untrained.knn if untrained else np.nan
        self.limits = holding([*(100 * one.knn for one in self.grid.values()), self.untrained], 0.4)
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, float]:
        """By loss, the value that was trained nearest to its knob's."""
        return {
            name: min(trained, key=lambda at: abs(np.log(at / values[control])))
            for name, (control, _, trained) in KNOBS.items()
        }

    def draw(self, page: Page, values: dict, now: dict[str, float]) -> None:
        for name, at in now.items():
            self.draw_accuracies(page, name, at)
            self.draw_cosines(page, name, at)

    def draw_accuracies(self, page: Page, name: str, at: float) -> None:
        """Of all values; the dot of the chosen one can be dragged from one to the next."""
        control, sign, trained = KNOBS[name]
        accuracies = [self.grid[name, x].knn for x in trained]
        last, chosen = len(trained) - 1, trained.index(at)
        plot = page.plot(
            f"{name}-knn", (-0.5, last + 0.5), self.limits,
            f"{name}: best at {sign} = {trained[int(np.argmax(accuracies))]:g}", sign, "kNN, %",
            {k: f"{value:g}" for k, value in enumerate(trained)}, round_ones(self.limits, 5),
        )  # fmt: skip
        if self.untrained == self.untrained:
            plot.line([-0.5, last + 0.5], self.untrained, GREY, 2, "dot")
            plot.note("dotted: untrained", "bottom left", DUSK, "small")
        points = np.column_stack([np.arange(last + 1), 100 * np.array(accuracies)])
        plot.line(points[:, 0], points[:, 1], GREY, 1)
        dots = plot.dots(points, GREY, size=7)
        for k, (value, accuracy) in enumerate(zip(trained, accuracies)):
            page.link(f"{sign} = {value:g}: kNN {accuracy:.1%}", dots[k])
        plot.dots(points[chosen], OF_LOSS[name], size=14).handle(
            control, points[chosen], along="x", ends=(0, last), label=f"{sign} of {name}",
            to=lambda x, y: [trained[0] * (trained[1] / trained[0]) ** x],
        )  # fmt: skip
        words = f"{accuracies[chosen]:.1%}"
        plot.text(chosen, points[chosen, 1], words, rise="bottom", up=9, bold=True, halo=True)

    def draw_cosines(self, page: Page, name: str, at: float) -> None:
        """Filled of two images, outlined of two views of one; dotted their means."""
        one, (others, own) = self.grid[name, at], self.shapes[name, at]
        title = f"{name}: cosines at {KNOBS[name][1]} = {at:g}"
        plot = page.plot(f"{name}-cosines", (-1, 1), (0, 1.4), title, "cosine", xticks=(-1, 0, 1),
                         frame="bottom", room=(6, 0, 0, 0))  # fmt: skip
        plot.steps(others, EDGES, FIELD[0])
        plot.line(np.repeat(EDGES, 2), [0, *np.repeat(own, 2), 0], INK)
        for sample, colour in ((one.negatives, VERMILION), (one.positives, INK)):
            plot.level(sample.mean(), "", colour, 1.02, width=1.5, dash="dot")
        far = f"{one.negatives.mean():.2f} ± {one.negatives.std():.2f}"
        plot.key((f"two images: {far}", VERMILION),
                 (f"two views of one: {one.positives.mean():.2f}", INK))  # fmt: skip

    def say(self, values: dict, now: dict[str, float]) -> str:
        return " ".join(said(name, at, self.grid[name, at]) for name, at in now.items())


def said(name: str, at: float, one: Outcome) -> str:
    return (
        f"{name}, {KNOBS[name][1]} = {at:g}: loss from {one.losses[0]:.4g} to {one.losses[-1]:.4g}, kNN "
        f"{one.knn:.1%}, cosines of negatives {one.negatives.mean():.2f} ± {one.negatives.std():.2f}, of "
        f"positives {one.positives.mean():.2f}."
    )


def heights(sample: np.ndarray) -> np.ndarray:
    """The histogram over EDGES, its highest bar 1."""
    counts = np.histogram(np.clip(sample, -1, 1), EDGES)[0]
    return counts / counts.max()
