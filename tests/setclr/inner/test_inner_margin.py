"""The SVM dual against scikit-learn's SVC, its conditions written out, literal matrices, golden values."""

import math

import numpy as np
import pytest
import torch
from every_loss import close, golden, normal, weights_by_svc
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC
from torch.nn.functional import normalize

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
        np.testing.assert_allclose(ours, GOLDENS[name][:8], rtol=1e-9, atol=1e-12)


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
