"""What a frozen encoder's features are worth: nearest neighbours, a linear probe, matching."""

from setclr.evaluation.features import features, pixels
from setclr.evaluation.knn import knn
from setclr.evaluation.linear import linear_probe
from setclr.evaluation.matching import matching_accuracy

__all__ = ["features", "knn", "linear_probe", "matching_accuracy", "pixels"]
