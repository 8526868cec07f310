"""QARe against algorithms 1 and 2 written out, golden values, and what its two versions pull at."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh
from torch.nn import functional as F

from setclr.inner.assignment import quadratic_assignment, spectral_bounds
from setclr.losses import InfoNCE
from setclr.losses.quadratic import QARe
from setclr.recipes import RECIPES

GOLDENS = np.load(Path(__file__).parent / "goldens" / "qare_NltE.npz")
both = pytest.mark.parametrize("similarity", ["cosine", "euclidean"])


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
    z = torch.randn(V, N, E, dtype=torch.float64)
    assert float(QARe(similarity)(z)) == pytest.approx(by_the_book(z, similarity), rel=1e-9, abs=1e-12)


@given(st.integers(2, 20), st.integers(1, 20))
def test_the_gram_matrix_of_columns_has_the_same_gradient(N, E):
    z = torch.randn(2, N, E, dtype=torch.float64, requires_grad=True)
    x = F.normalize(z, dim=-1)
    a, b = (torch.linalg.eigvalsh(1 + view @ view.T) for view in x)
    (gradient,), (expected,) = (torch.autograd.grad(y, z) for y in (QARe()(z), a @ b / N**2))
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


def test_the_largest_eigenvalues_of_section_4_are_all_that_there_are_from_the_dimension_on():
    """The paper's shortcut, the k largest of N in O(k² N): with k = E + 1 it is our exact low-rank form."""
    z = torch.randn(2, 40, 6, dtype=torch.float64)
    x = F.normalize(z, dim=-1).numpy()
    found = []
    for k in (1, 3, 7):
        a, b = (np.sort(eigsh(1 + view @ view.T, k)[0]) for view in x)
        found.append(a @ b / 40**2)
    exact = float(QARe()(z))
    assert found[0] < found[1] < exact and found[2] == pytest.approx(exact, rel=1e-9)


def test_golden_values_of_the_cosine():
    """The authors' program divides by N(N−1) instead of N²."""
    z = torch.tensor(np.stack([GOLDENS["za"], GOLDENS["zb"]]), requires_grad=True)
    loss = QARe()(z) * 12 / 11
    loss.backward()
    assert loss.item() == pytest.approx(float(GOLDENS["qare_cos_unclamped"]), rel=1e-9)
    for grad, name in zip(z.grad, "ab"):
        np.testing.assert_allclose(grad, GOLDENS[f"qare_cos_unclamped_g{name}"], rtol=1e-9, atol=1e-14)


