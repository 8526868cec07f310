"""Differentiable sorting: networks of soft swaps.

A sorting network compares fixed pairs of places, layer after layer, and swaps two values in the wrong order.
A soft comparison swaps with a probability. Each layer is then a doubly stochastic matrix, and so is the
product of all layers.
Sources: Petersen et al. 2021 and 2022 (sorting networks); Shvetsova et al. 2023 (GroCo), eq. 2 to 4.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setclr.checks import choice, finite, floating, integer, setting, transforms
from setclr.inner import twice

KINDS = ("odd-even", "bitonic")
SWAPS = {"arctan": 1 / math.pi, "logistic": 1.0}  # factor from the stored number to a probability


class Sorted(NamedTuple):
    """The result of a sorting network for x (..., n)."""

    values: Tensor  # (..., n): P x, ascending in the limit of hard swaps
    P: Tensor  # (..., n, n): row = place, column = element; rows and columns sum to 1


def comparators(n: int, kind: str = "odd-even") -> list[tuple]:
    """Indices (low, high) of the places that each layer compares; the smaller value belongs at low.

    Odd-even: n layers; the first compares (0,1), (2,3), …, the next (1,2), (3,4), …, and so on in turn.
    Bitonic: k(k+1)/2 layers for n = 2^k; every layer compares all places.

    Raises ValueError: unknown kind; bitonic when n is not a power of two.
    """
    choice("kind", kind, KINDS)
    if kind == "odd-even":
        return [(slice(layer % 2, n - 1, 2), slice(layer % 2 + 1, n, 2)) for layer in range(n)]

    if n & (n - 1):
        raise ValueError(f"kind 'bitonic' needs a power of two of elements, got {n}; use kind='odd-even'")
    place = torch.arange(n)
    layers = []
    for block in range(1, n.bit_length()):
        for stride in (2**j for j in reversed(range(block))):
            first = place[place & stride == 0]
            descending = (first >> block) % 2 == 1
            layers.append((first + stride * descending, first + stride * ~descending))
    return layers


def swap_probability(excess: Tensor, swap: str = "arctan") -> Tensor:
    """Probability f(excess) that two neighbours swap, excess = β·(left − right); ½ at a tie (GroCo, eq. 3).

    "arctan" is arctan(excess)/π + ½, written so that neither tail loses digits; "logistic" is the sigmoid.
    """
    if swap == "logistic":
        return excess.sigmoid()
    return torch.atan2(torch.ones_like(excess), -excess) / math.pi


def swap_slope(excess: Tensor, swap: str = "arctan") -> Tensor:
    """Derivative f′(excess) of `swap_probability`."""
    if swap == "logistic":
        return excess.sigmoid() * (-excess).sigmoid()
    return 1 / (math.pi * (1 + excess * excess))


def sorting_network(x: Tensor, beta: float = 1.0, kind: str = "odd-even", swap: str = "arctan") -> Sorted:
    """Sort softly along the last dimension, layer after layer (GroCo, eq. 2 to 4).

    Each layer compares the values that the layer before it returned.

    >>> import torch
    >>> from setclr.inner import sorting_network
    >>> found = sorting_network(torch.tensor([3.0, 1.0, 2.0]), beta=1000.0)
    >>> found.values.round(decimals=1)
    tensor([1., 2., 3.])

    Args:
        x: (..., n) float32 or float64, finite.
        beta: inverse temperature of a swap, > 0, in 1 / unit of x. As it grows the sort becomes hard.
        kind: "odd-even" or "bitonic" (n a power of two).
        swap: "arctan" or "logistic".

    Returns `values` (..., n) and `P` (..., n, n) with values = P x.
    Raises ValueError: an argument is not as above; the message names it.
    Cost: O(L n²) time for L layers (n for odd-even, ~½log²n for bitonic); as much space when differentiated.
    """
    _check(x, beta, swap)
    n = x.shape[-1]
    values, P = x, torch.eye(n, dtype=x.dtype, device=x.device).expand(*x.shape, n)
    for low, high in comparators(n, kind):
        q = swap_probability(beta * (values[..., low] - values[..., high]), swap)
        values = _mix(values.unsqueeze(-1), low, high, q.unsqueeze(-1)).squeeze(-1)
        P = _mix(P, low, high, q.unsqueeze(-1))
    return Sorted(values, P)


def top_probability(
    x: Tensor, top: int, beta: float = 1.0, kind: str = "odd-even", swap: str = "arctan"
) -> Tensor:
    """Probability that each element lands among the `top` last (largest) places.

    These are the column sums of P's last rows, the p of GroCo's eq. 6. For the odd-even network the row
    vector 1_topᵀ is multiplied by P_L, …, P_1 in turn, the layers of P = P_L ⋯ P_1, so no matrix is formed.

    >>> import torch
    >>> from setclr.inner import top_probability
    >>> top_probability(torch.tensor([0.1, 0.9, 0.5]), top=1, beta=10000.0).round()
    tensor([0., 1., 0.])

    Takes x (..., n) float32 or float64, finite, 1 ≤ top ≤ n; beta, kind and swap as in `sorting_network`.
    Returns (..., n), each in [0, 1]; they sum to `top`. A second derivative costs as much as P.
    Raises ValueError: an argument is not as above; the message names it.
    Cost: odd-even O(n²) time and space, while computing P would cost O(n³); bitonic the cost of P.
    """
    _check(x, beta, swap)
    n = x.shape[-1]
    integer("top", top, least=1, most=n, hint="it counts places of the list")
    if choice("kind", kind, KINDS) == "bitonic" or transforms():
        return by_matrix(x, top, beta, kind, swap)
    return _TopProbability.apply(x.reshape(-1, n), top, float(beta), swap).view(x.shape)


def by_matrix(x: Tensor, top: int, beta: float, kind: str, swap: str) -> Tensor:
    """`top_probability` from the matrix P itself, in autograd's own operations."""
    return sorting_network(x, beta, kind, swap).P[..., x.shape[-1] - top :, :].sum(-2)


