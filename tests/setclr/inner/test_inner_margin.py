"""The SVM dual against scikit-learn's SVC, every guess of the active set, literal matrices, golden values."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, weights_by_svc
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC
from torch.nn.functional import cosine_similarity, normalize

from setclr.inner import kernel, margin, svm_dual, svms

GOLDENS = golden("mmcl_inv_main_kernels")
GOLDEN_POINTS = normalize(torch.tensor(GOLDENS["z"])[:8], dim=-1)
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
    close((kernel(x, y, "linear"), kernel(x[None], y[None])[0]), (x @ y.T, kernel(x, y)))


@pytest.mark.parametrize("kind", ["rbf", "linear", "tanh"])
def test_kernels_have_gradients(kind):
    pair = normal(3, 2, grad=True), normal(4, 2, grad=True)
    assert torch.autograd.gradcheck(lambda x, y: kernel(x, y, kind, 0.7), pair)


@given(st.integers(1, 5), caps, bandwidths)
def test_exact_is_the_best_of_all_guesses(n, C, bandwidth):
    K = kernel(x := points(n + 1), x, "rbf", bandwidth)
    alpha, residual = svm_dual(K, 0, C=C)
    close(alpha[1:], best_of_all_guesses(delta(K, 0), C), rel=1e-9, abs=1e-10)
    assert alpha[0] == 0 and residual < 1e-9


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
        np.testing.assert_allclose(ours, GOLDENS[name][:8], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("s", ["1", "0.1"])
def test_the_papers_one_is_not_tanh_of_a_point_with_itself(s):
    """The golden Δ for tanh has 11ᵀ where k(z⁺, z⁺) 11ᵀ belongs."""
    K = kernel(x := GOLDEN_POINTS, x, "tanh", float(s))
    printed = delta(K, 0) + 1 - K[0, 0]
    np.testing.assert_allclose(printed, GOLDENS[f"Delta_tanh_s{s}"][0], rtol=1e-9, atol=1e-12)
    assert 1 - K[0, 0] > 0.2


@given(st.integers(2, 40), st.sampled_from([0.3, 1.0, 100.0, math.inf]), bandwidths)
def test_pgd_reaches_the_exact_optimum(n, C, bandwidth):
    K = kernel(x := points(n + 1), x, "rbf", bandwidth)
    exact = svm_dual(K, 0, C=C).alpha
    alpha, residual = svm_dual(K, 0, C=C, solver="pgd", tolerance=1e-10, rounds=100_000)
    assert residual <= 1e-10
    close(alpha, exact, rel=1e-6, abs=1e-7)


def test_pgd_finds_a_stationary_point_of_tanh():
    K = kernel(x := points(30), x, "tanh", 5.0)
    assert torch.linalg.eigvalsh(K)[0] < -0.1
    alpha, residual = svm_dual(K, torch.arange(30), C=10.0, solver="pgd", tolerance=1e-6, rounds=20_000)
    assert residual.max() <= 1e-6 and objective(delta(K, 0), alpha[0, 1:]) < 0


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


@pytest.mark.parametrize("bandwidth, arrives", [(25.0, False), (1.0, True)])
def test_where_the_authors_steps_end(bandwidth, arrives):
    """With random features: at the random start for CIFAR-100's first σ², near the optimum for STL-10's."""
    K = kernel(x := points(256, 128), x, "rbf", bandwidth)
    steps, exact = (svm_dual(K, torch.arange(256), solver=s).alpha.flatten() for s in ("steps", "exact"))
    start = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).relu().fill_diagonal_(0)
    to_start, to_exact = (cosine_similarity(steps, x.double().flatten(), dim=0) for x in (start, exact))
    assert (to_exact > 0.95 and to_start < 0.5) if arrives else (to_start > 0.99 and to_exact < 0.5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("C", [0.01, 1.0, math.inf])
@pytest.mark.parametrize("P, bandwidth", [(40, 1.0), (400, 1.0), (400, 0.25), (400, 25.0)])
def test_pgd_needs_few_rounds_however_many_negatives(P, bandwidth, C):
    """Plain steps need hundreds: Δ bends by some P · k⁺⁺ along one direction, along others by about ρ."""
    K = kernel(x := points(P, 32), x, "rbf", bandwidth)
    assert svm_dual(K, torch.arange(P), of_images(P), C=C, solver="pgd", rounds=50).residual.max() <= 1e-3


@given(st.integers(1, 8), st.sampled_from([0.1, 1.0, math.inf]), st.sampled_from([0.3, 1.0, 10.0]))
def test_nearest_is_where_no_coordinate_wants_to_move(n, C, curvature):
    """x minimises λ/2 ‖x − y‖² + ½ (aᵀx)² over the box; the gradients' scale is λ."""
    (target, a), theta = normal(2, 3, n), normal(3, 1)
    x, _ = svms.nearest(target, a, theta, torch.full_like(theta, curvature), C, 0.0)
    gradient = curvature * (x - target) + a * (a * x).sum(1, keepdim=True)
    close(x, (x - gradient / curvature).clamp(0, C), rel=0, abs=1e-9)


