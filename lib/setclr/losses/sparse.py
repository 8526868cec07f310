"""SparseCLR: InfoNCE with the sparsemax in place of the softmax (Moskalev et al. 2022, section 4.2)."""

import torch
from torch import Tensor

from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses.base import SetLoss
from setclr.losses.contrast import VIEWS
from setclr.losses.table import Batch
from setclr.settings import flag, moderate, whole


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
    margin: float = moderate(1.0, "the authors' program uses 1", least=0)
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    clamped: bool = flag(False)

    def values(self, batch: Batch) -> Tensor:
        t = batch.table(clamped=self.clamped).compact()
        positive = t.near - self.margin
        return t.mean(sparse_maximum(t.far, positive) - positive)

    def solution(self, batch: Batch) -> Tensor:
        t = batch.table(clamped=self.clamped).compact()
        assignment = torch.zeros_like(t.far)
        for near, true, column in zip(*(x.split(1, -1) for x in (t.near, t.true, t.positive))):
            assignment += true * sparsemax(t.far.scatter(-1, column, near - self.margin))
        return assignment / t.true.sum(-1, keepdim=True)
