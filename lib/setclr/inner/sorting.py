"""Differentiable sorting: networks of soft swaps.

A sorting network compares fixed pairs of places, layer after layer, and swaps two values in the wrong order.
A soft comparison swaps with a probability. Each layer is then a doubly stochastic matrix, and so is the
product of all layers. Here it is the odd-even network: n layers, of which the first compares (0,1), (2,3), …,
the next (1,2), (3,4), …, and so on in turn.
Sources: Petersen et al. 2021 and 2022 (sorting networks); Shvetsova et al. 2023 (GroCo), eq. 2 to 4.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setclr.checks import finite, floating, integer, setting, transforms
from setclr.inner.derivatives import refuse_second


class Sorted(NamedTuple):
    """The result of a sorting network for x (..., n)."""

    values: Tensor  # (..., n): P x, ascending in the limit of hard swaps
    P: Tensor  # (..., n, n): row = place, column = element; rows and columns sum to 1


def swap_probability(excess: Tensor) -> Tensor:
    """Probability f(excess) that two neighbours swap, excess = β·(left − right); ½ at a tie (GroCo, eq. 3).

    It is arctan(excess)/π + ½, written so that neither tail loses digits.
    """
    return torch.atan2(torch.ones_like(excess), -excess) / math.pi


def sorting_network(x: Tensor, beta: float = 1.0) -> Sorted:
    """Sort softly along the last dimension, layer after layer (GroCo, eq. 2 to 4).

    Each layer compares the values that the layer before it returned.

    >>> import torch
    >>> from setclr.inner import sorting_network
    >>> ordered = sorting_network(torch.tensor([3.0, 1.0, 2.0]), beta=1000.0)
    >>> ordered.values.round(decimals=1)
    tensor([1., 2., 3.])

    Args:
        x: (..., n) float32 or float64, finite.
        beta: inverse temperature of a swap, > 0, in 1 / unit of x. As it grows the sort becomes hard.

    Returns `values` (..., n) and `P` (..., n, n) with values = P x.
    Raises ValueError: an argument is not as above; the message names it.
    Cost: O(n³) time; as much space when differentiated.
    """
    _check(x, beta)
    n = x.shape[-1]
    values, P = x, torch.eye(n, dtype=x.dtype, device=x.device).expand(*x.shape, n)
    for layer in range(n):
        low, high = slice(layer % 2, n - 1, 2), slice(layer % 2 + 1, n, 2)
        q = swap_probability(beta * (values[..., low] - values[..., high]))
        values = _mix(values.unsqueeze(-1), low, high, q.unsqueeze(-1)).squeeze(-1)
        P = _mix(P, low, high, q.unsqueeze(-1))
    return Sorted(values, P)


def top_probability(x: Tensor, top: int, beta: float = 1.0) -> Tensor:
    """Probability that each element lands among the `top` last (largest) places.

    These are the column sums of P's last rows, the p of GroCo's eq. 6. The row vector 1_topᵀ is multiplied by
    P_n, …, P_1 in turn, the layers of P = P_n ⋯ P_1, so no matrix is formed.

    >>> import torch
    >>> from setclr.inner import top_probability
    >>> top_probability(torch.tensor([0.1, 0.9, 0.5]), top=1, beta=10000.0).round()
    tensor([0., 1., 0.])

    Takes x (..., n) float32 or float64, finite, 1 ≤ top ≤ n; beta as in `sorting_network`.
    Returns (..., n), each in [0, 1]; they sum to `top`. A second derivative is refused: P has one.
    Raises ValueError: an argument is not as above; the message names it.
    Cost: O(n²) time and space, while computing P would cost O(n³).
    """
    _check(x, beta)
    n = x.shape[-1]
    integer("top", top, least=1, most=n, hint="it counts places of the list")
    if transforms():
        return sorting_network(x, beta).P[..., n - top :, :].sum(-2)
    return _TopProbability.apply(x.reshape(-1, n), top, float(beta)).view(x.shape)


class _TopProbability(torch.autograd.Function):
    """p of every row of x (B, n), with the gradient written out.

    Forward: x_{l+1} = P_l x_l, then w_l = P_l w_{l+1} from w_L = 1_top, and p = w_0. P_l is symmetric and a
    function of the swap probabilities q_l. Backward runs the two recursions in reverse. Three numbers a swap
    are saved, instead of a graph of a dozen small operations. In all four recursions every second place is
    negated. A layer then subtracts the same number from two neighbours: q times their sum. What is stored is
    the angle π q.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, top: int, beta: float) -> Tensor:
        n, one = x.shape[1], x.new_ones(())
        place = _negate_odd(x.T.clone(memory_format=torch.contiguous_format).mul_(beta))
        leads, angles = [], []
        for layer in range(n):
            pairs = _pairs(place, layer)
            total = pairs[:, 0] + pairs[:, 1]
            leads.append(total if layer % 2 else -total)  # β · (high − low)
            angles.append(torch.atan2(one, leads[-1]))
            pairs.addcmul_(angles[-1].unsqueeze(1), total.unsqueeze(1), value=-1 / math.pi)

        w = torch.zeros_like(place)
        w[n - top :] = 1
        _negate_odd(w)
        drops = [_mixed_sums(w, layer, angles[layer]) for layer in reversed(range(n))]
        ctx.beta = beta
        ctx.save_for_backward(torch.cat(leads), torch.cat(angles), torch.cat(drops[::-1]))
        return _negate_odd(w).T

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        refuse_second("top_probability holds its swaps constant; take P of sorting_network")
        lead, angle, drop = ctx.saved_tensors
        n = grad.shape[1]
        sizes = [(n - layer % 2) // 2 for layer in range(n)]
        g = _negate_odd(grad.T.clone(memory_format=torch.contiguous_format))
        rise = [_mixed_sums(g, layer, q) for layer, q in enumerate(angle.split(sizes))]
        slope = 1 / (math.pi * (1 + lead * lead))
        by_q = torch.cat(rise).mul_(drop).mul_(slope)
        by_lead = (angle / math.pi).addcmul_(lead, slope, value=-1)

        dx = torch.zeros_like(g)
        for layer, a, b in reversed(list(zip(range(n), by_lead.split(sizes), by_q.split(sizes)))):
            pairs, sign = _pairs(dx, layer), -1 if layer % 2 else 1
            move = torch.addcmul(b, a, pairs[:, 0] + pairs[:, 1], value=sign)
            pairs.sub_(move.unsqueeze(1), alpha=sign)
        return _negate_odd(dx).mul_(ctx.beta).T, None, None


def _negate_odd(x: Tensor) -> Tensor:
    """x (n, B) with every second row negated, in place."""
    x[1::2].neg_()
    return x


def _pairs(x: Tensor, layer: int) -> Tensor:
    """The neighbours that a layer compares, (p, 2, B), a view of x (n, B)."""
    first = layer % 2
    pairs = (len(x) - first) // 2
    return x[first : first + 2 * pairs].unflatten(0, (pairs, 2))


def _mixed_sums(x: Tensor, layer: int, angle: Tensor) -> Tensor:
    """The sum of each pair of x, (p, B); then mixes x in place, as the layer does."""
    pairs = _pairs(x, layer)
    total = pairs[:, 0] + pairs[:, 1]
    pairs.addcmul_(angle.unsqueeze(1), total.unsqueeze(1), value=-1 / math.pi)
    return total


def _mix(x: Tensor, low: slice, high: slice, q: Tensor) -> Tensor:
    """One layer: swap rows `low` and `high` of x (..., n, m) with probability q, the other rows unchanged."""
    out = x + 0 * q.sum(-2, keepdim=True)  # of q's shape also where vmap hides a dimension
    move = q * (x[..., high, :] - x[..., low, :])
    out[..., low, :] += move
    out[..., high, :] -= move
    return out


def _check(x: Tensor, beta: float) -> None:
    floating("x", x, "(..., n) with n >= 1", lambda x: x.ndim > 0)
    finite("x", x)
    setting("beta", beta, above=0, hint="it is an inverse temperature; GroCo uses 0.125 to 8")
