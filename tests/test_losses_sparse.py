"""SparseCLR against its corrected formula, golden values and entmax, and the formula as it is printed."""

import math
from pathlib import Path

import entmax
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.losses.sparse import SparseCLR
from setclr.recipes import RECIPES

GOLDENS = np.load(Path(__file__).parent / "goldens" / "sparseclr_easy.npz")
margins = st.sampled_from([0.0, 0.3, 1.0, 3.0])


def threshold(x):
    """Support and threshold of the sparsemax of a list, eq. 15."""
    support = entmax.sparsemax(x, dim=0) > 0
    return support, (x[support].sum() - 1) / support.sum()


def by_the_book(z, margin, positive_views=None):
    """max_Ω of the positive, less the margin, and the negatives, minus the positive; one list at a time."""
    V, N, _ = z.shape
    x = F.normalize(z, dim=-1)
    anchors = []
    for v in range(V):
        for i in range(N):
            negatives = [x[v, i] @ x[u, j] for u in range(V) for j in range(N) if j != i]
            losses = []
            for positive in (x[v, i] @ x[u, i] - margin for u in range(positive_views or V) if u != v):
                row = torch.stack([positive, *negatives])
                support, T = threshold(row)
                losses.append((row[support] ** 2 - T**2).sum() / 2 + 0.5 - positive)
            anchors.append(torch.stack(losses).mean())
    return torch.stack(anchors).mean()


@given(st.integers(2, 4), st.integers(2, 6), margins, st.booleans())
def test_equals_the_formula_and_its_gradient(V, N, margin, multicrop):
    z = torch.randn(V, N, 5, dtype=torch.float64, requires_grad=True)
    G = 2 if multicrop else None
    loss, expected = SparseCLR(margin, G)(z), by_the_book(z, margin, G)
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-12)
    (gradient,), (expected,) = (torch.autograd.grad(x, z) for x in (loss, expected))
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("margin", [0, 1])
def test_golden_values(margin):
    x = torch.tensor(GOLDENS["x_interleaved"], requires_grad=True)
    z = torch.stack([x[0::2], x[1::2]])
    sparse = SparseCLR(margin)
    loss = sparse(z)
    loss.backward()
    assert loss.item() == pytest.approx(float(GOLDENS[f"sparseclr_m{margin}"]), rel=1e-9)
    np.testing.assert_allclose(x.grad, GOLDENS[f"sparseclr_m{margin}_g"], rtol=1e-9, atol=1e-14)
    interleaved = torch.arange(24).view(2, 12).T.flatten()
    A = sparse.assignment(z.detach())[interleaved][:, interleaved]
    off_diagonal = ~torch.eye(24, dtype=torch.bool)
    np.testing.assert_allclose(
        A[off_diagonal].view(24, 23), GOLDENS[f"sparseclr_m{margin}_p"], rtol=1e-9, atol=1e-14
    )


def test_sparseclr_with_qare_is_the_authors_programs():
    """The row of table 3 with weight 1: all cosines clamped at 1e-8, which is 0 but for rounding."""
    x = torch.tensor(GOLDENS["x_interleaved"], requires_grad=True)
    loss = RECIPES["qare-table3-resnet32-cifar10-sparseclr+qare"].parsed_loss(torch.stack([x[0::2], x[1::2]]))
    loss.backward()
    assert loss.item() == pytest.approx(float(GOLDENS["sparseclr_qare_beta1"]), rel=1e-7)
    np.testing.assert_allclose(x.grad, GOLDENS["sparseclr_qare_beta1_g"], rtol=1e-6, atol=1e-9)


