"""Soft sorting networks against the literal product of matrices, diffsort and its golden values."""

import math

import diffsort
import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, slope
from hypothesis import given
from hypothesis import strategies as st

from setclr.inner import sorting_network, top_probability
from setclr.inner.sorting import comparators, swap_probability, swap_slope

GOLDENS = golden("diffsort_oddeven_cauchy")
sizes, betas = st.integers(1, 9), st.sampled_from([0.125, 1.0, 8.0, 100.0])


def by_the_book(x, beta):
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
    close((values, P), by_the_book(x, beta), rel=0, abs=1e-12)
    close(values, P @ x, rel=0, abs=1e-12)


@pytest.mark.parametrize("kind, name", [("odd-even", "odd_even"), ("bitonic", "bitonic")])
@pytest.mark.parametrize("swap, distribution", [("arctan", "cauchy"), ("logistic", "logistic")])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_equals_diffsort(kind, name, swap, distribution, n):
    x = normal(5, n)
    values, transposed = diffsort.DiffSortNet(name, n, steepness=3.0, distribution=distribution)(x)
    close(tuple(sorting_network(x, 3.0, kind, swap)), (values, transposed.mT), rel=0, abs=1e-10)


@pytest.mark.parametrize("key", [k for k in GOLDENS if k.startswith("X_")])
def test_golden_values(key):
    n, beta = key[3:].split("_b")
    x = torch.tensor(GOLDENS[f"v_n{n}"], requires_grad=True)
    values, P = sorting_network(x, float(beta))
    np.testing.assert_allclose(P.detach().mT, GOLDENS[key], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(values.detach(), GOLDENS[key.replace("X", "sorted", 1)], rtol=1e-9)
    (P.mT * torch.tensor(GOLDENS[f"W_n{n}"])).sum().backward()
    np.testing.assert_allclose(x.grad, GOLDENS[key.replace("X", "gv", 1)], rtol=1e-9, atol=1e-14)


@given(sizes, betas, st.sampled_from(["arctan", "logistic"]), st.data())
def test_rows_and_columns_sum_to_one_and_the_row_vector_is_the_matrix(n, beta, swap, data):
    x, top = normal(3, n, grad=True), data.draw(st.integers(1, n))
    P = sorting_network(x, beta, swap=swap).P
    close((P.sum(-1), P.sum(-2)), 2 * (torch.ones_like(x),))
    assert P.min() >= 0
    p, dense, weights = top_probability(x, top, beta, swap=swap), P[..., -top:, :].sum(-2), normal(3, n)
    close(p, dense, rel=0, abs=1e-13)
    close(*(torch.autograd.grad(y, x, weights) for y in (p, dense)), rel=0, abs=1e-13 * n * beta)


@pytest.mark.parametrize("kind", ["odd-even", "bitonic"])
@pytest.mark.parametrize("swap", ["arctan", "logistic"])
def test_gradients(kind, swap):
    x = normal(2, 4, grad=True)
    assert torch.autograd.gradcheck(lambda x: sorting_network(x, 2.0, kind, swap).P, x)
    assert torch.autograd.gradcheck(lambda x: top_probability(x, 2, 2.0, kind, swap), x)


@given(sizes)
def test_hard_swaps_sort(n):
    x = torch.randperm(n).double()
    values, P = sorting_network(x, beta=1e9)
    close(values, x.sort().values, rel=0, abs=1e-6)
    assert torch.equal(P.round(), torch.eye(n, dtype=P.dtype)[x.long()].T)


def test_the_two_odd_even_networks_of_the_paper_differ():
    """The main text compares (1,2) first, its supplement's Algorithm 1 (2,3): an ambiguity of the paper."""
    x = torch.tensor([0.0, 0.4, 0.3, 0.1], dtype=torch.float64)
    main = by_the_book(x, 1.0)[1]
    padded = torch.cat([torch.tensor([-1e9], dtype=torch.float64), x])
    supplement = by_the_book(padded, 1.0)[1][1:, 1:]
    assert (main - supplement).abs().max() > 0.01


def test_tails_keep_their_digits_in_float32():
    excess = torch.tensor([1e3, 1e7, 1e30])
    close(swap_probability(-excess), (1 / (math.pi * excess.double())).float(), rel=1e-5)


@given(st.floats(-50, 50), st.sampled_from(["arctan", "logistic"]))
def test_slope_is_the_derivative(excess, swap):
    x = torch.tensor(excess, dtype=torch.float64, requires_grad=True)
    close(swap_slope(x, swap), slope(swap_probability(x, swap), x))


def test_layers():
    assert (len(comparators(7)), len(comparators(16, "bitonic"))) == (7, 10)
