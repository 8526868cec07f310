"""What the tests of training share: 70 small images, a recipe, and ways to end a run before its end."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from conftest import shifted

from setclr import pretrain
from setclr.data import ImageSet
from setclr.recipes import ImageRecipe
from setclr.training import Trainer
from setclr.training import trainer as engine

PIXELS = torch.randint(0, 256, (70, 3, 16, 16), dtype=torch.uint8, generator=shifted(0))
FEW = ImageSet(PIXELS, torch.arange(70) % 5, tuple("abcde"))  # 4 steps of 16 an epoch, 6 images left over
SMALL = ImageRecipe("InfoNCE(temperature=0.2)", views="photo", epochs=2, batch=16, lr=3e-3)
train = partial(pretrain, data=FEW)


class Killed(BaseException):
    """Not an Exception, so that nothing catches it."""


@contextlib.contextmanager
def at_step(step: int, act: Callable, every_step: bool = False) -> Iterator[None]:
    """`act` is called with the trainer before that step, counted from 0; a checkpoint after every step."""
    update = Trainer.update

    def until(trainer, x):
        if trainer.step == step:
            act(trainer)
        return update(trainer, x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "update", until)
        if every_step:
            patch.setattr(engine, "CHECK_EVERY", 1)
            patch.setattr(engine, "CHECKPOINT_SECONDS", -1.0)
        yield


def kill(_: object) -> None:
    raise Killed


def killed_at(step: int, begin: Callable) -> None:
    """Begin a run that is killed before that step, with a checkpoint of each step before."""
    with at_step(step, kill, every_step=True), pytest.raises(Killed):
        begin()


def stop_after(epochs: int) -> Callable:
    """An on_epoch that kills after so many epochs."""
    return lambda run: kill(run) if len(run.rows) == epochs else None


def tensors(run) -> list[torch.Tensor]:
    """All weights and buffers of a run's, or a trainer's, encoder and head."""
    return [*run.encoder.state_dict().values(), *run.head.state_dict().values()]


def same(a, b) -> bool:
    """The same encoders and heads, to the bit, and the same losses."""
    losses = [[(row["epoch"], row["loss"], row["lr"]) for row in run.rows] for run in (a, b)]
    return losses[0] == losses[1] and all(map(torch.equal, tensors(a), tensors(b)))
