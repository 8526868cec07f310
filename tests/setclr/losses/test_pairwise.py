"""InfoNCE and Triplet against golden values and other programs, traps of other programs, and limits.

test_points.py has their formulas.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import golden, normal, same_as_golden, slope
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.losses import NTXentLoss, TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner
from pytorch_metric_learning.reducers import MeanReducer
from torch.nn import functional as F

from setclr.losses import InfoNCE
from setclr.losses.contrast import contrast
from setclr.losses.pairwise import Triplet

GOLDENS = golden("ntxent_mmcl_repo")


def test_golden_values():
    for temperature in (0.1, 0.5, 1.0):
        z = torch.tensor(GOLDENS["z"]).view(2, 10, 8).requires_grad_()
        wanted = (GOLDENS[f"{name}_z_t{temperature}"] for name in ("loss", "grad"))
        same_as_golden(InfoNCE(temperature)(z), z, *wanted)


@given(st.integers(2, 20), st.floats(0.05, 2))
def test_equals_pytorch_metric_learning_for_two_views(N, temperature):
    z = normal(2, N, 6)
    expected = NTXentLoss(temperature)(z.flatten(0, 1), torch.arange(N).repeat(2))
    torch.testing.assert_close(InfoNCE(temperature)(z), expected)


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
    z = normal(2, 8, 6)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    s = x @ x.T
    same = torch.arange(8).repeat(2)
    hardest = s.masked_fill(same[:, None] == same, -torch.inf).amax(1)
    positive = s.diagonal(8).repeat(2)
    hinge = (hardest - positive).clamp(min=0).mean()
    torch.testing.assert_close(1e-4 * InfoNCE(1e-4)(z), hinge, rtol=0, atol=1e-4)


@given(st.integers(2, 4), st.integers(4, 8), st.floats(0, 2), st.sampled_from(["euclidean", "cosine"]))
def test_triplet_equals_pytorch_metric_learning(V, N, margin, distance):
    z, images, y = normal(V, N, 6), torch.arange(N).repeat(V), torch.arange(N) // 3
    x, classes = z.flatten(0, 1), y.repeat(V)
    theirs = LpDistance() if distance == "euclidean" else CosineSimilarity()
    oracle = TripletMarginLoss(margin, distance=theirs, reducer=MeanReducer())
    hard = oracle(x, classes, BatchHardMiner(distance=theirs)(x, classes))
    ours = Triplet(margin, distance=distance)(z, labels=y), Triplet(margin, "all", 1000, distance)(z)
    torch.testing.assert_close(ours, (hard, oracle(x, images)), atol=1e-9, rtol=1e-7)


def test_all_against_all_is_the_hinge_of_mmcls_preliminaries():
    """[t − sim(x, x⁺) + sim(x, x⁻)]₊, the mean over x, x⁺ and x⁻."""
    z = normal(3, 5, 4)
    points, t, terms = F.normalize(z, dim=-1).flatten(0, 1), 0.5, []
    for x, p, n in itertools.product(range(15), repeat=3):
        if x != p and x % 5 == p % 5 != n % 5:
            terms.append(max(0.0, float(t - points[x] @ points[p] + points[x] @ points[n])))
    assert float(Triplet(t, "all", 510, "cosine")(z)) == pytest.approx(np.mean(terms), rel=1e-12)


@pytest.mark.parametrize("E", [3, 100])
def test_equal_points_have_distance_and_gradient_0(E):
    z = torch.ones(2, 3, E, requires_grad=True)
    triplet = Triplet(0.5, "all", negatives=4)
    gradient = slope(triplet(z), z)
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
