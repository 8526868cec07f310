"""LinearAssignment, SparseCLR and QARe, the losses of one paper: its equations and algorithms written out,
its second proposition, golden values."""

import itertools

import numpy as np
import pytest
import torch
from every_loss import close, golden, kept_for_the_gradient, normal, same_as_golden
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.inner import spectral_bounds
from setclr.losses import LinearAssignment, QARe, SparseCLR
from setclr.recipes import RECIPES

QARE, SPARSE = golden("qare_NltE"), golden("sparseclr_easy")
minings = st.sampled_from(["one-to-one", "batch-hard"])
distances = st.sampled_from(["cosine", "euclidean"])
margins = st.sampled_from([0.0, 0.3, 1.0, 3.0])


def pairs(a, b, of_cosine, distance):
    """A function of the cosine, or the Euclidean distance, of every pair of two views, one at a time."""
    phi = {"cosine": lambda x, y: of_cosine(x @ y), "euclidean": lambda x, y: (x - y).norm()}[distance]
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    return torch.stack([torch.stack([phi(x, y) for y in b]) for x in a])


def cost(z, margin, distance):
    """S_m."""
    return pairs(*z, lambda s: 1 - s, distance) + margin * torch.eye(z.shape[1], dtype=z.dtype)


@given(
    st.integers(2, 5), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 1e-3, 0.3, 1e3]), minings, distances
)
def test_linear_equals_the_formula(N, margin, temperature, mining, distance):
    """[tr(S_m Y_gtᵀ) − (smoothed) min over Y of tr(S_m Yᵀ)] / N, one matching at a time, and its mean Y."""
    z, one = normal(2, N, 4), mining == "one-to-one"
    rows = itertools.permutations(range(N)) if one else itertools.product(range(N), repeat=N)
    matrices, S = F.one_hot(torch.tensor(list(rows)), N).to(z), cost(z, margin, distance)
    costs = (S * matrices).sum((1, 2))
    weights = (-costs / (temperature or 1e-12)).softmax(0)
    least = -temperature * (-costs / temperature).logsumexp(0) if temperature else costs.min()
    loss = LinearAssignment(margin, temperature, mining, distance)
    assert loss(z).item() == pytest.approx(float(S.trace() - least) / N, rel=1e-9, abs=1e-9) and loss(z) >= 0
    mean = F.pad(torch.einsum("w,wij->ij", weights, matrices), (N, 0, 0, N))
    close(loss.assignment(z), mean + mean.T)  # the solution and its transpose


@given(st.integers(2, 20), st.floats(1e-3, 2), distances)
def test_proposition_2_batch_hard_is_temperature_times_infonce(N, temperature, distance):
    z = normal(2, N, 6, grad=True)
    infonce = F.cross_entropy(-cost(z, 0.0, distance) / temperature, torch.arange(N))
    loss = LinearAssignment(0.0, temperature, "batch-hard", distance)(z)
    close(loss, temperature * infonce, z, rel=1e-9, abs=1e-12)


def test_golden_values_of_sparse_clr():
    """Of the authors' program. With QARe (table 3, weight 1) it clamps at 1e-8: 0 but for rounding."""
    x, off_diagonal = torch.tensor(SPARSE["x_interleaved"]).requires_grad_(), ~torch.eye(24, dtype=torch.bool)
    interleaved = torch.arange(24).view(2, 12).T.flatten()
    for margin in (0, 1):
        z, name, loss = torch.stack([x[0::2], x[1::2]]), f"sparseclr_m{margin}", SparseCLR(margin)
        same_as_golden(loss(z), x, SPARSE[name], SPARSE[f"{name}_g"])
        A = loss.assignment(z)[interleaved][:, interleaved][off_diagonal].view(24, 23)
        np.testing.assert_allclose(A, SPARSE[f"{name}_p"], rtol=1e-9, atol=1e-14)
    both = RECIPES["qare-table3-resnet32-cifar10-sparseclr+qare"].parsed_loss(torch.stack([x[0::2], x[1::2]]))
    same_as_golden(both, x, SPARSE["sparseclr_qare_beta1"], SPARSE["sparseclr_qare_beta1_g"], 1e-7)


@pytest.mark.parametrize("G", [2, None])
def test_memory_does_not_grow_with_the_number_of_positives(G):
    """What the graph keeps is one matrix of similarities and its mask, for one positive as for seven."""
    z = torch.randn(8, 32, 4, requires_grad=True)
    kept = kept_for_the_gradient(lambda: SparseCLR(positive_views=G)(z))
    assert len({place for place, size in kept if size >= 256 * 256}) <= 2


def within(z, similarity):
    """1 + S of one view, or its Euclidean distances."""
    return pairs(z, z, lambda s: 1 + s, similarity)


@given(st.integers(2, 4), st.integers(2, 12), st.integers(1, 12), distances)
def test_qare_equals_algorithms_2_and_1(V, N, E, similarity):
    """For every pair of views, always by the N×N matrices."""
    z, order = normal(V, N, E), {"cosine": 1, "euclidean": -1}[similarity]
    spectra = [np.linalg.eigvalsh(within(view, similarity).numpy()) for view in z]
    of_pairs = [order * (a @ b[::order]) / N**2 for a, b in itertools.combinations(spectra, 2)]
    assert float(QARe(similarity)(z)) == pytest.approx(np.mean(of_pairs), rel=1e-9, abs=1e-12)


@given(st.integers(2, 20), st.integers(1, 20))
def test_the_gram_matrix_of_columns_has_the_same_gradient(N, E):
    z = normal(2, N, E, grad=True)
    a, b = (torch.linalg.eigvalsh(1 + x @ x.T) for x in F.normalize(z, dim=-1))
    close(QARe()(z), a @ b / N**2, z, rel=1e-9, abs=1e-12)


def test_golden_values_of_qare():
    """Of the authors' program: it divides by N(N−1) instead of N², and clamps at 1e-8, 0 but for rounding."""
    z = torch.tensor(np.stack([QARE["za"], QARE["zb"]]), requires_grad=True)
    x = torch.tensor(QARE["x_interleaved"], requires_grad=True)
    raw = -spectral_bounds(*(torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist") for x in z)).lower
    clamped = QARe("clamped cosine")(z)
    for name, value, rel in (("cos_unclamped", QARe()(z) * 12 / 11, 1e-9), ("eucl_raw", raw / 144, 1e-9),
                             ("cos_clamped", clamped, 1e-7)):  # fmt: skip
        gradient = np.stack([QARE[f"qare_{name}_g{view}"] for view in "ab"])
        same_as_golden(value, z, QARE[f"qare_{name}"], gradient, rel)
    assert QARe("euclidean")(z).item() == pytest.approx(float(QARE["qare_eucl_unitnorm"]), rel=1e-9)
    assert clamped > 1.1 * QARe()(z) * 12 / 11, "another loss"
    # The rows of table 2: −log of the mean probability among 2N points, τ 0.5; with QARe all cosines clamped.
    for row, name in (("simclr", "simclr_t0.5"), ("simclr+qare", "simclr_qare_t0.5_beta1.125")):
        loss = RECIPES[f"qare-table2-resnet32-cifar10-{row}"].parsed_loss(torch.stack([x[0::2], x[1::2]]))
        same_as_golden(loss, x, QARE[name], QARE[f"{name}_g"], 1e-7)
