"""Linear assignment: two views matched by their distances (Moskalev et al. 2022, section 3.3).

The inner problem is the cheapest matching of view 0 with view 1. The loss is the extra cost of the true one.
"""

import torch
from torch import Tensor

from setclr.inner.assignment import ENUMERABLE, MINING, linear_assignment
from setclr.inner.simplex import soft_maximum
from setclr.losses.base import SetLoss
from setclr.losses.table import Batch, distances
from setclr.settings import moderate, one_of


class LinearAssignment(SetLoss):
    r"""How much more the true matching costs than the cheapest one (QARe, eq. 3, 4 and 10 to 13).

    .. math::
        L = \tfrac{1}{N} \Big[\operatorname{tr}(S_m) + \tau \log \sum_Y
        e^{-\operatorname{tr}(S_m Y^T)/\tau}\Big], \qquad S_m = S + m I

    S are the N×N distances from view 0 to view 1. For τ = 0 the second term is −min_Y tr(S_m Yᵀ). Y runs over
    the permutation matrices, or with batch-hard mining over all matrices with a single 1 in each row. The
    batch-hard loss with m = 0 is τ·InfoNCE(τ) of the N×N matrix (QARe, proposition 2; the printed eq. 13
    lacks an exp). The batch-hard loss with τ = 0 is the triplet hinge on the hardest negative (QARe,
    proposition 1). With batch-hard mining each row has a value of its own, which counts for both points of
    its pair.

    `assignment`: the block from view 0 to view 1 holds the optimal Y, or for τ > 0 the Gibbs mean of Y. The
    block from view 1 to view 0 holds its transpose, so these rows sum to 1 only one-to-one.

    >>> import torch
    >>> from setclr import LinearAssignment
    >>> z = torch.eye(3)
    >>> LinearAssignment()(z, z).item()  # the true matching is the cheapest
    0.0
    >>> LinearAssignment()(z, z[[1, 0, 2]]).item()  # two pairs would rather swap: 2 too much, over 3 images
    0.6666666865348816

    Args:
        margin: m ≥ 0 in the unit of the distance, by which the true pairs must be nearer.
        temperature: τ ≥ 0. One-to-one with τ > 0 sums over N! permutations and takes at most 8 images.
        mining: "one-to-one" or "batch-hard".
        distance: "cosine", 1 − s, or "euclidean", ‖x − y‖ of the unit vectors.

    Raises ValueError: in `forward`, V ≠ 2, or more than 8 images as above.
    Cost: O(N² E) time and O(N²) space; one-to-one also O(N³) time on the CPU, or O(N·N!) with τ > 0.
    """

    margin: float = moderate(0.0, "the true pairs must win by it", least=0)
    temperature: float = moderate(0.0, "0 takes the minimum", least=0, or_zero=True)
    mining: str = one_of("one-to-one", MINING)
    distance: str = one_of("cosine", ("cosine", "euclidean"))

    def score(self, batch: Batch) -> Tensor:
        if self.mining == "batch-hard":
            return super().score(batch)
        value = linear_assignment(self.cost(batch), self.temperature).value
        return (0 - value) / batch.anchors.shape[1]  # 0, not −0, if the true matching is cheapest

    @property
    def reads_values(self) -> bool:
        return self.mining == "one-to-one" and self.temperature == 0

    def values(self, batch: Batch) -> Tensor:
        if self.mining == "one-to-one":
            return super().values(batch)
        gain = -self.cost(batch)
        rows = soft_maximum(gain, self.temperature) if self.temperature > 0 else gain.max(1).values
        return rows.repeat(2)

    def solution(self, batch: Batch) -> Tensor:
        Y = linear_assignment(self.cost(batch), self.temperature, self.mining).matrix
        return torch.cat([torch.cat([torch.zeros_like(Y), Y], 1), torch.cat([Y.T, torch.zeros_like(Y)], 1)])

    def cost(self, batch: Batch) -> Tensor:
        """Costs (N, N): S_m minus each row's diagonal entry.

        The true matching then costs 0, so the loss is −least cost / N without a cancellation.
        """
        N = batch.anchors.shape[1]
        if self.mining == "one-to-one" and self.temperature > 0 and N > ENUMERABLE:
            raise ValueError(
                f"z must hold at most {ENUMERABLE} images for {self}, got {N}: "
                "it sums over all N! matchings; use temperature=0 or mining='batch-hard'"
            )
        a, b = batch.anchors
        S = 1 - a @ b.T if self.distance == "cosine" else distances(a, b)
        S_m = S + self.margin * torch.eye(N, dtype=S.dtype, device=S.device)
        return S_m - S_m.diagonal().unsqueeze(1)
