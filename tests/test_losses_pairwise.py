"""InfoNCE, NTLogistic and Triplet against their formulas, golden values and pytorch-metric-learning."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.losses import NTXentLoss, TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner
from pytorch_metric_learning.reducers import MeanReducer
from torch.nn import functional as F

from setclr.losses import HardNegatives, InfoNCE
from setclr.losses.contrast import contrast
from setclr.losses.pairwise import NTLogistic, Triplet

GOLDENS = np.load(Path(__file__).parent / "goldens" / "ntxent_mmcl_repo.npz")


def by_the_book(z, temperature, positive_views=None, keys=None, memory=None):
    """GroCo eq. 11, one anchor and one positive at a time."""
    V, N, _ = z.shape
    candidates = z if keys is None else keys

    def e(a, b):
        return math.exp(float(F.cosine_similarity(a, b, dim=0)) / temperature)

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


@pytest.mark.parametrize("loss", [InfoNCE, HardNegatives, Triplet])
def test_stopped_candidates_are_keys(loss):
    """GroCo's table 9a: only the anchor learns."""
    z = torch.randn(2, 6, 5, dtype=torch.float64, requires_grad=True)
    free, stopped = loss(0.1), loss(0.1, stop_gradient=True)
    value, with_keys = stopped(z), free(z, keys=z.detach())
    assert (
        value == with_keys == free(z)
        and repr(stopped) == f"{free!r:.{len(repr(free)) - 1}}, stop_gradient=True)"
    )
    (found,), (expected,), (both,) = (torch.autograd.grad(x, z) for x in (value, with_keys, free(z)))
    assert torch.equal(found, expected) and (both - found).abs().max() > 1e-3


def test_subtracting_the_diagonal_instead_of_masking_it_loses_digits():
    """A trap seen in public programs: e^{1/τ} taken off a row sum, in float32 at τ = 0.05."""
    images = torch.randn(32, 64)
    z = F.normalize(images + 0.5 * torch.randn(2, 32, 64), dim=-1)
    x = z.flatten(0, 1)
    e = (x @ x.T / 0.05).exp()
    positive = e.diagonal(32).repeat(2)
    trap = -(positive / (e.sum(1) - math.exp(1 / 0.05))).log().mean()
    exact = InfoNCE(0.05)(z.double())
    assert abs(InfoNCE(0.05)(z) - exact) / exact < 1e-5
    assert abs(trap - exact) / exact > 1e-2


def test_the_mean_of_the_logarithms_is_not_the_logarithm_of_the_mean():
    """Another trap: −log(mean p) forgives a batch its worst anchors; InfoNCE is mean(−log p)."""
    z = F.normalize(torch.randn(32, 16) + 0.7 * torch.randn(2, 32, 16), dim=-1).double()
    x = z.flatten(0, 1)
    rows = (x @ x.T / 0.05).fill_diagonal_(-torch.inf).softmax(-1)
    p = torch.cat([rows.diagonal(32), rows.diagonal(-32)])
    torch.testing.assert_close(-p.log().mean(), InfoNCE(0.05)(z))
    assert -p.mean().log() < 0.7 * InfoNCE(0.05)(z)
    torch.testing.assert_close(-p.mean().log(), InfoNCE(0.05, average="probabilities")(z))
    for more in (dict(weight=torch.ones(32)), dict(reduction="none")):
        with pytest.raises(ValueError, match="reduction must be 'mean' and weight None .* average=None"):
            InfoNCE(0.05, average="probabilities")(z, **more)


def test_tends_to_the_hardest_negative_hinge():
    z = torch.randn(2, 8, 6, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1)
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
    x = F.normalize(z, dim=-1).flatten(0, 1)
    candidates = x if memory is None else torch.cat([x, F.normalize(memory, dim=-1)])
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


@given(st.integers(2, 4), st.integers(2, 6), st.floats(0.02, 3))
def test_nt_logistic_equals_the_formula(V, N, temperature):
    z = torch.randn(V, N, 5, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1).numpy()
    A, positive, negative = np.zeros((V * N, V * N)), [], []
    for a in range(V * N):
        for b in set(range(V * N)) - {a}:
            s = x[a] @ x[b] / temperature
            A[a, b] = 1 / (1 + math.exp(-s))
            (positive if a % N == b % N else negative).append(
                math.log1p(math.exp(-s if a % N == b % N else s))
            )
    loss = NTLogistic(temperature)
    assert float(loss(z)) == pytest.approx(np.mean(positive) + np.mean(negative), rel=1e-9)
    np.testing.assert_allclose(loss.assignment(z), A, rtol=1e-9)


def triplets_by_the_book(z, triplet, keys=None, memory=None):
    """The loss and the assignment, one anchor at a time."""
    V, N, _ = z.shape
    x = F.normalize(z, dim=-1).numpy()
    y = x if keys is None else F.normalize(keys, dim=-1).numpy()
    extra = [] if memory is None else list(F.normalize(memory, dim=-1).numpy())
    candidates = [*y.reshape(V * N, -1), *extra]

    def d(a, b):
        return 1 - a @ b if triplet.distance == "cosine" else math.sqrt(((a - b) ** 2).sum())

    anchors, A = [], np.zeros((V * N, len(candidates)))
    for a in range(V * N):
        v, i = divmod(a, N)
        positive = [d(x[v, i], y[u, i]) for u in range(triplet.positive_views or V) if u != v]
        positive = [max(positive)] if triplet.positives == "hardest" else positive
        negative = [c for c in range(len(candidates)) if c >= V * N or c % N != i]
        negative = sorted(negative, key=lambda c: d(x[v, i], candidates[c]))[: triplet.negatives]
        A[a, negative] = 1 / len(negative)
        gaps = [p - d(x[v, i], candidates[c]) for p in positive for c in negative]
        anchors.append(
            np.mean(gaps if triplet.margin is None else [max(0, g + triplet.margin) for g in gaps])
        )
    return np.mean(anchors), A


