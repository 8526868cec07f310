"""The two smoothings of a maximum against their formulas, entmax and golden values."""

import math

import entmax
import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, slope
from hypothesis import given
from hypothesis import strategies as st

from setclr.inner.simplex import _newton, _sorted_depth, soft_maximum, sparse_maximum, sparsemax

GOLDENS = golden("sparseclr_easy")
scales = st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4])


def by_the_book(x):
    """Threshold (eq. 15) and smoothed maximum of one list, its support the k largest entries with the largest
    k for which 1 + k x_(k) > x_(1) + … + x_(k)."""
    descending = sorted((float(v) for v in x), reverse=True)
    k = max(k for k in range(1, len(x) + 1) if 1 + k * descending[k - 1] > sum(descending[:k]))
    T = (sum(descending[:k]) - 1) / k
    return T, sum(v * v - T * T for v in descending[:k]) / 2 + 0.5


def masked(x):
    """x with about a third of its entries −inf, never a whole row."""
    keep = torch.rand_like(x) > 0.3
    keep[..., 0] = True
    return x.masked_fill(~keep, -torch.inf)


@given(st.integers(1, 30), scales)
def test_equals_the_formula(n, scale):
    x = scale * normal(3, n)
    for row, p, value in zip(x, sparsemax(x), sparse_maximum(x)):
        T, expected = by_the_book(row)
        close(p, (row - T).clamp(min=0), rel=0, abs=1e-9)
        assert float(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 40), scales, st.booleans(), st.sampled_from([torch.float32, torch.float64]))
def test_equals_entmax(n, scale, mask, dtype):
    x = scale * torch.randn(2, 3, n, dtype=dtype)
    x = masked(x) if mask else x
    p, expected = sparsemax(x), entmax.sparsemax(x.double().clamp(min=-1e9), dim=-1)
    close(p.double(), expected, rel=0, abs=8 * scale * torch.finfo(dtype).eps + 1e-7)
    close(p.sum(-1), torch.ones_like(x[..., 0]))


@given(st.integers(2, 20), scales)
def test_less_an_entry_it_is_the_sparsemax_loss(n, scale):
    x, target = scale * normal(5, n), torch.randint(n, (5,))
    expected = entmax.SparsemaxLoss(reduction="none")(x, target)
    loss = sparse_maximum(x) - x.gather(1, target.unsqueeze(1)).squeeze(1)
    close(loss, expected, rel=1e-9, abs=1e-12)


def test_golden_values():
    x = torch.tensor(GOLDENS["sparsemax_in"])
    np.testing.assert_allclose(sparsemax(x), GOLDENS["sparsemax_out"], rtol=1e-9, atol=1e-15)


@given(st.integers(1, 20), scales, st.booleans())
def test_the_gradient_of_a_smoothed_maximum_is_its_maximiser(n, scale, mask):
    x = scale * normal(4, n)
    x = (masked(x) if mask else x).requires_grad_()
    close(slope(sparse_maximum(x).sum(), x), sparsemax(x.detach()))
    close(slope(soft_maximum(x, 0.3).sum(), x), (x.detach() / 0.3).softmax(-1))


@given(st.integers(1, 12), st.integers(1, 4), scales)
def test_also_makes_one_list_of_each(n, k, scale):
    x = masked(scale * normal(2, 3, n)).requires_grad_()
    also = (scale * normal(2, 3, k)).requires_grad_()
    lists = torch.cat([x.unsqueeze(2).expand(2, 3, k, n), also.unsqueeze(3)], dim=3)
    found, expected, weights = sparse_maximum(x, also), sparse_maximum(lists), normal(2, 3, k)
    close(found, expected)
    gradients = (torch.autograd.grad(y, (x, also), weights) for y in (found, expected))
    close(*gradients, rel=0, abs=1e-12)


def test_the_jacobian_projects_onto_the_support():
    x = normal(6)
    s = (sparsemax(x) > 0).double()
    jacobian = torch.autograd.functional.jacobian(sparsemax, x)
    close(jacobian, s.diag() - torch.outer(s, s) / s.sum())


@given(st.integers(1, 20), scales, st.sampled_from([1e-6, 1e-3, 0.5, 1e3]))
def test_a_smoothing_stays_near_the_maximum(n, scale, temperature):
    x = scale * normal(4, n)
    sparse, soft = sparse_maximum(x) - x.amax(-1), soft_maximum(x, temperature) - x.amax(-1)
    slack = 1e-12 * (scale + temperature)
    assert -slack <= sparse.min() and sparse.max() <= (1 - 1 / n) / 2 + slack
    assert -slack <= soft.min() and soft.max() <= temperature * math.log(n) + slack


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_fixed_number_of_rounds_suffices(dtype):
    """Compiled, the rounds do not stop early; on a GPU there is one, after sorting."""
    n = torch.arange(200, dtype=torch.float64)
    log_spaced, far = -torch.logspace(-12, 0, 200).double(), torch.linspace(-1e6, 1e6, 200).double()
    flat_top = -((n / 200) ** 8)
    hard = [-(0.5**n), -1 / (n + 1), flat_top, log_spaced, 0 * n, far, *torch.randn(20, 200).double()]
    x = torch.stack(hard).to(dtype)
    below = x - x.amax(-1, keepdim=True)
    after_one = (below + _newton(below, _sorted_depth(below), 1)).clamp(min=0)
    compiled = torch.compile(sparsemax, fullgraph=True, backend="aot_eager")
    for found in (sparsemax(x), compiled(x), after_one):
        exact = entmax.sparsemax(x.double(), dim=-1)
        close(found.double(), exact, rel=0, abs=16 * torch.finfo(dtype).eps)


def test_a_common_offset_costs_no_digits():
    x = torch.randint(-512, 512, (8, 20)).float() / 256  # multiples of 2⁻⁸, so that x + 2¹⁵ is exact
    close(sparsemax(x + 2**15), sparsemax(x), rel=0, abs=1e-7)
    x.requires_grad_()
    near, far = (slope(sparse_maximum(x + c).sum(), x) for c in (0.0, 2.0**15))
    close(far, near, rel=0, abs=1e-7)
