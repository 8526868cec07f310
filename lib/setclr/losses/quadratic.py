"""QARe: quadratic assignment regularisation (Moskalev et al. 2022, section 4.1).

A matching of two views should also respect the distances within each view. This quadratic assignment problem
is too hard to solve for a batch. So a bound of it, from the eigenvalues of the two views' similarity
matrices, is added to a pairwise loss. It compares sets, not an anchor with candidates, so it reads no table.
"""

import torch
from torch import Tensor

from setclr.inner.assignment import spectrum
from setclr.losses.base import SetLoss
from setclr.losses.table import Batch, distances
from setclr.settings import one_of


class QARe(SetLoss):
    r"""Spectral bound of the quadratic assignment of two views (QARe, eq. 7 and 17).

    .. math::
        L_{cosine} = \tfrac{1}{N^2} \langle \lambda(1 + S_A), \lambda(1 + S_B) \rangle_+, \qquad
        L_{euclidean} = -\tfrac{1}{N^2} \langle \lambda(S_A), \lambda(S_B) \rangle_-

    (QARe, algorithms 2 and 1). S_A and S_B are the N×N cosines, or Euclidean distances, within view A and
    view B. λ are their eigenvalues, multiplied in the same (+) or in opposite (−) order. The loss is the mean
    over the pairs of views. "clamped cosine" is what the authors' program computes: L_cosine with negative
    cosines as 0, divided by N(N−1) instead of N².

    It is a regulariser, used as in `InfoNCE(0.5) + 1.125 * QARe()`; the weights of table 4 go from 0.125 to
    1.25. It has no assignment and no value for each anchor. The cosine version pushes the points of a view
    apart. The Euclidean one contracts them. The exact term −min_Y tr(S_A Y S_Bᵀ Yᵀ) ≤ 0 falls when distances
    grow, but its bound is ≥ 0 and smallest when all distances vanish.

    >>> import torch
    >>> from setclr import InfoNCE, QARe
    >>> loss = InfoNCE(0.5) + 1.125 * QARe()
    >>> loss(torch.randn(8, 16), torch.randn(8, 16)).shape
    torch.Size([])

    Args:
        similarity: "cosine", "clamped cosine" or "euclidean".

    Cost: cosine with N > E + 1: O(V (N E² + E³)) time and O(V (N E + E²)) space. It uses the (E+1)×(E+1)
    matrix [Z 1]ᵀ[Z 1], which has the eigenvalues of 1 + S = [Z 1][Z 1]ᵀ except for zeros. This is exact,
    while section 4.1 takes the k largest eigenvalues. In all other cases O(V (N² E + N³)) time and O(V N²)
    space.
    """

    takes = frozenset({"views"})
    similarity: str = one_of("cosine", ("cosine", "clamped cosine", "euclidean"))

    def score(self, batch: Batch) -> Tensor:
        z = batch.anchors
        V, N, E = z.shape
        divisor = V * (V - 1) * N**2
        if self.similarity == "cosine":
            z = torch.cat([z, torch.ones_like(z[..., :1])], dim=-1)
            eigenvalues = spectrum(z.mT @ z if E + 1 < N else z @ z.mT)
            bounds = eigenvalues @ eigenvalues.T
        elif self.similarity == "clamped cosine":
            eigenvalues = spectrum(1 + (z @ z.mT).clamp(min=0))
            bounds, divisor = eigenvalues @ eigenvalues.T, V * (V - 1) * N * (N - 1)
        else:
            eigenvalues = spectrum(distances(z, z))
            bounds = -eigenvalues @ eigenvalues.flip(-1).T
        same = torch.eye(V, dtype=torch.bool, device=z.device)
        return bounds.masked_fill(same, 0).sum() / divisor
