"""Accuracy of graph features: a support-vector machine with ten-fold cross-validation, as in GraphCL."""

import numpy as np
from torch import Tensor

from setclr.checks import integer
from setclr.evaluation.neighbours import check_labels
from setclr.extras import extra

with extra("train"):
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

FOLDS = 10
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
    x, y = features.detach().cpu().double().numpy(), labels.cpu().numpy()
    if x.ndim != 2 or len(x) != len(y):
        raise ValueError(f"features must be (N, D) with a label each, got {x.shape} and {len(y)} labels")
    if not np.isfinite(x).all():
        raise ValueError("features must be finite, got NaN or inf; look for a diverged training")
    check_labels("labels", labels, len(x))
    smallest = int(np.unique(y, return_counts=True)[1].min())
    integer("folds", folds, least=2, most=smallest, hint=f"the smallest class has {smallest} graphs")
    found = []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y):
        found.append(fitted(x[train], y[train]).score(x[test], y[test]))
    return 100 * float(np.mean(found))


def svm_held_out(features: Tensor, labels: Tensor, held: Tensor, held_labels: Tensor) -> float:
    """Accuracy in per cent on the features `held` (Q, D) of such an SVM, fitted to the features (N, D)."""
    check_labels("labels", labels, len(features))
    (x, y), (u, v) = (
        (z.detach().cpu().double().numpy(), of.cpu().numpy())
        for z, of in ((features, labels), (held, held_labels))
    )
    return 100 * float(fitted(x, y).score(u, v))


def fitted(x: np.ndarray, y: np.ndarray) -> GridSearchCV:
    """An SVM whose C is chosen by five-fold cross-validation."""
    return GridSearchCV(SVC(), {"C": PENALTIES}, cv=5).fit(x, y)
