"""Linear and quadratic assignment problems: match the elements of two sets.

A permutation matrix Y matches N elements one to one. The linear problem, min tr(S Yᵀ), weighs single pairs.
The quadratic one also compares the pairs within each set, tr(S_A Y S_Bᵀ Yᵀ). The linear problem is solved
exactly or smoothed. The quadratic one is solved by trying all Y for N ≤ 8, or bounded by eigenvalues.
Sources: Moskalev et al. 2022 (QARe), eq. 2 to 7, 12 and 13; Burkard 2013, theorem 5.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import choice, floating, integer, setting, transforms, values_readable
from setclr.inner.simplex import soft_maximum

MINING = ("one-to-one", "batch-hard")
ENUMERABLE = 8  # 8! = 40,320 permutations; 9! would be 362,880


class Assignment(NamedTuple):
    """The solution of a linear assignment problem (..., n, m): row = element of the first set."""

    value: Tensor  # (...): the minimum, or for τ > 0 the smoothed minimum; its gradient is `matrix`
    matrix: Tensor  # (..., n, m): the minimiser, or for τ > 0 the Gibbs mean; rows sum to 1, no gradient


class Quadratic(NamedTuple):
    """All values of a quadratic assignment problem, with its minimum and maximum."""

    minimum: Tensor  # (...)
    maximum: Tensor  # (...)
    minimiser: Tensor  # (..., N, N): a permutation matrix Y
    maximiser: Tensor  # (..., N, N)
    values: Tensor  # (..., N!): the objective of every permutation, in the order of `permutations`


class Bounds(NamedTuple):
    """An interval that holds tr(F Y Dᵀ Yᵀ) for every permutation matrix Y."""

    lower: Tensor  # (...)
    upper: Tensor  # (...)


def permutations(n: int, device: torch.device | None = None) -> Tensor:
    """All permutations of 0 … n−1 in lexicographic order, (n!, n) int64; row p is the Y with Y[i, p_i] = 1.

    Raises ValueError: n is not an integer from 1 to 8.
    """
    integer("n", n, least=1, most=ENUMERABLE, hint="there are n! permutations")
    rows = torch.zeros(1, 0, dtype=torch.int64, device=device)
    for k in range(1, n + 1):
        first = torch.arange(k, device=device).repeat_interleave(len(rows)).unsqueeze(1)
        rest = rows.repeat(k, 1)
        rows = torch.cat([first, rest + (rest >= first)], dim=1)
    return rows


def linear_values(cost: Tensor) -> Tensor:
    """tr(cost Yᵀ) = Σ_i cost[i, p_i] for every permutation p: (..., n, m) → (..., m!), n ≤ m ≤ 8. O(n·m!)."""
    places = permutations(cost.shape[-1], cost.device)
    chosen = (row.index_select(-1, p) for row, p in zip(cost.unbind(-2), places.unbind(1)))
    return sum(chosen, start=cost.new_zeros(()))


def linear_assignment(cost: Tensor, temperature: float = 0.0, mining: str = "one-to-one") -> Assignment:
    r"""The cheapest assignment, min_Y tr(cost Yᵀ) (QARe, eq. 2), or for τ > 0 the smoothed minimum of eq. 4

    .. math:: -\tau \log \sum_Y \exp(-\operatorname{tr}(\text{cost}\, Y^T)/\tau).

    Y has a single 1 in each row, and at most one in each column; for n = m these are the permutation
    matrices. With batch-hard mining rows choose independently, as in eq. 12 and 13.

    >>> import torch
    >>> from setclr.inner import linear_assignment
    >>> cost = torch.tensor([[1.0, 2.0, torch.inf], [0.0, torch.inf, 4.0]])
    >>> linear_assignment(cost)
    Assignment(value=tensor(2.), matrix=tensor([[0., 1., 0.],
            [1., 0., 0.]]))

    Args:
        cost: (..., n, m) float32 or float64, n ≤ m; +inf forbids a pair.
        temperature: τ ≥ 0 in the unit of cost; 0 for the exact minimum.
        mining: "one-to-one" or "batch-hard".

    Returns `value` (...) and `matrix` (..., n, m), the gradient of `value` by cost. If τ = 0 and several
    assignments are cheapest, `matrix` is one of them.
    Raises ValueError: an argument is not as above; no assignment is allowed; one-to-one with τ > 0 and m > 8.
    On a GPU NaN in cost, and rows without an allowed pair for batch-hard or τ > 0, give NaN or inf instead.
    Cost: batch-hard O(n m). One-to-one: O(n² m) on the CPU with τ = 0, O(n·m!) with τ > 0.
    """
    _check("cost", cost, forbidden=torch.inf, square=False)
    setting("temperature", temperature, True, least=0, hint="it smooths the minimum; 0 leaves it")
    choice("mining", mining, MINING)
    n, m = cost.shape[-2:]
    if mining == "batch-hard":
        _check_allowed(cost.isfinite().any(-1))
        if temperature > 0:
            value = -soft_maximum(-cost, temperature).sum(-1)
            return Assignment(value, (-cost.detach() / temperature).softmax(-1))
        matrix = _one_hot(cost.detach().argmin(-1), m, cost)
    elif temperature > 0:
        _check_enumerable("cost", m, "the smoothing sums over all; use temperature=0 or mining='batch-hard'")
        values = -linear_values(cost)  # of each assignment (m − n)! times
        _check_allowed(values.isfinite().any(-1))
        weights = (values.detach() / temperature).softmax(-1)
        places = permutations(m, cost.device).unbind(1)[:n]
        matrix = torch.stack([weights @ _one_hot(p, m, cost) for p in places], dim=-2)
        repeats = math.log(math.factorial(m - n))
        return Assignment(temperature * repeats - soft_maximum(values, temperature), matrix)
    else:
        matrix = _hungarian(cost.detach())
    chosen = (matrix > 0) | cost.isnan()
    return Assignment(torch.where(chosen, cost, 0).sum((-2, -1)), matrix)


def quadratic_assignment(S: Tensor, S_A: Tensor, S_B: Tensor) -> Quadratic:
    """tr(S Yᵀ) + tr(S_A Y S_Bᵀ Yᵀ) for all N! matrices Y, with minimum and maximum (QARe, eq. 5).

    >>> import torch
    >>> from setclr.inner import quadratic_assignment
    >>> path = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])  # three points in a row
    >>> found = quadratic_assignment(torch.zeros(3, 3), path, -path)
    >>> found.minimum, found.minimiser.diagonal()  # the distances agree best where the points stay
    (tensor(-12.), tensor([1., 1., 1.]))

    Args:
        S: (..., N, N) float32 or float64, N ≤ 8: costs of the pairs of an element of A and one of B.
        S_A, S_B: of the same shape: costs of the pairs within A and within B.

    Returns a `Quadratic` with differentiable values. Raises ValueError: an argument is not as above.
    Cost: O(N²·N!) time and O(N·N!) space. Differentiating takes N times the space: 40 MB for one float64
    problem of N = 8.
    """
    for name, x in (("S", S), ("S_A", S_A), ("S_B", S_B)):
        _check(name, x)
        _check_same(name, x, "S", S)
    N = S.shape[-1]
    _check_enumerable("S", N, "it is solved by trying all N!; bound it by `spectral_bounds`")
    p = permutations(N, S.device)
    within_B = S_B.flatten(-2)
    values = linear_values(S)
    for i in range(N):
        moved = within_B.index_select(-1, (N * p[:, i : i + 1] + p).flatten())  # S_B[p_i, p_j] of all p and j
        values = values + (moved.unflatten(-1, p.shape) @ S_A[..., i, :, None]).squeeze(-1)
    minimum, maximum = values.min(-1), values.max(-1)
    minimiser, maximiser = (_one_hot(p[best.indices], N, S) for best in (minimum, maximum))
    return Quadratic(minimum.values, maximum.values, minimiser, maximiser, values)


def spectral_bounds(F: Tensor, D: Tensor) -> Bounds:
    """Bounds ⟨λ_F, λ_D⟩₋ ≤ tr(F Y Dᵀ Yᵀ) ≤ ⟨λ_F, λ_D⟩₊ for every permutation matrix Y (QARe, eq. 7).

    The lower bound pairs the largest eigenvalues of F with the smallest of D; the upper one pairs the largest
    with the largest. Both bounds are reached if Y may be any orthogonal matrix.

    >>> import torch
    >>> from setclr.inner import spectral_bounds
    >>> F = torch.diag(torch.tensor([1.0, 2.0]))
    >>> bounds = spectral_bounds(F, F)
    >>> bounds.lower.round().item(), bounds.upper.round().item()  # 1·2 + 2·1, and 1·1 + 2·2
    (4.0, 5.0)

    Takes F and D (..., N, N) float32 or float64, symmetric, of one shape. Returns `Bounds`, differentiable.
    Raises ValueError: an argument is not as above; the message names it. On a GPU neither NaN nor symmetry is
    checked, and NaN gives NaN. Cost: O(N³).
    """
    for name, x in (("F", F), ("D", D)):
        _check(name, x)
        _check_same(name, x, "F", F)
        _check_symmetric(name, x)
    f, d = spectrum(F), spectrum(D)
    return Bounds((f * d.flip(-1)).sum(-1), (f * d).sum(-1))


def spectrum(F: Tensor) -> Tensor:
    """Eigenvalues (..., N) of symmetric F (..., N, N), ascending; NaN for a matrix that is not finite.

    `eigvalsh` has the gradient Q diag(g) Qᵀ. It contains no 1/(λ_i − λ_j), so equal eigenvalues do no harm.
    LAPACK sometimes turns entries far below the rounding of the largest one into NaN. Such entries count as
    0, but keep their gradient.
    """
    finite = F.isfinite().all(-1, keepdim=True).all(-2, keepdim=True)
    F, info = torch.where(finite, F, 0), torch.finfo(F.dtype)
    fixed = F.detach()
    least = (info.eps**2 * fixed.abs().amax((-2, -1), keepdim=True)).clamp(min=info.tiny)
    values = torch.linalg.eigvalsh(F - torch.where(fixed.abs() < least, fixed, 0))
    return torch.where(finite.squeeze(-1), values, torch.nan)


def _one_hot(index: Tensor, n: int, like: Tensor) -> Tensor:
    """Rows (..., n) that are 1 at the index and 0 elsewhere; unlike torch's, it reads no values."""
    return (index.unsqueeze(-1) == torch.arange(n, device=index.device)).to(like.dtype)