@given(st.integers(2, 12), margins)
def test_equals_entmax_for_two_views(N, margin):
    z = torch.randn(2, N, 6, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    M = 2 * N
    target = (torch.arange(M) + N) % M
    logits = x @ x.T - margin * F.one_hot(target, M)
    off_diagonal = ~torch.eye(M, dtype=torch.bool)
    without_itself = target - (target > torch.arange(M)).long()
    expected = entmax.SparsemaxLoss()(logits[off_diagonal].view(M, M - 1), without_itself)
    torch.testing.assert_close(SparseCLR(margin)(z), expected)


@given(st.integers(2, 4), st.integers(2, 5), margins, st.booleans())
def test_assignment_is_the_mean_over_positives_of_the_sparsemax(V, N, margin, multicrop):
    z = torch.randn(V, N, 5, dtype=torch.float64)
    G = 2 if multicrop else V
    A = SparseCLR(margin, 2 if multicrop else None).assignment(z)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    expected = torch.zeros_like(A)
    for a in range(V * N):
        v, i = divmod(a, N)
        negatives = [c for c in range(V * N) if c % N != i]
        positives = [u * N + i for u in range(G) if u != v]
        for p in positives:
            row = x[[p, *negatives]] @ x[a]
            row[0] -= margin
            expected[a, [p, *negatives]] += entmax.sparsemax(row, dim=0) / len(positives)
    torch.testing.assert_close(A, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(A.sum(1), torch.ones(V * N, dtype=A.dtype))


def test_most_negatives_get_nothing():
    A = SparseCLR().assignment(torch.randn(2, 64, 32))
    assert 1 < (A > 0).sum(1).float().mean() < 0.25 * 127


@given(st.integers(2, 8), margins)
def test_not_negative_and_zero_where_positives_win_by_one_and_the_margin(N, margin):
    assert SparseCLR(margin)(torch.randn(2, N, 4, dtype=torch.float64)) >= 0
    z = torch.eye(N, dtype=torch.float64).expand(2, N, N).clone().requires_grad_()
    loss = SparseCLR(0.0)(z)  # positives have cosine 1, negatives 0
    (gradient,) = torch.autograd.grad(loss, z)
    assert loss.abs() < 1e-12 and gradient.abs().max() < 1e-12


def printed(S):
    """Eq. 14 as it stands: the support of h, the threshold of −h, a minus sign and no ½."""
    rows = []
    for i, h in enumerate(S):
        support, _ = threshold(h)
        _, T = threshold(-h)
        rows.append(S[i, i] - (h[support] ** 2 - T**2).sum() / 2)
    return torch.stack(rows).sum()


def corrected(S):
    """tr(S Y_gtᵀ) + Σ_i max_Ω(−h_i)."""
    rows = []
    for i, h in enumerate(S):
        support, T = threshold(-h)
        rows.append(S[i, i] + (h[support] ** 2 - T**2).sum() / 2 + 0.5)
    return torch.stack(rows).sum()


def test_equation_14_is_printed_wrong():
    """As printed it falls below 0, what no loss of this kind can do. Corrected it is ≥ 0, is 0 at the perfect
    matching, and its gradient is Y_gt − sparsemax."""
    perfect = 1 - torch.eye(5, dtype=torch.float64)  # distance 0 to the positives, 1 to the negatives
    assert corrected(perfect).abs() < 1e-12
    for _ in range(10):
        images = torch.randn(5, 4, dtype=torch.float64)
        a, b = F.normalize(images + 0.3 * torch.randn(2, 5, 4), dim=-1)
        S = (1 - a @ b.T).requires_grad_()
        assert printed(S) < 0 < corrected(S)
        right = torch.eye(5, dtype=S.dtype) - entmax.sparsemax(-S.detach(), dim=1)
        torch.testing.assert_close(torch.autograd.grad(corrected(S), S)[0], right)
        assert (torch.autograd.grad(printed(S), S)[0] - right).abs().max() > 0.1


@pytest.mark.parametrize("margin, G", [(0.0, None), (1.0, None), (1.0, 2)])
def test_gradcheck(margin, G):
    z = torch.randn(3, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(SparseCLR(margin, G), z)


@pytest.mark.parametrize("margin", [0.0, 1.0, 1e3])
@pytest.mark.parametrize(
    "z",
    [
        torch.ones(2, 4, 3),
        torch.randn(4, 3) * torch.tensor([1.0, -1.0]).view(2, 1, 1),
        torch.randn(2, 2, 3),
        torch.randn(8, 4, 3),
        1e-6 * torch.randn(2, 4, 3),
        1e6 * torch.randn(2, 4, 3),
        torch.randn(2, 4, 3).bfloat16(),
    ],
    ids=["all equal", "antipodal", "N=2", "V=8", "tiny", "huge", "bf16"],
)
def test_extremes_give_finite_values_and_gradients(z, margin):
    z = z.clone().requires_grad_()
    value = SparseCLR(margin)(z)
    value.backward()
    assert value.dtype == torch.float32 and value.isfinite() and z.grad.isfinite().all()
    assert SparseCLR(margin).assignment(z).isfinite().all()


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


@pytest.mark.parametrize("N", [2, 10, 128])
def test_equal_embeddings_score_one_and_a_half_less_what_all_the_negatives_share(N):
    """What a collapsed encoder gets, whatever it has learned."""
    M = 2 * N - 2
    assert float(SparseCLR()(torch.ones(2, N, 4))) == pytest.approx(1.5 - 1 / (2 * M))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: SparseCLR(-1), "margin must be >= 0, got -1; the authors' program uses 1"),
        (lambda: SparseCLR(math.nan), "margin must be >= 0, got nan"),
        (lambda: SparseCLR("1"), "margin must be >= 0, got '1'"),
        (lambda: SparseCLR(positive_views=1), "positive_views must be an integer >= 2, got 1"),
        (lambda: SparseCLR(positive_views=3)(torch.randn(2, 3, 4)), "positive_views must be .* <= 2, got 3"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
