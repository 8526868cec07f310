"""SparseCLR: InfoNCE with the sparsemax in place of the softmax (Moskalev et al. 2022, section 4.2)."""

import torch
from torch import Tensor

from setclr.checks import number
from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses.base import Points, SetLoss, check_positive_views, positive_weights


class SparseCLR(SetLoss):
    r"""Each anchor picks its positive out of the negatives by a sparsemax, which gives most of them nothing
    (QARe, eq. 14).

    .. math::
        L = \operatorname{mean}_{a, p}\; \max\nolimits_\Omega(x_{ap}) - (s_{ap} - m), \qquad
        \max\nolimits_\Omega(x) = \tfrac12 \sum_{j: x_j > T} (x_j^2 - T^2) + \tfrac12

    with x_ap the cosine similarities of the anchor's negatives and, less the margin m, of its positive, and T
    the threshold of the sparsemax; the mean runs over the anchor's positives, then over anchors. L ≥ 0, and 0
    when every positive is more similar than all negatives by 1 + m. Eq. 8 and 14 mean this, but are printed
    with the sign of the second term wrong, the support of −x and without the ½.

    The inner problem is the choice of one candidate; ½‖p‖² smooths its maximum and there is no temperature.
    `assignment`: the mean over positives of the sparsemax over that positive and the negatives; rows sum to
    1.

    Args:
        margin: m ≥ 0 in units of cosine similarity. The authors' program uses 1; the paper states none.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.

    Raises:
        ValueError: an argument is out of range; in `forward`, positive_views > V.

    Cost: O(M² E) time for the similarities, M = V·N, and a few passes over them for each positive of an
    anchor; O(M²) memory, whatever the number of positives.
    """

    def __init__(self, margin: float = 1.0, positive_views: int | None = None):
        super().__init__()
        self.margin = number("margin", margin, least=0, hint="the authors' program uses 1")
        self.positive_views = check_positive_views(positive_views)

    def score(self, points: Points) -> Tensor:
        negatives, positives, weights, _ = self.logits(points)
        excess = sparse_maximum(negatives, positives) - positives
        return (weights * excess).sum() / negatives[..., 0].numel()

    def solution(self, points: Points) -> Tensor:
        negatives, positives, weights, columns = self.logits(points)
        assignment = torch.zeros_like(negatives)
        for s, w, column in zip(positives.split(1, -1), weights.split(1, -1), columns.split(1, -1)):
            assignment += w * sparsemax(negatives.scatter(-1, column, s))
        return assignment.flatten(0, 1)

    def logits(self, points: Points) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Similarities of the anchors (v, i): (V, N, V·N) of negatives, −inf where the image is its own;
        (V, N, K) of positives, less the margin; then the K positives' weights, (V, 1, K), and columns."""
        anchors = points.anchors
        V, N, _ = anchors.shape
        own = torch.eye(N, dtype=torch.bool, device=anchors.device).repeat(1, V)
        negatives = (anchors @ anchors.flatten(0, 1).T).masked_fill(own, -torch.inf)

        weights = positive_weights(V, self.positive_views, anchors)
        view = torch.arange(V, device=anchors.device).unsqueeze(1)
        other = torch.arange(min(V - 1, self.positive_views or V), device=anchors.device).expand(V, -1)
        other = other + (other >= view)  # (V, K): the first views without the anchor's own
        similarity = torch.einsum("vie,uie->viu", anchors, anchors)
        columns = N * other.unsqueeze(1) + torch.arange(N, device=anchors.device).unsqueeze(1)
        positives = similarity.gather(-1, other.unsqueeze(1).expand(columns.shape)) - self.margin
        return negatives, positives, weights.gather(1, other).unsqueeze(1), columns