def test_golden_values_of_the_distance():
    z = torch.tensor(np.stack([GOLDENS["za"], GOLDENS["zb"]]), requires_grad=True)
    loss = QARe("euclidean")(z)
    assert loss.item() == pytest.approx(float(GOLDENS["qare_eucl_unitnorm"]), rel=1e-9)

    raw = -spectral_bounds(*(torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") for x in z)).lower
    (gradient,) = torch.autograd.grad(raw / 144, z)
    assert raw.item() / 144 == pytest.approx(float(GOLDENS["qare_eucl_raw"]), rel=1e-9)
    for grad, name in zip(gradient, "ab"):
        np.testing.assert_allclose(grad, GOLDENS[f"qare_eucl_raw_g{name}"], rtol=1e-9, atol=1e-14)


def test_the_clamped_cosine_is_the_authors_programs():
    """It clamps at 1e-8, which is 0 but for rounding."""
    z = torch.tensor(np.stack([GOLDENS["za"], GOLDENS["zb"]]), requires_grad=True)
    clamped = QARe("clamped cosine")(z)
    clamped.backward()
    assert clamped.item() == pytest.approx(float(GOLDENS["qare_cos_clamped"]), rel=1e-7)
    for grad, name in zip(z.grad, "ab"):
        np.testing.assert_allclose(grad, GOLDENS[f"qare_cos_clamped_g{name}"], rtol=1e-6, atol=1e-9)
    assert clamped > 1.1 * QARe()(z) * 12 / 11, "another loss"


@pytest.mark.parametrize(
    "row, golden", [("simclr", "simclr_t0.5"), ("simclr+qare", "simclr_qare_t0.5_beta1.125")]
)
def test_the_rows_of_table_2_have_the_losses_of_the_authors_program(row, golden):
    """−log of the mean probability among 2N points, τ 0.5; with QARe all cosines clamped: value, gradient."""
    x = torch.tensor(GOLDENS["x_interleaved"], requires_grad=True)
    z = torch.stack([x[0::2], x[1::2]])
    loss = RECIPES[f"qare-table2-resnet32-cifar10-{row}"].parsed_loss(z)
    loss.backward()
    assert loss.item() == pytest.approx(float(GOLDENS[golden]), rel=1e-7)
    np.testing.assert_allclose(x.grad, GOLDENS[f"{golden}_g"], rtol=1e-6, atol=1e-9)


@given(st.integers(2, 6), st.integers(2, 8))
def test_for_equal_views_the_cosine_bound_is_the_exact_maximum(N, E):
    view = torch.randn(N, E, dtype=torch.float64)
    S = within(view, "cosine")
    exact = quadratic_assignment(torch.zeros_like(S), S, S)
    torch.testing.assert_close(QARe()(torch.stack([view, view])), exact.maximum / N**2)
    torch.testing.assert_close(exact.maximum, S.square().sum())  # at Y = 1


@given(st.integers(2, 6), st.integers(1, 6))
def test_it_bounds_the_quadratic_assignment(N, E):
    z = torch.randn(2, N, E, dtype=torch.float64)
    exact = quadratic_assignment(torch.zeros(N, N, dtype=z.dtype), *(within(view, "cosine") for view in z))
    assert QARe()(z) * N**2 >= exact.maximum - 1e-9
    exact = quadratic_assignment(torch.zeros(N, N, dtype=z.dtype), *(within(view, "euclidean") for view in z))
    assert QARe("euclidean")(z) * N**2 >= -exact.minimum - 1e-9


@given(st.integers(2, 6))
def test_the_euclidean_bound_pulls_the_other_way_than_what_it_bounds(N):
    """Exact term ≤ 0, bound ≥ 0: blowing all distances up lowers the one and raises the other."""
    S_A, S_B = (within(view, "euclidean") for view in torch.randn(2, N, 4, dtype=torch.float64))
    exact, bound = [], []
    for scale in (1, 2):
        zero = torch.zeros_like(S_A)
        exact.append(-quadratic_assignment(zero, scale * S_A, scale * S_B).minimum)
        bound.append(-spectral_bounds(scale * S_A, scale * S_B).lower)
    assert exact[1] < exact[0] < 0 < bound[0] < bound[1]


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
        for _ in range(40):
            (gradient,) = torch.autograd.grad(QARe(similarity)(z.requires_grad_()), z)
            z = z.detach() - 2 * gradient / gradient.norm()
        after[similarity] = mean_cosine(z)
    assert after["cosine"] < before - 0.01 and after["euclidean"] > before + 0.1


@both
@pytest.mark.parametrize("V, N, E", [(2, 4, 3), (3, 3, 5), (2, 6, 2)])
def test_gradcheck(similarity, V, N, E):
    z = torch.randn(V, N, E, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(QARe(similarity), z)


def test_where_two_points_coincide_their_distance_has_gradient_zero():
    z = torch.randn(2, 4, 3, dtype=torch.float64)
    z[:, 1] = z[:, 0]
    z.requires_grad_()
    QARe("euclidean")(z).backward()
    assert z.grad.isfinite().all()
    equal = torch.ones(2, 4, 3, dtype=torch.float64, requires_grad=True)
    loss = QARe("euclidean")(equal)
    loss.backward()
    assert loss == 0 and equal.grad.abs().max() == 0


@both
@pytest.mark.parametrize(
    "z",
    [
        torch.ones(2, 4, 3),
        torch.ones(2, 4, 2),
        torch.randn(4, 3) * torch.tensor([1.0, -1.0]).view(2, 1, 1),
        torch.tensor([1.0, -1.0]).repeat(4).view(1, 8, 1) * torch.ones(2, 8, 3),
        torch.randn(2, 2, 3),
        torch.randn(8, 4, 3),
        torch.randn(8, 5, 3),
        1e-6 * torch.randn(2, 4, 3),
        1e6 * torch.randn(2, 4, 3),
        torch.randn(2, 4, 3).bfloat16(),
    ],
    ids=[
        "all equal",
        "all equal, N > E+1",
        "antipodal views",
        "antipodal images",
        "N=2",
        "V=8",
        "V=8, N > E+1",
        "tiny",
        "huge",
        "bf16",
    ],
)
def test_extremes_give_finite_values_and_gradients(z, similarity):
    z = z.clone().requires_grad_()
    value = QARe(similarity)(z)
    value.backward()
    assert value.dtype == torch.float32 and value.isfinite() and z.grad.isfinite().all()


def test_it_is_a_regulariser():
    z = torch.randn(2, 5, 4)
    with pytest.raises(
        ValueError, match=r"QARe\(similarity='cosine'\) is a regulariser and has no assignment"
    ):
        QARe().assignment(z)
    both = InfoNCE(0.5) + 1.125 * QARe()
    torch.testing.assert_close(both(z), InfoNCE(0.5)(z) + 1.125 * QARe()(z))
    torch.testing.assert_close(both.assignment(z), InfoNCE(0.5).assignment(z))


def test_a_bad_argument_is_named():
    with pytest.raises(ValueError, match="similarity must be one of .* got 'cos'"):
        QARe("cos")
