"""GroCo against eq. 6 with the matrix written out, the authors' golden values, and eq. 10."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, same_as_golden, slope
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.inner import sorting_network, top_probability
from setclr.losses import GroCo


def by_the_book(z, beta, negatives, pool, preorder, positive_views, keys=None, random=False):
    """Eq. 6 with the whole matrix P and both of its sums, one anchor at a time; and p at the candidates."""
    V, N, _ = z.shape
    x = F.normalize(z, dim=-1)
    c = x if keys is None else F.normalize(keys, dim=-1)
    losses, A = [], torch.zeros(V * N, V * N, dtype=z.dtype)
    for v, i in itertools.product(range(V), range(N)):
        others = [(u, j) for u in (range(V) if pool == "all" else [v]) for j in range(N) if j != i]
        own = [(u, i) for u in range(positive_views or V) if u != v]
        negative, positive = (
            torch.stack([x[v, i] @ c[place] for place in places]) for places in (others, own)
        )
        if random:  # those after the anchor, then those before it
            start = sum(other < (v, i) for other in others)
            chosen = [(start + k) % len(others) for k in range(min(negatives, len(others)))]
        else:
            chosen = negative.topk(min(negatives, len(negative))).indices.tolist()
        n, K, places = len(chosen), len(own), [*(others[k] for k in sorted(chosen)), *own]
        values = torch.cat([negative[sorted(chosen)], positive])
        if preorder:
            order = torch.cat([values[:n].argsort(), n + values[n:].argsort()])
            values, places = values[order], [places[k] for k in order.tolist()]
        P, truth = sorting_network(values, beta).P, (torch.arange(n + K) >= n).to(z)
        top, bottom = P[n:].sum(0), P[:n].sum(0)
        for (u, j), p in zip(places, top.tolist()):
            A[v * N + i, u * N + j] = p
        sums = ((top, truth), (bottom, 1 - truth))
        bce = sum(F.binary_cross_entropy(p.clamp(0, 1), y, reduction="sum") for p, y in sums)
        losses.append(bce / (2 * (n + K)))
    return torch.stack(losses).mean(), A


betas, pools = st.sampled_from([0.125, 0.25, 1.0, 8.0]), st.sampled_from(["all", "view"])
flags, groups = st.booleans(), st.sampled_from([None, 2])


@given(st.integers(2, 4), st.integers(2, 6), betas, st.integers(1, 12), pools, flags, groups, flags, flags)
def test_equals_the_formula_and_its_gradient(V, N, beta, negatives, pool, preorder, G, with_keys, random):
    z, keys = normal(V, N, 5, grad=True), normal(V, N, 5) if with_keys else None
    groco = GroCo(beta, negatives, pool, preorder, stop_gradient=False, positive_views=G, random=random)
    loss, (expected, A) = groco(z, keys), by_the_book(z, beta, negatives, pool, preorder, G, keys, random)
    close(loss, expected, rel=1e-9)
    close(slope(loss, z), slope(expected, z), rel=1e-9, abs=1e-13)
    close(groco.assignment(z, keys), A)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 6), groups)
def test_as_many_positives_are_sorted_as_there_are_keys(V, U, N, G):
    """With hard swaps p says who stands on top, so the loss is that of a plain sort."""
    assume(U > 1 or (V == 1 and G is None))
    z, keys = normal(V, N, 5), normal(U, N, 5)
    A = GroCo(1e9, 3, positive_views=G).assignment(z, keys)
    x, y = (F.normalize(each, dim=-1).flatten(0, 1) for each in (z, keys))
    for a, s in enumerate(x @ y.T):
        own = [u * N + a % N for u in range(G or U) if V == 1 or u != a // N]
        rivals = s[torch.arange(U * N) % N != a % N]
        listed = torch.cat([rivals.sort().values[-3:], s[own]])
        assert A[a].sum().item() == pytest.approx(len(own))
        close(s[A[a] > 0.5].sort().values, listed.sort().values[-len(own) :])


@pytest.mark.filterwarnings("ignore:negatives=10 in GroCo")
@pytest.mark.parametrize("pool", ["all", "view"])
def test_with_labels_each_anchor_s_list_is_sorted_whatever_its_length(pool):
    for y in (torch.tensor([0, 0, 0, 1, 1, 2, 3]), torch.tensor([2, 0, 1, 0, 2, 1])):
        N = len(y)
        z, loss, every, view = normal(2, N, 5), GroCo(2.0, 10, pool), y.repeat(2), torch.arange(2 * N) // N
        x, A = F.normalize(z, dim=-1).flatten(0, 1), loss.assignment(z, labels=y)
        values = loss(z, labels=y, reduction="none").flatten()
        for a in range(2 * N):
            s, same = x @ x[a], every == every[a]
            rivals = s[~same & ((view == view[a]) | (pool == "all"))].sort().values[-10:]
            same[a] = False
            own = s[same].sort().values
            p = top_probability(torch.cat([rivals, own]), len(own), 2.0)
            right = torch.cat([1 - p[: len(rivals)], p[len(rivals) :]])
            close(values[a], -right.log().mean())
            close(A[a, same].sort().values, p[len(rivals) :].sort().values)


@pytest.mark.parametrize("K, N", [(1, 10), (3, 5)])
@pytest.mark.parametrize("beta", ["0.25", "1", "8"])
@pytest.mark.parametrize("order", ["pre", "nopre"])
def test_golden_values(K, N, beta, order):
    found, tag = golden(f"groco_K{K}_N{N}"), f"b{beta}_{order}"
    z = torch.tensor(found["z"], requires_grad=True)
    groco = GroCo(float(beta), N, pool="view", preorder=order == "pre")
    same_as_golden(groco(z), z, found[f"loss_{tag}"], found[f"grad_{tag}"])
    lists = groco.lists(groco.points(z.detach()))[0]
    np.testing.assert_allclose(lists.similarity[:2], found[f"sims_{tag}"], rtol=1e-9)
    P = sorting_network(lists.similarity[:2], float(beta)).P
    np.testing.assert_allclose(P.mT, found[f"X_{tag}"], rtol=1e-9, atol=1e-15)


@given(betas)
def test_one_positive_and_one_negative_is_equation_10(beta):
    z = normal(2, 2, 4)
    x = F.normalize(z, dim=-1)
    # d⁻ − d⁺
    gaps = [float(x[v, i] @ x[1 - v, i] - (x[:, 1 - i] @ x[v, i]).max()) for v in (0, 1) for i in (0, 1)]
    expected = np.mean([-math.log(math.atan(beta * gap) / math.pi + 0.5) for gap in gaps])
    assert float(GroCo(beta, negatives=1)(z)) == pytest.approx(expected, rel=1e-9)


def test_stop_gradient_leaves_only_the_anchors():
    z = normal(2, 4, 5, grad=True)
    stopped, free = slope(GroCo()(z), z), GroCo(stop_gradient=False)
    close(stopped, slope(free(z, keys=z.detach()), z))
    assert (slope(free(z), z) - stopped).abs().max() > 1e-3


def test_multi_crop_sorts_lists_of_two_lengths():
    """A full view has one positive, a small crop two: networks of 11 and of 12 places in one batch."""
    groco = GroCo(pool="view", positive_views=2)
    lists = groco.lists(groco.points(normal(8, 12, 6)))
    assert [tuple(x.similarity.shape) for x in lists] == [(2 * 12, 11), (6 * 12, 12)]


def test_negatives_beyond_the_batch_are_those_there_are():
    z = normal(2, 3, 4)
    close(GroCo(negatives=1000)(z), GroCo(negatives=4)(z))


def test_collapse_is_a_stationary_point_of_known_height():
    """All embeddings equal: the loss that a head without a last batch norm falls into and stays at."""
    z = torch.ones(2, 16, 8, dtype=torch.float64, requires_grad=True)
    loss = GroCo()(z)
    assert slope(loss, z).abs().max() < 1e-12
    assert loss.item() == pytest.approx(GroCo()(torch.ones(2, 30, 3)).item(), rel=1e-6)
