"""Optimal transport smoothed by entropy: Sinkhorn's rounds, in products where the numbers allow it.

Row i has mass a_i, and column j must receive mass b_j. Moving a unit from row i to column j costs C_ij. The
coupling P_ij is the mass that moves; it minimises ⟨C, P⟩ − ε H(P). It has the form
P_ij = exp(−C_ij/ε + f_i + g_j). Sinkhorn's rounds find the potentials f and g: each round makes the columns
sum to b, then the rows to a.
Sources: Cuturi 2013; Shi et al. 2023 (IOT-CL), section 3.3 and Algorithm 1.
"""

import math
import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setclr.checks import MAX_ROUNDS, dense, floating, integer, number, setting, transforms, values_readable
from setclr.inner.derivatives import refuse_second

MOST_ROUNDS = 1000


class Coupling(NamedTuple):
    """Result of `sinkhorn`: the coupling and how far it converged."""

    P: Tensor  # (..., n, m): rows sum to a; columns to b as far as it converged
    converged: Tensor  # (...) bool: error <= tolerance
    rounds: int  # number of rounds made
    error: Tensor  # (...): the largest relative error of a column sum


class Potentials(NamedTuple):
    """The potentials of all of Sinkhorn's K rounds."""

    rows: list[Tensor]  # f_0 = 0, f_1, …, f_K, each (..., n)
    columns: list[Tensor]  # g_1, …, g_K, each (..., m)
    kernel: Tensor | None = None  # exp(logits − top) (..., n, m), if the rounds were products with it
    top: Tensor | None = None  # the largest logit of each row (..., n)


def sinkhorn(
    cost: Tensor, epsilon: float, iterations: int | None = None, tolerance: float = 1e-4,
    a: Tensor | None = None, b: Tensor | None = None,
) -> Coupling:  # fmt: skip
    """The coupling that minimises ⟨C, P⟩ − ε H(P) (IOT-CL, eq. 2 and 3), and how far it converged.

    Each round scales the columns, then the rows (IOT-CL, eq. 21 and 22; its algorithm 1, up to the transpose
    of a symmetric cost). So rows always sum to `a`, and columns to `b` in the limit.

    >>> import torch
    >>> from setclr.inner import sinkhorn
    >>> cost = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> coupling = sinkhorn(cost, epsilon=0.1)
    >>> coupling.P.mul(2).round(decimals=2), bool(coupling.converged)
    (tensor([[1., 0.],
            [0., 1.]]), True)

    Args:
        cost: (..., n, m) float32 or float64; +inf forbids a pair, every row and column needs a finite entry.
        epsilon: ε > 0, in units of `cost`; small values (0.001) need many rounds but no other care.
        iterations: number of rounds, 1 to 100,000. None: until `tolerance` is met, at most 1,000, then a
            warning.
        tolerance: > 0, the largest relative error of a column's sum that counts as converged.
        a: (n,) or (..., n) > 0, mass of the rows; 1/n each by default.
        b: (m,) or (..., m) > 0, mass of the columns, with the same sum as `a`; 1/m each by default.

    Returns a `Coupling` whose P is differentiable with respect to `cost` through the rounds made; a second
    derivative is refused.
    Raises ValueError: an argument is not as above.
    Not here: unbalanced transport, whose marginals are only wanted; POT (`ot.unbalanced`) has it.
    Cost: O(n m) time a round, forward and again backward; O(n m) space, and O(n + m) more for each round. A
    round is two products of matrix and vector, or, for small ε, on a GPU and in compiled code, two sums of
    exponentials, which take some ten times as long on a CPU.
    """
    _check_cost(cost)
    epsilon = setting("epsilon", epsilon, above=0, hint="it smooths the coupling; IOT-CL uses 0.5")
    tolerance = number("tolerance", tolerance, above=0, hint="it is a relative error of a column's sum")
    if iterations is not None:
        integer("iterations", iterations, least=1, most=MAX_ROUNDS, hint="None runs to convergence")
    n, m = cost.shape[-2:]
    log_a, log_b = _log_marginal("a", a, n, cost), _log_marginal("b", b, m, cost)
    if values_readable(cost):
        mass = log_a.logsumexp(-1) - log_b.logsumexp(-1)
        if mass.abs().max() > 1e-4:
            raise ValueError(
                f"a and b must have the same sum, got {log_a.exp().sum(-1)} and {log_b.exp().sum(-1)}"
            )

    # subtracting a constant from a column does not change the coupling; it saves digits for small ε
    cheapest = cost.detach().amin(-2, keepdim=True)
    logits = (cheapest - cost) / epsilon
    if transforms():
        rounds = _rounds_there_are(iterations)
        P = unrolled(logits, log_a, log_b, rounds).exp()
    else:
        path = rounds_of(logits.detach(), log_a, log_b, iterations, tolerance)
        rounds, P = len(path.columns), log_coupling_from(path, logits, log_a, log_b).exp()
    error = (P.detach().sum(-2).log() - log_b).expm1().abs().amax(-1)
    return Coupling(P, error <= tolerance, rounds, error)