@given(
    V=st.integers(2, 4),
    N=st.integers(2, 5),
    E=st.sampled_from([3, 40]),
    margin=st.sampled_from([None, 0, 0.5, 1.6]),
    positives=st.sampled_from(["hardest", "all"]),
    negatives=st.integers(1, 20),
    distance=st.sampled_from(["euclidean", "cosine"]),
    multicrop=st.booleans(),
    with_keys=st.booleans(),
    with_memory=st.booleans(),
)
def test_triplet_equals_the_formula(V, N, E, multicrop, with_keys, with_memory, **arguments):
    """With E = 40 the differences of several negatives would be many numbers, and are not stored."""
    z = torch.randn(V, N, E, dtype=torch.float64)
    keys = torch.randn(V, N, E, dtype=torch.float64) if with_keys else None
    memory = torch.randn(3, E, dtype=torch.float64) if with_memory else None
    triplet = Triplet(**arguments, positive_views=2 if multicrop else None)
    loss, A = triplets_by_the_book(z, triplet, keys, memory)
    assert float(triplet(z, keys, memory)) == pytest.approx(loss, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(triplet.assignment(z, keys, memory), A, rtol=1e-9)


@given(st.integers(2, 4), st.integers(2, 8), st.floats(0, 2), st.sampled_from(["euclidean", "cosine"]))
def test_triplet_equals_pytorch_metric_learning(V, N, margin, distance):
    z, label = torch.randn(V, N, 6, dtype=torch.float64), torch.arange(N).repeat(V)
    theirs = LpDistance() if distance == "euclidean" else CosineSimilarity()
    oracle = TripletMarginLoss(margin, distance=theirs, reducer=MeanReducer())
    hard = BatchHardMiner(distance=theirs)(z.flatten(0, 1), label)
    torch.testing.assert_close(
        Triplet(margin, distance=distance)(z), oracle(z.flatten(0, 1), label, hard), atol=1e-9, rtol=1e-7
    )
    torch.testing.assert_close(
        Triplet(margin, "all", 1000, distance)(z), oracle(z.flatten(0, 1), label), atol=1e-9, rtol=1e-7
    )


def test_all_against_all_is_the_hinge_of_mmcls_preliminaries():
    """[t − sim(x, x⁺) + sim(x, x⁻)]₊, the mean over x, x⁺ and x⁻."""
    z = torch.randn(3, 5, 4, dtype=torch.float64)
    points, t, terms = F.normalize(z, dim=-1).flatten(0, 1), 0.5, []
    for x, p, n in itertools.product(range(15), repeat=3):
        if x != p and x % 5 == p % 5 != n % 5:
            terms.append(max(0.0, float(t - points[x] @ points[p] + points[x] @ points[n])))
    assert float(Triplet(t, "all", 510, "cosine")(z)) == pytest.approx(np.mean(terms), rel=1e-12)


@pytest.mark.parametrize("E", [3, 100])
def test_equal_points_have_distance_and_gradient_0(E):
    z = torch.ones(2, 3, E, requires_grad=True)
    triplet = Triplet(0.5, "all", negatives=4)
    (gradient,) = torch.autograd.grad(triplet(z), z)
    assert triplet(z).item() == 0.5 and torch.equal(gradient, torch.zeros_like(z))


@pytest.mark.parametrize("N, E", [(2, 16), (8, 64)])
def test_small_distances_keep_their_digits(N, E):
    """At distances of about 0.005 in float32, stored and by cdist; √(2 − 2s) is 100 times worse."""
    z = torch.randn(1, 1, E) + 0.005 * torch.randn(2, N, E)
    triplet = Triplet(negatives=1000)
    points = triplet.points(z)
    column, _ = triplet.hardest(contrast(points))
    exact = triplet.distances(triplet.points(z.double()), column)
    x = points.anchors.flatten(0, 1)
    trap = (2 - 2 * x @ x.T).clamp(min=0).sqrt().view(2, N, 2 * N).gather(-1, column)
    error, trapped = (((d - exact) / exact).abs().max() for d in (triplet.distances(points, column), trap))
    assert error < 5e-5 and trapped > 10 * error


@pytest.mark.parametrize(
    "loss",
    [
        NTLogistic(0.2),
        Triplet(),
        Triplet(None, "all", 3, "cosine"),
        Triplet(1.6, "all", 2, positive_views=2),
        Triplet(1.6, negatives=100),
    ],
    ids=repr,
)
@pytest.mark.parametrize("V, N, E", [(2, 4, 3), (2, 2, 20)])
def test_gradcheck(loss, V, N, E):
    assert torch.autograd.gradcheck(loss, torch.randn(V, N, E, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: NTLogistic(0), "temperature must be > 0, got 0"),
        (lambda: Triplet(-0.1), "margin must be >= 0, got -0.1; None leaves the hinge out"),
        (lambda: Triplet(math.inf), "margin must be >= 0, got inf; None leaves the hinge out"),
        (lambda: Triplet(positives="hard"), "positives must be one of .* did you mean 'hardest'"),
        (lambda: Triplet(negatives=0), "negatives must be an integer >= 1, got 0"),
        (lambda: Triplet(distance="cos"), "distance must be one of 'euclidean', 'cosine', got 'cos'"),
        (lambda: Triplet(positive_views=3)(torch.randn(2, 3, 4)), "positive_views must be .* <= 2, got 3"),
        (lambda: NTLogistic()(torch.ones(2, 3, 4), keys=torch.ones(2, 3, 4)), "keys must be None for NTLog"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
