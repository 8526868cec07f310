"""Training steps by what they are made of: the parts that all losses share, and each loss."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from setclr_course.panels.costs.tables import is_term

if TYPE_CHECKING:
    from setclr_course.costs import Losses, Middle

BASE = "InfoNCE"  # the loss that trains, and beside which regularisers stand
ENCODERS = {"ResNet-18": "resnet18", "Conv-4": "conv4"}


class Step(NamedTuple):
    """One batch with one encoder, in seconds or in bytes: for each part and each loss an array with a number
    for each measured step. `small`: the parts are those of a step of so many images, multiplied."""

    parts: dict[str, np.ndarray]
    losses: dict[str, np.ndarray]
    small: int | None = None

    def share(self, name: str) -> "Middle":
        """Per cent of the step that this loss is."""
        from setclr_course.costs import middle

        loss = self.losses[name]
        return middle(100 * loss / (sum(self.parts.values()) + loss))

    def added(self, name: str) -> "Middle":
        """Per cent by which a step with this loss is more than one with InfoNCE."""
        from setclr_course.costs import middle

        loss, base = self.losses[name], self.losses[BASE]
        return middle(100 * (loss - base) / (sum(self.parts.values()) + base))


Steps = dict[str, dict[str, dict[int, Step]]]  # by measure, "time" or "memory", by encoder, by batch


def measured_steps(losses: "Losses", batches: Sequence[int], small: int = 8, steps: int = 6) -> Steps:
    """Steps on noise of 32 px, with E = 64: time measured, memory counted.

    With Conv-4 every batch is measured. For ResNet-18 steps of `small` images are, and multiplied: its flops
    are linear in the batch, and only the optimiser does not depend on it. The losses are timed on Conv-4's
    embeddings; what begins with "QARe" is added to InfoNCE, which must be among them.
    """
    from setclr.recipes.image import ImageRecipe
    from setclr_course import costs

    how = {"views": "qare", "last_norm": True}
    taken = {
        N: costs.parts_of_a_step(ImageRecipe("InfoNCE(0.5)", batch=N, **how), losses, steps)  # type: ignore[arg-type]
        for N in batches
    }
    slow = ImageRecipe("InfoNCE(0.5)", encoder="resnet18", batch=small, **how)  # type: ignore[arg-type]
    once, _ = costs.parts_of_a_step(slow, {}, steps)
    time: dict[str, dict[int, Step]] = {name: {} for name in ENCODERS}
    memory: dict[str, dict[int, Step]] = {name: {} for name in ENCODERS}
    for N, (parts, alone) in taken.items():
        many = {
            part: np.array(runs) * (N / small if part != "optimiser" else 1) for part, runs in once.items()
        }
        seconds = together({name: np.array(runs) for name, runs in alone.items()})
        time["ResNet-18"][N] = Step(many, seconds, small)
        time["Conv-4"][N] = Step({part: np.array(runs) for part, runs in parts.items()}, seconds)
        z = costs.points(N, 64)
        kept = together({name: np.array([costs.kept_bytes(loss, z)]) for name, loss in losses.items()})
        for name, encoder in ENCODERS.items():
            held = np.array([costs.encoder_cost(encoder, N)[1]])
            memory[name][N] = Step({"encoder forward": held}, kept)
    return {"time": time, "memory": memory}


def together(alone: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The losses, and every regulariser with the loss that it stands beside."""
    return {
        f"{BASE} + {name}" if is_term(name) else name: cost + alone[BASE] if is_term(name) else cost
        for name, cost in alone.items()
    }
