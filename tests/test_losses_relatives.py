"""The relatives of InfoNCE against their formulas, an anchor and a positive at a time, and their limits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.losses import InfoNCE
from setclr.losses.relatives import (
    HCL,
    AlignUniform,
    DebiasedInfoNCE,
    DecoupledInfoNCE,
    HardNegatives,
    InvaSpread,
)

BATCH = dict(
    V=st.integers(2, 4),
    N=st.integers(2, 5),
    multicrop=st.booleans(),
    with_keys=st.booleans(),
    with_memory=st.booleans(),
)
SIZES = dict(V=st.integers(2, 4), N=st.integers(2, 6))


def batch(V, N, multicrop=False, with_keys=False, with_memory=False, E=5):
    """z, keys, memory and positive_views. The images' own share makes positives more alike than negatives."""
    z = torch.randn(N, E, dtype=torch.float64) + 0.7 * torch.randn(V, N, E, dtype=torch.float64)
    keys = z + 0.3 * torch.randn(V, N, E, dtype=torch.float64) if with_keys else None
    memory = torch.randn(3, E, dtype=torch.float64) if with_memory else None
    return z, keys, memory, 2 if multicrop else None


def check_against_the_book(loss, inner, z, keys=None, memory=None):
    """Loss and assignment of a relative of InfoNCE.

    `inner` solves the inner problem of one anchor with one positive: from e⁺ and the array of e⁻ it gives the
    negatives' mass g and the share of each.
    """
    V, N, _ = z.shape
    x = F.normalize(z, dim=-1).numpy()
    y = x if keys is None else F.normalize(keys, dim=-1).numpy()
    extra = np.empty((0, z.shape[2])) if memory is None else F.normalize(memory, dim=-1).numpy()
    losses, assignment = [], np.zeros((V * N, V * N + len(extra)))
    for v in range(V):
        for i in range(N):
            columns = [u * N + j for u in range(V) for j in range(N) if j != i]
            negatives = [y[u, j] for u in range(V) for j in range(N) if j != i] + list(extra)
            columns += range(V * N, V * N + len(extra))
            e = np.exp([x[v, i] @ n / loss.temperature for n in negatives])
            positives = [u for u in range(loss.positive_views or V) if u != v]
            scores = []
            for u in positives:
                e_positive = math.exp(x[v, i] @ y[u, i] / loss.temperature)
                g, shares = inner(e_positive, e)
                scores.append(math.log1p(g / e_positive))
                assignment[v * N + i, u * N + i] += e_positive / (e_positive + g) / len(positives)
                assignment[v * N + i, columns] += g / (e_positive + g) * shares / len(positives)
            losses.append(np.mean(scores))
    assert loss(z, keys, memory).item() == pytest.approx(np.mean(losses), rel=1e-9)
    np.testing.assert_allclose(loss.assignment(z, keys, memory), assignment, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(assignment.sum(1), 1)


@given(**BATCH, temperature=st.floats(0.02, 3), keep=st.floats(0.01, 1))
def test_hard_negatives_equal_the_formula(temperature, keep, **sizes):
    z, keys, memory, G = batch(**sizes)

    def inner(positive, negatives):
        kept = np.sort(negatives)[-max(1, round(keep * len(negatives))) :]
        return kept.sum(), np.where(negatives >= kept[0], negatives, 0) / kept.sum()

    check_against_the_book(HardNegatives(temperature, keep, positive_views=G), inner, z, keys, memory)


@given(**BATCH, temperature=st.floats(0.02, 3), prior=st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.99]))
def test_dcl_equals_the_formula(temperature, prior, **sizes):
    z, keys, memory, G = batch(**sizes)

    def inner(positive, negatives):
        n = len(negatives)
        g = max((negatives.sum() - n * prior * positive) / (1 - prior), n * math.exp(-1 / temperature))
        return g, negatives / negatives.sum()

    check_against_the_book(DebiasedInfoNCE(temperature, prior, positive_views=G), inner, z, keys, memory)


