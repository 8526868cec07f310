"""Assignment problems against scipy, trying everything, and what is known of permanents and spectra."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import normal, slope
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from setclr.inner import assignment, simplex
from setclr.inner.assignment import (
    linear_assignment,
    linear_values,
    log_permanent,
    permutations,
    quadratic_assignment,
    spectral_bounds,
    spectrum,
)
from setclr.inner.simplex import sparsemax

sizes = st.integers(1, 5)
minings = st.sampled_from(["one-to-one", "batch-hard"])


def symmetric(*shape):
    x = normal(*shape)
    return x + x.mT


def matrices(N):
    """All permutation matrices."""
    return [torch.eye(N, dtype=torch.float64)[list(row)] for row in itertools.permutations(range(N))]


def test_permutations_are_those_of_itertools():
    for n in range(1, 8):
        assert permutations(n).tolist() == [list(p) for p in itertools.permutations(range(n))]


@given(st.integers(1, 12))
def test_the_minimum_equals_scipys(N):
    cost = normal(2, N, N)
    value, matrix = linear_assignment(cost)
    for c, v, Y in zip(cost.numpy(), value, matrix.numpy()):
        rows, columns = linear_sum_assignment(c)
        assert float(v) == pytest.approx(c[rows, columns].sum(), rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(Y, np.eye(N)[columns])


@given(
    st.integers(1, 5), st.integers(0, 2), minings, st.sampled_from([0.0, 1e-3, 0.3, 1e3]), st.booleans()
)  # fmt: skip
def test_equals_trying_everything(n, more, mining, temperature, forbid):
    """Eq. 2, 4, 12 and 13: every way to give each of n rows one of m columns, one to one or freely."""
    m, one = n + min(more, 5 - n), mining == "one-to-one"
    costs = normal(2, n, m)
    if forbid:
        costs[torch.rand(2, n, m) < 0.3] = torch.inf
    ways = torch.tensor(
        list(itertools.permutations(range(m), n) if one else itertools.product(range(m), repeat=n))
    )
    of_ways, F = costs[:, torch.arange(n), ways].sum(-1), torch.nn.functional
    assume(of_ways.isfinite().any(1).all())
    value, matrix = linear_assignment(costs.requires_grad_(), temperature, mining)
    assert not matrix.requires_grad
    for k, values in enumerate(of_ways.detach()):
        weights = F.one_hot(values.argmin(), len(values)).to(values)
        if temperature:
            weights = (-values / temperature).softmax(0)
            torch.testing.assert_close(value[k], -temperature * (-values / temperature).logsumexp(0))
        else:
            torch.testing.assert_close(value[k], values.min())
        torch.testing.assert_close(
            matrix[k], torch.einsum("w,wij->ij", weights, F.one_hot(ways, m).to(values))
        )
    torch.testing.assert_close(slope(value.sum(), costs), matrix, rtol=1e-9, atol=1e-9)


@given(st.integers(2, 5), minings, st.sampled_from([1e-3, 0.1, 1.0]))
def test_the_smoothing_tends_to_the_minimum(N, mining, temperature):
    cost = normal(N, N)
    gap = linear_assignment(cost, 0.0, mining).value - linear_assignment(cost, temperature, mining).value
    terms = math.factorial(N) if mining == "one-to-one" else N**N
    assert -1e-12 <= gap <= temperature * math.log(terms) + 1e-12


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
    assert spectral_bounds(cost, cost).upper[1].isnan()


def test_a_tie_is_broken_and_its_gradient_with_it():
    for mining in ("one-to-one", "batch-hard"):
        cost = torch.ones(3, 3, requires_grad=True)
        value, matrix = linear_assignment(cost, mining=mining)
        assert (
            value == 3
            and torch.equal(slope(value, cost), matrix)
            and set(matrix.flatten().tolist()) == {0.0, 1.0}
        )


def test_what_is_known_of_permanents():
    for n in range(1, 9):
        ones = torch.zeros(n, n, dtype=torch.float64)
        assert log_permanent(ones).exp().item() == pytest.approx(math.factorial(n))
    derangements = [0, 1, 2, 9, 44, 265, 1854, 14833]
    for n, expected in enumerate(derangements, start=1):
        off_diagonal = torch.zeros(n, n).fill_diagonal_(-torch.inf)
        assert log_permanent(off_diagonal).exp().item() == pytest.approx(expected, rel=1e-5)


@given(st.integers(1, 8))
def test_log_permanent_equals_rysers_formula(N):
    logits = normal(N, N)
    A = logits.exp().numpy()
    subsets = itertools.product([0, 1], repeat=N)
    ryser = sum((-1) ** (N - sum(s)) * (A * np.array(s)).sum(1).prod() for s in subsets)
    assert log_permanent(logits).item() == pytest.approx(math.log(ryser), rel=1e-9, abs=1e-9)


def test_huge_logits_do_not_overflow():
    logits = 1e4 * torch.randn(2, 5, 5)
    hardest = linear_values(logits).amax(-1)
    torch.testing.assert_close(log_permanent(logits), hardest, rtol=1e-6, atol=0)


@given(sizes)
def test_quadratic_values_equal_the_formula(N):
    S, S_A, S_B = normal(N, N), normal(N, N), normal(N, N)
    expected = [(S @ Y.T).trace() + (S_A @ Y @ S_B.T @ Y.T).trace() for Y in matrices(N)]
    result = quadratic_assignment(S, S_A, S_B)
    torch.testing.assert_close(result.values, torch.stack(expected), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(result.minimum, min(expected))
    torch.testing.assert_close(result.maximum, max(expected))
    for Y, value in ((result.minimiser, result.minimum), (result.maximiser, result.maximum)):
        torch.testing.assert_close((S @ Y.T).trace() + (S_A @ Y @ S_B.T @ Y.T).trace(), value)


def test_quadratic_assignment_is_batched_and_differentiable():
    S, S_A, S_B = (normal(2, 3, 4, 4).requires_grad_() for _ in range(3))
    whole = quadratic_assignment(S, S_A, S_B)
    for i, j in itertools.product(range(2), range(3)):
        for got, expected in zip(whole, quadratic_assignment(S[i, j], S_A[i, j], S_B[i, j])):
            torch.testing.assert_close(got[i, j], expected)
    assert not whole.minimiser.requires_grad
    one = [x[0, 0].detach().requires_grad_() for x in (S, S_A, S_B)]
    assert torch.autograd.gradcheck(lambda *x: quadratic_assignment(*x)[:2], one)


def test_eight_elements_are_not_too_many():
    z = torch.randn(2, 8, 3)
    S_A, S_B = z @ z.mT
    result = quadratic_assignment(torch.zeros(8, 8), S_A, S_B)
    lower, upper = spectral_bounds(S_A, S_B)
    assert result.values.shape == (40320,)
    assert lower <= result.minimum <= result.maximum <= upper


@given(st.integers(1, 6))
def test_spectral_bounds_enclose_every_permutation(N):
    F, D = symmetric(3, N, N), symmetric(3, N, N)
    lower, upper = spectral_bounds(F, D)
    values = quadratic_assignment(torch.zeros_like(F), F, D).values
    assert (lower.unsqueeze(1) <= values + 1e-9).all() and (values <= upper.unsqueeze(1) + 1e-9).all()


@given(st.integers(1, 6))
def test_spectral_bounds_are_reached_by_orthogonal_matrices(N):
    F, D = symmetric(N, N), symmetric(N, N)
    lower, upper = spectral_bounds(F, D)
    Q_F, Q_D = torch.linalg.eigh(F).eigenvectors, torch.linalg.eigh(D).eigenvectors
    for X, bound in ((Q_F @ Q_D.T, upper), (Q_F @ Q_D.flip(1).T, lower)):
        torch.testing.assert_close((F @ X @ D.T @ X.T).trace(), bound)


def test_tiny_entries_beside_large_ones_give_no_nan():
    """Of this matrix LAPACK's float32 made NaN on some processors."""
    a, b, c = 1.206379e-13, 1.4013e-45, 1.41193e-12
    F = torch.tensor([[0, -a, -161.80334, -b, -3 * b], [-a, 2.94e-13, -1478.3273, c, 1.3 * c],
                      [-161.80334, -1478.3273, -2823.0615, 676.85077, 255.80876],
                      [-b, c, 676.85077, 0, -b], [-3 * b, 1.3 * c, 255.80876, -b, -2 * b]])  # fmt: skip
    F.requires_grad_()
    found = spectrum(F)
    error = 30 * torch.finfo(torch.float32).eps * float(F.detach().norm())
    torch.testing.assert_close(found, torch.linalg.eigvalsh(F.detach().double()).float(), rtol=0, atol=error)
    assert spectrum(F * 1e-44).isfinite().all()
    of_least = slope(found[0], F)
    _, vectors = torch.linalg.eigh(F.detach().double())
    torch.testing.assert_close(of_least, torch.outer(vectors[:, 0], vectors[:, 0]).float(), rtol=0, atol=1e-4)


