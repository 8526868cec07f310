"""Pascal VOC's average precision over eleven recalls, for pictures that show several things."""

import torch
from torch import Tensor

from setclr.evaluation.neighbours import neighbours


def average_precision_11(scores: Tensor, there: Tensor) -> float:
    """The 11-point average precision of one class, in [0, 1].

    It is the mean, over recalls of 0, 0.1, …, 1, of the best precision at that recall or a higher one
    (Everingham et al. 2010, as VOC had it up to 2009). `scores` (N,) are larger for pictures that are
    thought to show the class; `there` (N,) bool says which do. Equal scores stay in the order of the
    pictures. Raises ValueError where no picture shows the class. Cost: O(N log N).
    """
    if scores.shape != there.shape or scores.ndim != 1 or not bool(there.any()):
        got = f"{tuple(scores.shape)}, {tuple(there.shape)} with {int(there.sum())} of them"
        raise ValueError(f"scores and there must be (N,), and something be there, got {got}")
    hits = there[scores.argsort(descending=True, stable=True)].cumsum(0)
    precision = hits.double() / torch.arange(1, len(hits) + 1, device=hits.device)
    best = precision.flip(0).cummax(0).values.flip(0)  # best precision at this place or later
    wanted = (torch.arange(11, device=hits.device) * hits[-1] + 9) // 10  # hits for each recall, rounded up
    return float(best[torch.searchsorted(hits, wanted.clamp(min=1))].mean())


def mean_average_precision(scores: Tensor, present: Tensor) -> float:
    """The mean of `average_precision_11` over classes, in per cent.

    `scores` and `present` are (N, C). `present` is 1 where a picture shows the class, 0 where it does
    not, and −1 where it shows only objects of the class that are marked difficult: the picture is then
    left out for that class. Classes that no picture shows are left out. Raises ValueError where no class
    is left.
    """
    found = []
    for score, one in zip(scores.cpu().T, present.cpu().T):
        counts = one >= 0
        if bool((one == 1).any()):
            found.append(average_precision_11(score[counts], one[counts] == 1))
    if not found:
        raise ValueError("present must show some class, got none")
    return 100 * sum(found) / len(found)


@torch.no_grad()
def knn_scores(
    bank: Tensor, present: Tensor, queries: Tensor, k: int = 20, temperature: float = 0.07
) -> Tensor:
    """The share of the votes of a query's k neighbours for each class, (Q, C), weighted as in `knn`.

    `present` (N, C) is what the pictures of the bank (N, D) show, as in `mean_average_precision`. A class
    that is marked difficult gets no vote. Raises and costs what `knn` does.
    """
    nothing = torch.zeros(len(bank), dtype=torch.long, device=bank.device)
    similarity, index = neighbours(bank, nothing, queries, k)
    weight = ((similarity - similarity[:, :1]) / temperature).exp()
    shown = (present.to(bank.device)[index] == 1).to(weight.dtype)  # (Q, k, C)
    return (weight[:, :, None] * shown).sum(1) / weight.sum(1, keepdim=True)
