"""LinearAssignment against eq. 3, 4, 12 and 13 written out, and its two propositions."""

import itertools
import math

import pytest
import torch
from every_loss import normal, slope
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from torch.nn import functional as F

from setclr.losses.linear import LinearAssignment

minings = st.sampled_from(["one-to-one", "batch-hard"])
distances = st.sampled_from(["cosine", "euclidean"])


def cost(z, margin, distance):
    """S_m, one pair at a time."""
    (a, b), N = F.normalize(z, dim=-1), z.shape[1]
    d = {"cosine": lambda x, y: 1 - x @ y, "euclidean": lambda x, y: (x - y).norm()}[distance]
    S = torch.stack([torch.stack([d(a[i], b[j]) for j in range(N)]) for i in range(N)])
    return S + margin * torch.eye(N, dtype=z.dtype)


@given(
    st.integers(2, 5), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 1e-3, 0.3, 1e3]), minings, distances
)
def test_equals_the_formula(N, margin, temperature, mining, distance):
    """[tr(S_m Y_gtᵀ) − (smoothed) min over Y of tr(S_m Yᵀ)] / N, one matching at a time, and its mean Y."""
    z = normal(2, N, 4)
    S = cost(z, margin, distance)
    one = mining == "one-to-one"
    rows = itertools.permutations(range(N)) if one else itertools.product(range(N), repeat=N)
    matrices = torch.stack([torch.eye(N, dtype=z.dtype)[list(row)] for row in rows])
    costs = torch.einsum("ij,wij->w", S, matrices)
    weights = (-costs / (temperature or 1e-12)).softmax(0)
    least = -temperature * (-costs / temperature).logsumexp(0) if temperature else costs.min()
    loss = LinearAssignment(margin, temperature, mining, distance)
    assert loss(z).item() == pytest.approx(float(S.trace() - least) / N, rel=1e-9, abs=1e-9) and loss(z) >= 0
    expected = torch.zeros(2 * N, 2 * N, dtype=z.dtype)
    expected[:N, N:] = torch.einsum("w,wij->ij", weights, matrices)
    torch.testing.assert_close(loss.assignment(z), expected + expected.T)  # the solution and its transpose


@given(st.integers(2, 30), st.floats(0, 1), distances)
def test_one_to_one_equals_scipy(N, margin, distance):
    z = normal(2, N, 6)
    S = cost(z, margin, distance).numpy()
    expected = (S.trace() - S[linear_sum_assignment(S)].sum()) / N
    found = LinearAssignment(margin, distance=distance)(z).item()
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.integers(2, 20), st.floats(1e-3, 2), distances)
def test_proposition_2_batch_hard_is_temperature_times_infonce(N, temperature, distance):
    z = normal(2, N, 6, grad=True)
    loss = LinearAssignment(0.0, temperature, "batch-hard", distance)(z)
    infonce = F.cross_entropy(-cost(z, 0.0, distance) / temperature, torch.arange(N))
    torch.testing.assert_close(loss, temperature * infonce, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(slope(loss, z), slope(temperature * infonce, z), rtol=1e-9, atol=1e-12)


@given(st.integers(2, 20), st.floats(0, 2), distances)
def test_proposition_1_batch_hard_is_the_hardest_negative_hinge(N, margin, distance):
    z = normal(2, N, 6)
    S = cost(z, 0.0, distance)
    negative = S.masked_fill(torch.eye(N, dtype=torch.bool), torch.inf).amin(1)
    triplet = (S.diagonal() - negative + margin).clamp(min=0).mean()
    torch.testing.assert_close(LinearAssignment(margin, 0.0, "batch-hard", distance)(z), triplet)


def test_proposition_1_is_no_identity_one_to_one():
    """There matched negatives must be distinct: the loss is at most the triplet's, and mostly less."""
    below = []
    for z in normal(20, 2, 12, 3):
        one_to_one, batch_hard = (LinearAssignment(0.5, mining=m)(z) for m in ("one-to-one", "batch-hard"))
        assert 0 < one_to_one <= batch_hard + 1e-12
        below.append(one_to_one < batch_hard - 0.05)
    assert sum(below) > 10


def test_equation_13_misses_an_exp():
    """The printed log Σ_j (−S_ij/τ) is the logarithm of a negative number."""
    S = cost(torch.randn(2, 6, 4), 0.0, "cosine")
    assert (S.diagonal() + 0.1 * (-S / 0.1).sum(1).log()).isnan().all()
    assert LinearAssignment(0.0, 0.1, "batch-hard")(torch.randn(2, 6, 4)) > 0


@given(st.integers(2, 6), minings, distances)
def test_the_smoothed_loss_tends_to_the_hard_one(N, mining, distance):
    z = normal(2, N, 4)
    hard = LinearAssignment(0.5, 0.0, mining, distance)(z)
    smooth = LinearAssignment(0.5, 1e-4, mining, distance)(z)
    assert hard - 1e-12 <= smooth <= hard + 1e-4 * math.log(N) + 1e-12


def test_zero_exactly_where_the_true_matching_wins():
    a = F.normalize(torch.randn(12, 16), dim=-1)
    z = torch.stack([a, a + 0.05 * torch.randn(12, 16)]).requires_grad_()
    for mining in ("one-to-one", "batch-hard"):
        loss = LinearAssignment(0.1, mining=mining)(z)
        assert loss == 0 and slope(loss, z).abs().max() == 0