class _TopProbability(torch.autograd.Function):
    """p of every row of x (B, n) by the odd-even network, with the gradient written out.

    Forward: x_{l+1} = P_l x_l, then w_l = P_l w_{l+1} from w_L = 1_top, and p = w_0. P_l is symmetric and a
    function of the swap probabilities q_l. Backward runs the two recursions in reverse. Three numbers a swap
    are saved, instead of a graph of a dozen small operations. In all four recursions every second place is
    negated. A layer then subtracts the same number from two neighbours: q times their sum.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, top: int, beta: float, swap: str) -> Tensor:
        n, one = x.shape[1], x.new_ones(())
        place = _negate_odd(x.T.clone(memory_format=torch.contiguous_format).mul_(beta))
        leads, swaps = [], []
        for layer in range(n):
            pairs = _pairs(place, layer)
            total = pairs[:, 0] + pairs[:, 1]
            leads.append(total if layer % 2 else -total)  # β · (high − low)
            swaps.append(torch.atan2(one, leads[-1]) if swap == "arctan" else leads[-1].neg().sigmoid_())
            pairs.addcmul_(swaps[-1].unsqueeze(1), total.unsqueeze(1), value=-SWAPS[swap])

        w = torch.zeros_like(place)
        w[n - top :] = 1
        _negate_odd(w)
        drops = [_mixed_sums(w, layer, swaps[layer], swap) for layer in reversed(range(n))]
        ctx.top, ctx.beta, ctx.swap = top, beta, swap
        ctx.save_for_backward(x, torch.cat(leads), torch.cat(swaps), torch.cat(drops[::-1]))
        return _negate_odd(w).T

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        x, lead, turned, drop = ctx.saved_tensors
        if twice.wanted():
            formula = partial(by_matrix, top=ctx.top, beta=ctx.beta, kind="odd-even", swap=ctx.swap)
            return twice.gradient(formula, x, grad), None, None, None
        n = grad.shape[1]
        sizes = [(n - layer % 2) // 2 for layer in range(n)]
        g = _negate_odd(grad.T.clone(memory_format=torch.contiguous_format))
        rise = [_mixed_sums(g, layer, q, ctx.swap) for layer, q in enumerate(turned.split(sizes))]
        slope = swap_slope(lead, ctx.swap)
        by_q = torch.cat(rise).mul_(drop).mul_(slope)
        by_lead = (turned * SWAPS[ctx.swap]).addcmul_(lead, slope, value=-1)

        dx = torch.zeros_like(g)
        for layer, a, b in reversed(list(zip(range(n), by_lead.split(sizes), by_q.split(sizes)))):
            pairs, sign = _pairs(dx, layer), -1 if layer % 2 else 1
            move = torch.addcmul(b, a, pairs[:, 0] + pairs[:, 1], value=sign)
            pairs.sub_(move.unsqueeze(1), alpha=sign)
        return _negate_odd(dx).mul_(ctx.beta).T, None, None, None


def _negate_odd(x: Tensor) -> Tensor:
    """x (n, B) with every second row negated, in place."""
    x[1::2].neg_()
    return x


def _pairs(x: Tensor, layer: int) -> Tensor:
    """The neighbours that a layer of the odd-even network compares, (p, 2, B), a view of x (n, B)."""
    first = layer % 2
    pairs = (len(x) - first) // 2
    return x[first : first + 2 * pairs].unflatten(0, (pairs, 2))


def _mixed_sums(x: Tensor, layer: int, turned: Tensor, swap: str) -> Tensor:
    """The sum of each pair of x, (p, B); then mixes x in place, as the layer does."""
    pairs = _pairs(x, layer)
    total = pairs[:, 0] + pairs[:, 1]
    pairs.addcmul_(turned.unsqueeze(1), total.unsqueeze(1), value=-SWAPS[swap])
    return total


def _mix(x: Tensor, low: Any, high: Any, q: Tensor) -> Tensor:
    """One layer: swap rows `low` and `high` of x (..., n, m) with probability q, the other rows unchanged."""
    out = x + 0 * q.sum(-2, keepdim=True)  # of q's shape also where vmap hides a dimension
    move = q * (x[..., high, :] - x[..., low, :])
    out[..., low, :] += move
    out[..., high, :] -= move
    return out


def _check(x: Tensor, beta: float, swap: str) -> None:
    floating("x", x, "(..., n) with n >= 1", lambda x: x.ndim > 0)
    finite("x", x)
    setting("beta", beta, above=0, hint="it is an inverse temperature; GroCo uses 0.125 to 8")
    choice("swap", swap, SWAPS)
