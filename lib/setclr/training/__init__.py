"""Pretraining: the loop, its schedules, its checkpoints and what many processes need."""

from setclr.training.checkpoint import Run, load_run
from setclr.training.pretrain import pretrain

__all__ = ["Run", "load_run", "pretrain"]
