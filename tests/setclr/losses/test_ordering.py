"""Soft sorting networks against the literal product of matrices and diffsort; GroCo, which sorts by them,
against eq. 6 with the matrix written out, the authors' golden values, and eq. 10."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, same_as_golden, slope
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.inner import sorting_network, top_probability
from setclr.inner.sorting import swap_probability
from setclr.losses import GroCo

GOLDENS = golden("diffsort_oddeven_cauchy")
sizes, betas = st.integers(1, 9), st.sampled_from([0.125, 1.0, 8.0, 100.0])


def sorted_by_the_book(x, beta):
    """GroCo eq. 2 to 4, one swap matrix at a time: P = P_n ⋯ P_1 of a list x."""
    n = len(x)
    values, P = x.clone(), torch.eye(n, dtype=x.dtype)
    for layer in range(n):
        for i in range(layer % 2, n - 1, 2):
            f = math.atan(beta * float(values[i + 1] - values[i])) / math.pi + 0.5
            swap = torch.eye(n, dtype=x.dtype)
            swap[i, i] = swap[i + 1, i + 1] = f
            swap[i, i + 1] = swap[i + 1, i] = 1 - f
            values, P = swap @ values, swap @ P
    return values, P


@given(sizes, betas)
def test_odd_even_equals_the_formula(n, beta):
    x = normal(n)
    values, P = sorting_network(x, beta)
    close((values, P), sorted_by_the_book(x, beta), rel=0, abs=1e-12)
    close(values, P @ x, rel=0, abs=1e-12)


@pytest.mark.parametrize("key", [k for k in GOLDENS if k.startswith("X_")])
def test_golden_values_of_diffsort(key):
    n, beta = key[3:].split("_b")
    x = torch.tensor(GOLDENS[f"v_n{n}"], requires_grad=True)
    values, P = sorting_network(x, float(beta))
    np.testing.assert_allclose(P.detach().mT, GOLDENS[key], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(values.detach(), GOLDENS[key.replace("X", "sorted", 1)], rtol=1e-9)
    (P.mT * torch.tensor(GOLDENS[f"W_n{n}"])).sum().backward()
    np.testing.assert_allclose(x.grad, GOLDENS[key.replace("X", "gv", 1)], rtol=1e-9, atol=1e-14)


@given(sizes, betas, st.data())
def test_rows_and_columns_sum_to_one_and_the_row_vector_is_the_matrix(n, beta, data):
    x, top = normal(3, n, grad=True), data.draw(st.integers(1, n))
    P = sorting_network(x, beta).P
    close((P.sum(-1), P.sum(-2)), 2 * (torch.ones_like(x),))
    assert P.min() >= 0
    p, dense, weights = top_probability(x, top, beta), P[..., -top:, :].sum(-2), normal(3, n)
    close(p, dense, rel=0, abs=1e-13)
    close(*(torch.autograd.grad(y, x, weights) for y in (p, dense)), rel=0, abs=1e-13 * n * beta)


def test_tails_keep_their_digits_in_float32():
    excess = torch.tensor([1e3, 1e7, 1e30])
    close(swap_probability(-excess), (1 / (math.pi * excess.double())).float(), rel=1e-5)


def by_the_book(z, beta, negatives, pool, preorder, positive_views, keys=None, random=False):
    """Eq. 6 with the whole matrix P and both of its sums, one anchor at a time; and p at the candidates."""
    (V, N, _), x = z.shape, F.normalize(z, dim=-1)
    c = x if keys is None else F.normalize(keys, dim=-1)
    U, losses = len(c), []
    A = torch.zeros(V * N, U * N, dtype=z.dtype)
    for v, i in itertools.product(range(V), range(N)):
        others = [(u, j) for u in (range(U) if pool == "all" else [v]) for j in range(N) if j != i]
        own = [(u, i) for u in range(positive_views or U) if V == 1 or u != v]
        negative, positive = (torch.stack([x[v, i] @ c[at] for at in places]) for places in (others, own))
        if random:  # those after the anchor, then those before it
            start = sum(other < (v % U, i) for other in others)
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
flags, groups, some = st.booleans(), st.sampled_from([None, 2]), st.integers(1, 12)


@given(st.integers(1, 4), st.integers(0, 4), st.integers(2, 6), betas, some, pools, flags, groups, flags)
@settings(max_examples=40)
def test_groco_equals_the_formula_and_its_gradient(V, U, N, beta, negatives, pool, preorder, G, random):
    """Without keys, U = 0, and with more or fewer keys than views."""
    U = U if pool == "all" else min(U, 1) * V
    assume(U != 1 if V > 1 else U > 0 and (U > 1 or G is None))
    z, keys = normal(V, N, 5, grad=True), normal(U, N, 5) if U else None
    groco = GroCo(beta, negatives, pool, preorder, stop_gradient=False, positive_views=G, random=random)
    loss, (expected, A) = groco(z, keys), by_the_book(z, beta, negatives, pool, preorder, G, keys, random)
    close(loss, expected, rel=1e-9)
    close(slope(loss, z), slope(expected, z), rel=1e-9, abs=1e-13)
    close(groco.assignment(z, keys), A)


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
def test_golden_values_of_groco(K, N, beta, order):
    found, tag = golden(f"groco_K{K}_N{N}"), f"b{beta}_{order}"
    z = torch.tensor(found["z"], requires_grad=True)
    groco = GroCo(float(beta), N, pool="view", preorder=order == "pre")
    same_as_golden(groco(z), z, found[f"loss_{tag}"], found[f"grad_{tag}"])
    _, similarity, _, _ = next(groco.lists(groco.batch(z.detach())))
    np.testing.assert_allclose(similarity[:2], found[f"sims_{tag}"], rtol=1e-9)
    P = sorting_network(similarity[:2], float(beta)).P
    np.testing.assert_allclose(P.mT, found[f"X_{tag}"], rtol=1e-9, atol=1e-15)


def test_collapse_is_a_stationary_point_of_known_height():
    """All embeddings equal: the loss that a head without a last batch norm falls into and stays at."""
    z = torch.ones(2, 16, 8, dtype=torch.float64, requires_grad=True)
    loss = GroCo()(z)
    assert slope(loss, z).abs().max() < 1e-12
    assert loss.item() == pytest.approx(GroCo()(torch.ones(2, 30, 3)).item(), rel=1e-6)
