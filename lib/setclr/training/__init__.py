"""Pretraining: the loop, its schedules, its checkpoints and what many processes need. Names are imported when
they are first used: `training.distributed.gather` works with the core alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setclr.extras import extra

if TYPE_CHECKING:
    from setclr.training.checkpoint import Run, load_run
    from setclr.training.interruption import Interrupted
    from setclr.training.pairs import train_on_pairs, two_views
    from setclr.training.pretraining import pretrain

__all__ = ["Interrupted", "Run", "load_run", "pretrain", "train_on_pairs", "two_views"]
MODULES = {"Interrupted": "interruption", "Run": "checkpoint", "load_run": "checkpoint",
           "pretrain": "pretraining", "train_on_pairs": "pairs", "two_views": "pairs"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'setclr.training' has no attribute {name!r}")
    with extra("train"):
        return getattr(import_module(f"setclr.training.{MODULES[name]}"), name)
