"""SetCLR: contrastive losses as small matching problems, exact and fast, and a trainer for them.

    from setclr import InfoNCE, QARe, gather

A name is imported when it is first used: `import setclr` loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setclr.experiments.pretraining import pretrain
    from setclr.losses import (
        HCL,
        IOT,
        MMCL,
        AlignUniform,
        DebiasedInfoNCE,
        DecoupledInfoNCE,
        GroCo,
        HardNegatives,
        InfoNCE,
        InvaSpread,
        LinearAssignment,
        NTLogistic,
        QARe,
        SparseCLR,
        SupCon,
        Triplet,
        learnable,
    )
    from setclr.training.distributed import gather
    from setclr.training.own_loop import DistributedLoss, Queue, update_momentum

__version__ = "0.2.0"
_PLACES = {
    "pretrain": "setclr.experiments",
    "gather": "setclr.training.distributed",
    **dict.fromkeys(("DistributedLoss", "Queue", "update_momentum"), "setclr.training.own_loop"),
}
__all__ = [
    "AlignUniform", "DebiasedInfoNCE", "DecoupledInfoNCE", "DistributedLoss", "GroCo", "HCL", "HardNegatives",
    "IOT", "InfoNCE", "InvaSpread", "LinearAssignment", "MMCL", "NTLogistic", "QARe", "Queue", "SparseCLR",
    "SupCon", "Triplet", "gather", "learnable", "pretrain", "update_momentum",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_PLACES.get(name, "setclr.losses")), name)
    raise AttributeError(f"module 'setclr' has no attribute {name!r}")
