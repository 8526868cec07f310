"""Triplet: positives nearer than the nearest negatives by a margin (Schroff 2015; GroCo, eq. 8)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from setclr.checks import values_readable
from setclr.losses.base import SetLoss
from setclr.losses.contrast import VIEWS
from setclr.losses.table import Batch, Table, distances, length
from setclr.settings import flag, moderate, one_of, whole


class Triplet(SetLoss):
    r"""Positives must be nearer than the hardest negatives by a margin (Schroff 2015; GroCo, eq. 8).

    .. math::
        L = \operatorname{mean}_a \operatorname{mean}_{p, n}\; \max(0,\; d_{ap} - d_{an} + m)

    with p the anchor's chosen positives and n its nearest negatives, as in Hermans et al. 2017. Without the
    hinge (m = ∞ in GroCo's table 7) it is the mean of d⁺ − d⁻. With all positives, all negatives and cosines
    it is the hinge of MMCL's preliminaries. Labels make the class's points positives.

    The inner problem is the search for the nearest negatives. `assignment`: equal weights for them, which sum
    to 1.

    >>> import torch
    >>> from setclr import Triplet
    >>> x, y = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0, 1, 1])
    >>> Triplet(margin=0.5)(x, labels=y).item()  # a negative is √2 away, the positive 0
    0.0

    Args:
        margin: m ≥ 0, in units of the distance; None leaves the hinge out. QARe's experiments use 0.5,
            GroCo's table 7 has 0.8, 1.6 and None.
        positives: "hardest": the farthest (batch-hard, QARe's experiments); "all", as in GroCo's table 7.
        negatives: how many of the nearest negatives, ≥ 1; all if the batch has fewer. Batch-hard takes 1,
            GroCo's table 7 takes 10.
        distance: "euclidean", ‖x − y‖ of unit vectors, gradient 0 at 0; "cosine", 1 − s, as in GroCo.
        positive_views: G ≥ 2: only the first G views serve as positives (multi-crop). None: all views.
        stop_gradient: only the anchor gets a gradient; the candidates are constants, as in GroCo's runs.
        key_gradient: as in InfoNCE.

    Raises ValueError: in `forward`, positive_views > U.
    Cost: O(M² E) time and O(M²) space, M = V·N; only the chosen pairs get a gradient. With labels and all
    positives O(M² n) space for n negatives.
    """

    takes = frozenset({"views", "keys", "memory", "labels"})
    margin: float | None = moderate(
        0.5, "None leaves the hinge out, the papers use 0.5 to 1.6", or_none=True, least=0
    )
    positives: str = one_of("hardest", ("hardest", "all"))
    negatives: int = whole(1, 1, hint="the papers use 1 and 10")
    distance: str = one_of("euclidean", ("euclidean", "cosine"))
    positive_views: int | None = whole(None, 2, hint=VIEWS)
    stop_gradient: bool = flag(False)
    key_gradient: bool = flag(False)

    def values(self, batch: Batch) -> Tensor:
        with torch.no_grad():
            t = batch.table().joined()
            column, share = self.hardest(t)
            own, true = self.own(t)
        positive = self.distances(batch, own)
        if self.positives == "hardest":
            positive = positive.masked_fill(~true, -torch.inf).amax(-1, keepdim=True)
            true = torch.ones_like(positive, dtype=torch.bool)
        gap = positive.unsqueeze(-1) - self.distances(batch, column).unsqueeze(-2)
        if self.margin is not None:
            gap = F.relu(gap + self.margin)
        each = (gap * share.unsqueeze(-2)).sum(-1)
        return each.masked_fill(~true, 0).sum(-1) / true.sum(-1)

    def solution(self, batch: Batch) -> Tensor:
        t = batch.table().joined()
        column, share = self.hardest(t)
        return torch.zeros_like(t.far).scatter_(1, column, share)

    def hardest(self, t: Table) -> tuple[Tensor, Tensor]:
        """Columns and shares, both (M, n), of every anchor's most similar negatives; shares sum to 1."""
        similarity, column = t.far.topk(min(self.negatives, t.most), sorted=False)
        chosen = (similarity > -torch.inf).to(similarity)
        return column, chosen / chosen.sum(-1, keepdim=True)

    def own(self, t: Table) -> tuple[Tensor, Tensor]:
        """Columns of the positives, (M, k), and which of these entries are positives.

        For "hardest" and labels these are only the positives whose similarity is the least, or larger by no
        more than its rounding. Where values cannot be read, these are the least four.
        """
        if self.positives == "all" or t.near.shape != t.far.shape:
            return t.positive, t.true
        near, k = t.near.masked_fill(~t.true, torch.inf), 4
        if values_readable(near):
            least = near.amin(-1, keepdim=True) + 128 * torch.finfo(near.dtype).eps
            k = int((near <= least).sum(-1).max())
        column = near.topk(min(k, near.shape[1]), largest=False, sorted=False).indices
        return column, t.true.gather(1, column)

    def distances(self, batch: Batch, column: Tensor) -> Tensor:
        """Distances (M, n) from every anchor to the candidates in its row of `column` (M, n).

        A Euclidean distance is the norm of the difference: √(2 − 2s) would lose half the digits. The
        differences are stored unless they take more than 8 times the space of the similarities.
        """
        x, y = batch.rows(), batch.columns()
        if column.shape[-1] * x.shape[-1] > 8 * len(y):
            every = 1 - x @ y.T if self.distance == "cosine" else distances(x, y)
            return every.gather(-1, column)
        x, y = x.unsqueeze(1), y[column]
        return 1 - (x * y).sum(-1) if self.distance == "cosine" else length(x - y)
