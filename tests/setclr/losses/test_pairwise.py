"""InfoNCE, Triplet and their relatives: golden values, limits, bounds, and formulas not in test_points.py."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import close, cosines, golden, normal, same_as_golden
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.losses import (
    HCL,
    IOT,
    LOSSES,
    AlignUniform,
    DebiasedInfoNCE,
    HardNegatives,
    InfoNCE,
    InvaSpread,
    SigLIP,
    SupCon,
    Triplet,
)

GOLDENS = golden("ntxent_mmcl_repo")
SIZES = dict(V=st.integers(2, 4), N=st.integers(2, 6))


def batch(V, N):
    """The images' own share makes positives more alike than negatives."""
    return normal(N, 5) + 0.7 * normal(V, N, 5)


def test_golden_values():
    for temperature in (0.1, 0.5, 1.0):
        z = torch.tensor(GOLDENS["z"]).view(2, 10, 8).requires_grad_()
        wanted = (GOLDENS[f"{name}_z_t{temperature}"] for name in ("loss", "grad"))
        same_as_golden(InfoNCE(temperature)(z), z, *wanted)


def test_the_mean_of_the_logarithms_is_not_the_logarithm_of_the_mean():
    """Another trap: −log(mean p) forgives a batch its worst anchors; InfoNCE is mean(−log p)."""
    z = F.normalize(torch.randn(32, 16) + 0.7 * torch.randn(2, 32, 16), dim=-1).double()
    rows = (cosines(z) / 0.05).fill_diagonal_(-torch.inf).softmax(-1)
    p = torch.cat([rows.diagonal(32), rows.diagonal(-32)])
    close(-p.log().mean(), InfoNCE(0.05)(z))
    assert -p.mean().log() < 0.7 * InfoNCE(0.05)(z)
    close(-p.mean().log(), InfoNCE(0.05, average="probabilities")(z))
    for more in (dict(weight=torch.ones(32)), dict(reduction="none")):
        with pytest.raises(ValueError, match="reduction must be .* for InfoNCE.*no value"):
            InfoNCE(0.05, average="probabilities")(z, **more)


@pytest.mark.parametrize("N, E", [(2, 16), (8, 64)])
def test_small_distances_keep_their_digits(N, E):
    """At distances of about 0.005 in float32, stored and by cdist; √(2 − 2s) is 100 times worse."""
    z = torch.randn(1, 1, E) + 0.005 * torch.randn(2, N, E)
    triplet = Triplet(negatives=1000)
    near = triplet.batch(z)
    column, _ = triplet.hardest(near.table())
    exact = triplet.distances(triplet.batch(z.double()), column)
    trap = (2 - 2 * cosines(z)).clamp(min=0).sqrt().gather(-1, column)
    error, trapped = (((d - exact) / exact).abs().max() for d in (triplet.distances(near, column), trap))
    assert error < 5e-5 and trapped > 10 * error


def test_keep_takes_at_least_one_and_exactly_its_fraction_of_equal_negatives():
    equal = torch.ones(2, 11, 3, dtype=torch.float64)
    assert HardNegatives(keep=1e-6)(equal).item() == pytest.approx(math.log(1 + 1))
    assert HardNegatives(keep=0.25)(equal).item() == pytest.approx(math.log(1 + 5))
    assert (HardNegatives(keep=0.01).assignment(normal(8, 2, 4)) > 0).sum(1).eq(7 + 1).all()


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 0.5])
@pytest.mark.parametrize("make", [DebiasedInfoNCE, HCL])
def test_where_the_bound_is_active_value_and_gradient_are_those_of_the_bound(make, temperature):
    """Positives equal, negatives nearly opposite: the corrected mass would be negative."""
    side = torch.tensor([[1.0, 0.0], [-1.0, 0.1]], dtype=torch.float64)
    z = torch.stack([side, side + torch.tensor([0.0, 1e-2])]).requires_grad_()
    near = F.cosine_similarity(z[0], z[1], dim=-1) / temperature
    expected = F.softplus(math.log(2) - 1 / temperature - near).mean()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        close(make(temperature, prior=0.3)(z), expected, z, rel=1e-9, abs=1e-300)


@given(**SIZES, alpha=st.floats(0.3, 4), t=st.floats(0.1, 10), weight=st.floats(0, 3))
def test_align_uniform_equals_the_formula(V, N, alpha, t, weight):
    z = batch(V, N)
    x = F.normalize(z, dim=-1)
    pairs = itertools.permutations(range(V), 2)
    align = np.mean([(x[v, i] - x[u, i]).norm().item() ** alpha for v, u in pairs for i in range(N)])
    uniform = np.mean([float(torch.pdist(x[v]).pow(2).mul(-t).exp().mean().log()) for v in range(V)])
    loss = AlignUniform(alpha, t, weight)
    assert loss(z).item() == pytest.approx(align + weight * uniform, rel=1e-9, abs=1e-12)

    A = torch.zeros(V * N, V * N, dtype=torch.float64)
    for v, (i, j) in itertools.product(range(V), itertools.permutations(range(N), 2)):
        A[v * N + i, v * N + j] = (-t * (x[v, i] - x[v, j]).square().sum()).exp()
    close(loss.assignment(z), A / A.sum(1, keepdim=True))


