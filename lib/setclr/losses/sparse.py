"""SparseCLR: InfoNCE with the sparsemax in place of the softmax (Moskalev et al. 2022, section 4.2)."""

import torch
from torch import Tensor

from setclr.checks import boolean, setting
from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses.base import SetLoss
from setclr.losses.contrast import Contrast, contrast
from setclr.losses.points import Points, check_positive_views


class SparseCLR(SetLoss):
    r"""Each anchor picks its positive by a sparsemax, which gives most negatives 0 (QARe, eq. 14).

    .. math::
        L = \operatorname{mean}_{a, p}\; \max\nolimits_\Omega(x_{ap}) - (s_{ap} - m), \qquad
        \max\nolimits_\Omega(x) = \tfrac12 \sum_{j: x_j > T} (x_j^2 - T^2) + \tfrac12

    x_ap are the cosine similarities of the anchor's negatives, and that of its positive minus the margin m. T
    is the threshold of the sparsemax. The mean runs over the anchor's positives, then over anchors. The other
    positives, with labels those of the class, are not candidates. L ≥ 0; it is 0 when every positive is more
    similar than all negatives by 1 + m. Eq. 8 and 14 mean this. As printed they have the wrong sign of the
    second term and the support of −x, and lack the ½.

    The inner problem is the choice of one candidate; ½‖p‖² smooths it, without a temperature. `assignment`:
    the mean over positives of the sparsemax over that positive and the negatives; rows sum to 1.

    >>> import torch
    >>> from setclr import SparseCLR
    >>> z = torch.eye(3).repeat(2, 1, 1)
    >>> SparseCLR(margin=0.0)(z).item()  # each positive leads by 1: no negative has a share
    0.0

    Args:
        margin: m ≥ 0 in units of cosine similarity. The authors' program uses 1; the paper states none.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.
        clamped: negative cosines count as 0: SparseCLR+QARe in the authors' program.

    Raises ValueError: in `forward`, positive_views > V.
    Cost: O(M² E) time for the similarities, M = V·N, and a few passes over them for each positive of an
    anchor; O(M²) space for any number of positives. With labels it reads the size of the largest class,
    which stalls a GPU.
    """

    takes = frozenset({"views", "labels"})

    def __init__(self, margin: float = 1.0, positive_views: int | None = None, clamped: bool = False) -> None:
        super().__init__()
        self.margin = setting("margin", margin, least=0, hint="the authors' program uses 1")
        self.positive_views = check_positive_views(positive_views)
        self.clamped = boolean("clamped", clamped)

    def values(self, points: Points) -> Tensor:
        c = contrast(points, positive_views=self.positive_views, clamped=self.clamped)
        positives, weights, _ = self.chosen(c)
        excess = sparse_maximum(c.negatives[0], positives) - positives
        return (weights * excess).sum(-1)

    def solution(self, points: Points) -> Tensor:
        c = contrast(points, positive_views=self.positive_views, clamped=self.clamped)
        negatives = c.negatives[0]
        assignment = torch.zeros_like(negatives)
        for s, w, column in zip(*(x.split(1, -1) for x in self.chosen(c))):
            assignment += w * sparsemax(negatives.scatter(-1, column, s))
        return assignment.flatten(0, 1)

    def chosen(self, c: Contrast) -> tuple[Tensor, Tensor, Tensor]:
        """K positives minus the margin, weights and columns, each (V, N, K); missing ones have weight 0."""
        V, N, most = c.positives.shape
        K = min(most - 1, self.positive_views or most)
        if c.labelled:
            K = int((c.weights > 0).sum(-1).max())
        weights, which = (x.expand(V, N, K) for x in c.weights.topk(K))
        column = which if c.labelled else N * which + torch.arange(N, device=which.device).unsqueeze(1)
        return c.positives.gather(-1, which) - self.margin, weights, column
