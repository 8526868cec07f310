"""What part of a training step is the loss: of its time and of its memory, by encoder and batch."""

from functools import cache
from typing import Any

import numpy as np

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.palette import INK
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.costs.steps import Step, Steps, measured_steps
from setclr_course.panels.costs.tables import colour_of, in_words

PARTS = {
    "views": "#e6e6e6",
    "encoder forward": "#c2c2c2",
    "encoder backward": "#8e8e8e",
    "optimiser": "#4a4a4a",
}
QUICK, QUICK_BATCHES = ("InfoNCE", "SparseCLR", "GroCo", "QARe"), (8, 16)  # measured where nothing is given
UNITS = {"time": (1e3, "ms", "takes"), "memory": (1e-6, "MB", "keeps")}


class step_shares(Panel):
    """A training step as a bar for each loss: the parts that all losses share, then the loss.

    Without steps four losses are measured in small batches, in a second or two.

    Args:
        steps: as `measured_steps` makes them.
        machine: what the times were measured on.
    """

    size = (9, 3.8)

    def __init__(self, steps: Steps | None = None, machine: str = "", **initial: Any):
        if steps is None:
            from setclr_course.costs import this_machine

            steps, machine = quick_steps(), this_machine()
        self.steps, self.machine = steps, machine
        batches = list(steps["time"]["Conv-4"])
        first, last = batches[0], batches[-1]
        marks: dict[float, str] = {N: str(N) for N in batches}
        self.knobs = {
            "encoder": options("encoder", steps["time"]),
            "measure": options("share of the", steps),
            "batch": log_slider("images N in a batch", last, first, last, np.log10(2), marks),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Step:
        row = self.steps[values["measure"]][values["encoder"]]
        return row[min(row, key=lambda N: abs(N - values["batch"]))]

    def draw(self, page: Page, values: dict, now: Step) -> None:
        shares = {name: now.share(name) for name in now.losses}
        most = max(share for _, share, _ in shares.values())
        place = f"{values['encoder']}, N = {values['batch']:.0f}"
        title = f"{place}: the loss is at most {most:.2g} % of the {values['measure']}"
        below = f"from left to right: {', '.join(now.parts)}; in colour: the loss"
        rows = (len(shares) - 0.4, -0.6)
        plot = page.plot("plot", (0, 108), rows, title, below, yticks=dict(enumerate(shares)), frame="")
        shared = np.array([np.median(part) for part in now.parts.values()])
        factor, unit, _ = UNITS[values["measure"]]
        for y, (name, (low, share, high)) in enumerate(shares.items()):
            edges = np.cumsum([0, *(100 - share) * shared / shared.sum(), share])
            colours = [*(PARTS[part] for part in now.parts), colour_of(name)]
            pieces = plot.bars(y, edges[1:], colours, 0.7, edges[:-1], flat=True)
            plot.segments([100 - high, y], [100 - low, y], INK, 3)
            plot.text(100, y, f"{share:.2g} %", size="small", anchor="start", right=5)
            for k, (part, runs) in enumerate([*now.parts.items(), (name, now.losses[name])]):
                page.link(f"{part}: {in_words(factor * np.median(runs))} {unit}", pieces[k])

    def say(self, values: dict, now: Step) -> str:
        factor, unit, verb = UNITS[values["measure"]]
        without = factor * sum(np.median(part) for part in now.parts.values())
        said = ", ".join(f"{name} {now.share(name)[1]:.2g} %" for name in now.losses)
        on = f" on {self.machine}" * bool(values["measure"] == "time" and self.machine)
        reckoned = f", reckoned from a step of {now.small} images" * bool(now.small)
        return (
            f"{values['encoder']}, N = {values['batch']:.0f}: without the loss a step {verb} "
            f"{in_words(without)} {unit}{reckoned}. The loss's share of the {values['measure']}{on}: {said}."
        )


@cache
def quick_steps() -> Steps:
    from setclr.losses import BY_NAME

    return measured_steps({name: BY_NAME[name]() for name in QUICK}, QUICK_BATCHES, small=2, steps=3)
