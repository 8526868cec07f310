"""Kernels, and the support-vector machine that separates one positive from its negatives.

The machine looks for the widest margin between z⁺ and the negatives Y in the kernel's space. Its dual gives
every negative a weight α_j: 0 beyond the margin, C inside it, between 0 and C on its edge. The weight of z⁺
is the sum of these weights. The solvers are in `dual`, `descent` and `pivoting`.
Source: Shah et al. 2022 (MMCL), eq. 3 and Proposition 1.
"""

import math
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import MAX_ROUNDS, choice, finite, floating, integer, number, setting, values_readable
from setclr.inner.svms import EXACT, SVMs, authors_steps, block_pivoting, clipped_inverse, projected_gradient

KERNELS = ("rbf", "linear", "tanh")
SOLVERS = ("inv", "pgd", "steps", "exact")


class Dual(NamedTuple):
    """Result of `svm_dual`: the dual weights and how far they are from the optimum."""

    alpha: Tensor  # (..., P) or (..., A, P): 0 ≤ α ≤ C, 0 at points that are not negatives
    residual: Tensor  # (...) or (..., A): KKT residual in units of the gradient, which is −2 at α = 0


def kernel(x: Tensor, y: Tensor, kind: str = "rbf", bandwidth: float = 1.0, offset: float = 0.0) -> Tensor:
    """Kernel matrix k(x_i, y_j) of all pairs.

    "rbf": exp(−‖x − y‖² / 2σ²) with the bandwidth σ²; "linear": xᵀy; "tanh": tanh(bandwidth · xᵀy + offset).
    The tanh kernel is not positive definite. MMCL's table 6 prints tanh(−γ xᵀy + η), but its program has no
    minus.

    >>> import torch
    >>> from setclr.inner import kernel
    >>> kernel(torch.eye(2), torch.eye(2), "linear")
    tensor([[1., 0.],
            [0., 1.]])

    Args:
        x: (..., n, E) float32 or float64, finite.
        y: (..., m, E) of the same dtype and leading dimensions.
        kind: "rbf", "linear" or "tanh".
        bandwidth: > 0; σ² for "rbf" (MMCL's programs call 2σ² sigma), the factor for "tanh". In float32
            squared distances are accurate to some 1e-7 of the squared norms: if σ² is below 1e-5 of the
            squared norms, use float64.
        offset: for "tanh"; 0 for the others.

    Returns (..., n, m). Raises ValueError: an argument is not as above. Cost: O(n m E).
    """
    choice("kind", kind, KERNELS)
    setting("bandwidth", bandwidth, above=0, hint="it is σ² of the rbf kernel; MMCL uses 0.25 to 25")
    check_offset(offset, kind)
    for name, points in (("x", x), ("y", y)):
        floating(name, points, "(..., n, E)", lambda points: points.ndim >= 2)
        finite(name, points)
    if (*x.shape[:-2], x.shape[-1], x.dtype) != (*y.shape[:-2], y.shape[-1], y.dtype):
        raise ValueError(
            f"y must have x's dtype, leading and last dimensions, got {_found(y)} beside {_found(x)}"
        )
    if kind == "linear":
        return x @ y.mT
    if kind == "tanh":
        return (bandwidth * (x @ y.mT) + offset).tanh()
    half_x, half_y = (points.square().sum(-1, keepdim=True) / -2 for points in (x, y))
    one_x, one_y = torch.ones_like(half_x), torch.ones_like(half_y)
    # −‖x − y‖² / 2 = [x, −‖x‖² / 2, 1] · [y, 1, −‖y‖² / 2]: one product, and no passes over (n, m) for a sum
    distances = torch.cat([x, half_x, one_x], -1) @ torch.cat([y, one_y, half_y], -1).mT
    return (distances.clamp(max=0) / bandwidth).exp()


