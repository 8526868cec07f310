"""Accuracy of graph features: a support-vector machine with ten-fold cross-validation, as in GraphCL."""

import numpy as np
from torch import Tensor

from setclr.checks import integer
from setclr.evaluation.neighbours import check_features
from setclr.extras import extra

with extra("train"):
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

FOLDS = 10
FITS = 5  # folds by which C is chosen
PENALTIES = tuple(10.0**k for k in range(-3, 4))


def svm_accuracy(features: Tensor, labels: Tensor, seed: int = 0, folds: int = FOLDS) -> float:
    """Mean accuracy in per cent over the folds of features (N, D) with labels (N,), as GraphCL measures.

    For each fold an SVM with a Gaussian kernel is fitted to the other folds. Its C is chosen among
    PENALTIES by five-fold cross-validation inside them. Folds keep the classes' shares and are shuffled
    by `seed`; GraphCL draws them anew at every call. The features are neither scaled nor normalised, as
    in GraphCL.

    Raises ValueError where there is one class alone, a class has fewer graphs than there are folds, or a
    feature is NaN or inf. Cost: 36 fits for each fold, each O(N²·D) or more.
    """
    integer("seed", seed, least=0, most=2**32 - 1)
    check_features("labels", labels, features=features)
    smallest = int(labels.unique(return_counts=True)[1].min())
    integer("folds", folds, least=2, most=smallest, hint=f"the smallest class has {smallest} graphs")
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    x, y = arrays(features, labels)
    return 100 * float(np.mean(cross_val_score(searched(), x, y, cv=split, error_score="raise")))


def svm_held_out(features: Tensor, labels: Tensor, held: Tensor, held_labels: Tensor) -> float:
    """Accuracy in per cent on the features `held` (Q, D) of such an SVM, fitted to the features (N, D).

    Raises ValueError where a class has fewer than five, and as `svm_accuracy` does."""
    check_features("labels", labels, features=features, held=held)
    smallest = int(labels.unique(return_counts=True)[1].min())
    if smallest < FITS:
        wanted = f"labels must have {FITS} of each class or more"
        raise ValueError(f"{wanted}, got a class of {smallest}; add some")
    return 100 * float(searched().fit(*arrays(features, labels)).score(*arrays(held, held_labels)))


def searched() -> GridSearchCV:
    """An SVM whose C is chosen by five-fold cross-validation."""
    return GridSearchCV(SVC(), {"C": PENALTIES}, cv=FITS)


def arrays(features: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    return features.detach().cpu().double().numpy(), labels.cpu().numpy()
