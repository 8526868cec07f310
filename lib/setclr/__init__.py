"""SetCLR: contrastive losses as small matching problems, exact and fast, and a trainer for them.

`setclr.pretrain`, `setclr.gather` and the losses are imported when they are first used: `import setclr`
loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setclr.experiments.pretraining import pretrain
    from setclr.training.distributed import gather

__version__ = "0.2.0"
__all__ = ["gather", "pretrain"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        place = "setclr.experiments" if name == "pretrain" else "setclr.training.distributed"
        return getattr(import_module(place), name)
    losses = import_module("setclr.losses") if name[:1].isupper() else None
    if losses and name in losses.BY_NAME:
        return getattr(losses, name)
    raise AttributeError(f"module 'setclr' has no attribute {name!r}")