def log_coupling(logits: Tensor, iterations: int | None = None) -> Tensor:
    """log P of `sinkhorn` with marginals 1/n and 1/m, for logits −C/ε (..., n, m), −inf where forbidden.

    For losses: no argument is checked and only log P is returned. It reads values, which stalls a GPU, only
    if `iterations` is None.
    """
    n, m = logits.shape[-2:]
    log_a, log_b = _log_marginal("a", None, n, logits), _log_marginal("b", None, m, logits)
    if transforms():
        return unrolled(logits, log_a, log_b, _rounds_there_are(iterations))
    path = rounds_of(logits.detach(), log_a, log_b, iterations)
    return log_coupling_from(path, logits, log_a, log_b)


@torch.no_grad()
def rounds_of(
    logits: Tensor, log_a: Tensor, log_b: Tensor, iterations: int | None = None, tolerance: float = 1e-4
) -> Potentials:
    """Potentials of `iterations` rounds on logits (..., n, m).

    None: until the column sums converge, at most 1,000 rounds, then a warning.
    """
    most = MOST_ROUNDS if iterations is None else iterations
    if values_readable(logits):
        path = _products(logits, log_a, log_b, iterations, tolerance)
        if path is not None:
            return path

    def columns_for(rows: Tensor) -> Tensor:
        return log_b - (logits + rows.unsqueeze(-1)).logsumexp(-2)

    path, columns = Potentials([torch.zeros_like(log_a)], []), columns_for(torch.zeros_like(log_a))
    for done in range(1, 1 + most):
        path.columns.append(columns)
        path.rows.append(log_a - (logits + columns.unsqueeze(-2)).logsumexp(-1))
        if done == iterations:
            break
        columns = columns_for(path.rows[-1])
        if iterations is None:
            error = (path.columns[-1] - columns).expm1().abs().max()  # of column sums after this round
            if not bool(error > tolerance):  # also true for NaN
                break
    else:
        _warn(error, tolerance)
    return path


def _products(
    logits: Tensor, log_a: Tensor, log_b: Tensor, iterations: int | None, tolerance: float
) -> Potentials | None:
    """The rounds of `rounds_of` as u = a / (K v), v = b / (Kᵀ u); None where they would not be exact.

    K = exp(logits − top) is at most 1. All u and v have to be within e^±L, L a quarter of the exponents'
    range: 22 for float32. Then no product overflows, and what underflows, at most e^(−4L) · e^L for each
    term, is nothing beside the sums, which are a/u and b/v. So each sum is as exact as its rounding.
    """
    most = MOST_ROUNDS if iterations is None else iterations
    limit = -math.log(torch.finfo(logits.dtype).tiny) / 4
    top = logits.amax(-1)
    kernel, a, b = (logits - top.unsqueeze(-1)).exp_(), log_a.exp(), log_b.exp()
    u, left, right, error = top.exp(), [top.exp()], [], None
    v = b / _times(kernel.mT, u)
    for done in range(1, 1 + most):
        u = a / _times(kernel, v)
        left.append(u)
        right.append(v)
        if done == iterations:
            break
        v = b / _times(kernel.mT, u)
        if iterations is None:
            error = (right[-1] / v - 1).abs().max()
            if not bool(error > tolerance):
                break
    rows, columns = torch.stack(left).log(), torch.stack(right).log()
    if not (rows.abs().amax() < limit and columns.abs().amax() < limit):  # NaN is no less
        return None
    if iterations is None and len(right) == most and error is not None and bool(error > tolerance):
        _warn(error, tolerance)
    return Potentials(list((rows - top).unbind()), list(columns.unbind()), kernel, top)


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _warn(error: Tensor, tolerance: float) -> None:
    warnings.warn(
        f"sinkhorn stopped after {MOST_ROUNDS} rounds with column sums off by {float(error):.1e} "
        f"(tolerance {tolerance:g}); raise epsilon or the tolerance, or set iterations; none of it helps "
        "where costs of +inf leave no coupling with these marginals",
        stacklevel=4,
    )


def log_coupling_from(path: Potentials, logits: Tensor, log_a: Tensor, log_b: Tensor) -> Tensor:
    """log P after the last round, differentiable with respect to the logits through all rounds."""
    rows, columns = torch.stack(path.rows), torch.stack(path.columns)
    return _Unrolled.apply(logits, log_a, log_b, rows, columns, path.kernel, path.top)


