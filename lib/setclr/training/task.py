"""`Task`, what a Trainer does for its loss beside steps."""

from typing import TYPE_CHECKING

from torch import Tensor

from setclr.training.grad_cache import Group
from setclr.views.numbers import sent

if TYPE_CHECKING:
    from setclr.training.trainer import Trainer


class Task:
    """What a Trainer does for its loss beside steps: it gives the labels, if they are asked for.

    A loss that needs more makes a Task of its own by `Objective.task`. `encoder` is the Trainer's, or a
    module around it.
    """

    def __init__(self, trainer: "Trainer"):
        self.trainer, self.encoder = trainer, trainer.encoder

    def begin(self, epoch: int, fresh: bool) -> None:
        """Called before each epoch. It is not `fresh` if training resumes within it."""

    def prepare(self, views: list[Group]) -> list[Group]:
        """The encoder's inputs, made from the views of a step."""
        return views

    def arguments_at(self, indices: Tensor) -> dict[str, Tensor]:
        """The loss's arguments beside z, of a whole batch, which consists of the things of these indices."""
        trainer = self.trainer
        return {"labels": sent(trainer.source.labels[indices], trainer.device)} if trainer.labels else {}

    def state(self) -> Tensor | None:
        """What an epoch needs to be resumed."""
        return None

    def restore(self, state: Tensor | None) -> None:
        """Take back what `state` gave. Raises ValueError if it does not fit."""