def svm_dual(
    K: Tensor, positive: int | Tensor = 0, own: Tensor | None = None, C: float = 100.0, ridge: float = 0.1,
    solver: str = "exact", tolerance: float = 1e-3, rounds: int = 1000,
) -> Dual:  # fmt: skip
    """Weights α of support-vector machines, each of which separates a positive from other points of a pool.

    They minimise g(α) = ½ αᵀΔα − 2·1ᵀα over 0 ≤ α ≤ C, where Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ
    (MMCL, proposition 1). "exact" uses block pivoting. "pgd" uses projected gradients until the residual is
    at most `tolerance`. The other two solvers give other weights, which can be worse than α = 0. "inv" is
    clip(2Δ⁻¹1, 0, C), least squares clipped to the bounds. "steps" is the projected gradient descent of the
    authors' program, which seldom converges (see `authors_steps`).

    >>> import torch
    >>> from setclr.inner import kernel, svm_dual
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])  # the positive, a near negative, a far one
    >>> alpha = svm_dual(kernel(x, x, "linear"), positive=0).alpha
    >>> alpha[0].item(), bool(alpha[1] > alpha[2])
    (0.0, True)

    Args:
        K: (..., P, P) float32 or float64: the kernel of the pool's points, symmetric.
        positive: index of z⁺ in the pool, or (A,) int64: the indices for A machines.
        own: (A, r) int64: points that are not negatives of the machine: the positive and, as a rule, other
            views of its image. By default the positive alone.
        C: > 0, the largest weight of a negative; inf for no bound.
        ridge: ρ > 0, added to the negatives' diagonal.
        solver: "exact", "pgd", "inv" or "steps".
        tolerance: > 0, the KKT residual at which "pgd" stops, in units of the gradient (see `SVMs`).
        rounds: 1 to 100,000, the most rounds of "pgd", which then stops with a warning, and of "steps".

    Returns `alpha` (..., A, P), or (..., P) for one machine, without gradient; `residual` (..., A) or (...).
    Raises ValueError: an argument is not as above; "exact" for a kernel that is not positive definite; "pgd"
    or "steps" for such a kernel with C = inf; a ridge too small for the precision.
    Cost: "inv" O(P³) for all machines together, else O(A P²) a round ("exact" some 10, "pgd" 10 to 30).
    """
    check_dual(C, ridge, solver)
    number("tolerance", tolerance, above=0, hint="it is the residual at which pgd stops")
    integer("rounds", rounds, least=1, most=MAX_ROUNDS, hint="it bounds the rounds of pgd")
    _check_gram(K)
    one = not isinstance(positive, Tensor)
    positive, own = _check_machines(positive, own, K)
    A = K.detach() + ridge * torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    definite = bool((torch.linalg.cholesky_ex(A).info == 0).all())
    if not definite:
        check_indefinite("K", C, solver)

    alphas, residuals = [], []
    for pool in K.detach().reshape(-1, *K.shape[-2:]):
        machines = SVMs(pool, positive, own, float(C), float(ridge)).centred()
        alphas.append(solve(machines, solver, definite, tolerance, rounds))
        residuals.append(machines.residual(alphas[-1]))
    alpha = torch.stack(alphas).view(*K.shape[:-2], len(positive), -1)
    residual = torch.stack(residuals).view(*K.shape[:-2], -1)
    return Dual(alpha.squeeze(-2), residual.squeeze(-1)) if one else Dual(alpha, residual)