class _Unrolled(torch.autograd.Function):
    """logits + f_K + g_K as a function of the logits, from which K rounds make f_K and g_K.

    Autograd would save 2K matrices (..., n, m). Here only the potentials of each round are saved. From them
    backward computes one matrix after the other: a half-round f = log a − lse_j(logits + g) has the
    derivative −exp(logits + f + g)/a, a softmax. With the kernel each of these matrices is the kernel times
    a column and a row, so their sum is the kernel times a product of 2K columns with 2K rows.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, log_a: Tensor, log_b: Tensor, rows: Tensor, columns: Tensor,
        kernel: Tensor | None, top: Tensor | None,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(logits, log_a, log_b, rows, columns, kernel, top)
        return logits + rows[-1].unsqueeze(-1) + columns[-1].unsqueeze(-2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second("Sinkhorn's rounds hold their potentials constant")
        logits, log_a, log_b, rows, columns, kernel, top = ctx.saved_tensors
        nothing = (None,) * 6
        by_row, by_column = grad.sum(-1), grad.sum(-2)
        if kernel is not None:
            left, right = [], []
            for k in reversed(range(len(columns))):
                left += [by_row * (rows[k + 1] + top - log_a).exp(), (rows[k] + top).exp()]
                right.append(columns[k].exp())
                by_column = by_column - right[-1] * _times(kernel.mT, left[-2])
                right.append(by_column * (columns[k] - log_b).exp())
                by_row = -left[-1] * _times(kernel, right[-1])
                by_column = torch.zeros_like(by_column)
            shares = torch.stack(left, -1) @ torch.stack(right, -2)
            return torch.addcmul(grad, shares, kernel, value=-1), *nothing
        by_logits = grad.clone(memory_format=torch.contiguous_format)
        for k in reversed(range(len(columns))):
            share = _plus(logits, rows[k + 1] - log_a, columns[k]).exp_()
            share *= by_row.unsqueeze(-1)
            by_logits -= share
            by_column = by_column - share.sum(-2)
            share = _plus(logits, rows[k], columns[k] - log_b).exp_()
            share *= by_column.unsqueeze(-2)
            by_logits -= share
            by_row = -share.sum(-1)
            by_column = torch.zeros_like(by_column)
        return by_logits, *nothing


def unrolled(logits: Tensor, log_a: Tensor, log_b: Tensor, rounds: int) -> Tensor:
    """log P after so many rounds on logits (..., n, m), in autograd's own operations."""
    rows, columns = torch.zeros_like(log_a), log_b
    for _ in range(rounds):
        columns = log_b - (logits + rows.unsqueeze(-1)).logsumexp(-2)
        rows = log_a - (logits + columns.unsqueeze(-2)).logsumexp(-1)
    return logits + rows.unsqueeze(-1) + columns.unsqueeze(-2)


def _rounds_there_are(iterations: int | None) -> int:
    if iterations is None:
        raise ValueError(
            "iterations must be a number within torch.func, got None: convergence is not seen there"
        )
    return iterations


def _plus(logits: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return (logits + row.unsqueeze(-1)).add_(column.unsqueeze(-2))


def _check_cost(cost: Tensor) -> None:
    floating("cost", cost, "(..., n, m), none of them 0", lambda cost: cost.ndim >= 2)
    if not values_readable(cost):
        return
    if cost.isnan().any() or (cost == -torch.inf).any():
        raise ValueError("cost must be finite or +inf (a forbidden pair), got NaN or -inf")
    for what, dim in (("row", -1), ("column", -2)):
        alone = (cost == torch.inf).all(dim)
        if alone.any():
            got = f"only +inf in {what} {alone.nonzero()[0].tolist()}; its mass could go nowhere"
            raise ValueError(f"cost must leave every {what} a pair of finite cost, got {got}")


def _log_marginal(name: str, mass: Tensor | None, size: int, cost: Tensor) -> Tensor:
    """log of a marginal, (..., size) with the cost's leading dimensions; uniform for None."""
    shape = (*cost.shape[:-2], size)
    if mass is None:
        return cost.new_full(shape, size).log().neg()
    fits = isinstance(mass, Tensor) and mass.ndim > 0 and mass.shape[-1] == size and not mass.is_complex()
    if not fits or mass.ndim > 1 and mass.shape != shape:
        got = f"{tuple(mass.shape)} {mass.dtype}" if isinstance(mass, Tensor) else type(mass).__name__
        wanted = f"({size},)" if len(shape) == 1 else f"({size},) or {shape}"
        raise ValueError(
            f"{name} must be a tensor of shape {wanted}, one mass for each row or column, got {got}"
        )
    dense(name, mass)
    if values_readable(mass) and not ((mass > 0) & mass.isfinite()).all():
        raise ValueError(f"{name} must be > 0 and finite, got {mass}; remove rows or columns of mass 0")
    return mass.to(cost).log().expand(shape)
