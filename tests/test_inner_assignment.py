"""Assignment problems against scipy, trying everything, and what is known of permanents and spectra."""

import itertools
import math

import numpy as np
import pytest
import torch
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


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def symmetric(*shape):
    x = random(*shape)
    return x + x.mT


def matrices(N, mining="one-to-one"):
    """All permutation matrices, or all matrices with one 1 in each row."""
    rows = (
        itertools.permutations(range(N)) if mining == "one-to-one" else itertools.product(range(N), repeat=N)
    )
    return [torch.eye(N, dtype=torch.float64)[list(row)] for row in rows]


TWO_WANT_ONE = torch.tensor([[0.0, torch.inf, torch.inf], [0.0, torch.inf, torch.inf], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("n", range(1, 8))
def test_permutations_are_those_of_itertools(n):
    assert permutations(n).tolist() == [list(p) for p in itertools.permutations(range(n))]


@given(st.integers(1, 12))
def test_the_minimum_equals_scipys(N):
    cost = random(2, N, N)
    value, matrix = linear_assignment(cost)
    for c, v, Y in zip(cost.numpy(), value, matrix.numpy()):
        rows, columns = linear_sum_assignment(c)
        assert float(v) == pytest.approx(c[rows, columns].sum(), rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(Y, np.eye(N)[columns])


@given(sizes, minings, st.sampled_from([0.0, 1e-3, 0.3, 1e3]))
def test_equals_trying_everything(N, mining, temperature):
    """Eq. 2, 4, 12 and 13 as sums over matrices."""
    cost = random(N, N)
    values = torch.stack([(cost @ Y.T).trace() for Y in matrices(N, mining)])
    value, matrix = linear_assignment(cost, temperature, mining)
    if temperature == 0:
        torch.testing.assert_close(value, values.min())
        torch.testing.assert_close(matrix, matrices(N, mining)[int(values.argmin())])
    else:
        torch.testing.assert_close(value, -temperature * (-values / temperature).logsumexp(0))
        weights = (-values / temperature).softmax(0)
        mean = sum(w * Y for w, Y in zip(weights, matrices(N, mining)))
        torch.testing.assert_close(matrix, mean)


@given(st.integers(1, 3), st.integers(0, 2), minings, st.sampled_from([0.0, 1e-3, 0.3]))
def test_a_smaller_set_and_forbidden_pairs(n, more, mining, temperature):
    """Every way to give each of n rows one of m columns, one to one or freely, written out."""
    m = n + more
    cost = random(n, m)
    cost[torch.rand(n, m) < 0.3] = torch.inf
    ways = (
        itertools.permutations(range(m), n)
        if mining == "one-to-one"
        else itertools.product(range(m), repeat=n)
    )
    ways = torch.tensor(list(ways))
    values = cost[torch.arange(n), ways].sum(1)
    assume(values.isfinite().any())
    cost.requires_grad_()
    value, matrix = linear_assignment(cost, temperature, mining)
    weights = torch.nn.functional.one_hot(values.argmin(), len(values)).to(values)
    if temperature:
        weights = (-values / temperature).softmax(0)
        torch.testing.assert_close(value, -temperature * (-values / temperature).logsumexp(0))
    else:
        torch.testing.assert_close(value, values.min())
        if mining == "one-to-one":
            rows, columns = linear_sum_assignment(cost.detach().numpy())
            assert matrix[rows, columns].sum() == n
    mean = torch.einsum("w,wij->ij", weights, torch.nn.functional.one_hot(ways, m).to(values))
    torch.testing.assert_close(matrix, mean)
    (gradient,) = torch.autograd.grad(value, cost)
    torch.testing.assert_close(gradient, matrix, rtol=1e-9, atol=1e-9)


@given(sizes, minings, st.sampled_from([0.0, 1e-3, 0.3, 1e3]))
def test_the_matrix_is_the_gradient_of_the_value(N, mining, temperature):
    cost = random(2, 3, N, N).requires_grad_()
    value, matrix = linear_assignment(cost, temperature, mining)
    (gradient,) = torch.autograd.grad(value.sum(), cost)
    torch.testing.assert_close(gradient, matrix, rtol=1e-9, atol=1e-9)
    assert not matrix.requires_grad
    torch.testing.assert_close(matrix.sum(-1), torch.ones(2, 3, N, dtype=torch.float64))
    if mining == "one-to-one":
        torch.testing.assert_close(matrix.sum(-2), torch.ones(2, 3, N, dtype=torch.float64))


@given(st.integers(2, 5), minings, st.sampled_from([1e-3, 0.1, 1.0]))
def test_the_smoothing_tends_to_the_minimum(N, mining, temperature):
    cost = random(N, N)
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
        (gradient,) = torch.autograd.grad(value, cost)
        assert value == 3 and torch.equal(gradient, matrix) and set(matrix.flatten().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("mining", ["one-to-one", "batch-hard"])
def test_gradients_of_linear_assignment(mining):
    cost = random(2, 4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda c: linear_assignment(c, 0.7, mining).value, cost)
    assert torch.autograd.gradcheck(lambda c: linear_assignment(c, 0.0, mining).value, cost)
    assert torch.autograd.gradcheck(log_permanent, cost)


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
    logits = random(N, N)
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
    S, S_A, S_B = random(N, N), random(N, N), random(N, N)
    expected = [(S @ Y.T).trace() + (S_A @ Y @ S_B.T @ Y.T).trace() for Y in matrices(N)]
    result = quadratic_assignment(S, S_A, S_B)
    torch.testing.assert_close(result.values, torch.stack(expected), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(result.minimum, min(expected))
    torch.testing.assert_close(result.maximum, max(expected))
    for Y, value in ((result.minimiser, result.minimum), (result.maximiser, result.maximum)):
        torch.testing.assert_close((S @ Y.T).trace() + (S_A @ Y @ S_B.T @ Y.T).trace(), value)


def test_quadratic_assignment_is_batched_and_differentiable():
    S, S_A, S_B = (random(2, 3, 4, 4).requires_grad_() for _ in range(3))
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
    (slope,) = torch.autograd.grad(found[0], F)
    _, vectors = torch.linalg.eigh(F.detach().double())
    torch.testing.assert_close(slope, torch.outer(vectors[:, 0], vectors[:, 0]).float(), rtol=0, atol=1e-4)


def test_gradients_of_spectral_bounds():
    F, D = random(2, 4, 4).requires_grad_(), random(2, 4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda F, D: spectral_bounds(F + F.mT, D + D.mT), (F, D))


def test_equal_eigenvalues_have_a_finite_gradient():
    for F in (torch.eye(4), torch.ones(4, 4), torch.zeros(4, 4)):
        F.requires_grad_()
        (gradient,) = torch.autograd.grad(spectral_bounds(F, torch.eye(4)).upper, F)
        torch.testing.assert_close(gradient, torch.eye(4))  # the upper bound is then the trace of F


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
    a, b = random(N, 3), random(N, 3)
    S, S_A, S_B = torch.cdist(a, b), torch.cdist(a, a), torch.cdist(b, b)
    exact = S.trace() - quadratic_assignment(S, S_A, S_B).minimum
    linear = S.trace() - linear_assignment(S).value
    assert exact <= linear - spectral_bounds(S_A, S_B).lower + 1e-9


def test_equation_8_needs_the_sparsemax_of_all_assignments():
    """SparseCLR before batch-hard mining: the sparse support of a distribution over N! permutations."""
    weights = sparsemax(-linear_values(random(5, 5)))
    assert weights.shape == (120,) and 0 < (weights > 0).sum() < 60


square = torch.randn(3, 3)
lopsided = torch.tensor([[1.0, 0.5], [0.4, 1.0]])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: permutations(9), "n must be an integer >= 1 and <= 8, got 9; there are n! permutations"),
        (lambda: permutations(0), "n must be an integer >= 1 and <= 8, got 0"),
        (lambda: linear_assignment([[1.0]]), r"cost must be a float32 or float64 tensor .* got list"),
        (lambda: linear_assignment(square[0]), r"cost must be .* got shape \(3,\)"),
        (lambda: linear_assignment(square[:, :2]), r"cost must be .* 1 <= n <= m.* got shape \(3, 2\)"),
        (lambda: linear_assignment(square[:0, :0]), r"cost must be .* 1 <= n <= m, got shape \(0, 0\)"),
        (lambda: linear_assignment(square.long()), r"cost must be .* got torch.int64; use cost.float\(\)"),
        (lambda: linear_assignment(square.bfloat16()), r"cost must be .* got torch.bfloat16"),
        (
            lambda: linear_assignment(square * torch.nan),
            "cost must be finite or inf, got nan among its entries",
        ),
        (
            lambda: linear_assignment(-square.abs() / 0),
            "cost must be finite or inf, got -inf among its entries",
        ),
        (lambda: linear_assignment(square.abs() / 0), "cost must allow an assignment, got inf for every one"),
        (lambda: linear_assignment(square.abs() / 0, 0.1), "cost must allow an assignment"),
        (lambda: linear_assignment(square.abs() / 0, 0, "batch-hard"), "cost must allow an assignment"),
        (lambda: linear_assignment(square + TWO_WANT_ONE), "cost must allow an assignment"),
        (lambda: linear_assignment(square + TWO_WANT_ONE, 0.1), "cost must allow an assignment"),
        (lambda: linear_assignment(square, -1), "temperature must be >= 0, got -1"),
        (lambda: linear_assignment(square, math.nan), "temperature must be >= 0, got nan"),
        (lambda: linear_assignment(square, mining="hard"), "mining must be one of .* got 'hard'"),
        (
            lambda: linear_assignment(torch.randn(9, 9), 0.1),
            r"cost must match at most 8 elements, got 9 \(9! = 362,880\): the smoothing",
        ),
        (lambda: log_permanent(torch.randn(9, 9)), "logits must match at most 8 elements, got 9"),
        (lambda: log_permanent(square * torch.nan), "logits must be finite or -inf, got nan"),
        (lambda: quadratic_assignment(square, square, square[:2, :2]), r"S_B must have the shape .* of S, "),
        (lambda: quadratic_assignment(square, square.double(), square), r"S_A must have .*dtype .*float64"),
        (
            lambda: quadratic_assignment(*[torch.randn(9, 9)] * 3),
            "S must match at most 8 elements.*spectral_bounds",
        ),
        (
            lambda: spectral_bounds(lopsided, lopsided),
            r"F must be symmetric, .* differ by 0.1 .*\(F \+ F.mT\) / 2",
        ),
        (lambda: spectral_bounds(torch.eye(2), lopsided), "D must be symmetric"),
        (lambda: spectral_bounds(torch.eye(2), torch.eye(3)), "D must have the shape and dtype of F"),
        (lambda: spectral_bounds(torch.eye(2) * torch.nan, torch.eye(2)), "F must be finite, got nan"),
        (lambda: spectral_bounds(torch.eye(2).int(), torch.eye(2)), "F must be .* got torch.int32"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
