"""What part of a training step is the loss: of its time and of its memory, by encoder and batch."""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.palette import INK
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.costs.steps import Step, Steps, measured_steps
from setclr_course.panels.costs.tables import colour_of, in_words

if TYPE_CHECKING:
    from setclr_course.costs import Middle

PARTS = {
    "views": "#e6e6e6",
    "encoder forward": "#c2c2c2",
    "encoder backward": "#8e8e8e",
    "optimiser": "#4a4a4a",
}
QUICK, QUICK_BATCHES = ("InfoNCE", "SparseCLR", "GroCo", "QARe"), (8, 16)  # measured where nothing is given
UNITS = {"time": (1e3, "ms", "takes"), "memory": (1e-6, "MB", "keeps")}


class Shown(NamedTuple):
    """A step, and for each loss its per cent of the step. Half of the measured steps lie between low and
    high."""

    step: Step
    shares: dict[str, "Middle"]


class step_shares(Panel):
    """A training step as a bar for each loss: the parts that all losses share, then the loss.

    Without steps four losses are measured in small batches, in a second or two.

    Args:
        steps: as `measured_steps` makes them.
        machine: what the times were measured on.
    """

    def __init__(self, steps: Steps | None = None, machine: str = "", **initial: Any):
        if steps is None:
            from setclr_course.costs import this_machine

            steps, machine = quick_steps(), this_machine()
        self.steps, self.machine = steps, machine
        encoders = next(iter(steps.values()))
        by_batch = next(iter(encoders.values()))
        marks: dict[float, str] = {batch: str(batch) for batch in by_batch}
        first, *_, last = by_batch
        self.knobs = {
            "encoder": options("encoder", encoders),
            "measure": options("share of the", steps),
            "batch": log_slider("images N in a batch", last, first, last, np.log10(2), marks),
        }
        high = 0.3 * len(by_batch[first].losses)
        self.size, self.row_height = (9, round(1.5 + high, 1)), round(1.7 + high, 1)
        super().__init__(**initial)

    def solve(self, values: dict) -> Shown:
        row = self.steps[values["measure"]][values["encoder"]]
        step = row[min(row, key=lambda N: abs(N - values["batch"]))]
        return Shown(step, {name: step.share(name) for name in step.losses})

    def draw(self, page: Page, values: dict, now: Shown) -> None:
        most = max(found.median for found in now.shares.values())
        whole = {"time": "step", "memory": "memory"}[values["measure"]]
        place = f"{values['encoder']}, N = {values['batch']:.0f}"
        title = f"{place}: the loss is at most {most:.2g} % of the {whole}"
        below = f"from left to right: {', '.join(now.step.parts)}; in colour: the loss"
        title, below = ("", "") if page.row else (title, below)
        beside = dict(enumerate(now.shares))
        plot = page.plot("plot", (0, 100), (len(beside) - 0.4, -0.6), title, below, yticks=beside, frame="",
                         room=(0, 0, 52, 0))  # fmt: skip
        shared = np.array([np.median(part) for part in now.step.parts.values()])
        greys = [PARTS[part] for part in now.step.parts]
        for y, (name, (low, share, high)) in enumerate(now.shares.items()):
            edges = np.cumsum([0, *(100 - share) * shared / shared.sum(), share])
            ends = np.column_stack([edges, np.full(len(edges), y)])
            pieces = plot.boxes(ends[:-1] - (0, 0.35), ends[1:] + (0, 0.35), [*greys, colour_of(name)])
            plot.segments([100 - high, y], [100 - low, y], INK, 3)
            plot.text(100, y, f"{share:.2g} %", size="small", anchor="start", right=5)
            for k, said in enumerate(self.pieces(values, now.step, name)):
                page.link(said, pieces[k])

    def pieces(self, values: dict, step: Step, name: str) -> list[str]:
        """Each piece of a bar with its size."""
        factor, unit, _ = UNITS[values["measure"]]
        said = []
        for part, runs in {**step.parts, name: step.losses[name]}.items():
            low, middle, high = factor * np.quantile(runs, (0.25, 0.5, 0.75))
            half = f" (half of the steps: {in_words(low)} to {in_words(high)})" * bool(low < high)
            said.append(f"{part}: {in_words(middle)} {unit}{half}")
        return said

    def say(self, values: dict, now: Shown) -> str:
        factor, unit, verb = UNITS[values["measure"]]
        without = factor * sum(float(np.median(part)) for part in now.step.parts.values())
        said = ", ".join(f"{name} {found.median:.2g} %" for name, found in now.shares.items())
        on = f" on {self.machine}" * bool(values["measure"] == "time" and self.machine)
        reckoned = f", reckoned from a step of {now.step.small} images" * bool(now.step.small)
        return (
            f"{values['encoder']}, N = {values['batch']:.0f}: without the loss a step {verb} "
            f"{in_words(without)} {unit}{reckoned}. The loss's share of the {values['measure']}{on}: {said}."
        )


@cache
def quick_steps() -> Steps:
    from setclr.losses import BY_NAME

    return measured_steps({name: BY_NAME[name]() for name in QUICK}, QUICK_BATCHES, small=2, steps=3)
