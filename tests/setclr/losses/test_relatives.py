"""The relatives of InfoNCE: formulas of those that test_points.py does not have, limits and bounds."""

import itertools
import math

import numpy as np
import pytest
import torch
from every_loss import normal, slope
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from setclr.losses import InfoNCE
from setclr.losses.relatives import HCL, AlignUniform, DebiasedInfoNCE, HardNegatives, InvaSpread

SIZES = dict(V=st.integers(2, 4), N=st.integers(2, 6))


def batch(V, N):
    """The images' own share makes positives more alike than negatives."""
    return normal(N, 5) + 0.7 * normal(V, N, 5)


@given(**SIZES, temperature=st.floats(0.05, 2))
def test_limits_of_the_family(V, N, temperature):
    z, keys, memory = batch(V, N), batch(V, N), normal(3, 5)
    for loss, limit in [
        (HardNegatives(temperature, keep=1), InfoNCE(temperature)),
        (DebiasedInfoNCE(temperature, prior=0), InfoNCE(temperature)),
        (HCL(temperature, hardness=0), DebiasedInfoNCE(temperature)),
    ]:
        torch.testing.assert_close(loss(z, keys, memory), limit(z, keys, memory))
        torch.testing.assert_close(loss.assignment(z, keys, memory), limit.assignment(z, keys, memory))


def test_hcl_tends_to_the_hardest_negative_in_place_of_all():
    z = normal(2, 6, 5)
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
    z = normal(8, 2, 4)
    assert (HardNegatives(keep=0.01).assignment(z) > 0).sum(1).eq(7 + 1).all()


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 0.5])
@pytest.mark.parametrize("make", [DebiasedInfoNCE, HCL])
def test_where_the_bound_is_active_value_and_gradient_are_those_of_the_bound(make, temperature):
    """Positives equal, negatives nearly opposite: the corrected mass would be negative."""
    side = torch.tensor([[1.0, 0.0], [-1.0, 0.1]], dtype=torch.float64)
    z = torch.stack([side, side + torch.tensor([0.0, 1e-2])]).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        loss = make(temperature, prior=0.3)(z)
        gradient = slope(loss, z)
    bound = math.log(2) - 1 / temperature
    expected = F.softplus(bound - F.cosine_similarity(z[0], z[1], dim=-1) / temperature).mean()
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
    expected = slope(expected, z)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-300)


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
    torch.testing.assert_close(loss.assignment(z), A / A.sum(1, keepdim=True))


def test_equation_7_of_iot_cl_misses_a_sign():
    """Printed with exp(+2‖x − y‖²) uniformity would be best where all points are one."""
    spread, collapsed = normal(2, 8, 3), torch.ones(2, 8, 3, dtype=torch.float64)

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
        z = normal(2, 8, 3, grad=True)
        one, other = F.normalize(z, dim=-1)
        literal = (one - other).square().sum() + (-2 * torch.cdist(one, other).square()).exp().sum().log()
        (theirs,), (ours,) = (torch.autograd.grad(x, z) for x in (literal, AlignUniform()(z)))
        cosines.append(F.cosine_similarity(theirs.flatten(), ours.flatten(), dim=0).item())
    assert np.mean(cosines) < 0.9


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.5, 2.0, 3.0])
def test_alignment_of_equal_positives_has_gradient_0(alpha):
    z = torch.randn(1, 5, 4).repeat(3, 1, 1).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        gradient = slope(AlignUniform(alpha, weight=0)(z), z)
    assert torch.equal(gradient, torch.zeros_like(z))


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
