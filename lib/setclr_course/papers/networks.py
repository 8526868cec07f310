"""Sorting networks of other layers than GroCo's: a bitonic one needs fewer (Petersen et al. 2021)."""

import torch
from torch import Tensor

from setclr.inner.sorting import Sorted, swap_probability


def comparators(n: int, kind: str) -> list[tuple[Tensor, Tensor]]:
    """Indices (low, high) of the places that each layer compares; the smaller value belongs at low.

    "odd-even": n layers; the first compares (0,1), (2,3), …, the next (1,2), (3,4), …, and so on in turn.
    "bitonic": k(k+1)/2 layers for n = 2^k; every layer compares all places.
    """
    place = torch.arange(n)
    if kind == "odd-even":
        return [(place[layer % 2 : n - 1 : 2], place[layer % 2 + 1 :: 2]) for layer in range(n)]
    layers = []
    for block in range(1, n.bit_length()):
        for stride in (2**j for j in reversed(range(block))):
            first = place[place & stride == 0]
            descending = (first >> block) % 2 == 1
            layers.append((first + stride * descending, first + stride * ~descending))
    return layers


def soft_network(x: Tensor, beta: float, kind: str) -> Sorted:
    """The numbers x (..., n) sorted softly, layer after layer, as `setclr.inner.sorting_network` does."""
    one = torch.eye(x.shape[-1], dtype=x.dtype)
    values, P = x, one.expand(*x.shape, x.shape[-1])
    for low, high in comparators(x.shape[-1], kind):
        q = swap_probability(beta * (values[..., low] - values[..., high])).unsqueeze(-1)
        layer = one.expand_as(P).clone()
        layer[..., low, :] = (1 - q) * one[low] + q * one[high]
        layer[..., high, :] = (1 - q) * one[high] + q * one[low]
        values, P = (layer @ values.unsqueeze(-1)).squeeze(-1), layer @ P
    return Sorted(values, P)
