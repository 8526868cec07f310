"""The inner problems: assignments, smoothed maxima and support-vector machines, against all ways,
outside programs and golden values."""

import itertools
import math

import entmax
import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, slope, weights_by_svc
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC
from torch.nn.functional import normalize, one_hot

from setclr.inner import (
    assignment,
    kernel,
    linear_assignment,
    margin,
    quadratic_assignment,
    simplex,
    spectral_bounds,
    svm_dual,
    svms,
)
from setclr.inner.assignment import Quadratic, linear_values, spectrum
from setclr.inner.simplex import _newton, _sorted_depth, soft_maximum, sparse_maximum, sparsemax

# The inner problems of one paper: assignments against trying everything, and what is known of permanents and


sizes = st.integers(1, 5)
minings = st.sampled_from(["one-to-one", "batch-hard"])


def quadratic(S, S_A, S_B, Y):
    return (S @ Y.T).trace() + (S_A @ Y @ S_B.T @ Y.T).trace()


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


# The SVM dual against scikit-learn's SVC, its conditions written out, literal matrices, golden values.


OF_MACHINES = golden("mmcl_inv_main_kernels")
GOLDEN_POINTS = normalize(torch.tensor(OF_MACHINES["z"])[:8], dim=-1)
caps = st.sampled_from([1e-3, 0.3, 1.0, 10.0, 100.0, math.inf])
bandwidths, kinds = st.sampled_from([0.1, 1.0, 5.0]), st.sampled_from(["rbf", "linear"])


def points(n, E=3):
    return normalize(normal(n, E), dim=-1)


