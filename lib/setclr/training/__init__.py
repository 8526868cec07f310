"""The training loop: the Trainer, learning-rate schedules, checkpoints, momentum encoders, many processes.

It does not import recipes. Names are imported when they are first used, so that
`training.distributed.gather` works without the packages of the extra "train".
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setclr.extras import extra

if TYPE_CHECKING:
    from setclr.training.interruption import Interrupted
    from setclr.training.metrics import TensorBoard
    from setclr.training.momentum import Keys
    from setclr.training.optimisers import LRSchedule
    from setclr.training.trainer import Trainer

__all__ = ["Interrupted", "Keys", "LRSchedule", "TensorBoard", "Trainer"]
MODULES = {"Interrupted": "interruption", "Keys": "momentum", "LRSchedule": "optimisers",
           "TensorBoard": "metrics", "Trainer": "trainer"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'setclr.training' has no attribute {name!r}")
    with extra("train"):
        return getattr(import_module(f"setclr.training.{MODULES[name]}"), name)
