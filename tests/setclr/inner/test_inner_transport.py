"""Sinkhorn against plain rounds of division, POT, and finite differences."""

from unittest import mock

import numpy as np
import ot
import pytest
import torch
from conftest import shifted
from every_loss import close, kept_for_the_gradient, normal, slope
from hypothesis import given
from hypothesis import strategies as st

from setclr.inner import sinkhorn, transport

sizes, flags = st.integers(1, 7), st.booleans()


def by_the_book(cost, epsilon, rounds, a, b):
    """Divide the columns, then the rows, of exp(−C/ε) by their sums (IOT-CL, Algorithm 1)."""
    P = (-cost / epsilon).exp()
    for _ in range(rounds):
        P = P / P.sum(0) * b
        P = P / P.sum(1, keepdim=True) * a.unsqueeze(1)
    return P


def marginal(n, uniform=False):
    a = torch.ones(n).double() if uniform else torch.rand(n, dtype=torch.float64) + 0.1
    return a / a.sum()


@given(sizes, sizes, st.integers(1, 9), st.floats(0.05, 2), flags)
def test_equals_the_formula(n, m, rounds, epsilon, uniform):
    cost, weight = torch.rand(n, m, dtype=torch.float64, requires_grad=True), normal(n, m)
    a, b = (marginal(k, uniform) for k in (n, m))
    coupling = sinkhorn(cost, epsilon, rounds, **({} if uniform else dict(a=a, b=b)))
    expected = by_the_book(cost, epsilon, rounds, a, b)
    close(coupling.P, expected, rel=1e-9)
    close(coupling.P.sum(1), a)
    close(coupling.error, (coupling.P.sum(0) / b - 1).abs().max().detach())
    assert coupling.rounds == rounds and bool(coupling.converged) == (coupling.error <= 1e-4)
    close(*(torch.autograd.grad(P, cost, weight) for P in (coupling.P, expected)), rel=1e-9, abs=1e-13)


@given(st.integers(2, 30), st.integers(2, 30), st.sampled_from([0.05, 0.2, 1.0]))
def test_converged_equals_pot(n, m, epsilon):
    cost, a, b = torch.rand(n, m, dtype=torch.float64), marginal(n), marginal(m)
    coupling = sinkhorn(cost, epsilon, tolerance=1e-9, a=a, b=b)
    expected = ot.bregman.sinkhorn_log(a.numpy(), b.numpy(), cost.numpy(), epsilon, 20000, 1e-12)
    assert coupling.converged
    np.testing.assert_allclose(coupling.P, expected, rtol=1e-6, atol=1e-12)


def test_forbidden_pairs_and_leading_dimensions():
    cost = torch.rand(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)
    forbidden = torch.eye(4, 6, dtype=torch.bool)
    coupling = sinkhorn(cost.masked_fill(forbidden, torch.inf), 0.1, 5)
    assert coupling.error.shape == coupling.converged.shape == (2, 3)
    assert (coupling.P[..., forbidden] == 0).all()
    alone = sinkhorn(cost[1, 2].masked_fill(forbidden, torch.inf), 0.1, 5)
    close(coupling.P[1, 2], alone.P)
    coupling.P.square().sum().backward()
    assert cost.grad.isfinite().all() and (cost.grad[..., forbidden] == 0).all()


def test_gradients_against_finite_differences():
    cost = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda c: sinkhorn(c, 0.3, 3).P, cost)
    assert torch.autograd.gradcheck(lambda c: sinkhorn(c, 0.3, tolerance=1e-10).P, cost)


def test_a_mean_matching_costs_least_among_couplings():
    """At convergence ⟨C, P⟩ − ε H(P) is below that of any other coupling with these marginals."""
    cost = torch.rand(5, 5, dtype=torch.float64)

    def objective(P):
        return (cost * P).sum() + 0.1 * (P * P.log()).sum()

    best = sinkhorn(cost, 0.1, tolerance=1e-12).P
    for _ in range(20):
        other = sinkhorn(torch.rand(5, 5, dtype=torch.float64), 0.2, tolerance=1e-12).P
        assert objective(best) < objective(0.9 * best + 0.1 * other)


