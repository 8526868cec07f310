"""SetCLR: contrastive losses as small matching problems, exact and fast, and a trainer for them.

    from setclr import InfoNCE, QARe, gather

A name is imported when it is first used: `import setclr` loads no torch. All losses have one here.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from setclr.extras import at_first_use

if TYPE_CHECKING:
    from setclr.experiments.run import pretrain as pretrain
    from setclr.losses import *  # noqa: F403
    from setclr.training.distributed import DistributedLoss as DistributedLoss
    from setclr.training.distributed import gather as gather
    from setclr.training.momentum import Queue as Queue
    from setclr.training.momentum import update_momentum as update_momentum

__version__ = "0.3.0"
PLACES = {"learnable": "losses", "pretrain": "experiments"}
PLACES |= dict.fromkeys(("DistributedLoss", "gather"), "training.distributed")
PLACES |= dict.fromkeys(("Queue", "update_momentum"), "training.momentum")


def __getattr__(name: str) -> Any:
    if name in PLACES or (name.startswith("_") and name != "__all__") or find_spec(f"setclr.{name}"):
        return at_first_use(__name__, PLACES)(name)  # a module is imported by whoever asks for it
    from setclr.losses import BY_NAME

    if name == "__all__":
        return sorted([*PLACES, *BY_NAME])
    return at_first_use(__name__, PLACES | dict.fromkeys(BY_NAME, "losses"))(name)
