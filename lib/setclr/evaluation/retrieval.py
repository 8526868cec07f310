"""Retrieval: how often the nearest other image is of the same class."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.evaluation.neighbours import check_labels

SIMILARITIES = 2**25  # held at once


@torch.no_grad()
def retrieval_at_1(features: Tensor, labels: Tensor) -> float:
    """Share of images whose nearest other image, by cosine similarity, is of their class.

    Where queries and bank are two sets, as in table 5 of the MMCL paper, use the accuracy of knn(…, k=1).

    >>> import torch
    >>> from setclr.evaluation import retrieval_at_1
    >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> retrieval_at_1(x, torch.tensor([0, 0, 1, 1]))
    1.0

    Raises ValueError unless features are (N, D), N ≥ 2, finite, and labels (N,) integers. Cost: O(N² D)
    time; O(N D) numbers are held at once.
    """
    check_labelled(features, labels)
    x, labels, right = F.normalize(features.float(), dim=1), labels.to(features.device), 0
    for row in torch.arange(len(x), device=x.device).split(max(1, SIMILARITIES // len(x))):
        similarity = x[row] @ x.T
        similarity.scatter_(1, row[:, None], -torch.inf)
        right += int((labels[similarity.argmax(1)] == labels[row]).sum())
    return right / len(x)


def check_labelled(features: Tensor, labels: Tensor) -> None:
    """Raises ValueError unless features (N, D), N ≥ 2, are finite, with labels as `check_labels` asks."""
    if features.ndim != 2 or len(features) < 2:
        raise ValueError(f"features must be (N, D) with N >= 2, got {tuple(features.shape)}")
    if not features.isfinite().all():
        raise ValueError("features must be finite, got NaN or inf: the encoder has diverged")
    check_labels("labels", labels, len(features))
