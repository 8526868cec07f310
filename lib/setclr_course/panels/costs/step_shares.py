"""What part of a training step is the loss: of its time and of its memory, by encoder and batch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from setclr.losses import BY_NAME
from setclr.recipes.image import ImageRecipe
from setclr_course import costs
from setclr_course.kit.palette import INK
from setclr_course.kit.panel import Page, Panel, options
from setclr_course.panels.costs import cost_pictures
from setclr_course.panels.costs.cost_pictures import colour_of, in_words, is_term, quartiles

BASE = "InfoNCE"  # the loss that trains, and beside which regularisers stand
ENCODERS = {"ResNet-18": "resnet18", "Conv-4": "conv4"}
GREYS = ("#e6e6e6", "#c2c2c2", "#8e8e8e", "#4a4a4a")  # of the parts, in their order
QUICK = ("InfoNCE", "SparseCLR", "GroCo", "QARe")  # measured where nothing is given
UNITS = {"time": (1e3, "ms", "takes"), "memory": (1e-6, "MB", "keeps")}


class Step(NamedTuple):
    """One batch with one encoder: of each part and each loss the seconds of every measured step, or bytes.

    `small`: the parts are those of a step of so many images, multiplied."""

    parts: dict[str, Any]
    losses: dict[str, Any]
    small: int | None = None

    def share(self, name: str) -> np.ndarray:
        """Per cent of the step that this loss is: quartiles."""
        loss = self.losses[name]
        return quartiles(100 * loss / (sum(self.parts.values()) + loss))

    def added(self, name: str) -> np.ndarray:
        """Per cent by which a step with this loss is more than one with InfoNCE: quartiles."""
        loss, base = self.losses[name], self.losses[BASE]
        return quartiles(100 * (loss - base) / (sum(self.parts.values()) + base))


Steps = dict[str, dict[str, dict[int, Step]]]  # by measure, "time" or "memory", by encoder, by batch


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
            steps, machine = quick_steps(), costs.this_machine()
        self.steps, self.machine, batches = steps, machine, list(steps["time"]["Conv-4"])
        self.knobs = {
            "encoder": options("encoder", steps["time"]),
            "measure": options("share of the", steps),
            "batch": cost_pictures.batch_slider(batches, batches[-1]),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Step:
        row = self.steps[values["measure"]][values["encoder"]]
        return row[cost_pictures.nearest(row, values["batch"])]

    def draw(self, page: Page, values: dict, now: Step) -> None:
        shares = {name: now.share(name) for name in now.losses}
        most = max(share for _, share, _ in shares.values())
        place = f"{values['encoder']}, N = {values['batch']:.0f}"
        title = f"{place}: the loss is at most {most:.2g} % of the {values['measure']}"
        below = f"from left to right: {', '.join(now.parts)}; in colour: the loss"
        plot = page.plot("plot", (0, 132), (len(shares) - 0.4, -0.6), title, below,
                         yticks=dict(enumerate(shares)), frame="", room=(16, 0, 0, 0))  # fmt: skip
        shared = np.array([np.median(part) for part in now.parts.values()])
        factor, unit, _ = UNITS[values["measure"]]
        for y, (name, (low, share, high)) in enumerate(shares.items()):
            edges = np.cumsum([0, *(100 - share) * shared / shared.sum(), share])
            colours = [*GREYS[: len(now.parts)], colour_of(name)]
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


def measured_steps(losses: costs.Losses, batches: Sequence[int], small: int = 8, steps: int = 6) -> Steps:
    """Steps on noise of 32 px, with E = 64: time measured, memory counted.

    With Conv-4 every batch is measured. For ResNet-18 steps of `small` images are, and multiplied: its flops
    are linear in the batch, and only the optimiser does not depend on it. The losses are timed on Conv-4's
    embeddings; what begins with "QARe" is added to InfoNCE, which must be among them.
    """
    slow = ImageRecipe("InfoNCE(0.5)", encoder="resnet18", batch=small, views="qare", last_norm=True)
    once, _ = costs.parts_of_a_step(slow, {}, steps)
    found: Steps = {measure: {name: {} for name in ENCODERS} for measure in ("time", "memory")}
    for N in batches:
        parts, alone = costs.parts_of_a_step(replace(slow, encoder="conv4", batch=N), losses, steps)
        seconds, times, z = together(alone), N / small, costs.points(N, 64)
        many = {part: np.array(runs) * (1 if part == "optimiser" else times) for part, runs in once.items()}
        found["time"]["ResNet-18"][N] = Step(many, seconds, small)
        found["time"]["Conv-4"][N] = Step({part: np.array(runs) for part, runs in parts.items()}, seconds)
        kept = together({name: costs.kept_bytes(loss, z) for name, loss in losses.items()})
        for name, encoder in ENCODERS.items():
            found["memory"][name][N] = Step({"encoder forward": costs.encoder_cost(encoder, N)[1]}, kept)
    return found


def together(alone: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The losses, and every regulariser with the loss that it stands beside."""
    beside = {name: f"{BASE} + {name}" if is_term(name) else name for name in alone}
    return {beside[name]: cost + is_term(name) * np.array(alone[BASE]) for name, cost in alone.items()}


@cache
def quick_steps() -> Steps:
    return measured_steps({name: BY_NAME[name]() for name in QUICK}, (8, 16), small=2, steps=3)
