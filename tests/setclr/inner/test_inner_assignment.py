"""The inner problems of one paper: assignments against trying everything, and what is known of permanents and
spectra; the two smoothings of a maximum against entmax and golden values."""

import itertools
import math

import entmax
import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, slope
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from setclr.inner import assignment, linear_assignment, quadratic_assignment, simplex, spectral_bounds
from setclr.inner.assignment import Quadratic, linear_values, permutations, spectrum
from setclr.inner.simplex import _newton, _sorted_depth, soft_maximum, sparse_maximum, sparsemax

sizes = st.integers(1, 5)
minings = st.sampled_from(["one-to-one", "batch-hard"])


def quadratic(S, S_A, S_B, Y):
    return (S @ Y.T).trace() + (S_A @ Y @ S_B.T @ Y.T).trace()


def test_permutations_are_those_of_itertools():
    for n in range(1, 9):
        assert permutations(n).tolist() == [list(p) for p in itertools.permutations(range(n))]


@given(sizes, st.integers(0, 2), minings, st.sampled_from([0.0, 1e-3, 0.3, 1e3]), st.booleans())
def test_equals_trying_everything(n, more, mining, temperature, forbid):
    """Eq. 2, 4, 12 and 13: every way to give each of n rows one of m columns, one to one or freely."""
    m, one = n + min(more, 5 - n), mining == "one-to-one"
    costs = normal(2, n, m).masked_fill(torch.rand(2, n, m) < 0.3 * forbid, torch.inf)
    all_ways = itertools.permutations(range(m), n) if one else itertools.product(range(m), repeat=n)
    ways = torch.tensor(list(all_ways))
    of_ways = costs[:, torch.arange(n), ways].sum(-1)
    assume(of_ways.isfinite().any(1).all())
    if temperature:
        weights = (-of_ways / temperature).softmax(1)
        least = -temperature * (-of_ways / temperature).logsumexp(1)
    else:
        weights, least = one_hot(of_ways.argmin(1), len(ways)).double(), of_ways.amin(1)
    value, matrix = linear_assignment(costs.requires_grad_(), temperature, mining)
    assert not matrix.requires_grad
    close((value, matrix), (least, torch.einsum("kw,wij->kij", weights, one_hot(ways, m).double())))
    close(slope(value.sum(), costs), matrix, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mining", ["one-to-one", "batch-hard"])
@pytest.mark.parametrize("temperature", [0.0, 0.1])
def test_nan_comes_out_as_nan_where_values_are_not_looked_at(monkeypatch, mining, temperature):
    """As on a GPU."""
    for module in (assignment, simplex):
        monkeypatch.setattr(module, "values_readable", lambda x: False)
    cost = torch.randn(2, 4, 4)
    cost[1, 2, 3] = torch.nan
    value = linear_assignment(cost, temperature, mining).value
    assert value[0].isfinite() and value[1].isnan()
    assert quadratic_assignment(cost, cost, cost).minimum[1].isnan()
    assert spectral_bounds(cost, cost).upper.isnan().tolist() == [False, True]


@given(st.integers(1, 8))
def test_the_smoothing_of_all_permutations_is_rysers_permanent_and_does_not_overflow(N):
    logits = normal(N, N)
    A = logits.exp().numpy()
    subsets = itertools.product([0, 1], repeat=N)
    ryser = sum((-1) ** (N - sum(s)) * (A * np.array(s)).sum(1).prod() for s in subsets)
    assert -linear_assignment(-logits, 1.0).value.item() == pytest.approx(math.log(ryser), rel=1e-9, abs=1e-9)
    huge = 1e4 * torch.randn(2, 5, 5)
    close(-linear_assignment(-huge, 1.0).value, linear_values(huge).amax(-1), rel=1e-6)


def test_a_tie_is_broken_and_its_gradient_with_it():
    for mining in ("one-to-one", "batch-hard"):
        cost = torch.ones(3, 3, requires_grad=True)
        value, matrix = linear_assignment(cost, mining=mining)
        assert value == 3 and torch.equal(slope(value, cost), matrix)
        assert set(matrix.flatten().tolist()) == {0.0, 1.0}


@given(sizes)
def test_quadratic_values_equal_the_formula(N):
    problems, matrices = normal(3, 2, 3, N, N), torch.eye(N, dtype=torch.float64)
    of_all = quadratic_assignment(*problems)
    for at in itertools.product(range(2), range(3)):
        S, found = problems[:, *at], Quadratic(*(x[at] for x in of_all))
        values = torch.stack([quadratic(*S, matrices[list(p)]) for p in itertools.permutations(range(N))])
        close(found.values, values, rel=1e-9, abs=1e-9)
        close((found.minimum, found.maximum), (values.min(), values.max()))
        at_ends = tuple(quadratic(*S, Y) for Y in (found.minimiser, found.maximiser))
        close(at_ends, (found.minimum, found.maximum))


@given(st.integers(1, 6))
def test_spectral_bounds_enclose_every_permutation_and_are_reached_by_orthogonal_matrices(N):
    F, D = (x + x.mT for x in normal(2, 3, N, N))
    lower, upper = spectral_bounds(F, D)
    values = quadratic_assignment(torch.zeros_like(F), F, D).values
    assert (lower <= values.amin(1) + 1e-9).all() and (values.amax(1) <= upper + 1e-9).all()
    Q_F, Q_D = (torch.linalg.eigh(x).eigenvectors for x in (F, D))
    for X, bound in ((Q_F @ Q_D.mT, upper), (Q_F @ Q_D.flip(2).mT, lower)):
        close(torch.vmap(torch.trace)(F @ X @ D.mT @ X.mT), bound)


def test_tiny_entries_beside_large_ones_give_no_nan():
    """Of this matrix LAPACK's float32 made NaN on some processors."""
    a, b, c = 1.206379e-13, 1.4013e-45, 1.41193e-12
    F = torch.tensor([[0, -a, -161.80334, -b, -3 * b], [-a, 2.94e-13, -1478.3273, c, 1.3 * c],
                      [-161.80334, -1478.3273, -2823.0615, 676.85077, 255.80876],
                      [-b, c, 676.85077, 0, -b], [-3 * b, 1.3 * c, 255.80876, -b, -2 * b]])  # fmt: skip
    found, exact = spectrum(F.requires_grad_()), torch.linalg.eigh(F.detach().double())
    error = 30 * torch.finfo(torch.float32).eps * float(F.detach().norm())
    close(found, exact.eigenvalues.float(), rel=0, abs=error)
    assert spectrum(F * 1e-44).isfinite().all()
    least = exact.eigenvectors[:, 0]
    close(slope(found[0], F), torch.outer(least, least).float(), rel=0, abs=1e-4)


def test_equal_eigenvalues_have_a_finite_gradient():
    for F in (torch.eye(4), torch.ones(4, 4), torch.zeros(4, 4)):
        upper = spectral_bounds(F.requires_grad_(), torch.eye(4)).upper
        close(slope(upper, F), torch.eye(4))  # the upper bound is then the trace of F


GOLDENS = golden("sparseclr_easy")
scales = st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4])


def masked(x):
    """x with about a third of its entries −inf, never a whole row."""
    keep = torch.rand_like(x) > 0.3
    keep[..., 0] = True
    return x.masked_fill(~keep, -torch.inf)


@given(st.integers(1, 40), scales, st.booleans(), st.sampled_from([torch.float32, torch.float64]))
def test_sparsemax_equals_entmax(n, scale, mask, dtype):
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


def test_golden_values_of_smoothed_maxima():
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