@given(
    **BATCH,
    temperature=st.floats(0.02, 3),
    prior=st.sampled_from([0.0, 0.01, 0.1, 0.5]),
    hardness=st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_hcl_equals_the_formula(temperature, prior, hardness, **sizes):
    z, keys, memory, G = batch(**sizes)

    def inner(positive, negatives):
        n, w = len(negatives), negatives**hardness
        total = (w * negatives).sum() / w.mean()
        g = max((total - n * prior * positive) / (1 - prior), n * math.exp(-1 / temperature))
        return g, w * negatives / (w * negatives).sum()

    check_against_the_book(HCL(temperature, prior, hardness, positive_views=G), inner, z, keys, memory)


@given(**BATCH, temperature=st.floats(0.02, 3))
def test_decoupled_equals_the_formula(temperature, **sizes):
    z, keys, memory, G = batch(**sizes)
    x = F.normalize(z, dim=-1)
    y = x if keys is None else F.normalize(keys, dim=-1)
    queue = torch.empty(0, z.shape[2]) if memory is None else F.normalize(memory, dim=-1)
    found, shares = [], torch.zeros(x.shape[0] * x.shape[1], len(y) * x.shape[1] + len(queue)).double()
    for row, (v, i) in enumerate(np.ndindex(*x.shape[:2])):
        s = torch.cat([y.flatten(0, 1) @ x[v, i], queue.double() @ x[v, i]]) / temperature
        s[i : len(y) * x.shape[1] : x.shape[1]] = -torch.inf  # the anchor's own image
        positives = [x[v, i] @ y[u, i] / temperature for u in range(G or len(y)) if u != v]
        found.append(s.logsumexp(0) - torch.stack(positives).mean())
        shares[row] = s.softmax(0)
    loss = DecoupledInfoNCE(temperature, G)
    torch.testing.assert_close(loss(z, keys, memory), torch.stack(found).mean())
    torch.testing.assert_close(loss.assignment(z, keys, memory), shares)


@pytest.mark.parametrize("N", [2, 5])
def test_decoupled_equals_lightlys(N):
    z = torch.randn(2, N, 6, dtype=torch.float64)
    x, own = F.normalize(z, dim=-1), torch.eye(N, dtype=torch.bool)
    total = 0.0
    for a, b in ((x[0], x[1]), (x[1], x[0])):  # Yeh et al. 2022, eq. 6, as in lightly's DCLLoss
        others = torch.cat([a @ a.T / 0.1, a @ b.T / 0.1], 1).masked_fill(own.repeat(1, 2), -torch.inf)
        total += (others.logsumexp(1) - (a * b).sum(1) / 0.1).mean() / 2
    torch.testing.assert_close(DecoupledInfoNCE()(z), total)


@given(**BATCH, temperature=st.floats(0.05, 2))
def test_limits_of_the_family(temperature, **sizes):
    z, keys, memory, G = batch(**sizes)
    for loss, limit in [
        (HardNegatives(temperature, keep=1, positive_views=G), InfoNCE(temperature, G)),
        (DebiasedInfoNCE(temperature, prior=0, positive_views=G), InfoNCE(temperature, G)),
        (HCL(temperature, hardness=0, positive_views=G), DebiasedInfoNCE(temperature, positive_views=G)),
    ]:
        torch.testing.assert_close(loss(z, keys, memory), limit(z, keys, memory))
        torch.testing.assert_close(loss.assignment(z, keys, memory), limit.assignment(z, keys, memory))


def test_hcl_tends_to_the_hardest_negative_in_place_of_all():
    z = torch.randn(2, 6, 5, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    same = torch.arange(6).repeat(2)
    hardest = (x @ x.T).masked_fill(same[:, None] == same, -torch.inf).amax(1)
    gap = (hardest - (x @ x.T).diagonal(6).repeat(2)) / 0.5
    expected = F.softplus(math.log(10) + gap).mean()
    torch.testing.assert_close(HCL(0.5, prior=0, hardness=1e4)(z), expected, rtol=1e-6, atol=0)


def test_keep_takes_at_least_one_and_exactly_its_fraction_of_equal_negatives():
    equal = torch.ones(2, 11, 3, dtype=torch.float64)
    assert HardNegatives(keep=1e-6)(equal).item() == pytest.approx(math.log(1 + 1))
    assert HardNegatives(keep=0.25)(equal).item() == pytest.approx(math.log(1 + 5))
    z = torch.randn(8, 2, 4, dtype=torch.float64)
    assert (HardNegatives(keep=0.01).assignment(z) > 0).sum(1).eq(7 + 1).all()


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 0.5])
@pytest.mark.parametrize("make", [DebiasedInfoNCE, HCL])
def test_where_the_bound_is_active_value_and_gradient_are_those_of_the_bound(make, temperature):
    """Positives equal, negatives nearly opposite: the corrected mass would be negative."""
    side = torch.tensor([[1.0, 0.0], [-1.0, 0.1]], dtype=torch.float64)
    z = torch.stack([side, side + torch.tensor([0.0, 1e-2])]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        loss = make(temperature, prior=0.3)(z)
        (gradient,) = torch.autograd.grad(loss, z)
    bound = math.log(2) - 1 / temperature
    expected = F.softplus(bound - F.cosine_similarity(z[0], z[1], dim=-1) / temperature).mean()
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
    (expected,) = torch.autograd.grad(expected, z)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-300)


@given(**SIZES, alpha=st.floats(0.3, 4), t=st.floats(0.1, 10), weight=st.floats(0, 3))
def test_align_uniform_equals_the_formula(V, N, alpha, t, weight):
    z, *_ = batch(V, N)
    x = F.normalize(z, dim=-1)
    align = np.mean(
        [
            (x[v, i] - x[u, i]).norm().item() ** alpha
            for v in range(V)
            for u in range(V)
            if u != v
            for i in range(N)
        ]
    )
    uniform = np.mean([float(torch.pdist(x[v]).pow(2).mul(-t).exp().mean().log()) for v in range(V)])
    loss = AlignUniform(alpha, t, weight)
    assert loss(z).item() == pytest.approx(align + weight * uniform, rel=1e-9, abs=1e-12)

    A = torch.zeros(V * N, V * N, dtype=torch.float64)
    for v in range(V):
        for i in range(N):
            for j in set(range(N)) - {i}:
                A[v * N + i, v * N + j] = (-t * (x[v, i] - x[v, j]).square().sum()).exp()
    torch.testing.assert_close(loss.assignment(z), A / A.sum(1, keepdim=True))


