"""Evaluate encoders: kNN vote, linear probe, retrieval, matching, statistics.

These are functions of tensors and encoders.
"""

from setclr.extras import extra

with extra("train"):
    from setclr.evaluation.frozen import features, pixels
    from setclr.evaluation.matching import matching_accuracy
    from setclr.evaluation.neighbours import knn
    from setclr.evaluation.probes import linear_probe
    from setclr.evaluation.retrieval import retrieval_at_1

__all__ = ["features", "knn", "linear_probe", "matching_accuracy", "pixels",
           "retrieval_at_1"]  # fmt: skip
