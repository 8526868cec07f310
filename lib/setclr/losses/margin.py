"""MMCL: max-margin contrastive learning (Shah et al. 2022).

Inner problem: for every point z⁺ a support-vector machine separates it from the negatives Y; the dual weights
α are positive at the support vectors. Outer problem: with these weights held fixed, another view z of the
same image should lie on the side of z⁺.
"""

import torch
from torch import Tensor

from setclr.inner.derivatives import once
from setclr.inner.margin import KERNELS, SOLVERS, check_indefinite, check_offset, kernel, solve
from setclr.inner.svms import SVMs
from setclr.losses.base import SetLoss
from setclr.losses.table import Batch
from setclr.settings import moderate, one_of, positive

POOLS = ("all", "view")


class MMCL(SetLoss):
    r"""Negated decision function of z⁺'s machine at the image's other views (MMCL, eq. 8 and 9, algorithm 1).

    .. math::
        L = \operatorname{mean}_{z^+, z}\; \sum_{j} \alpha_j \left( k(y_j, z) - k(z^+, z) \right), \qquad
        \alpha = \arg\min_{0 \le \alpha \le C} \tfrac12 \alpha^\top \Delta \alpha - 2 \cdot 1^\top \alpha

    with Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ, k⁺⁺ = k(z⁺, z⁺) and k_Y = k(Y, z⁺). The paper and its
    program write 1 for k⁺⁺, which is wrong for tanh. The mean runs over all points z⁺ and, for each, over the
    other views z of its image. The value of a point z is the mean over the machines of its other views. No
    gradient flows through α. The loss can be negative.

    - "inv" (MMCL_INV): α = clip(2Δ⁻¹1, 0, C): fast, not the machine's solution, possibly worse than α = 0.
    - "pgd" (MMCL_PGD): projected gradients to a KKT residual of 1e-3; a warning if that is not reached.
    - "steps" (MMCL_PGD in the authors' program): steps of 1e-3 from a random start, the same in every call,
      until α changes by less than 1 % on average. It often finds no solution; with a wide kernel α stays at
      the start.
    - "exact": the solution, by block pivoting; not for tanh.

    `assignment`: row z⁺ holds the α of its machine: 0 = not a support vector, C = a violation of the margin.

    >>> import torch
    >>> from setclr import MMCL
    >>> alpha = MMCL(C=1.0, solver="exact").assignment(torch.randn(2, 6, 16))
    >>> alpha.shape, 0 <= alpha.min(), alpha.max() <= 1
    (torch.Size([12, 12]), tensor(True), tensor(True))

    Args:
        kernel: "rbf", "linear" or "tanh".
        bandwidth: > 0: σ² in exp(−‖x − y‖² / 2σ²), or γ in tanh(γ xᵀy + η). The authors' program calls 2σ²
            its sigma; on CIFAR its schedule is 2σ² = 50, 5, 0.5.
        C: > 0, the largest weight of a negative; inf for no bound (as on ImageNet).
        ridge: ρ > 0, added to the negatives' diagonal; the paper uses 0.1.
        solver: "inv", "pgd", "steps" or "exact".
        pool: "all": negatives from every view; "view": from the view of z⁺ (the authors' program).
        offset: η of tanh; 0 for other kernels.

    Raises ValueError: an argument is out of range; for tanh, "exact", and "pgd" or "steps" with C = inf; in
    `forward`, a ridge that is too small for the precision.
    Cost: M = V·N machines. O(M³) time: once for "inv", in each round for "pgd" (10 to 30 rounds) and "exact"
    (some 10 if few points are support vectors). O(M²) space, for "inv" O(V M²).
    """

    takes = frozenset({"views"})
    kernel: str = one_of("rbf", KERNELS)
    bandwidth: float = positive(1.0, "it is σ² of the rbf kernel")
    C: float = positive(
        100.0, "it bounds a negative's weight: inf for no bound, the paper uses 100", infinite=True
    )
    ridge: float = positive(0.1, "it keeps the machine solvable; the paper uses 0.1")
    solver: str = one_of("inv", SOLVERS)
    pool: str = one_of("all", POOLS)
    offset: float = moderate(0.0, "it is η of the tanh kernel")

    def check(self) -> None:
        super().check()
        check_offset(self.offset, self.kernel)
        if self.kernel == "tanh":
            check_indefinite("kernel='tanh'", self.C, self.solver)

    @property
    def reads_values(self) -> bool:
        return self.solver != "inv"

    def values(self, batch: Batch) -> Tensor:
        V, N, _ = batch.anchors.shape
        K = once(self.gram(batch), "MMCL holds the machines' weights constant")
        with torch.no_grad():
            alpha = self.machines(K.detach().view(V, N, V, N))  # row z⁺ = (u, i), column y
            weight = alpha.sum(0) - alpha  # row z = (v, i): α of the machines of its other views
            others = 1 - torch.eye(V, dtype=K.dtype, device=K.device).unsqueeze(2)
            weight.diagonal(dim1=1, dim2=3).sub_(others * alpha.sum((2, 3)))  # (v, u, i): k(z⁺, z)
        return (weight.view_as(K) * K).sum(1) / (V - 1)

    def solution(self, batch: Batch) -> Tensor:
        V, N, _ = batch.anchors.shape
        return self.machines(self.gram(batch).view(V, N, V, N)).view(V * N, V * N)

    def gram(self, batch: Batch) -> Tensor:
        """The kernel of all points, (M, M)."""
        x = batch.rows()
        return kernel(x, x, self.kernel, self.bandwidth, self.offset)

    def machines(self, K: Tensor) -> Tensor:
        """α (V, N, V, N) of the machine of every point, from the kernel K (V, N, V, N) of all points."""
        V, N = K.shape[:2]
        if self.pool == "all":
            point = torch.arange(V * N, device=K.device)
            own = point.view(V, N).T.repeat(V, 1)
            return self.solved(K.reshape(V * N, V * N), point, own).view(K.shape)
        alpha, image = torch.zeros_like(K), torch.arange(N, device=K.device)
        for v in range(V):
            alpha[v, :, v] = self.solved(K[v, :, v], image, image.unsqueeze(1))
        return alpha

    def solved(self, K: Tensor, positive: Tensor, own: Tensor) -> Tensor:
        machines = SVMs(K, positive, own, self.C, self.ridge).centred()
        return solve(machines, self.solver, self.kernel != "tanh")