def of_images(n, V=2):
    """The points of each point's image, of n / V images."""
    return torch.arange(n).view(V, n // V).T.repeat(V, 1)


def delta(K, positive, negatives=None):
    """Δ of one machine, entry by entry (MMCL, Proposition 1, with k⁺⁺ for its 1); negatives: all others."""
    k, places = K[positive], negatives or [j for j in range(len(K)) if j != positive]
    rows = [[k[positive] + K[i, j] - k[i] - k[j] + 0.1 * (i == j) for j in places] for i in places]
    return torch.tensor(rows, dtype=K.dtype)


def each_alone(K, C, machines=None):
    """The first machines, or all, each with all other points for its negatives."""
    positives = torch.arange(machines or len(K))
    return svms.SVMs(K, positives, positives.unsqueeze(1), C, 0.1)


@given(st.integers(1, 6), st.integers(1, 5), st.floats(0.1, 10))
def test_kernels_equal_scikit_learn(n, E, bandwidth):
    x, y = normal(n, E), normal(n + 1, E)
    theirs = rbf_kernel(x, y, gamma=1 / (2 * bandwidth))
    np.testing.assert_allclose(kernel(x, y, "rbf", bandwidth), theirs, rtol=1e-9)
    for offset in (0.0, -0.4):
        theirs = sigmoid_kernel(x, y, gamma=bandwidth, coef0=offset)
        np.testing.assert_allclose(kernel(x, y, "tanh", bandwidth, offset), theirs, rtol=1e-9)
    close((kernel(x, y, "linear"), kernel(x[None], y[None])[0]), (x @ y.T, kernel(x, y)))


@given(st.integers(1, 30), caps, bandwidths)
def test_at_the_optimum_no_weight_wants_to_move(n, C, bandwidth):
    """Written out: the gradient is 0, or points out of the box; which is enough, as Δ is definite."""
    K = kernel(x := points(n + 1), x, "rbf", bandwidth)
    alpha, residual = svm_dual(K, 0, C=C)
    D, free = delta(K, 0), alpha[1:]
    gradient = D @ free - 2
    step = (free - (free - min(1, C) * gradient).clamp(0, C)).abs().max() / min(1, C)
    assert alpha[0] == 0 and free.min() >= 0 and free.max() <= C
    assert residual < 1e-9 and step < 1e-8 and each_alone(K, C, 1).residual(0 * alpha[None]) >= 1


@given(st.integers(2, 40), st.sampled_from([0.3, 1.0, 100.0, math.inf]), bandwidths)
def test_pgd_reaches_the_exact_optimum(n, C, bandwidth):
    K = kernel(x := points(n + 1), x, "rbf", bandwidth)
    alpha, residual = svm_dual(K, 0, C=C, solver="pgd", tolerance=1e-10, rounds=100_000)
    assert residual <= 1e-10
    close(alpha, svm_dual(K, 0, C=C).alpha, rel=1e-6, abs=1e-7)


@given(st.integers(2, 60), st.sampled_from([0.3, 1.0, 10.0, 100.0]), bandwidths, kinds)
def test_exact_equals_scikit_learns_svc(n, C, bandwidth, kind):
    K = kernel(x := points(n + 1, 4), x, kind, bandwidth)
    alpha, expected = svm_dual(K, 0, C=C).alpha.numpy(), weights_by_svc(K.numpy(), C, 0.1)
    np.testing.assert_allclose(alpha[1:], expected[1:], atol=1e-5 * max(1, alpha.max()))
    assert -expected[0] == pytest.approx(alpha.sum(), rel=1e-5)  # the positive weighs what all negatives do


@given(st.integers(2, 4), st.integers(2, 5), caps, bandwidths, st.one_of(kinds, st.just("tanh")))
def test_inv_equals_one_solve_for_each_machine(V, N, C, bandwidth, kind):
    x, own = normal(V * N, 3), of_images(V * N, V)
    K = kernel(x, x, kind, bandwidth) if kind != "tanh" else kernel(x, x, kind, 0.2) + 3 * torch.eye(V * N)
    alpha, residual = svm_dual(K, torch.arange(V * N), own, C=C, solver="inv")
    for a in range(V * N):
        negatives = [j for j in range(V * N) if j % N != a % N]
        D, t = delta(K, a, negatives), min(1, C)
        expected = torch.linalg.solve(D, torch.full_like(D[0], 2)).clamp(0, C)
        close(alpha[a, negatives], expected, rel=1e-9, abs=1e-9)
        assert alpha[a, own[a]].abs().max() == 0
        step = expected - (expected - t * (D @ expected - 2)).clamp(0, C)
        close(residual[a], step.abs().max() / t)


@pytest.mark.parametrize("kind, s, bandwidth", [("rbf", "10", 5.0), ("rbf", "1", 0.5), ("linear", "1", 1.0)])
@pytest.mark.parametrize("C", ["-1", "1", "100"])
def test_golden_values(kind, s, bandwidth, C):
    """The authors' sigma is 2σ²; C = −1 is no bound; their negatives come from the positive's view."""
    K, bound = kernel(x := GOLDEN_POINTS, x, kind, bandwidth), math.inf if C == "-1" else float(C)
    alpha = svm_dual(K, torch.arange(8), C=bound, solver="inv").alpha
    D = np.stack([delta(K, i) for i in range(8)])
    off_diagonal = alpha[~torch.eye(8, dtype=torch.bool)].view(8, 7)
    for ours, name in ((D, f"Delta_{kind}_s{s}"), (off_diagonal, f"alpha_{kind}_s{s}_C{C}")):
        np.testing.assert_allclose(ours, OF_MACHINES[name][:8], rtol=1e-9, atol=1e-12)


def test_pgd_that_does_not_arrive_says_so():
    K = kernel(x := points(60), x)
    with pytest.warns(UserWarning, match=r"solver 'pgd' stopped with a KKT residual of .*solver='exact'"):
        assert svm_dual(K, 0, solver="pgd", rounds=3).residual > 1e-3


def authors_pgd(D, start, t, C, rounds):
    """MMCL's program for machines with the matrices D (A, n, n): its steps, its momentum, its stop."""
    old = y = start
    for _ in range(rounds):
        new = (y - 1e-3 * ((D @ y.unsqueeze(2)).squeeze(2) - 2)).clamp(0, C)
        t_new = 0.5 * (math.sqrt(t**4 + 4 * t**2) - t**2)
        y = new + t * (1 - t) / (t**2 + t_new) * (new - old)
        t, change, old = t_new, ((new - old) / (old + 1e-7)).abs().mean(), new
        if change < 0.01:
            break
    return old


@pytest.mark.parametrize("rounds", [1, 7, 1000])
@pytest.mark.parametrize("C", [0.5, math.inf])
@pytest.mark.parametrize("bandwidth", [0.2, 1.0, 25.0])
def test_steps_are_those_of_the_authors_program(bandwidth, C, rounds):
    n = 14
    K = kernel(x := points(n, 5), x, "rbf", bandwidth)
    D, off = torch.stack([delta(K, a) for a in range(n)]), ~torch.eye(n, dtype=torch.bool)
    drawn = torch.Generator().manual_seed(0)
    start, t = torch.randn(n, n, generator=drawn).double(), torch.rand((), generator=drawn).item()
    expected = authors_pgd(D, start[off].view(n, n - 1).clamp(0, C), t, C, rounds)
    alpha = svm_dual(K, torch.arange(n), C=C, solver="steps", rounds=rounds).alpha
    assert alpha.diagonal().abs().max() == 0
    close(alpha[off].view(n, n - 1), expected)


@pytest.mark.parametrize("bandwidth", [0.25, 1.0, 25.0, 1e3, 1e4])
def test_float32_loses_what_rounding_the_gradient_loses(bandwidth):
    """A gradient off by some roundings e moves α by no more than ‖e‖ over the least eigenvalue, ρ or more.

    The rounding is that of the centred kernel: for wide ones k(x, y) is 1 and Σα is thousands.
    """
    K = kernel(x := points(120, 16).float(), x, "rbf", bandwidth)
    which = torch.arange(120), of_images(120)
    alpha, expected = svm_dual(K, *which).alpha, svm_dual(K.double(), *which).alpha
    rounding = svms.SVMs(K, *which, 100.0, 0.1).centred().rounding(alpha)
    allowed = (svms.SLACK + 2) * rounding * 120**0.5 / 0.1
    assert ((alpha - expected).abs().amax(1, keepdim=True) / allowed).max() < 1


@pytest.mark.parametrize("solver", ["exact", "pgd", "inv"])
def test_nan_comes_out_as_nan_and_stops_the_rounds(monkeypatch, solver):
    """As on a GPU, where nobody looks."""
    monkeypatch.setattr(margin, "values_readable", lambda x: False)
    rounds = []
    gradient = svms.SVMs.gradient
    monkeypatch.setattr(svms.SVMs, "gradient", lambda *args: rounds.append(1) or gradient(*args))
    assert margin.solve(each_alone(torch.full((20, 20), math.nan), 100.0), solver)[:, 1:].isnan().any()
    assert len(rounds) < 50


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("P, E, kind, bandwidth, C, ridge", [
    *((300, 16, "rbf", bandwidth, 100.0, 0.1) for bandwidth in (1e-3, 0.25, 1.0, 1e3)),
    (512, 4, "rbf", 1.0, 0.1, 0.1), (64, 2, "linear", 1.0, 1.0, 0.1), (128, 3, "linear", 1.0, 1.0, 0.002),
    (200, 3, "rbf", 1.0, 1e-3, 0.003),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_converges_with_many_at_the_bound_or_a_small_ridge_too(P, E, kind, bandwidth, C, ridge, dtype):
    """Where pivoting alone goes round in circles or changes one place at a time for ever."""
    K = kernel(x := points(P, E), x, kind, bandwidth).to(dtype)
    own, eps = of_images(P)[:100] if C == 100 else None, torch.finfo(dtype).eps
    alpha, residual = svm_dual(K, torch.arange(40 if own is None else 100), own, C=C, ridge=ridge)
    assert (residual / (1 + alpha.sum(1))).max() < (1000 * eps if own is None else max(80 * eps, 1e-12))


def test_leading_dimensions_are_separate_pools():
    K = kernel(x := normal(2, 3, 7, 4), x)
    for solver in ("exact", "pgd", "inv"):
        how = {"solver": solver, "tolerance": 1e-8}
        alpha, residual = svm_dual(K, torch.arange(7), **how)
        one, alone = svm_dual(K, 3, **how), svm_dual(K[1, 2], torch.arange(7), **how)
        assert alpha.shape == (2, 3, 7, 7) and residual.shape == (2, 3, 7) and one.residual.shape == (2, 3)
        # pgd's batches stop together, not after the same rounds: each is off by √6 · 1e-8 / ridge or so.
        close((alone.alpha, one.alpha), (alpha[1, 2], alpha[..., 3, :]), rel=1e-6, abs=1e-6)


def test_tends_to_the_hard_margin_machine():
    """C → ∞, ρ → 0 for separable points: the plane through which scikit-learn's hard-margin SVC cuts."""
    negatives = normal(20, 2)
    x = torch.cat([torch.tensor([[4.0, 3.0]], dtype=torch.float64), negatives])
    alpha = svm_dual(kernel(x, x, "linear"), 0, C=math.inf, ridge=1e-9).alpha
    w = alpha @ (x[0] - x)
    oracle = SVC(kernel="linear", C=1e9, tol=1e-12).fit(x, [1] + [-1] * 20)
    np.testing.assert_allclose(w, oracle.coef_[0], rtol=1e-5)
    assert (alpha > 1e-9).sum() <= 3
