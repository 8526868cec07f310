"""Training steps by what they are made of: the parts that all losses share, and each loss."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.panels.costs.tables import is_term, quartiles

if TYPE_CHECKING:
    from setclr_course.costs import Losses

BASE = "InfoNCE"  # the loss that trains, and beside which regularisers stand
ENCODERS = {"ResNet-18": "resnet18", "Conv-4": "conv4"}


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


def measured_steps(losses: "Losses", batches: Sequence[int], small: int = 8, steps: int = 6) -> Steps:
    """Steps on noise of 32 px, with E = 64: time measured, memory counted.

    With Conv-4 every batch is measured. For ResNet-18 steps of `small` images are, and multiplied: its flops
    are linear in the batch, and only the optimiser does not depend on it. The losses are timed on Conv-4's
    embeddings; what begins with "QARe" is added to InfoNCE, which must be among them.
    """
    from setclr.recipes.image import ImageRecipe
    from setclr_course import costs

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
    found = {}
    for name, cost in alone.items():
        if is_term(name):
            found[f"{BASE} + {name}"] = np.add(cost, alone[BASE])
        else:
            found[name] = np.array(cost)
    return found
