"""Pretraining: the loop, its schedules, its checkpoints and what many processes need. Names are imported when
they are first used: `training.distributed.gather` works with the core alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setclr.extras import extra

if TYPE_CHECKING:
    from setclr.training.interruption import Interrupted
    from setclr.training.metrics import TensorBoard
    from setclr.training.momentum import Keys
    from setclr.training.pretraining import pretrain
    from setclr.training.run import Run, load_run
    from setclr.training.schedule import Rate
    from setclr.training.trainer import Trainer

__all__ = ["Interrupted", "Keys", "Rate", "Run", "TensorBoard", "Trainer", "load_run", "pretrain"]
MODULES = {"Interrupted": "interruption", "Keys": "momentum", "Rate": "schedule", "Run": "run",
           "TensorBoard": "metrics", "Trainer": "trainer", "load_run": "run",
           "pretrain": "pretraining"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'setclr.training' has no attribute {name!r}")
    with extra("train"):
        return getattr(import_module(f"setclr.training.{MODULES[name]}"), name)
