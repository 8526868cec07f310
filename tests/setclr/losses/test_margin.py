"""MMCL against its literal formula with every machine solved on its own, and gradients with α held fixed."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import close, normal, weights_by_svc
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from setclr.losses.margin import MMCL

KERNELS = {
    "rbf": lambda x, y, b: math.exp(-float((x - y).square().sum()) / (2 * b)),
    "linear": lambda x, y, b: float(x @ y),
    "tanh": lambda x, y, b: math.tanh(b * float(x @ y)),
    "shifted tanh": lambda x, y, b: math.tanh(b * float(x @ y) + 0.3),
}


def weights_by_the_book(positive, negatives, k, C, ridge, solver):
    """α of one machine: scikit-learn's SVC for "exact", Proposition 1 (iii) for "inv"."""
    G = np.array([[k(x, y) for x in [positive, *negatives]] for y in [positive, *negatives]])
    if solver == "exact":
        return weights_by_svc(G, C, ridge)[1:]
    delta = G[1:, 1:] + G[0, 0] - G[0, 1:] - G[1:, :1] + ridge * np.eye(len(negatives))
    return np.clip(2 * np.linalg.solve(delta, np.ones(len(delta))), 0, C)


def by_the_book(z, kernel, bandwidth, C, ridge, solver, pool):
    """For every ordered pair of views and every image: α for z⁺, then −w(z) of eq. 8. The mean; every α."""
    V, N, _ = z.shape
    z, losses, A = normalize(z, dim=-1), [], np.zeros((V, N, V, N))

    def k(x, y):
        return KERNELS[kernel](x, y, bandwidth)

    for u, i in itertools.product(range(V), range(N)):
        views = range(V) if pool == "all" else [u]
        places = [(w, j) for w in views for j in range(N) if j != i]
        negatives = [z[place] for place in places]
        alpha = weights_by_the_book(z[u, i], negatives, k, C, ridge, solver)
        A[u, i, *zip(*places)] = alpha
        for v in set(range(V)) - {u}:
            losses.append(sum(a * (k(y, z[v, i]) - k(z[u, i], z[v, i])) for a, y in zip(alpha, negatives)))
    return np.mean(losses), A.reshape(V * N, V * N)


@given(
    st.sampled_from(["inv", "exact"]), st.integers(2, 3), st.integers(2, 5), st.sampled_from(list(KERNELS)),
    st.sampled_from([0.2, 1.0, 5.0]), st.sampled_from([0.5, 100.0, math.inf]), st.sampled_from([0.1, 1.0]),
    st.sampled_from(["all", "view"]),
)  # fmt: skip
@settings(max_examples=60)
def test_equals_the_formula_with_scikit_learns_weights_if_exact(solver, V, N, kernel, width, C, ridge, pool):
    assume(solver == "inv" or (kernel in ("rbf", "linear") and math.inf > C))
    z, near = normal(V, N, 4), dict(rel=1e-8, abs=1e-9) if solver == "inv" else dict(rel=1e-5, abs=1e-6)
    options = dict(kernel=kernel, bandwidth=width, C=C, ridge=ridge, solver=solver, pool=pool)
    ours = options | (dict(kernel="tanh", offset=0.3) if kernel == "shifted tanh" else {})
    loss, (expected, A) = MMCL(**ours), by_the_book(z, **options)
    assert float(loss(z)) == pytest.approx(expected, **near)
    np.testing.assert_allclose(loss.assignment(z), A, near["rel"], near["abs"] * max(1, A.max()))


def test_pgd_gives_nearly_what_exact_gives():
    z = torch.randn(2, 40, 16)
    exact, pgd = MMCL(solver="exact"), MMCL(solver="pgd")
    close(pgd.assignment(z), exact.assignment(z), rel=0, abs=2e-2)
    close(pgd(z), exact(z), rel=1e-2)


@pytest.mark.parametrize("solver", ["inv", "pgd", "steps", "exact"])
@pytest.mark.parametrize("pool", ["all", "view"])
def test_gradient_holds_the_weights_fixed(solver, pool):
    z = normal(3, 4, 5, grad=True)
    loss = MMCL(solver=solver, pool=pool, bandwidth=0.5)
    alpha, x = loss.assignment(z), normalize(z, dim=-1).flatten(0, 1)
    K = (-(x.unsqueeze(1) - x).square().sum(-1) / (2 * 0.5)).exp()
    pairs = [(a, b) for a, b in itertools.permutations(range(12), 2) if a % 4 == b % 4]
    with_fixed_weights = torch.stack([(alpha[a] * (K[:, b] - K[a, b])).sum() for a, b in pairs]).mean()
    close(loss(z), with_fixed_weights, z, rel=1e-9, abs=1e-12)


def test_a_ridge_too_small_for_the_precision_is_refused():
    z = torch.ones(2, 20, 4) + 1e-4 * torch.randn(2, 20, 4)
    for solver in ("inv", "exact"):
        with pytest.raises(ValueError, match=r"ridge must be larger for torch.float32, got 1e-09"):
            MMCL(ridge=1e-9, C=math.inf, solver=solver)(z)
    at_C = MMCL(ridge=1e-9, C=100, solver="exact").assignment(z)  # which takes no system
    assert ((at_C == 0) | (at_C == 100)).all() and (at_C.sum(1) == 3800).all()