def test_equal_eigenvalues_have_a_finite_gradient():
    for F in (torch.eye(4), torch.ones(4, 4), torch.zeros(4, 4)):
        F.requires_grad_()
        upper = spectral_bounds(F, torch.eye(4)).upper
        torch.testing.assert_close(slope(upper, F), torch.eye(4))  # the upper bound is then the trace of F


def test_the_spectrum_of_nan_is_nan_as_a_gpu_needs_it():
    F = torch.stack([torch.eye(3), torch.full((3, 3), torch.nan)])
    values = spectrum(F)
    assert torch.equal(values[0], torch.ones(3)) and values[1].isnan().all()


def test_equations_6_and_17_lack_a_transpose():
    """tr(S Y) pays for the inverse matching: the loss vanishes at the wrong one and not at the true one."""
    S = torch.tensor([[0.9, 0.1, 0.8], [0.8, 0.9, 0.2], [0.0, 0.9, 0.9]])
    value, Y = linear_assignment(S)
    assert not torch.equal(Y, Y.T)
    for truth, transposed, printed in ((Y, 0.0, 2.2), (Y.T, 2.2, 0.0)):
        assert (S @ truth.T).trace() - value == pytest.approx(transposed)
        assert (S @ truth).trace() - value == pytest.approx(printed)


@given(st.integers(2, 6))
def test_the_quadratic_loss_is_below_its_bound(N):
    """Eq. 7, with the transpose."""
    a, b = normal(N, 3), normal(N, 3)
    S, S_A, S_B = torch.cdist(a, b), torch.cdist(a, a), torch.cdist(b, b)
    exact = S.trace() - quadratic_assignment(S, S_A, S_B).minimum
    linear = S.trace() - linear_assignment(S).value
    assert exact <= linear - spectral_bounds(S_A, S_B).lower + 1e-9


def test_equation_8_needs_the_sparsemax_of_all_assignments():
    """SparseCLR before batch-hard mining: the sparse support of a distribution over N! permutations."""
    weights = sparsemax(-linear_values(normal(5, 5)))
    assert weights.shape == (120,) and 0 < (weights > 0).sum() < 60
