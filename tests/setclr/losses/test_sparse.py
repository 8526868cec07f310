"""SparseCLR against golden values and entmax, and its formula as it is printed."""

import entmax
import numpy as np
import torch
from every_loss import golden, normal, same_as_golden
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
