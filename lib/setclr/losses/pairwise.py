"""Losses that score each positive pair against the anchor's negatives: InfoNCE."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import number
from setclr.losses.base import Points, SetLoss, check_positive_views, positive_weights


class InfoNCE(SetLoss):
    r"""Each anchor picks its positive out of the negatives by a softmax (van den Oord 2018; GroCo eq. 11).

    .. math::
        L = \operatorname{mean}_{a, p}\; -\log \frac{e^{s_{ap}/\tau}}{e^{s_{ap}/\tau} + \sum_n
        e^{s_{an}/\tau}}

    with s the cosine similarity; the mean runs over the anchor's positives, then over anchors. Other
    positives are not in the denominator. For two views it is NT-Xent (Chen et al. 2020).

    The inner problem is the choice of one candidate; the temperature smooths its maximum. `assignment`: the
    mean over positives of the softmax over that positive and the negatives; rows sum to 1.

    Args:
        temperature: τ > 0. The papers use 0.05 to 0.5; towards 0 only the hardest negative counts.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time and O(M²) memory, M = V·N.
    """

    takes = frozenset({"keys", "memory"})

    def __init__(self, temperature: float = 0.5, positive_views: int | None = None):
        super().__init__()
        self.temperature = number("temperature", temperature, above=0, hint="the papers use 0.05 to 0.5")
        self.positive_views = check_positive_views(positive_views)

    def score(self, points: Points) -> Tensor:
        positives, *negatives = self.logits(points)
        hardest = torch.stack([x.logsumexp(-1) for x in negatives]).logsumexp(0)  # (V, N)
        loss = F.softplus(hardest.unsqueeze(1) - positives)  # (V, V, N): −log of the fraction above
        return torch.einsum("vu,vui->", self.weights(points), loss) / hardest.numel()

    def solution(self, points: Points) -> Tensor:
        positives, *negatives = self.logits(points)
        V, _, N = positives.shape
        hardest = torch.stack([x.logsumexp(-1) for x in negatives]).logsumexp(0)
        scale = self.weights(points).log().unsqueeze(-1) - torch.logaddexp(hardest.unsqueeze(1), positives)
        within, *memory = [(x + scale.logsumexp(1).unsqueeze(-1)).exp().flatten(0, 1) for x in negatives]
        within.view(V, N, V, N).diagonal(dim1=1, dim2=3).copy_((positives + scale).exp())
        return torch.cat([within, *memory], dim=1)

    def logits(self, points: Points) -> tuple[Tensor, ...]:
        """s/τ: (V, V, N) of every anchor (v, i) and view u of its own image; (V, N, V·N) of its negatives,
        −inf where the image is its own; with memory also (V, N, Q)."""
        anchors = points.anchors / self.temperature
        V, N, _ = anchors.shape
        own = torch.eye(N, dtype=torch.bool, device=anchors.device).repeat(1, V)
        positives = torch.einsum("vie,uie->vui", anchors, points.candidates)
        negatives = (anchors @ points.candidates.flatten(0, 1).T).masked_fill(own, -torch.inf)
        return positives, negatives, *([] if points.memory is None else [anchors @ points.memory.T])

    def weights(self, points: Points) -> Tensor:
        return positive_weights(len(points.anchors), self.positive_views, points.anchors)
