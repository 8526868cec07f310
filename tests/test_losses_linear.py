"""LinearAssignment against eq. 3, 4, 12 and 13 written out, and its two propositions."""

import itertools
import math

import pytest
import torch
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


def by_the_book(z, margin, temperature, mining, distance):
    """[tr(S_m Y_gtᵀ) − (smoothed) min over Y of tr(S_m Yᵀ)] / N, one matching at a time."""
    N = z.shape[1]
    S = cost(z, margin, distance)
    rows = (
        itertools.permutations(range(N)) if mining == "one-to-one" else itertools.product(range(N), repeat=N)
    )
    costs = [sum(float(S[i, j]) for i, j in enumerate(row)) for row in rows]
    least = min(costs)
    if temperature > 0:
        least -= temperature * math.log(sum(math.exp((least - c) / temperature) for c in costs))
    return (float(S.trace()) - least) / N


@given(
    st.integers(2, 5), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 1e-3, 0.3, 1e3]), minings, distances
)
def test_equals_the_formula(N, margin, temperature, mining, distance):
    z = torch.randn(2, N, 4, dtype=torch.float64)
    loss = LinearAssignment(margin, temperature, mining, distance)(z)
    expected = by_the_book(z, margin, temperature, mining, distance)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert loss >= 0


@given(st.integers(2, 30), st.floats(0, 1), distances)
def test_one_to_one_equals_scipy(N, margin, distance):
    z = torch.randn(2, N, 6, dtype=torch.float64)
    S = cost(z, margin, distance).numpy()
    expected = (S.trace() - S[linear_sum_assignment(S)].sum()) / N
    assert float(LinearAssignment(margin, distance=distance)(z)) == pytest.approx(
        expected, rel=1e-9, abs=1e-12
    )


@given(st.integers(2, 20), st.floats(1e-3, 2), distances)
def test_proposition_2_batch_hard_is_temperature_times_infonce(N, temperature, distance):
    z = torch.randn(2, N, 6, dtype=torch.float64, requires_grad=True)
    loss = LinearAssignment(0.0, temperature, "batch-hard", distance)(z)
    infonce = F.cross_entropy(-cost(z, 0.0, distance) / temperature, torch.arange(N))
    torch.testing.assert_close(loss, temperature * infonce, rtol=1e-9, atol=1e-12)
    (gradient,), (expected,) = (torch.autograd.grad(x, z) for x in (loss, temperature * infonce))
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


@given(st.integers(2, 20), st.floats(0, 2), distances)
def test_proposition_1_batch_hard_is_the_hardest_negative_hinge(N, margin, distance):
    z = torch.randn(2, N, 6, dtype=torch.float64)
    S = cost(z, 0.0, distance)
    negative = S.masked_fill(torch.eye(N, dtype=torch.bool), torch.inf).amin(1)
    triplet = (S.diagonal() - negative + margin).clamp(min=0).mean()
    torch.testing.assert_close(LinearAssignment(margin, 0.0, "batch-hard", distance)(z), triplet)


def test_proposition_1_is_no_identity_one_to_one():
    """There matched negatives must be distinct: the loss is at most the triplet's, and mostly less."""
    below = []
    for z in torch.randn(20, 2, 12, 3, dtype=torch.float64):
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
    z = torch.randn(2, N, 4, dtype=torch.float64)
    hard = LinearAssignment(0.5, 0.0, mining, distance)(z)
    smooth = LinearAssignment(0.5, 1e-4, mining, distance)(z)
    assert hard - 1e-12 <= smooth <= hard + 1e-4 * math.log(N) + 1e-12


def test_zero_exactly_where_the_true_matching_wins():
    a = F.normalize(torch.randn(12, 16), dim=-1)
    z = torch.stack([a, a + 0.05 * torch.randn(12, 16)]).requires_grad_()
    for mining in ("one-to-one", "batch-hard"):
        loss = LinearAssignment(0.1, mining=mining)(z)
        (gradient,) = torch.autograd.grad(loss, z)
        assert loss == 0 and gradient.abs().max() == 0


@given(st.integers(2, 5), st.sampled_from([0.0, 0.2]), minings, distances)
def test_assignment_holds_the_solution_and_its_transpose(N, temperature, mining, distance):
    z = torch.randn(2, N, 4, dtype=torch.float64)
    A = LinearAssignment(0.5, temperature, mining, distance).assignment(z)
    S = cost(z, 0.5, distance)
    if mining == "batch-hard":
        Y = (-S / temperature).softmax(1) if temperature else F.one_hot(S.argmin(1), N).double()
    else:
        matchings = [torch.eye(N, dtype=z.dtype)[list(p)] for p in itertools.permutations(range(N))]
        costs = torch.stack([(S @ Y.T).trace() for Y in matchings])
        weights = (-costs / (temperature or 1e-9)).softmax(0)
        Y = sum(w * Y for w, Y in zip(weights, matchings))
    expected = torch.zeros_like(A)
    expected[:N, N:], expected[N:, :N] = Y, Y.T
    torch.testing.assert_close(A, expected)


@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("mining", ["one-to-one", "batch-hard"])
@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_gradcheck(temperature, mining, distance):
    z = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(LinearAssignment(0.3, temperature, mining, distance), z)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("mining", ["one-to-one", "batch-hard"])
@pytest.mark.parametrize("temperature", [0.0, 1e-3, 1e3])
@pytest.mark.parametrize(
    "z",
    [
        torch.ones(2, 4, 3),
        torch.randn(4, 3) * torch.tensor([1.0, -1.0]).view(2, 1, 1),
        torch.randn(1, 4, 3).expand(2, 4, 3),
        torch.randn(2, 2, 3),
        1e-6 * torch.randn(2, 4, 3),
        1e6 * torch.randn(2, 4, 3),
        torch.randn(2, 4, 3).bfloat16(),
    ],
    ids=["all equal", "antipodal", "equal views", "N=2", "tiny", "huge", "bf16"],
)
def test_extremes_give_finite_values_and_gradients(z, temperature, mining, distance):
    z = z.clone().requires_grad_()
    loss = LinearAssignment(0.5, temperature, mining, distance)
    value = loss(z)
    value.backward()
    assert value.dtype == torch.float32 and value.isfinite() and z.grad.isfinite().all()
    assert loss.assignment(z).isfinite().all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: LinearAssignment(-0.1), "margin must be >= 0, got -0.1"),
        (lambda: LinearAssignment(math.nan), "margin must be >= 0, got nan"),
        (lambda: LinearAssignment(temperature=-1), "temperature must be >= 0, got -1"),
        (lambda: LinearAssignment(temperature="0"), "temperature must be >= 0, got '0'"),
        (lambda: LinearAssignment(mining="batchhard"), "mining must be .* did you mean 'batch-hard'"),
        (lambda: LinearAssignment(distance="l2"), "distance must be one of 'cosine', 'euclidean', got 'l2'"),
        (
            lambda: LinearAssignment()(torch.randn(3, 4, 5)),
            r"z must hold two views for LinearAssignment\(.*\), got 3",
        ),
        (
            lambda: LinearAssignment(temperature=0.1)(torch.randn(2, 9, 5)),
            r"z must hold at most 8 images for LinearAssignment\(.*\), got 9: it sums over all N! matchings",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