@given(**SIZES, temperature=st.floats(0.02, 3))
def test_inva_spread_equals_the_formula(V, N, temperature):
    z = batch(V, N)
    f = F.normalize(z, dim=-1).numpy()

    def P(v, x):
        e = np.exp(f[v] @ x / temperature)
        return e / e.sum()

    losses, A = [], np.zeros((V, N, V, N))
    for (v, u), i in itertools.product(itertools.permutations(range(V), 2), range(N)):
        spread = sum(math.log1p(-P(v, f[v, j])[i]) for j in range(N) if j != i)
        losses.append(-math.log(P(v, f[u, i])[i]) - spread)
        A[u, i, v] = P(v, f[u, i]) / (V - 1)
    loss = InvaSpread(temperature)
    assert loss(z).item() == pytest.approx(np.mean(losses), rel=1e-9)
    np.testing.assert_allclose(loss.assignment(z), A.reshape(V * N, V * N), rtol=1e-9, atol=1e-15)


@given(N=st.integers(2, 6), temperature=st.floats(0.05, 1), bias=st.floats(-12, 3))
def test_siglip_equals_open_clips_formula_and_both_numbers_learn(N, temperature, bias):
    loss, z = SigLIP(temperature, bias).double(), normal(2, N, 5, grad=True)
    a, b = F.normalize(z, dim=-1)
    y = 2 * torch.eye(N) - 1
    learnt = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (temperature, bias)]
    wanted = -F.logsigmoid(y * (a @ b.T / learnt[0] + learnt[1])).sum() / N
    close(loss(z), wanted, rel=1e-6)
    (by_tau, by_bias), (of_log, of_bias) = (
        torch.autograd.grad(x, at) for x, at in ((wanted, learnt), (loss(z), [*loss.parameters()]))
    )
    close(of_log, temperature * by_tau, rel=1e-5, abs=1e-6)
    close(of_bias, by_bias, rel=1e-5, abs=1e-6)
    with torch.no_grad():
        loss.bias.number -= 100  # it has no bounds, and its text has it
    assert repr(loss).endswith(f"bias={loss.bias.value:.6g})") and loss.bias.value < -50


@given(**SIZES, U=st.integers(1, 3), Q=st.integers(0, 3), seed=st.integers(0, 2**31))
def test_soft_positives_are_a_cross_entropy_with_all_candidates(V, N, U, Q, seed):
    g = torch.Generator().manual_seed(seed)
    z, keys, memory = batch(V, N), normal(U, N, 5), normal(Q, 5) if Q else None
    for candidates, more in ((z, {}), (keys, {"keys": keys})):
        columns = [candidates.flatten(0, 1), *([memory] if Q else [])]
        s = F.normalize(z.flatten(0, 1), dim=1) @ F.normalize(torch.cat(columns), dim=1).T / 0.2
        w = torch.rand(s.shape, generator=g, dtype=torch.float64) * (torch.rand(s.shape, generator=g) < 0.7)
        w[:, -1], w[:, 0] = 0.1, w[:, 0] + 0.1  # each row has a positive that is not the anchor
        if not more:  # of views the anchor itself is no candidate
            s = s.masked_fill(torch.eye(*s.shape, dtype=torch.bool), -torch.inf)
        counted = w.masked_fill(s.isneginf(), 0)
        log = s.log_softmax(1).masked_fill(s.isneginf(), 0)
        wanted = -(counted * log).sum(1) / counted.sum(1)
        close(SupCon(0.2)(z, memory=memory, positives=w, reduction="none", **more).flatten(), wanted)
    classes = torch.arange(N) % 2
    if N > 2:  # an anchor alone in its class in one view would be left out with labels
        same = (classes.unsqueeze(1) == classes).repeat(V, V)
        close(SupCon(0.2)(z, positives=3.0 * same), SupCon(0.2)(z, labels=classes))


@pytest.mark.parametrize("loss", [kind() for kind in LOSSES if "labels" in kind.takes], ids=repr)
@pytest.mark.parametrize("V", [1, 2])
def test_a_batch_of_one_class_is_0_with_a_warning_as_one_of_distinct_classes_is(loss, V):
    z = normal(V, 4, 5, grad=True)
    for labels in (torch.ones(4).long(), *([torch.arange(4)] if V == 1 else [])):
        with pytest.warns(UserWarning, match="no anchor of this batch has both"):
            vars(loss).pop("_warned", None)
            value = loss(z, labels=labels)
        (slope,) = torch.autograd.grad(value, z)
        assert value == 0 and not slope.any()
    several = InfoNCE(average="probabilities")
    assert several(z.detach()[:1], labels=torch.ones(4).long()) == 0
    flat, y = normal(4, 5), torch.tensor([0, 0, 1, 2])  # two of four are left out
    kept = InfoNCE()(flat, labels=y, reduction="none")[:2]
    close(several(flat, labels=y), -(-kept).exp().mean().log())


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if "memory" in kind.takes])
def test_one_image_with_a_memory_is_a_batch(kind):
    """Its loss is what its anchors have in a batch of two whose others are named as no negatives."""
    a, memory = normal(2, 1, 5, grad=True), normal(7, 5)
    loss, both = kind(), torch.cat([a, normal(2, 1, 5)], dim=1)
    if kind not in (SupCon, IOT):  # in which every point is a candidate
        row, column = torch.arange(4).repeat_interleave(7), torch.arange(4, 11).repeat(4)
        pairs = (torch.tensor([0, 2]), torch.tensor([2, 0]), row, column)
        values = loss(both, memory=memory, positives=pairs, reduction="none")
        close(loss(a, memory=memory, reduction="none"), values[:, :1])
    (slope,) = torch.autograd.grad(loss(a, memory=memory), a)
    assert slope.isfinite().all() and slope.any()
    close(loss.assignment(a, memory=memory).sum(1), torch.ones(2, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"N >= 2 \(with a memory N >= 1\)"):
        loss(a)
