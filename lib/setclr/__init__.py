"""SetCLR: contrastive losses as small matching problems, exact and fast, and a trainer for them.

    from setclr import InfoNCE, QARe, gather

A name is imported when it is first used: `import setclr` loads no torch.
"""

from typing import TYPE_CHECKING

from setclr.extras import at_first_use

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
_OF_LOOPS = dict.fromkeys(("DistributedLoss", "Queue", "update_momentum"), "training.own_loop")
__all__ = [
    "AlignUniform", "DebiasedInfoNCE", "DecoupledInfoNCE", "DistributedLoss", "GroCo", "HCL", "HardNegatives",
    "IOT", "InfoNCE", "InvaSpread", "LinearAssignment", "MMCL", "NTLogistic", "QARe", "Queue", "SparseCLR",
    "SupCon", "Triplet", "gather", "learnable", "pretrain", "update_momentum",
]  # fmt: skip
_PLACES = dict.fromkeys(__all__, "losses") | _OF_LOOPS
_PLACES |= {"gather": "training.distributed", "pretrain": "experiments"}

__getattr__ = at_first_use(__name__, _PLACES)