@pytest.mark.filterwarnings("ignore:sinkhorn stopped")
def test_limits():
    """ε → ∞: uniform. ε → 0: the optimal permutation."""
    cost = torch.rand(6, 6, dtype=torch.float64)
    close(sinkhorn(cost, 1e9).P, torch.full_like(cost, 1 / 36), rel=1e-6)
    best = ot.lp.emd([], [], cost.numpy()).nonzero()
    assert sinkhorn(cost, 1e-3).P[best].sum() > 0.9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_epsilon_works_where_exp_underflows(dtype):
    x = torch.randn(64, 8, dtype=dtype)
    y = x[torch.randperm(64)] + 0.01 * torch.randn(64, 8, dtype=dtype)
    cost = (5 + torch.cdist(x, y).square()).requires_grad_()
    assert ((-cost / 1e-3).exp() == 0).all()
    coupling = sinkhorn(cost, 1e-3)
    assert coupling.converged and coupling.rounds < 1000
    close(coupling.P.sum(0), torch.full((64,), 1 / 64, dtype=dtype), rel=1e-3)
    coupling.P.square().sum().backward()
    assert cost.grad.isfinite().all()


@pytest.mark.filterwarnings("ignore:sinkhorn stopped")
@given(sizes, sizes, st.floats(1e-3, 10), st.sampled_from([1, 2, 7, None]), flags, flags, flags)
def test_matrix_times_vector_is_as_exact_as_exponentials(n, m, epsilon, rounds, forbidden, uniform, double):
    """Where the numbers allow products: beside the log domain in float64, values and gradients."""
    dtype, allowed = torch.float64 if double else torch.float32, torch.ones(2, n, m, dtype=torch.bool)
    if forbidden and min(n, m) > 2 and rounds is not None:  # else there may be no coupling
        allowed.diagonal(dim1=1, dim2=2).fill_(False)
    logits = (-torch.rand(2, n, m, dtype=dtype) / epsilon).masked_fill(~allowed, -torch.inf)
    log_a, log_b = (marginal(k, uniform).log().expand(2, k) for k in (n, m))
    path = transport._products(logits, log_a.to(dtype), log_b.to(dtype), rounds, 1e-3)
    if path is None:
        assert epsilon < 0.2  # float32's range holds e^22 four times
        return
    with mock.patch.object(transport, "values_readable", lambda _: False):
        exact = transport.rounds_of(logits.double(), log_a, log_b, len(path.columns))
    given, wanted = (x.clone().requires_grad_() for x in (logits, logits.double()))
    ours = transport.along(path, given, log_a.to(dtype), log_b.to(dtype))
    theirs = transport.along(exact, wanted, log_a, log_b)
    rounding, weight = 200 * torch.finfo(dtype).eps * (1 + 1 / epsilon), normal(2, n, m) * allowed
    close(ours.double(), theirs, rel=rounding, abs=rounding)
    one = slope((weight.to(dtype) * ours.where(allowed, 0)).sum(), given)
    other = slope((weight * theirs.where(allowed, 0)).sum(), wanted)
    close(one.double(), other, rel=rounding, abs=rounding * len(path.columns) * n * m)


def test_rounds_are_products_where_the_numbers_allow_it_and_nowhere_else():
    cost = torch.rand(6, 5)
    uniform = torch.full((6,), 6.0).log().neg(), torch.full((5,), 5.0).log().neg()
    for epsilon, products in ((0.5, True), (0.1, True), (1e-3, False)):
        assert (transport.rounds_of(-cost / epsilon, *uniform, 3).kernel is not None) == products
    assert transport.rounds_of(-cost.double() / 0.01, *uniform, 3).kernel is not None


def test_what_does_not_converge_says_so():
    cost = torch.rand(40, 40, generator=shifted(1))
    with pytest.warns(UserWarning, match=r"stopped after 1000 rounds with column sums off by .*tolerance"):
        coupling = sinkhorn(cost, 1e-4)
    assert not coupling.converged and coupling.rounds == 1000 and coupling.error > 1e-4
    assert sinkhorn(cost, 0.5).converged


def test_memory_does_not_grow_with_the_rounds():
    """What the graph keeps: the cost and two vectors a round, no matrix a round."""

    cost = torch.rand(50, 50, requires_grad=True)

    def kept(rounds):
        return sum(size for _, size in kept_for_the_gradient(lambda: sinkhorn(cost, 0.5, rounds)))

    assert kept(20) - kept(4) <= 16 * 2 * 50
