"""The training loop: the Trainer, learning-rate schedules, checkpoints, momentum encoders, many processes.

It does not import recipes. Names are imported when they are first used, so that
`training.distributed.gather` works without the packages of the extra "train".
"""

from typing import TYPE_CHECKING

from setclr.extras import at_first_use

if TYPE_CHECKING:
    from setclr.training.devices import Machine
    from setclr.training.interruption import Interrupted
    from setclr.training.momentum import Keys
    from setclr.training.optimisers import LRSchedule
    from setclr.training.source import Batching, ImageViews, LoaderViews, Source, Step
    from setclr.training.trainer import Trainer

MODULES = {"Batching": "source", "ImageViews": "source", "Interrupted": "interruption", "Keys": "momentum",
           "LRSchedule": "optimisers", "LoaderViews": "source", "Machine": "devices", "Source": "source",
           "Step": "source", "Trainer": "trainer"}  # fmt: skip
__all__ = ["Batching", "ImageViews", "Interrupted", "Keys", "LRSchedule", "LoaderViews", "Machine", "Source",
           "Step", "Trainer"]  # fmt: skip

__getattr__ = at_first_use(__name__, MODULES)