def _hungarian(cost: Tensor) -> Tensor:
    """The matrices with a 1 in each row and at most one in each column that minimise tr(cost Yᵀ)."""
    from scipy.optimize import linear_sum_assignment  # importing it takes 0.25 s

    n, m = cost.shape[-2:]
    try:
        problems = torch.where(cost.isnan(), 0, cost).reshape(-1, n, m).cpu().numpy()
    except RuntimeError as error:
        if not transforms():
            raise
        remedy = "call it for each batch, or take mining='batch-hard'"
        raise ValueError(f"cost must have values to read, got a tensor within vmap; {remedy}") from error
    places = torch.zeros(problems.shape[:2], dtype=torch.int64, device="cpu")
    for place, problem in zip(places, problems):
        try:
            place[:] = torch.from_numpy(linear_sum_assignment(problem)[1])
        except ValueError:  # scipy's "cost matrix is infeasible"
            _check_allowed(torch.tensor(False))
    return _one_hot(places.to(cost.device), m, cost).view_as(cost)


def _check(name: str, x: Tensor, forbidden: float | None = None, square: bool = True) -> None:
    """Raise ValueError unless x is (..., N, N), or (..., n, m), of finite numbers or the forbidden one."""
    if square:
        floating(name, x, "(..., N, N) with N >= 1", lambda x: x.ndim >= 2 and x.shape[-1] == x.shape[-2])
    else:
        wanted = "(..., n, m) with 1 <= n <= m"
        floating(name, x, wanted, lambda x: x.ndim >= 2 and x.shape[-2] <= x.shape[-1])
    if values_readable(x):
        good = x.isfinite() if forbidden is None else x.isfinite() | (x == forbidden)
        if not good.all():
            allowed = "finite" if forbidden is None else f"finite or {forbidden}"
            raise ValueError(f"{name} must be {allowed}, got {x[~good][0].item()} among its entries")


def _check_allowed(allowed: Tensor) -> None:
    if values_readable(allowed) and not allowed.all():
        raise ValueError("cost must allow an assignment, got inf for every one; inf forbids a pair")


def _check_same(name: str, x: Tensor, other: str, y: Tensor) -> None:
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(
            f"{name} must have the shape and dtype of {other}, {tuple(y.shape)} and {y.dtype}, "
            f"got {tuple(x.shape)} and {x.dtype}"
        )


def _check_symmetric(name: str, x: Tensor) -> None:
    if values_readable(x):
        gap, largest = (x - x.mT).abs().max().item(), x.abs().max().item()
        if gap > 1000 * torch.finfo(x.dtype).eps * largest:
            raise ValueError(
                f"{name} must be symmetric, got entries that differ by {gap:.3g} from their mirror image; "
                f"use ({name} + {name}.mT) / 2"
            )


def _check_enumerable(name: str, n: int, why: str) -> None:
    if n > ENUMERABLE:
        raise ValueError(
            f"{name} must match at most {ENUMERABLE} elements, got {n} ({n}! = {math.factorial(n):,}): {why}"
        )