def test_equation_7_of_iot_cl_misses_a_sign():
    """Printed with exp(+2‖x − y‖²) uniformity would be best where all points are one."""
    spread, collapsed = torch.randn(2, 8, 3, dtype=torch.float64), torch.ones(2, 8, 3, dtype=torch.float64)

    def printed(z):
        x = F.normalize(z, dim=-1)
        return (2 * torch.cdist(x, x).square()).exp().sum().log()

    uniformity = AlignUniform(weight=1.0), AlignUniform(weight=0.0)
    right = [float(uniformity[0](z) - uniformity[1](z)) for z in (spread, collapsed)]
    assert right[0] < right[1] and printed(spread) > printed(collapsed)


def test_equation_7_read_as_it_stands_is_another_loss():
    """With its sign mended: sums, and pairs across the views, an image with its own other view included."""
    cosines = []
    for _ in range(20):
        z = torch.randn(2, 8, 3, dtype=torch.float64, requires_grad=True)
        one, other = F.normalize(z, dim=-1)
        literal = (one - other).square().sum() + (-2 * torch.cdist(one, other).square()).exp().sum().log()
        (theirs,), (ours,) = (torch.autograd.grad(x, z) for x in (literal, AlignUniform()(z)))
        cosines.append(F.cosine_similarity(theirs.flatten(), ours.flatten(), dim=0).item())
    assert np.mean(cosines) < 0.9


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.5, 2.0, 3.0])
def test_alignment_of_equal_positives_has_gradient_0(alpha):
    z = torch.randn(1, 5, 4).repeat(3, 1, 1).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        (gradient,) = torch.autograd.grad(AlignUniform(alpha, weight=0)(z), z)
    assert torch.equal(gradient, torch.zeros_like(z))


@given(**SIZES, temperature=st.floats(0.02, 3))
def test_inva_spread_equals_the_formula(V, N, temperature):
    z, *_ = batch(V, N)
    f = F.normalize(z, dim=-1).numpy()

    def P(v, x):
        e = np.exp(f[v] @ x / temperature)
        return e / e.sum()

    losses, A = [], np.zeros((V, N, V, N))
    for v in range(V):
        for u in set(range(V)) - {v}:
            for i in range(N):
                spread = sum(math.log1p(-P(v, f[v, j])[i]) for j in range(N) if j != i)
                losses.append(-math.log(P(v, f[u, i])[i]) - spread)
                A[u, i, v] = P(v, f[u, i]) / (V - 1)
    loss = InvaSpread(temperature)
    assert loss(z).item() == pytest.approx(np.mean(losses), rel=1e-9)
    np.testing.assert_allclose(loss.assignment(z), A.reshape(V * N, V * N), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "loss",
    [
        AlignUniform(),
        AlignUniform(alpha=1.0, t=1.0, weight=0.5),
        InvaSpread(),
        HardNegatives(keep=0.4),
        DebiasedInfoNCE(),
        DebiasedInfoNCE(temperature=0.1, prior=0.2, positive_views=2),
        HCL(),
    ],
    ids=repr,
)
@pytest.mark.parametrize("V, N", [(2, 4), (3, 3)])
def test_gradcheck(loss, V, N):
    assert torch.autograd.gradcheck(loss, torch.randn(V, N, 4, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: AlignUniform(alpha=0), "alpha must be > 0 and <= 64, got 0; the paper uses 1 and 2"),
        (lambda: AlignUniform(t=-2), "t must be > 0, got -2"),
        (lambda: AlignUniform(weight=-1), "weight must be >= 0, got -1"),
        (lambda: InvaSpread(0), "temperature must be > 0, got 0; the paper uses 0.1"),
        (lambda: HardNegatives(keep=0), "keep must be > 0 and <= 1, got 0"),
        (lambda: HardNegatives(keep=1.5), "keep must be > 0 and <= 1, got 1.5"),
        (lambda: HardNegatives(positive_views=1), "positive_views must be an integer >= 2, got 1"),
        (lambda: DebiasedInfoNCE(prior=1), "prior must be >= 0 and <= 0.99, got 1"),
        (lambda: DebiasedInfoNCE(temperature=math.nan), "temperature must be > 0, got nan"),
        (lambda: HCL(hardness=-1), "hardness must be >= 0, got -1"),
        (lambda: HCL(positive_views=3)(torch.randn(2, 3, 4)), "positive_views must be .* <= 2, got 3"),
        (
            lambda: InvaSpread()(torch.ones(2, 3, 4), keys=torch.ones(2, 3, 4)),
            "keys must be None for InvaSpr",
        ),
        (
            lambda: AlignUniform()(torch.ones(2, 3, 4), memory=torch.ones(3, 4)),
            "memory must be None for Align",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