@pytest.mark.parametrize(
    "constants",
    [dict(LARGE=0), dict(PATIENCE=0), dict(PATIENCE=0, HELPS=0), dict(BLOCK=1), dict(GUESS=1)],
    ids=str,
)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_every_way_through_block_pivoting_gives_the_optimum(monkeypatch, constants, C):
    """Gradients for all machines, for the stuck, single exchanges, one system a block, a poor start."""
    K = kernel(x := points(60, 8), x, "rbf", 0.5)
    machines = K, torch.arange(60), of_images(60)
    expected = svm_dual(*machines, C=C).alpha
    for name, value in constants.items():
        monkeypatch.setattr(svms, name, value)
    alpha, residual = svm_dual(*machines, C=C)
    assert residual.max() < 1e-9
    close(alpha, expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("block", [1, 500])
@pytest.mark.parametrize("C", [math.inf, 2.0])
def test_systems_of_different_size_give_what_each_machine_gives_alone(monkeypatch, block, C):
    monkeypatch.setattr(svms, "BLOCK", block)
    K = kernel(x := points(30, 8), x)
    guess = torch.rand(30, 30).masked_fill(torch.eye(30, dtype=torch.bool), 1)
    free = guess < torch.linspace(0, 0.9, 30)[torch.randperm(30)].unsqueeze(1)  # nobody to nearly all
    at_C = ~free & (guess < 0.95) & math.isfinite(C)
    machines = each_alone(K, C)
    alpha = machines.clip(svms.free_solution(machines.centred(), free, at_C))
    for a in range(30):
        D, F = delta(K, a, range(30)), free[a]
        expected = at_C[a].double() * (C if at_C.any() else 0)
        expected[F] = torch.linalg.solve(D[F][:, F], 2 - D[F] @ expected)
        close(alpha[a], expected.clamp(0, C), rel=1e-9, abs=1e-9)


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


def test_centring_changes_no_machine():
    K = kernel(x := points(20), x, "linear") + 5
    machines = each_alone(K, 1.0)
    alpha = machines.clip(torch.rand(20, 20, dtype=K.dtype))
    expected = machines.gradient(alpha)
    close(machines.centred().gradient(alpha), expected)
    close(expected[3, 4:], (delta(K, 3, range(20)) @ alpha[3] - 2)[4:])
    assert machines.centred().K.mean(0).abs().max() < 1e-12


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


@pytest.mark.parametrize("C", [1e-3, 0.01])
def test_a_small_bound_does_not_hide_a_wrong_weight(C):
    """The residual counts in gradients: in units of α it could not exceed C, however wrong α is."""
    K = kernel(x := points(200, 8), x, "linear")
    assert each_alone(K, C, 5).residual(torch.zeros(5, 200, dtype=K.dtype)).min() >= 1
    exact = svm_dual(K, torch.arange(5), C=C).alpha
    pgd = svm_dual(K, torch.arange(5), C=C, solver="pgd", tolerance=1e-5, rounds=10_000).alpha
    close(pgd, exact, rel=0, abs=1e-5 / 0.1)  # tolerance / smallest eigenvalue


def test_equal_points_share_the_weight():
    K = torch.ones(12, 12, dtype=torch.float64)
    for solver in ("exact", "pgd", "inv"):
        alpha = svm_dual(K, 0, solver=solver, tolerance=1e-9).alpha
        close(alpha[1:], torch.full_like(K[0, 1:], 2 / 0.1), rel=1e-6)


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


def test_the_printed_inequality_of_proposition_1_fails_and_the_corrected_one_holds():
    """g(Δ⁻¹1) ≤ g(α*) is printed; the unbounded minimum is g(2Δ⁻¹1)."""
    printed = corrected = 0
    for _ in range(50):
        K = kernel(x := points(8, 4), x)
        D = delta(K, 0)
        best = objective(D, svm_dual(K, 0, C=1.0).alpha[1:])
        least_squares = torch.linalg.solve(D, torch.ones_like(D[0]))
        printed += objective(D, least_squares) > best + 1e-12
        corrected += objective(D, 2 * least_squares) > best + 1e-12
    assert printed > 5 and corrected == 0


def test_clipped_least_squares_can_be_worse_than_nothing():
    kernels = [kernel(x := points(40), x) for _ in range(20)]
    assert sum(objective(delta(K, 0), svm_dual(K, 0, solver="inv").alpha[1:]) > 0 for K in kernels) > 5
