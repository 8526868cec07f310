"""InfoNCE against its formula, golden values of MMCL's program and pytorch-metric-learning."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning.losses import NTXentLoss

from setclr.losses import InfoNCE

GOLDENS = np.load(Path(__file__).parent / "goldens" / "ntxent_mmcl_repo.npz")


def by_the_book(z, temperature, positive_views=None, keys=None, memory=None):
    """GroCo eq. 11, one anchor and one positive at a time."""
    V, N, _ = z.shape
    candidates = z if keys is None else keys

    def e(a, b):
        return math.exp(float(torch.nn.functional.cosine_similarity(a, b, dim=0)) / temperature)

    anchors = []
    for v in range(V):
        for i in range(N):
            negatives = [candidates[u, j] for u in range(V) for j in range(N) if j != i]
            below = sum(e(z[v, i], n) for n in negatives)
            below += sum(e(z[v, i], n) for n in (memory if memory is not None else []))
            positives = [e(z[v, i], candidates[u, i]) for u in range(positive_views or V) if u != v]
            anchors.append(np.mean([-math.log(p / (p + below)) for p in positives]))
    return np.mean(anchors)


@given(st.integers(2, 4), st.integers(2, 5), st.floats(0.05, 3), st.booleans(), st.booleans(), st.booleans())
def test_equals_the_formula(V, N, temperature, multicrop, with_keys, with_memory):
    z = torch.randn(V, N, 5, dtype=torch.float64)
    keys = torch.randn(V, N, 5, dtype=torch.float64) if with_keys else None
    memory = torch.randn(3, 5, dtype=torch.float64) if with_memory else None
    G = 2 if multicrop else None
    loss = InfoNCE(temperature, positive_views=G)(z, keys, memory)
    assert float(loss) == pytest.approx(by_the_book(z, temperature, G, keys, memory), rel=1e-9)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_golden_values(temperature):
    z = torch.tensor(GOLDENS["z"]).view(2, 10, 8).requires_grad_()
    loss = InfoNCE(temperature)(z)
    loss.backward()
    assert loss.item() == pytest.approx(float(GOLDENS[f"loss_z_t{temperature}"]), rel=1e-9)
    np.testing.assert_allclose(z.grad.view(20, 8), GOLDENS[f"grad_z_t{temperature}"], rtol=1e-9, atol=1e-14)


@given(st.integers(2, 20), st.floats(0.05, 2))
def test_equals_pytorch_metric_learning_for_two_views(N, temperature):
    z = torch.randn(2, N, 6, dtype=torch.float64)
    expected = NTXentLoss(temperature)(z.flatten(0, 1), torch.arange(N).repeat(2))
    torch.testing.assert_close(InfoNCE(temperature)(z), expected)


def test_subtracting_the_diagonal_instead_of_masking_it_loses_digits():
    """A trap seen in public programs: e^{1/τ} taken off a row sum, in float32 at τ = 0.05."""
    images = torch.randn(32, 64)
    z = torch.nn.functional.normalize(images + 0.5 * torch.randn(2, 32, 64), dim=-1)
    x = z.flatten(0, 1)
    e = (x @ x.T / 0.05).exp()
    positive = e.diagonal(32).repeat(2)
    trap = -(positive / (e.sum(1) - math.exp(1 / 0.05))).log().mean()
    exact = InfoNCE(0.05)(z.double())
    assert abs(InfoNCE(0.05)(z) - exact) / exact < 1e-5
    assert abs(trap - exact) / exact > 1e-2


def test_tends_to_the_hardest_negative_hinge():
    z = torch.randn(2, 8, 6, dtype=torch.float64)
    x = torch.nn.functional.normalize(z, dim=-1).flatten(0, 1)
    s = x @ x.T
    same = torch.arange(8).repeat(2)
    hardest = s.masked_fill(same[:, None] == same, -torch.inf).amax(1)
    positive = s.diagonal(8).repeat(2)
    hinge = (hardest - positive).clamp(min=0).mean()
    torch.testing.assert_close(1e-4 * InfoNCE(1e-4)(z), hinge, rtol=0, atol=1e-4)


@given(st.integers(2, 4), st.booleans(), st.booleans())
def test_assignment_is_the_softmax_over_a_positive_and_the_negatives(V, multicrop, with_memory):
    N, temperature = 4, 0.3
    z = torch.randn(V, N, 5, dtype=torch.float64)
    memory = torch.randn(3, 5, dtype=torch.float64) if with_memory else None
    G = 2 if multicrop else V
    A = InfoNCE(temperature, positive_views=2 if multicrop else None).assignment(z, memory=memory)
    x = torch.nn.functional.normalize(z, dim=-1).flatten(0, 1)
    candidates = x if memory is None else torch.cat([x, torch.nn.functional.normalize(memory, dim=-1)])
    logits = x @ candidates.T / temperature
    expected = torch.zeros_like(A)
    for a in range(V * N):
        v, i = divmod(a, N)
        positives = [u * N + i for u in range(G) if u != v]
        negatives = [c for c in range(len(candidates)) if c >= V * N or c % N != i]
        for p in positives:
            expected[a, [p, *negatives]] += logits[a, [p, *negatives]].softmax(0) / len(positives)
    torch.testing.assert_close(A, expected)
    torch.testing.assert_close(A.sum(1), torch.ones(V * N, dtype=A.dtype))
