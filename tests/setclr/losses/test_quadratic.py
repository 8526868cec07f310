"""QARe against algorithms 1 and 2 written out, golden values, and what its two versions pull at."""

import itertools

import numpy as np
import pytest
import torch
from every_loss import golden, normal, same_as_golden, slope
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh
from torch.nn import functional as F

from setclr.inner.assignment import quadratic_assignment, spectral_bounds
from setclr.losses.quadratic import QARe
from setclr.recipes import RECIPES

GOLDENS = golden("qare_NltE")


def within(z, similarity):
    """1 + S of one view, or its Euclidean distances, one pair at a time."""
    x = F.normalize(z, dim=-1)
    phi = {"cosine": lambda a, b: 1 + a @ b, "euclidean": lambda a, b: (a - b).norm()}[similarity]
    return torch.stack([torch.stack([phi(a, b) for b in x]) for a in x])


def by_the_book(z, similarity):
    """Algorithms 2 and 1 for every pair of views, always by the N×N matrices."""
    V, N, _ = z.shape
    spectra = [np.linalg.eigvalsh(within(view, similarity).numpy()) for view in z]
    order = {"cosine": 1, "euclidean": -1}[similarity]
    pairs = [order * (a @ b[::order]) / N**2 for a, b in itertools.combinations(spectra, 2)]
    return np.mean(pairs)


@given(st.integers(2, 4), st.integers(2, 12), st.integers(1, 12), st.sampled_from(["cosine", "euclidean"]))
def test_equals_the_formula(V, N, E, similarity):
    z = normal(V, N, E)
    assert float(QARe(similarity)(z)) == pytest.approx(by_the_book(z, similarity), rel=1e-9, abs=1e-12)


@given(st.integers(2, 20), st.integers(1, 20))
def test_the_gram_matrix_of_columns_has_the_same_gradient(N, E):
    z = normal(2, N, E, grad=True)
    a, b = (torch.linalg.eigvalsh(1 + x @ x.T) for x in F.normalize(z, dim=-1))
    torch.testing.assert_close(slope(QARe()(z), z), slope(a @ b / N**2, z), rtol=1e-9, atol=1e-12)


def test_the_largest_eigenvalues_of_section_4_are_all_that_there_are_from_the_dimension_on():
    """The paper's shortcut, the k largest of N in O(k² N): with k = E + 1 it is our exact low-rank form."""
    z = normal(2, 40, 6)
    x = F.normalize(z, dim=-1).numpy()
    found = []
    for k in (1, 3, 7):
        a, b = (np.sort(eigsh(1 + view @ view.T, k)[0]) for view in x)
        found.append(a @ b / 40**2)
    exact = float(QARe()(z))
    assert found[0] < found[1] < exact and found[2] == pytest.approx(exact, rel=1e-9)


def test_golden_values():
    """Of the authors' program: it divides by N(N−1) instead of N², and clamps at 1e-8, 0 but for rounding."""
    z = torch.tensor(np.stack([GOLDENS["za"], GOLDENS["zb"]]), requires_grad=True)
    x = torch.tensor(GOLDENS["x_interleaved"], requires_grad=True)
    raw = -spectral_bounds(*(torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") for x in z)).lower
    clamped = QARe("clamped cosine")(z)
    for name, value, rel in (("cos_unclamped", QARe()(z) * 12 / 11, 1e-9), ("eucl_raw", raw / 144, 1e-9),
                             ("cos_clamped", clamped, 1e-7)):  # fmt: skip
        gradient = np.stack([GOLDENS[f"qare_{name}_g{view}"] for view in "ab"])
        same_as_golden(value, z, GOLDENS[f"qare_{name}"], gradient, rel)
    assert QARe("euclidean")(z).item() == pytest.approx(float(GOLDENS["qare_eucl_unitnorm"]), rel=1e-9)
    assert clamped > 1.1 * QARe()(z) * 12 / 11, "another loss"
    # The rows of table 2: −log of the mean probability among 2N points, τ 0.5; with QARe all cosines clamped.
    for row, name in (("simclr", "simclr_t0.5"), ("simclr+qare", "simclr_qare_t0.5_beta1.125")):
        loss = RECIPES[f"qare-table2-resnet32-cifar10-{row}"].parsed_loss(torch.stack([x[0::2], x[1::2]]))
        same_as_golden(loss, x, GOLDENS[name], GOLDENS[f"{name}_g"], 1e-7)


@given(st.integers(2, 6), st.integers(2, 8))
def test_for_equal_views_the_cosine_bound_is_the_exact_maximum(N, E):
    view = normal(N, E)
    S = within(view, "cosine")
    exact = quadratic_assignment(torch.zeros_like(S), S, S)
    torch.testing.assert_close(QARe()(torch.stack([view, view])), exact.maximum / N**2)
    torch.testing.assert_close(exact.maximum, S.square().sum())  # at Y = 1


@given(st.integers(2, 6), st.integers(1, 6))
def test_it_bounds_the_quadratic_assignment_from_the_other_side_of_0(N, E):
    """The euclidean one pulls the other way than what it bounds: exact term ≤ 0, bound ≥ 0, and blowing all
    distances up lowers the one and raises the other."""
    z, zero = normal(2, N, E), torch.zeros(N, N, dtype=torch.float64)
    exact = quadratic_assignment(zero, *(within(view, "cosine") for view in z))
    assert QARe()(z) * N**2 >= exact.maximum - 1e-9
    S_A, S_B = (within(view, "euclidean") for view in z)
    exact, more = (-quadratic_assignment(zero, k * S_A, k * S_B).minimum for k in (1, 2))
    bound = -spectral_bounds(2 * S_A, 2 * S_B).lower / 4
    torch.testing.assert_close(bound, QARe("euclidean")(z) * N**2)
    assert bound >= exact - 1e-9 and (E == 1 or more < exact < 0 < bound)


def test_alone_the_euclidean_version_contracts_a_view_and_the_cosine_one_spreads_it():
    images = torch.randn(24, 16)
    off_diagonal = ~torch.eye(24, dtype=torch.bool)

    def mean_cosine(z):
        x = F.normalize(z, dim=-1)
        return float((x @ x.mT)[:, off_diagonal].mean())

    after = {}
    for similarity in ("cosine", "euclidean"):
        z = images + 0.3 * torch.randn(2, 24, 16)
        before = mean_cosine(z)
        for _ in range(2):
            gradient = slope(QARe(similarity)(z.requires_grad_()), z)
            z = z.detach() - 2 * gradient / gradient.norm()
        after[similarity] = mean_cosine(z) - before
    assert after["cosine"] < 0 < after["euclidean"]


def test_where_two_points_coincide_their_distance_has_gradient_zero():
    z = normal(2, 4, 3)
    z[:, 1] = z[:, 0]
    z.requires_grad_()
    assert slope(QARe("euclidean")(z), z).isfinite().all()
    equal = torch.ones(2, 4, 3, dtype=torch.float64, requires_grad=True)
    loss = QARe("euclidean")(equal)
    assert loss == 0 and slope(loss, equal).abs().max() == 0
