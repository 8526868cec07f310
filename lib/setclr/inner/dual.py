"""The duals of many small support-vector machines over one pool of points, and the solver MMCL_INV.

Every machine separates one positive z⁺ from the negatives Y of the pool. Its dual (MMCL, proposition 1) is

    min over 0 ≤ α ≤ C of g(α) = ½ αᵀΔα − 2·1ᵀα,   Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ,

with k⁺⁺ = k(z⁺, z⁺), k_Y = k(Y, z⁺) and the ridge ρ. The machines share the Gram matrix K of the pool and
differ in few of its rows, so no solver forms the whole Δ of a machine. The iterative solvers are in `descent`
and `pivoting`.
Source: Shah et al. 2022 (MMCL).
"""

from typing import NamedTuple

import torch
from torch import Tensor

BORDER = 4  # rows of ρI around a matrix: at a side that is a power of two cholesky takes twice as long


class Machines(NamedTuple):
    """A support-vector machines over a pool of P points; machine a has the positive `positive[a]`.

    Its negatives are all points except `own[a]`, which include the positive. The variables are α (A, P), 0 at
    `own`.
    """

    K: Tensor  # (P, P): the kernel of the pool
    positive: Tensor  # (A,)
    own: Tensor  # (A, r)
    C: float  # upper bound, may be inf
    ridge: float  # ρ

    def only(self, which: Tensor | slice) -> "Machines":
        return self._replace(positive=self.positive[which], own=self.own[which])

    def centred(self) -> "Machines":
        """The same machines with a centred K: K − u1ᵀ − 1uᵀ gives the same Δ for every u.

        With a wide kernel all entries of K are nearly equal, and the differences in Δ would lose digits.
        Centring saves them.
        """
        K = self.K - self.K.mean()
        u = K.mean(1)
        return self._replace(K=K.sub_(u.unsqueeze(1)).sub_(u))

    def gradient(self, alpha: Tensor) -> Tensor:
        """Gradient Δα − 2 of every machine, (A, P), 0 at `own`: a matrix product and rank-two terms."""
        k, plus = self.K[self.positive], self.positive.unsqueeze(1)
        mass, found = alpha.sum(1, keepdim=True), alpha @ self.K
        constant = k.gather(1, plus) * mass - found.gather(1, plus) - 2
        found.add_(alpha, alpha=self.ridge).addcmul_(mass, k, value=-1).add_(constant)
        return found.scatter_(1, self.own, 0)

    def clip(self, alpha: Tensor) -> Tensor:
        return alpha.clamp(0, self.C).scatter_(1, self.own, 0)

    def residual(self, alpha: Tensor) -> Tensor:
        """KKT residual (A,) of α in units of the gradient; it is 0 only at the optimum.

        It is the largest absolute entry of (α − clip(α − t∇g)) / t with t = min(1, C).
        """
        t = min(1.0, self.C)
        return (alpha - self.clip(alpha - t * self.gradient(alpha))).abs().amax(1) / t

    def rounding(self, alpha: Tensor) -> Tensor:
        """Rounding error of the gradient, (A, 1), up to a factor: ε (2 + max k(x, x) Σα)."""
        largest = self.K.diagonal().abs().max()
        return torch.finfo(alpha.dtype).eps * (2 + largest * alpha.abs().sum(1, keepdim=True))


def clipped_inverse(machines: Machines, definite: bool = True) -> Tensor:
    """MMCL_INV, clip(2 Δ⁻¹1): least squares without the bounds, then clipped to them (MMCL, proposition 1).

    One factorisation serves all machines. Let A = K + ρI and B = A⁻¹. Leaving out the rows R = own of A
    changes the inverse by rank r. Δ differs from A_YY by another rank 2. With q₁ = A_YY⁻¹1 and q₂ = A_YY⁻¹k_Y

        Δ⁻¹1 = ((1 − w) q₁ + (1ᵀq₁) q₂) / ((1 − w)² + (1ᵀq₁)(k⁺⁺ − k_Yᵀq₂)),   w = k_Yᵀq₁.

    Returns α (A, P). It is NaN if the factorisation fails; on the CPU `solve` then raises ValueError. If
    `definite`, K is positive definite and Cholesky's factorisation is used.

    Cost: O(P³ + A P r) time, O(P² + A P) space.
    """
    K, positive, own, _, ridge = machines
    A = torch.nn.functional.pad(K, (0, BORDER, 0, BORDER))
    A.diagonal().add_(ridge)
    B = inverse(A, definite)[:-BORDER, :-BORDER].mT  # symmetric; this way round its rows are contiguous
    sums = B.sum(1)
    B_RR = B[own.unsqueeze(2), own.unsqueeze(1)]
    schur = inverse(B_RR, definite)  # (A, r, r): A_RR − A_RY A_YY⁻¹ A_YR
    plus = (own == positive.unsqueeze(1)).to(K.dtype)  # e⁺: 1 at the positive's place in R, else 0
    c1 = torch.einsum("ars,as->ar", schur, sums[own] - B_RR.sum(2)) + 1  # q₁ = B1 − c₁ᵀB_R
    c2 = torch.einsum("ars,as->ar", schur, plus)  # q₂ = −c₂ᵀB_R

    lead = 1 + ((c1 - 1) * plus).sum(1)  # 1 − w
    mass = sums.sum() - (c1 * sums[own]).sum(1)  # 1ᵀq₁
    share = 2 / (lead.square() + mass * ((plus * c2).sum(1) - ridge))
    alpha = torch.outer(share * lead, sums)
    by_row = (share * lead).unsqueeze(1) * c1 + (share * mass).unsqueeze(1) * c2
    for place, weight in zip(own.T, by_row.T):
        alpha.addcmul_(weight.unsqueeze(1), B.index_select(0, place), value=-1)
    return machines.clip(alpha)


def inverse(A: Tensor, definite: bool) -> Tensor:
    """Inverse of A (..., n, n), by Cholesky's factorisation if `definite`; NaN diagonal if that fails."""
    found, info = (torch.linalg.cholesky_ex if definite else torch.linalg.inv_ex)(A)
    failed = (info != 0).unsqueeze(-1)
    if definite:
        found.diagonal(dim1=-2, dim2=-1).masked_fill_(failed, 1)  # now every factor has an inverse
        # cholesky_inverse is three times faster, but stalls a GPU: it waits for the error code
        eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A)
        found = torch.cholesky_inverse(found) if A.is_cpu else torch.cholesky_solve(eye, found)
    found.diagonal(dim1=-2, dim2=-1).masked_fill_(failed, torch.nan)
    return found
