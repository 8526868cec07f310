"""GroCo against eq. 6 with the matrix written out, the authors' golden values, and eq. 10."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.inner import sorting_network
from setclr.losses import GroCo

GOLDENS = Path(__file__).parent / "goldens"


def by_the_book(z, beta, negatives, pool, preorder, positive_views, keys=None, random=False):
    """Eq. 6 with the whole matrix P and both of its sums, one anchor at a time."""
    V, N, _ = z.shape
    x = F.normalize(z, dim=-1)
    c = x if keys is None else F.normalize(keys, dim=-1)
    losses = []
    for v in range(V):
        for i in range(N):
            views = range(V) if pool == "all" else [v]
            others = [(u, j) for u in views for j in range(N) if j != i]
            negative = torch.stack([x[v, i] @ c[u, j] for u, j in others])
            if random:  # those after the anchor, then those before it
                start = sum(other < (v, i) for other in others)
                chosen = [(start + k) % len(others) for k in range(min(negatives, len(others)))]
            else:
                chosen = negative.topk(min(negatives, len(negative))).indices.tolist()
            negative = negative[sorted(chosen)]
            positive = torch.stack([x[v, i] @ c[u, i] for u in range(positive_views or V) if u != v])
            if preorder:
                negative, positive = negative.sort().values, positive.sort().values
            n, K = len(negative), len(positive)
            P = sorting_network(torch.cat([negative, positive]), beta).P
            truth = torch.cat([torch.zeros(n, dtype=z.dtype), torch.ones(K, dtype=z.dtype)])
            top, bottom = P[n:].sum(0), P[:n].sum(0)
            bce = sum(
                F.binary_cross_entropy(p.clamp(0, 1), y, reduction="sum")
                for p, y in ((top, truth), (bottom, 1 - truth))
            )
            losses.append(bce / (2 * (n + K)))
    return torch.stack(losses).mean()


@given(
    V=st.integers(2, 4),
    N=st.integers(2, 6),
    beta=st.sampled_from([0.25, 1.0, 8.0]),
    negatives=st.integers(1, 12),
    pool=st.sampled_from(["all", "view"]),
    preorder=st.booleans(),
    multicrop=st.booleans(),
    with_keys=st.booleans(),
    random=st.booleans(),
)
def test_equals_the_formula_and_its_gradient(
    V, N, beta, negatives, pool, preorder, multicrop, with_keys, random
):
    z = torch.randn(V, N, 5, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(V, N, 5, dtype=torch.float64) if with_keys else None
    G = 2 if multicrop else None
    more = dict(stop_gradient=False, positive_views=G, random=random)
    loss = GroCo(beta, negatives, pool, preorder, **more)(z, keys)
    expected = by_the_book(z, beta, negatives, pool, preorder, G, keys, random)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
    (gradient,), (expected,) = (torch.autograd.grad(x, z) for x in (loss, expected))
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("K, N", [(1, 10), (3, 5)])
@pytest.mark.parametrize("beta", ["0.25", "1", "8"])
@pytest.mark.parametrize("order", ["pre", "nopre"])
def test_golden_values(K, N, beta, order):
    golden, tag = np.load(GOLDENS / f"groco_K{K}_N{N}.npz"), f"b{beta}_{order}"
    z = torch.tensor(golden["z"], requires_grad=True)
    groco = GroCo(float(beta), N, pool="view", preorder=order == "pre")
    loss = groco(z)
    loss.backward()
    assert loss.item() == pytest.approx(float(golden[f"loss_{tag}"]), rel=1e-9)
    np.testing.assert_allclose(z.grad, golden[f"grad_{tag}"], rtol=1e-9, atol=1e-15)
    lists = groco.lists(groco.points(z.detach()))[0]
    np.testing.assert_allclose(lists.similarity[:2], golden[f"sims_{tag}"], rtol=1e-9)
    P = sorting_network(lists.similarity[:2], float(beta)).P
    np.testing.assert_allclose(P.mT, golden[f"X_{tag}"], rtol=1e-9, atol=1e-15)


@given(st.sampled_from([0.125, 1.0, 8.0]))
def test_one_positive_and_one_negative_is_equation_10(beta):
    z = torch.randn(2, 2, 4, dtype=torch.float64)
    x = F.normalize(z, dim=-1)
    gaps = [
        float(x[v, i] @ x[1 - v, i] - max(x[v, i] @ x[u, 1 - i] for u in range(2)))
        for v in range(2)
        for i in range(2)
    ]  # d⁻ − d⁺
    expected = np.mean([-math.log(math.atan(beta * gap) / math.pi + 0.5) for gap in gaps])
    assert float(GroCo(beta, negatives=1)(z)) == pytest.approx(expected, rel=1e-9)


def test_stop_gradient_leaves_only_the_anchors():
    z = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    (stopped,) = torch.autograd.grad(GroCo()(z), z)
    held = z.detach()
    (anchors_only,) = torch.autograd.grad(GroCo(stop_gradient=False)(z, keys=held), z)
    torch.testing.assert_close(stopped, anchors_only)
    (free,) = torch.autograd.grad(GroCo(stop_gradient=False)(z), z)
    assert (free - stopped).abs().max() > 1e-3


@given(st.integers(2, 4), st.integers(2, 5), st.sampled_from(["all", "view"]), st.booleans(), st.booleans())
def test_assignment_holds_p_at_the_candidates_of_the_list(V, N, pool, multicrop, preorder):
    z = torch.randn(V, N, 5, dtype=torch.float64)
    G = 2 if multicrop else None
    groco = GroCo(2.0, negatives=3, pool=pool, preorder=preorder, positive_views=G)
    A = groco.assignment(z)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    s = x @ x.T
    for a in range(V * N):
        v, i = divmod(a, N)
        K = len([u for u in range(G or V) if u != v])
        assert float(A[a].sum()) == pytest.approx(K)
        listed = A[a].nonzero().flatten().tolist()
        positives = [u * N + i for u in range(G or V) if u != v]
        pool_columns = [c for c in range(V * N) if c % N != i and (pool == "all" or c // N == v)]
        hardest = sorted(pool_columns, key=lambda c: -float(s[a, c]))[:3]
        assert sorted(listed) == sorted(positives + hardest)
        if preorder:
            similarities = torch.cat([s[a, hardest].sort().values, s[a, positives].sort().values])
            p = sorting_network(similarities, 2.0).P[-K:].sum(0)
            torch.testing.assert_close(A[a, listed].sort().values, p.sort().values)


def test_multi_crop_sorts_lists_of_two_lengths():
    """A full view has one positive, a small crop two: networks of 11 and of 12 places in one batch."""
    z = torch.randn(8, 12, 6, dtype=torch.float64)
    groco = GroCo(pool="view", positive_views=2)
    lists = groco.lists(groco.points(z))
    assert [tuple(x.similarity.shape) for x in lists] == [(2 * 12, 11), (6 * 12, 12)]


def test_negatives_beyond_the_batch_are_those_there_are():
    z = torch.randn(2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(GroCo(negatives=1000)(z), GroCo(negatives=4)(z))


def test_collapse_is_a_stationary_point_of_known_height():
    """All embeddings equal: the loss that a head without a last batch norm falls into and stays at."""
    z = torch.ones(2, 16, 8, dtype=torch.float64, requires_grad=True)
    loss = GroCo()(z)
    loss.backward()
    assert z.grad.abs().max() < 1e-12
    assert loss.item() == pytest.approx(GroCo()(torch.ones(2, 30, 3)).item(), rel=1e-6)
