"""What a frozen encoder's features are worth (nearest neighbours, a linear probe, matching, retrieval, few
shots, other data sets, fine-tuning), and taking them along."""

from setclr.evaluation.embed import embed_folder
from setclr.evaluation.export import export
from setclr.evaluation.features import features, pixels
from setclr.evaluation.few_shot import few_shot
from setclr.evaluation.fine_tune import fine_tune
from setclr.evaluation.knn import knn
from setclr.evaluation.linear import linear_probe
from setclr.evaluation.matching import matching_accuracy
from setclr.evaluation.retrieval import (
    Landmarks,
    landmark_features,
    landmarks,
    load_landmarks,
    retrieval_at_1,
)
from setclr.evaluation.transfer import transfer

__all__ = [
    "Landmarks",
    "embed_folder",
    "export",
    "features",
    "few_shot",
    "fine_tune",
    "knn",
    "landmark_features",
    "landmarks",
    "linear_probe",
    "load_landmarks",
    "matching_accuracy",
    "pixels",
    "retrieval_at_1",
    "transfer",
]
