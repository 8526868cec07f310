"""Evaluate encoders: kNN vote, linear probe, retrieval, matching, statistics.

These are functions of tensors and encoders. Names are imported when they are first used: a vote, retrieval
and matching need torch and scipy alone.
"""

from typing import TYPE_CHECKING

from setclr.extras import at_first_use

if TYPE_CHECKING:
    from setclr.evaluation.frozen import features, pixels
    from setclr.evaluation.neighbours import knn, matching_accuracy, nearest, retrieval_at_1
    from setclr.evaluation.probes import linear_probe

MODULES = {
    "features": "frozen", "knn": "neighbours", "linear_probe": "probes", "matching_accuracy": "neighbours",
    "nearest": "neighbours", "pixels": "frozen", "retrieval_at_1": "neighbours",
}  # fmt: skip
__all__ = ["features", "knn", "linear_probe", "matching_accuracy", "nearest", "pixels", "retrieval_at_1"]

__getattr__ = at_first_use(__name__, MODULES)
