"""SparseCLR against golden values and entmax, and its formula as it is printed."""

import entmax
import numpy as np
import pytest
import torch
from every_loss import golden, normal, same_as_golden, slope
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.losses.sparse import SparseCLR
from setclr.recipes import RECIPES

GOLDENS = golden("sparseclr_easy")
margins = st.sampled_from([0.0, 0.3, 1.0, 3.0])


def test_golden_values():
    """Of the authors' program. With QARe (table 3, weight 1) it clamps at 1e-8: 0 but for rounding."""
    x, off_diagonal = torch.tensor(GOLDENS["x_interleaved"]), ~torch.eye(24, dtype=torch.bool)
    z = torch.stack([x.requires_grad_()[0::2], x[1::2]])
    interleaved = torch.arange(24).view(2, 12).T.flatten()
    for margin in (0, 1):
        name, loss = f"sparseclr_m{margin}", SparseCLR(margin)
        same_as_golden(loss(z), x, GOLDENS[name], GOLDENS[f"{name}_g"])
        A = loss.assignment(z)[interleaved][:, interleaved][off_diagonal].view(24, 23)
        np.testing.assert_allclose(A, GOLDENS[f"{name}_p"], rtol=1e-9, atol=1e-14)
        z = torch.stack([x[0::2], x[1::2]])
    both = RECIPES["qare-table3-resnet32-cifar10-sparseclr+qare"].parsed_loss(z)
    same_as_golden(both, x, GOLDENS["sparseclr_qare_beta1"], GOLDENS["sparseclr_qare_beta1_g"], 1e-7)


@given(st.integers(2, 12), margins)
def test_equals_entmax_for_two_views(N, margin):
    z = normal(2, N, 6)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    M = 2 * N
    target = (torch.arange(M) + N) % M
    logits = x @ x.T - margin * F.one_hot(target, M)
    off_diagonal = ~torch.eye(M, dtype=torch.bool)
    without_itself = target - (target > torch.arange(M)).long()
    expected = entmax.SparsemaxLoss()(logits[off_diagonal].view(M, M - 1), without_itself)
    torch.testing.assert_close(SparseCLR(margin)(z), expected)


def test_most_negatives_get_nothing():
    A = SparseCLR().assignment(torch.randn(2, 64, 32))
    assert 1 < (A > 0).sum(1).float().mean() < 0.25 * 127


@given(st.integers(2, 8), margins)
def test_not_negative_and_zero_where_positives_win_by_one_and_the_margin(N, margin):
    assert SparseCLR(margin)(normal(2, N, 4)) >= 0
    z = torch.eye(N, dtype=torch.float64).expand(2, N, N).clone().requires_grad_()
    loss = SparseCLR(0.0)(z)  # positives have cosine 1, negatives 0
    assert loss.abs() < 1e-12 and slope(loss, z).abs().max() < 1e-12


def by_threshold(S, minus):
    """tr(S Y_gtᵀ) + Σ_i max_Ω(−h_i), and eq. 14 as it stands: support of h, a minus sign, and no ½."""
    value = S.diagonal().sum()
    for h in S:
        own = entmax.sparsemax(-h, dim=0) > 0
        support = entmax.sparsemax(h, dim=0) > 0 if minus else own
        T = (-h[own].sum() - 1) / own.sum()
        half = (h[support] ** 2 - T**2).sum() / 2
        value = value - half if minus else value + half + 0.5
    return value


def test_equation_14_is_printed_wrong():
    """As printed it falls below 0, what no loss of this kind can do. Corrected it is ≥ 0, is 0 at the perfect
    matching, and its gradient is Y_gt − sparsemax."""
    perfect = 1 - torch.eye(5, dtype=torch.float64)  # distance 0 to the positives, 1 to the negatives
    assert by_threshold(perfect, False).abs() < 1e-12
    for _ in range(10):
        images = normal(5, 4)
        a, b = F.normalize(images + 0.3 * torch.randn(2, 5, 4), dim=-1)
        S = (1 - a @ b.T).requires_grad_()
        printed, corrected = by_threshold(S, True), by_threshold(S, False)
        assert printed < 0 < corrected
        right = torch.eye(5, dtype=S.dtype) - entmax.sparsemax(-S.detach(), dim=1)
        torch.testing.assert_close(slope(corrected, S), right)
        assert (slope(printed, S) - right).abs().max() > 0.1


def test_memory_does_not_grow_with_the_number_of_positives():
    """What the graph keeps is one matrix of similarities and its mask, for one positive as for seven."""
    saved = []

    def keep(x):
        saved.append((x.data_ptr(), x.numel()))
        return x

    for G in (2, None):
        saved.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            SparseCLR(positive_views=G)(torch.randn(8, 32, 4, requires_grad=True))
        large = {pointer for pointer, size in saved if size >= 256 * 256}
        assert len(large) <= 2


def test_equal_embeddings_score_one_and_a_half_less_what_all_the_negatives_share():
    """What a collapsed encoder gets, whatever it has learned."""
    for N in (2, 10, 128):
        expected = 1.5 - 1 / (2 * (2 * N - 2))
        assert float(SparseCLR()(torch.ones(2, N, 4))) == pytest.approx(expected)
