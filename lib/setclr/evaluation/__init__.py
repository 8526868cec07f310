"""What a frozen encoder's features are worth: nearest neighbours, a linear probe, matching, retrieval, few
shots, other data sets, fine-tuning. And the features of one's own images."""

from setclr.extras import extra

with extra("train"):
    from setclr.evaluation.embed import embed_folder
    from setclr.evaluation.frozen import features, pixels
    from setclr.evaluation.matching import best_epoch, matching_accuracy
    from setclr.evaluation.neighbours import knn
    from setclr.evaluation.probes import linear_probe
    from setclr.evaluation.retrieval import (
        Landmarks,
        landmark_features,
        landmarks,
        load_landmarks,
        retrieval_at_1,
    )
    from setclr.evaluation.shots import few_shot
    from setclr.evaluation.transfers import few_shot_transfer, transfer
    from setclr.evaluation.tuning import fine_tune

__all__ = ["Landmarks", "best_epoch", "embed_folder", "features", "few_shot", "few_shot_transfer",
           "fine_tune", "knn", "landmark_features", "landmarks", "linear_probe", "load_landmarks",
           "matching_accuracy", "pixels", "retrieval_at_1", "transfer"]  # fmt: skip
