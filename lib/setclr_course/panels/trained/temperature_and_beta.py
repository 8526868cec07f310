"""Short trainings at several temperatures τ of InfoNCE and several β of GroCo: what each does to the accuracy
and to the similarities of positives and negatives."""

from typing import TYPE_CHECKING, Any

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


class temperature_and_beta(Panel):
    """What τ does to InfoNCE, in the upper row, and β to GroCo, below, with a slider for each.

    Args:
        grid: the trainings that the sliders walk through, of both losses or of one; the values of a loss must
            be equally far apart on a logarithmic scale. Made-up ones by default.
        untrained: its accuracy is drawn as a line.

    Raises:
        ValueError: a loss has fewer than two values, or they are not equally far apart.
    """

    widths, in_sight = (1, 1.2), 2

    def __init__(self, grid: "Grid | None" = None, untrained: "Outcome | None" = None, **initial: Any):
        if grid is None:
            from setclr_course.panels.trained.short_trainings import made_up

            grid = made_up()
        names = [name for name in KNOBS if any(loss == name for loss, _ in grid)]
        self.grid = {
            name: {at: grid[loss, at] for loss, at in sorted(grid) if loss == name} for name in names
        }
        self.shapes = {key: [heights(x) for x in (one.negatives, one.positives)] for key, one in grid.items()}
        self.knobs = {KNOBS[name][0]: knob_of(name, list(self.grid[name])) for name in names}
        self.untrained = 100 * untrained.knn if untrained else np.nan
        self.limits = holding([*(100 * one.knn for one in grid.values()), self.untrained], 0.3)
        self.mosaic = "; ".join(f"{name}-knn {name}-cosines" for name in names)
        self.row_mosaic = "; ".join(f"{name}-cosines" for name in names)
        self.size, self.row_height = (9, 0.4 + 2.4 * len(names)), 0.8 + 1.8 * len(names)
        super().__init__(**initial)

    def solve(self, values: dict) -> dict[str, float]:
        """By loss, the value that was trained nearest to its knob's."""
        return {
            name: min(row, key=lambda at: abs(np.log(at / values[KNOBS[name][0]])))
            for name, row in self.grid.items()
        }

    def draw(self, page: Page, values: dict, now: dict[str, float]) -> None:
        for name, at in now.items():
            self.draw_accuracies(page, name, at)
            self.draw_cosines(page, name, at)

    def draw_accuracies(self, page: Page, name: str, at: float) -> None:
        """Of all values; the dot of the chosen one can be dragged from one to the next."""
        (control, label, _), row, trained = KNOBS[name], self.grid[name], list(self.grid[name])
        sign, last, chosen = label[-1], len(row) - 1, list(row).index(at)
        plot = page.plot(
            f"{name}-knn", (-0.5, last + 0.5), self.limits,
            f"{name}: best at {sign} = {max(row, key=lambda at: row[at].knn):g}", sign, "kNN, %",
            {k: f"{value:g}" for k, value in enumerate(row)}, round_ones(self.limits, 5),
        )  # fmt: skip
        if self.untrained == self.untrained:
            plot.line([-0.5, last + 0.5], self.untrained, GREY, 2, "dot")
            plot.note("dotted: untrained", "bottom left", DUSK, "small")
        points = np.array([(k, 100 * one.knn) for k, one in enumerate(row.values())])
        plot.line(points[:, 0], points[:, 1], GREY, 1)
        dots = plot.dots(points, GREY, size=7)
        for k, (value, one) in enumerate(row.items()):
            page.link(f"{sign} = {value:g}: kNN {one.knn:.1%}", dots[k])
        plot.dots(points[chosen], OF_LOSS[name], size=14).handle(
            control, points[chosen], along="x", to=lambda x, y: [trained[min(max(round(x), 0), last)]],
            ends=(0, last), label=f"{sign} of {name}",
        )  # fmt: skip
        plot.text(chosen, points[chosen, 1], f"{row[at].knn:.1%}", rise="bottom", up=9, bold=True, halo=True)

    def draw_cosines(self, page: Page, name: str, at: float) -> None:
        """Filled of two images, outlined of two views of one; dotted their means."""
        one, (others, own) = self.grid[name][at], self.shapes[name, at]
        title = f"{name}: cosines at {KNOBS[name][1][-1]} = {at:g}"
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
        return " ".join(said(name, at, self.grid[name][at]) for name, at in now.items())


def said(name: str, at: float, one: "Outcome") -> str:
    return (
        f"{name}, {KNOBS[name][1][-1]} = {at:g}: loss from {one.losses[0]:.4g} to {one.losses[-1]:.4g}, kNN "
        f"{one.knn:.1%}, cosines of negatives {one.negatives.mean():.2f} ± {one.negatives.std():.2f}, of "
        f"positives {one.positives.mean():.2f}."
    )


def knob_of(name: str, values: list[float]) -> Slider:
    (_, label, usual), steps = KNOBS[name], np.diff(np.log10(values))
    if len(values) < 2 or np.ptp(steps) > 1e-6:
        raise ValueError(f"grid must hold equal steps of {label[-1]} on a log scale, got {values}")
    start = min(values, key=lambda value: abs(np.log(value / usual)))
    marks = {value: f"{value:g}" for value in values}
    return log_slider(label, start, values[0], values[-1], float(steps.mean()), marks)


def heights(sample: np.ndarray) -> np.ndarray:
    """The histogram over EDGES, its highest bar 1."""
    counts = np.histogram(np.clip(sample, -1, 1), EDGES)[0]
    return counts / counts.max()