@torch.no_grad()
def solve(
    machines: SVMs, solver: str, definite: bool = True, tolerance: float = 1e-3, rounds: int = 1000
) -> Tensor:
    """α (A, P) of centred machines by the named solver; checks no argument. "inv" never stalls a GPU."""
    left: Tensor | slice = slice(None)  # the machines that may not have converged
    if solver == "inv":
        alpha = clipped_inverse(machines, definite)
    elif solver == "pgd":
        alpha = projected_gradient(machines, tolerance, rounds)
    elif solver == "steps":
        alpha = authors_steps(machines, rounds)
    else:
        alpha, left = block_pivoting(machines)
    if values_readable(alpha) and bool(alpha.isnan().any()):
        raise ValueError(
            f"ridge must be larger for {alpha.dtype}, got {machines.ridge}: the matrix of the machines is "
            "singular to working precision; the paper uses 0.1"
        )
    if solver in ("inv", "steps"):
        return alpha
    machines, found = machines.only(left), alpha[left]
    residual = machines.residual(found)
    allowed = tolerance if solver == "pgd" else 100 * EXACT * machines.rounding(found).squeeze(1)
    if bool((residual > allowed).any()):
        warnings.warn(
            f"the solver {solver!r} stopped with a KKT residual of {float(residual.max()):.1e}; raise the "
            + ("ridge, or use solver='exact' for a definite kernel" if solver == "pgd" else "ridge"),
            stacklevel=3,
        )
    return alpha


def check_dual(C: float, ridge: float, solver: str) -> None:
    hint = "it bounds a negative's weight: inf for no bound, the paper uses 100"
    setting("C", C, above=0, hint=hint, infinite=True)
    setting("ridge", ridge, above=0, hint="it keeps the machine solvable; the paper uses 0.1")
    choice("solver", solver, SOLVERS)


def check_indefinite(name: str, C: float, solver: str) -> None:
    """Raise ValueError for a solver or C that needs a positive definite kernel."""
    if solver == "exact":
        raise ValueError(
            f"solver must be 'inv', 'pgd' or 'steps' for {name}, got 'exact': it is not positive definite, "
            "so there is no one optimum (a larger ridge can make it definite)"
        )
    if solver != "inv" and math.isinf(C):
        raise ValueError(
            f"C must be finite for {name} with solver {solver!r}, got inf: the dual may be unbounded below"
        )


def check_offset(offset: float, kind: str) -> float:
    if setting("offset", offset, hint="it is η of the tanh kernel") and kind != "tanh":
        raise ValueError(f"offset must be 0 for kernel={kind!r}, got {offset!r}; the tanh kernel has one")
    return float(offset)


def _check_gram(K: Tensor) -> None:
    floating("K", K, "(..., P, P), P >= 2 points", lambda K: K.ndim >= 2 and K.shape[-1] == K.shape[-2] >= 2)
    finite("K", K)
    if values_readable(K) and not torch.allclose(K, K.mT, rtol=1e-4, atol=1e-6):
        raise ValueError(f"K must be symmetric, got entries {float((K - K.mT).abs().max()):.2g} apart")


def _check_machines(positive: int | Tensor, own: Tensor | None, K: Tensor) -> tuple[Tensor, Tensor]:
    P = K.shape[-1]
    if not isinstance(positive, Tensor):
        positive = torch.full((1,), integer("positive", positive, least=0, most=P - 1), device=K.device)
    own = positive.unsqueeze(-1) if own is None else own
    for name, index, ndim in (("positive", positive, 1), ("own", own, 2)):
        if not isinstance(index, Tensor) or index.dtype != torch.int64 or index.ndim != ndim:
            raise ValueError(
                f"{name} must be an int64 tensor of {ndim} dimension{'s'[: ndim - 1]}, got {_found(index)}"
            )
    if len(own) != len(positive) or not 0 < own.shape[1] < P or len(positive) == 0:
        raise ValueError(
            f"own must be (A, r) for the A = {len(positive)} positives with r < {P}, got {_found(own)}: "
            "every machine needs a negative"
        )
    if values_readable(K):
        if own.min() < 0 or own.max() >= P:
            raise ValueError(f"own must hold points 0 to {P - 1} of the pool, got {own.min()} to {own.max()}")
        if not (own == positive.unsqueeze(1)).any(1).all():
            raise ValueError("own must hold the positive in every row; it is no negative of itself")
        if (own.sort(1).values.diff() == 0).any():
            raise ValueError("own must hold every point once in a row")
    return positive, own


def _found(x: object) -> str:
    return f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
