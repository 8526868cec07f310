"""Learning rates as pure functions of the step: a resumed run needs its step number alone."""

import math
from dataclasses import dataclass

from setclr.checks import choice, number

SHAPES = ("cosine", "constant", "steps")


@dataclass(frozen=True)
class Rate:
    """The learning rate as a fraction of its peak: a linear warm-up, then constant, half a cosine to 0, or
    steps, a tenth from half of the epochs on and a hundredth from three quarters on.

    `warmup` counts epochs, ≥ 0. Raises ValueError for another shape or a negative warm-up.
    """

    shape: str = "cosine"
    warmup: float = 0.0

    def __post_init__(self) -> None:
        choice("shape", self.shape, SHAPES)
        number("warmup", self.warmup, least=0)

    def factor(self, step: int, steps: int, epochs: int) -> float:
        """Of step 0, 1, … in a run of so many epochs of `steps` steps."""
        warmup, total = self.warmup * steps, epochs * steps
        if step < warmup:
            return (step + 1) / (warmup + 1)
        if self.shape == "constant":
            return 1.0
        if self.shape == "steps":
            epoch = step // steps
            return 0.1 ** ((epoch >= epochs // 2) + (epoch >= 3 * epochs // 4))
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))
