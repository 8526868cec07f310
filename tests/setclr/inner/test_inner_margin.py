"""The SVM dual against scikit-learn's SVC, every guess of the active set, literal matrices, golden values."""

import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from every_loss import golden, normal
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC

from setclr.inner import descent, dual, kernel, margin, pivoting, svm_dual

GOLDENS = golden("mmcl_inv_main_kernels")
caps = st.sampled_from([1e-3, 0.3, 1.0, 10.0, 100.0, math.inf])
bandwidths = st.sampled_from([0.1, 1.0, 5.0])


def points(n, E=3):
    return torch.nn.functional.normalize(normal(n, E), dim=-1)


def two_views(n):
    """The points of each point's image, of n / 2 images."""
    return torch.arange(n).view(2, n // 2).T.repeat(2, 1)


def delta(K, positive, negatives, ridge):
    """Δ of one machine, entry by entry (MMCL, Proposition 1, with k⁺⁺ for its 1)."""
    D, k = torch.zeros(len(negatives), len(negatives), dtype=K.dtype), K[positive]
    for (a, i), (b, j) in itertools.product(enumerate(negatives), repeat=2):
        D[a, b] = k[positive] + K[i, j] - k[i] - k[j] + ridge * (a == b)
    return D


def objective(D, alpha):
    return float(0.5 * alpha @ D @ alpha - 2 * alpha.sum())


def best_of_all_guesses(D, C):
    """The optimum found by trying for every α whether it is 0, C or free."""
    n, best, found = len(D), math.inf, None
    for guess in itertools.product(*[("0", "free") if math.isinf(C) else ("0", "free", "C")] * n):
        free = [i for i in range(n) if guess[i] == "free"]
        alpha = torch.tensor([C if g == "C" else 0.0 for g in guess], dtype=D.dtype)
        if free:
            alpha[free] = torch.linalg.solve(D[free][:, free], 2 - D[free] @ alpha)
        if alpha.min() >= -1e-12 and alpha.max() <= C + 1e-12 and objective(D, alpha) < best:
            best, found = objective(D, alpha), alpha
    return found


@given(st.integers(1, 6), st.integers(1, 5), st.floats(0.1, 10))
def test_kernels_equal_scikit_learn(n, E, bandwidth):
    x, y = normal(n, E), normal(n + 1, E)
    theirs = rbf_kernel(x, y, gamma=1 / (2 * bandwidth))
    np.testing.assert_allclose(kernel(x, y, "rbf", bandwidth), theirs, rtol=1e-9)
    for offset in (0.0, -0.4):
        theirs = sigmoid_kernel(x, y, gamma=bandwidth, coef0=offset)
        np.testing.assert_allclose(kernel(x, y, "tanh", bandwidth, offset), theirs, rtol=1e-9)
    torch.testing.assert_close(kernel(x, y, "linear"), x @ y.T)
    torch.testing.assert_close(kernel(x[None], y[None])[0], kernel(x, y))


@pytest.mark.parametrize("kind", ["rbf", "linear", "tanh"])
def test_kernels_have_gradients(kind):
    x = normal(3, 2, grad=True)
    y = normal(4, 2, grad=True)
    assert torch.autograd.gradcheck(lambda x, y: kernel(x, y, kind, 0.7), (x, y))
    x = torch.ones(2, 3, requires_grad=True)
    kernel(x, x, kind).sum().backward()
    assert x.grad.isfinite().all()


@given(st.integers(1, 5), caps, bandwidths)
def test_exact_is_the_best_of_all_guesses(n, C, bandwidth):
    K = kernel(x := points(n + 1), x, "rbf", bandwidth)
    alpha, residual = svm_dual(K, 0, C=C)
    D = delta(K, 0, range(1, n + 1), 0.1)
    torch.testing.assert_close(alpha[1:], best_of_all_guesses(D, C), rtol=1e-9, atol=1e-10)
    assert alpha[0] == 0 and residual < 1e-9


@given(
    st.integers(2, 60),
    st.sampled_from([0.3, 1.0, 10.0, 100.0]),
    bandwidths,
    st.sampled_from(["rbf", "linear"]),
)
def test_exact_equals_scikit_learns_svc(n, C, bandwidth, kind):
    K = kernel(x := points(n + 1, 4), x, kind, bandwidth)
    G = K + 0.1 * torch.diag((torch.arange(n + 1) > 0).double())
    weights = {1: 1e6, -1: 1}
    oracle = SVC(kernel="precomputed", C=C, tol=1e-10, class_weight=weights).fit(G, [1] + [-1] * n)
    expected = np.zeros(n + 1)
    expected[oracle.support_] = -oracle.dual_coef_[0]
    alpha = svm_dual(K, 0, C=C).alpha.numpy()
    np.testing.assert_allclose(alpha[1:], expected[1:], atol=1e-5 * max(1, alpha.max()))
    assert -expected[0] == pytest.approx(alpha.sum(), rel=1e-5)  # the positive weighs what all negatives do


@given(st.integers(2, 4), st.integers(2, 5), caps, bandwidths, st.sampled_from(["rbf", "linear", "tanh"]))
def test_inv_equals_one_solve_for_each_machine(V, N, C, bandwidth, kind):
    x = normal(V * N, 3)
    K = kernel(x, x, kind, bandwidth) if kind != "tanh" else kernel(x, x, kind, 0.2) + 3 * torch.eye(V * N)
    own = torch.arange(V * N).view(V, N).T.repeat(V, 1)
    alpha, residual = svm_dual(K, torch.arange(V * N), own, C=C, solver="inv")
    for a in range(V * N):
        negatives = [j for j in range(V * N) if j % N != a % N]
        D = delta(K, a, negatives, 0.1)
        expected = torch.linalg.solve(D, torch.full((len(D),), 2.0, dtype=D.dtype)).clamp(0, C)
        torch.testing.assert_close(alpha[a, negatives], expected, rtol=1e-9, atol=1e-9)
        assert alpha[a, own[a]].abs().max() == 0
        gradient, t = D @ expected - 2, min(1, C)
        expected_residual = (expected - (expected - t * gradient).clamp(0, C)).abs().max() / t
        torch.testing.assert_close(residual[a], expected_residual)


@pytest.mark.parametrize("kind, s, bandwidth", [("rbf", "10", 5.0), ("rbf", "1", 0.5), ("linear", "1", 1.0)])
@pytest.mark.parametrize("C", ["-1", "1", "100"])
def test_golden_values(kind, s, bandwidth, C):
    """The authors' sigma is 2σ²; C = −1 is no bound; their negatives come from the positive's view."""
    x = torch.nn.functional.normalize(torch.tensor(GOLDENS["z"])[:8], dim=-1)
    K = kernel(x, x, kind, bandwidth)
    bound = math.inf if C == "-1" else float(C)
    alpha = svm_dual(K, torch.arange(8), C=bound, solver="inv").alpha
    for i in range(8):
        negatives = [j for j in range(8) if j != i]
        D = delta(K, i, negatives, 0.1)
        for ours, name in ((D, f"Delta_{kind}_s{s}"), (alpha[i, negatives], f"alpha_{kind}_s{s}_C{C}")):
            np.testing.assert_allclose(ours, GOLDENS[name][i], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("s", ["1", "0.1"])
def test_the_papers_one_is_not_tanh_of_a_point_with_itself(s):
    """The golden Δ for tanh has 11ᵀ where k(z⁺, z⁺) 11ᵀ belongs."""
    x = torch.nn.functional.normalize(torch.tensor(GOLDENS["z"])[:8], dim=-1)
    K = kernel(x, x, "tanh", float(s))
    printed = delta(K, 0, range(1, 8), 0.1) + 1 - K[0, 0]
    np.testing.assert_allclose(printed, GOLDENS[f"Delta_tanh_s{s}"][0], rtol=1e-9, atol=1e-12)
    assert 1 - K[0, 0] > 0.2


@given(st.integers(2, 40), st.sampled_from([0.3, 1.0, 100.0, math.inf]), bandwidths)
def test_pgd_reaches_the_exact_optimum(n, C, bandwidth):
    K = kernel(x := points(n + 1), x, "rbf", bandwidth)
    exact = svm_dual(K, 0, C=C).alpha
    alpha, residual = svm_dual(K, 0, C=C, solver="pgd", tolerance=1e-10, rounds=100_000)
    assert residual <= 1e-10
    torch.testing.assert_close(alpha, exact, rtol=1e-6, atol=1e-7)


def test_pgd_finds_a_stationary_point_of_tanh():
    K = kernel(x := points(30), x, "tanh", 5.0)
    assert torch.linalg.eigvalsh(K)[0] < -0.1
    alpha, residual = svm_dual(K, torch.arange(30), C=10.0, solver="pgd", tolerance=1e-6, rounds=20_000)
    assert residual.max() <= 1e-6
    D = delta(K, 0, range(1, 30), 0.1)
    assert objective(D, alpha[0, 1:]) < 0


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
    others = [[j for j in range(n) if j != a] for a in range(n)]
    D = torch.stack([delta(K, a, others[a], 0.1) for a in range(n)])
    drawn = torch.Generator().manual_seed(0)
    start, t = torch.randn(n, n, generator=drawn).double(), torch.rand((), generator=drawn).item()
    start = torch.stack([row[o] for row, o in zip(start, others)]).clamp(0, C)
    expected = authors_pgd(D, start, t, C, rounds)
    alpha = svm_dual(K, torch.arange(n), C=C, solver="steps", rounds=rounds).alpha
    assert alpha.diagonal().abs().max() == 0
    torch.testing.assert_close(torch.stack([row[o] for row, o in zip(alpha, others)]), expected)


@pytest.mark.parametrize("bandwidth, arrives", [(25.0, False), (1.0, True)])
def test_where_the_authors_steps_end(bandwidth, arrives):
    """With random features: at the random start for CIFAR-100's first σ², near the optimum for STL-10's."""
    K = kernel(x := points(256, 128), x, "rbf", bandwidth)
    steps, exact = (svm_dual(K, torch.arange(256), solver=s).alpha.flatten() for s in ("steps", "exact"))
    start = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).relu().fill_diagonal_(0)
    to_start, to_exact = (
        torch.nn.functional.cosine_similarity(steps, other.double().flatten(), dim=0)
        for other in (start, exact)
    )
    assert (to_exact > 0.95 and to_start < 0.5) if arrives else (to_start > 0.99 and to_exact < 0.5)


@pytest.mark.parametrize("C", [0.01, 1.0, math.inf])
@pytest.mark.parametrize("P, bandwidth", [(40, 1.0), (400, 1.0), (400, 0.25), (400, 25.0)])
def test_pgd_needs_few_rounds_however_many_negatives(P, bandwidth, C):
    """Plain steps need hundreds: Δ bends by some P · k⁺⁺ along one direction, along others by about ρ."""
    K = kernel(x := points(P, 32), x, "rbf", bandwidth)
    own = two_views(P)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert svm_dual(K, torch.arange(P), own, C=C, solver="pgd", rounds=50).residual.max() <= 1e-3


@given(st.integers(1, 8), st.sampled_from([0.1, 1.0, math.inf]), st.sampled_from([0.3, 1.0, 10.0]))
def test_nearest_is_where_no_coordinate_wants_to_move(n, C, curvature):
    """x minimises λ/2 ‖x − y‖² + ½ (aᵀx)² over the box; the gradients' scale is λ."""
    target, a = normal(3, n), normal(3, n)
    theta = normal(3, 1)
    x, _ = descent.nearest(target, a, theta, torch.full_like(theta, curvature), C, 0.0)
    gradient = curvature * (x - target) + a * (a * x).sum(1, keepdim=True)
    torch.testing.assert_close(x, (x - gradient / curvature).clamp(0, C), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "constants",
    [dict(LARGE=0), dict(PATIENCE=0), dict(PATIENCE=0, HELPS=0), dict(BLOCK=1), dict(GUESS=1)],
    ids=str,
)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_every_way_through_block_pivoting_gives_the_optimum(monkeypatch, constants, C):
    """Gradients for all machines, for the stuck, single exchanges, one system a block, a poor start."""
    K = kernel(x := points(60, 8), x, "rbf", 0.5)
    own = two_views(60)
    expected = svm_dual(K, torch.arange(60), own, C=C).alpha
    for name, value in constants.items():
        monkeypatch.setattr(pivoting, name, value)
    alpha, residual = svm_dual(K, torch.arange(60), own, C=C)
    assert residual.max() < 1e-9
    torch.testing.assert_close(alpha, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("block", [1, 500])
@pytest.mark.parametrize("C", [math.inf, 2.0])
def test_systems_of_different_size_give_what_each_machine_gives_alone(monkeypatch, block, C):
    monkeypatch.setattr(pivoting, "BLOCK", block)
    K = kernel(x := points(30, 8), x)
    guess = torch.rand(30, 30).masked_fill(torch.eye(30, dtype=torch.bool), 1)
    free = guess < torch.linspace(0, 0.9, 30)[torch.randperm(30)].unsqueeze(1)  # nobody to nearly all
    at_C = ~free & (guess < 0.95) & math.isfinite(C)
    machines = dual.Machines(K, torch.arange(30), torch.arange(30).unsqueeze(1), C, 0.1)
    alpha = pivoting.free_solution(machines.centred(), free, at_C)
    for a in range(30):
        D = delta(K, a, range(30), 0.1)
        F, expected = free[a], at_C[a].double() * (C if at_C.any() else 0)
        expected[F] = torch.linalg.solve(D[F][:, F], 2 - D[F] @ expected)
        torch.testing.assert_close(machines.clip(alpha)[a], expected.clamp(0, C), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bandwidth", [0.25, 1.0, 25.0, 1e3, 1e4])
def test_float32_loses_what_rounding_the_gradient_loses(bandwidth):
    """A gradient off by some roundings e moves α by no more than ‖e‖ over the least eigenvalue, ρ or more.

    The rounding is that of the centred kernel: for wide ones k(x, y) is 1 and Σα is thousands.
    """
    K = kernel(x := points(120, 16).float(), x, "rbf", bandwidth)
    own = two_views(120)
    alpha = svm_dual(K, torch.arange(120), own).alpha
    expected = svm_dual(K.double(), torch.arange(120), own).alpha
    machines = dual.Machines(K, torch.arange(120), own, 100.0, 0.1).centred()
    allowed = (pivoting.SLACK + 2) * machines.rounding(alpha) * 120**0.5 / 0.1
    assert ((alpha - expected).abs().amax(1, keepdim=True) / allowed).max() < 1


def test_centring_changes_no_machine():
    K = kernel(x := points(20), x, "linear") + 5
    machines = dual.Machines(K, torch.arange(20), torch.arange(20).unsqueeze(1), 1.0, 0.1)
    alpha = machines.clip(torch.rand(20, 20, dtype=K.dtype))
    expected = machines.gradient(alpha)
    torch.testing.assert_close(machines.centred().gradient(alpha), expected)
    torch.testing.assert_close(expected[3, 4:], (delta(K, 3, range(20), 0.1) @ alpha[3] - 2)[4:])
    assert machines.centred().K.mean(0).abs().max() < 1e-12


@pytest.mark.parametrize("solver", ["exact", "pgd", "inv"])
def test_nan_comes_out_as_nan_and_stops_the_rounds(monkeypatch, solver):
    """As on a GPU, where nobody looks."""
    monkeypatch.setattr(margin, "values_readable", lambda x: False)
    rounds = []
    gradient = dual.Machines.gradient
    monkeypatch.setattr(dual.Machines, "gradient", lambda *args: rounds.append(1) or gradient(*args))
    K = torch.full((20, 20), math.nan)
    machines = dual.Machines(K, torch.arange(20), torch.arange(20).unsqueeze(1), 100.0, 0.1)
    assert margin.solve(machines, solver)[:, 1:].isnan().any()
    assert len(rounds) < 50


@pytest.mark.parametrize("P, E, kind, bandwidth, C, ridge", [
    *((300, 16, "rbf", bandwidth, 100.0, 0.1) for bandwidth in (1e-3, 0.25, 1.0, 1e3)),
    (512, 4, "rbf", 1.0, 0.1, 0.1), (64, 2, "linear", 1.0, 1.0, 0.1), (128, 3, "linear", 1.0, 1.0, 0.002),
    (200, 3, "rbf", 1.0, 1e-3, 0.003),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_converges_with_many_at_the_bound_or_a_small_ridge_too(P, E, kind, bandwidth, C, ridge, dtype):
    """Where pivoting alone goes round in circles or changes one place at a time for ever."""
    K = kernel(x := points(P, E), x, kind, bandwidth).to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = two_views(P)[:100] if C == 100 else None
        alpha, residual = svm_dual(K, torch.arange(40 if own is None else 100), own, C=C, ridge=ridge)
    eps = torch.finfo(dtype).eps
    assert (residual / (1 + alpha.sum(1))).max() < (1000 * eps if own is None else max(80 * eps, 1e-12))


@pytest.mark.parametrize("C", [1e-3, 0.01])
def test_a_small_bound_does_not_hide_a_wrong_weight(C):
    """The residual counts in gradients: in units of α it could not exceed C, however wrong α is."""
    K = kernel(x := points(200, 8), x, "linear")
    machines = dual.Machines(K, torch.arange(5), torch.arange(5).unsqueeze(1), C, 0.1)
    nothing = torch.zeros(5, 200, dtype=K.dtype)
    assert machines.residual(nothing).min() >= 1
    exact = svm_dual(K, torch.arange(5), C=C).alpha
    pgd = svm_dual(K, torch.arange(5), C=C, solver="pgd", tolerance=1e-5, rounds=10_000).alpha
    torch.testing.assert_close(pgd, exact, rtol=0, atol=1e-5 / 0.1)  # tolerance / smallest eigenvalue


def test_equal_points_share_the_weight():
    K = torch.ones(12, 12, dtype=torch.float64)
    for solver in ("exact", "pgd", "inv"):
        alpha = svm_dual(K, 0, solver=solver, tolerance=1e-9).alpha
        torch.testing.assert_close(alpha[1:], torch.full((11,), 2 / 0.1, dtype=K.dtype), rtol=1e-6, atol=0)


def test_leading_dimensions_are_separate_pools():
    x = normal(2, 3, 7, 4)
    K = kernel(x, x)
    for solver in ("exact", "pgd", "inv"):
        how = {"solver": solver, "tolerance": 1e-8}
        alpha, residual = svm_dual(K, torch.arange(7), **how)
        assert alpha.shape == (2, 3, 7, 7) and residual.shape == (2, 3, 7)
        # pgd's batches stop together, not after the same rounds: each is off by √6 · 1e-8 / ridge or so.
        close = {"rtol": 1e-6, "atol": 1e-6}
        torch.testing.assert_close(alpha[1, 2], svm_dual(K[1, 2], torch.arange(7), **how).alpha, **close)
        one = svm_dual(K, 3, **how)
        assert one.alpha.shape == (2, 3, 7) and one.residual.shape == (2, 3)
        torch.testing.assert_close(one.alpha, alpha[..., 3, :], **close)


def test_tends_to_the_hard_margin_machine():
    """C → ∞, ρ → 0 for separable points: the plane through which scikit-learn's hard-margin SVC cuts."""
    negatives = normal(20, 2)
    x = torch.cat([torch.tensor([[4.0, 3.0]], dtype=torch.float64), negatives])
    alpha = svm_dual(kernel(x, x, "linear"), 0, C=math.inf, ridge=1e-9).alpha
    w = alpha @ (x[0] - x)
    oracle = SVC(kernel="linear", C=1e9, tol=1e-12).fit(x, [1] + [-1] * 20)
    np.testing.assert_allclose(w, oracle.coef_[0], rtol=1e-5)
    assert (alpha > 1e-9).sum() <= 3


def test_the_printed_inequality_of_proposition_1_fails_and_the_corrected_one_holds():
    """g(Δ⁻¹1) ≤ g(α*) is printed; the unbounded minimum is g(2Δ⁻¹1)."""
    printed = corrected = 0
    for _ in range(50):
        K = kernel(x := points(8, 4), x)
        D = delta(K, 0, range(1, 8), 0.1)
        best = objective(D, svm_dual(K, 0, C=1.0).alpha[1:])
        least_squares = torch.linalg.solve(D, torch.ones(7, dtype=D.dtype))
        printed += objective(D, least_squares) > best + 1e-12
        corrected += objective(D, 2 * least_squares) > best + 1e-12
    assert printed > 5 and corrected == 0


def test_clipped_least_squares_can_be_worse_than_nothing():
    worse = 0
    for _ in range(20):
        K = kernel(x := points(40, 3), x)
        D = delta(K, 0, range(1, 40), 0.1)
        worse += objective(D, svm_dual(K, 0, solver="inv").alpha[1:]) > 0
    assert worse > 5
