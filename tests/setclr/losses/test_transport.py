"""Sinkhorn against plain rounds of division, POT and finite differences; IOT, which matches by it, against
literal formulas, golden values and POT; and the errors of the paper's print."""

import itertools
import math
from contextlib import nullcontext
from unittest import mock

import every_loss
import numpy as np
import ot
import pytest
import torch
from conftest import shifted
from every_loss import close, cosines, golden, normal, of_one_image, same_as_golden, slope
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from setclr.inner import sinkhorn, transport
from setclr.losses.transport import IOT

GOLDENS = golden("iotcl_own_transcription")
sizes, flags = st.integers(1, 7), st.booleans()


def rounds_by_the_book(cost, epsilon, rounds, a, b):
    """Divide the columns, then the rows, of exp(−C/ε) by their sums (IOT-CL, Algorithm 1)."""
    P = (-cost / epsilon).exp()
    for _ in range(rounds):
        P = P / P.sum(0) * b
        P = P / P.sum(1, keepdim=True) * a.unsqueeze(1)
    return P


def marginal(n, uniform=False):
    a = torch.ones(n).double() if uniform else torch.rand(n, dtype=torch.float64) + 0.1
    return a / a.sum()


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=20)
@given(sizes, sizes, st.integers(1, 9), st.floats(0.02, 2), flags)
def test_sinkhorn_equals_the_formula(dtype, products, n, m, rounds, epsilon, uniform):
    """By products of matrix and vector, where the numbers allow it, and in the logarithms alone."""
    cost, weight = torch.rand(n, m, dtype=torch.float64, requires_grad=True), normal(n, m)
    a, b = (marginal(k, uniform) for k in (n, m))
    marginals = {} if uniform else dict(a=a.to(dtype), b=b.to(dtype))
    with nullcontext() if products else mock.patch.object(transport, "_products", lambda *_: None):
        coupling = sinkhorn(cost.to(dtype), epsilon, rounds, **marginals)
    P, expected = coupling.P.double(), rounds_by_the_book(cost, epsilon, rounds, a, b)
    rounding = 200 * torch.finfo(dtype).eps * (1 + 1 / epsilon)
    close(P, expected, rel=rounding)
    close(P.sum(1), a, rel=rounding)
    error = (expected.sum(0) / b - 1).abs().max().detach()
    close(coupling.error.double(), error, rel=rounding, abs=rounding)
    assert coupling.rounds == rounds and bool(coupling.converged) == (coupling.error <= 1e-4)
    gradients = (torch.autograd.grad(x, cost, weight) for x in (P, expected))
    close(*gradients, rel=rounding, abs=rounding * rounds * n * m)


@given(st.integers(2, 30), st.integers(2, 30), st.sampled_from([0.05, 0.2, 1.0]))
def test_converged_equals_pot(n, m, epsilon):
    cost, a, b = torch.rand(n, m, dtype=torch.float64), marginal(n), marginal(m)
    coupling = sinkhorn(cost, epsilon, tolerance=1e-9, a=a, b=b)
    expected = ot.bregman.sinkhorn_log(a.numpy(), b.numpy(), cost.numpy(), epsilon, 20000, 1e-12)
    assert coupling.converged
    np.testing.assert_allclose(coupling.P, expected, rtol=1e-6, atol=1e-12)


def test_forbidden_pairs_and_leading_dimensions():
    cost = torch.rand(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)
    forbidden = torch.eye(4, 6, dtype=torch.bool)
    coupling = sinkhorn(cost.masked_fill(forbidden, torch.inf), 0.1, 5)
    assert coupling.error.shape == coupling.converged.shape == (2, 3)
    assert (coupling.P[..., forbidden] == 0).all()
    alone = sinkhorn(cost[1, 2].masked_fill(forbidden, torch.inf), 0.1, 5)
    close(coupling.P[1, 2], alone.P)
    coupling.P.square().sum().backward()
    assert cost.grad.isfinite().all() and (cost.grad[..., forbidden] == 0).all()


def test_gradients_of_a_converged_coupling_against_finite_differences():
    cost = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda c: sinkhorn(c, 0.3, tolerance=1e-10).P, cost)


@pytest.mark.filterwarnings("ignore:sinkhorn stopped")
def test_limits():
    """ε → ∞: uniform, in IOT off the diagonal. ε → 0: the optimal permutation. K → ∞: both marginals."""
    cost = torch.rand(6, 6, dtype=torch.float64)
    close(sinkhorn(cost, 1e9).P, torch.full_like(cost, 1 / 36), rel=1e-6)
    for constraint in ("total", "rows", "both"):
        off = IOT(constraint, 1e6).assignment(normal(3, 4, 5))[~torch.eye(12, dtype=torch.bool)]
        close(off, torch.full_like(off, 1 / 11), rel=1e-4)
    P = IOT("both", 0.2, None).assignment(normal(2, 8, 5))
    close((P.sum(0), P.sum(1)), 2 * (torch.ones_like(P[0]),), rel=1e-4)
    best = ot.lp.emd([], [], cost.numpy()).nonzero()
    assert sinkhorn(cost, 1e-3).P[best].sum() > 0.9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_epsilon_works_where_exp_underflows(dtype):
    x = torch.randn(64, 8, dtype=dtype)
    y = x[torch.randperm(64)] + 0.01 * torch.randn(64, 8, dtype=dtype)
    cost = (5 + torch.cdist(x, y).square()).requires_grad_()
    assert ((-cost / 1e-3).exp() == 0).all()
    coupling = sinkhorn(cost, 1e-3)
    assert coupling.converged and coupling.rounds < 1000
    close(coupling.P.sum(0), torch.full((64,), 1 / 64, dtype=dtype), rel=1e-3)
    coupling.P.square().sum().backward()
    assert cost.grad.isfinite().all()


def test_what_does_not_converge_says_so():
    cost = torch.rand(40, 40, generator=shifted(1))
    with pytest.warns(UserWarning, match=r"stopped after 1000 rounds with column sums off by .*tolerance"):
        coupling = sinkhorn(cost, 1e-4)
    assert not coupling.converged and coupling.rounds == 1000 and coupling.error > 1e-4
    assert sinkhorn(cost, 0.5).converged


def test_memory_does_not_grow_with_the_rounds():
    """What the graph keeps: the cost and two vectors a round, no matrix a round."""

    cost = torch.rand(50, 50, requires_grad=True)

    def kept(rounds):
        return sum(size for _, size in every_loss.kept_for_the_gradient(lambda: sinkhorn(cost, 0.5, rounds)))

    assert kept(20) - kept(4) <= 16 * 2 * 50


CONSTRAINTS = ["total", "rows", "both"]


def penalty(z, constraint, epsilon, target="mean", rounds=1):
    return IOT(constraint, epsilon, rounds, 1.0, target)(z) - IOT(constraint, epsilon, rounds)(z)


def coupling_by_the_book(cost, constraint, epsilon, iterations):
    """A coupling of mass 1 from the paper's divisions of exp(−C/ε) (eq. 12, 19; Algorithm 1)."""
    a, b = (torch.full((k,), 1 / k, dtype=cost.dtype) for k in cost.shape)
    P = rounds_by_the_book(cost, epsilon, iterations if constraint == "both" else 0, a, b)
    return P / (P.sum() if constraint == "total" else P.sum(1, keepdim=True) / a.unsqueeze(1))


def score_by_the_book(P, positives, negatives, weight, target):
    """−mean log nP over positive pairs + λ Σ q log(q/P) over negative ones (eq. 24, 25)."""
    n = len(P)
    loss = -np.mean([math.log(n * float(P[i, j])) for i, j in positives])
    masses = [float(P[i, j]) for i, j in negatives]
    q = max(masses) if target == "max" else np.mean(masses)
    return loss + weight * sum(q * math.log(q / p) for p in masses)


def iot_by_the_book(z, loss, keys=None, memory=None):
    """One matching of all points, one pair at a time: the loss, and nP at the pairs.

    With a queue (appendix C, eq. 38) one for each view; pairs of two images of the batch are forbidden.
    """
    V, N, _ = z.shape
    given = z, z if keys is None else keys, memory
    x, keys, memory = (None if y is None else normalize(y, dim=-1) for y in given)
    losses, A = [], torch.zeros(V * N, V * N + (0 if memory is None else len(memory)), dtype=z.dtype)
    for views in [range(V)] if memory is None else [[v] for v in range(V)]:
        rows = [(v, i) for v in views for i in range(N)]
        columns = [(u, j) for u in range(V) for j in range(N) if memory is None or u not in views]
        candidates, at = torch.stack([keys[place] for place in columns]), [N * u + j for u, j in columns]
        if memory is not None:
            candidates, columns = torch.cat([candidates, memory]), columns + [(None, None)] * len(memory)
            at += range(V * N, A.shape[1])
        cost = 1 - torch.stack([x[place] for place in rows]) @ candidates.T
        positives, negatives = [], []
        for a, c in itertools.product(range(len(rows)), range(len(columns))):
            if rows[a] == columns[c] or (memory is not None and columns[c][1] not in (None, rows[a][1])):
                cost[a, c] = math.inf
            else:
                (positives if rows[a][1] == columns[c][1] else negatives).append((a, c))
        P = coupling_by_the_book(cost, loss.constraint, loss.epsilon, loss.iterations)
        losses.append(score_by_the_book(P, positives, negatives, loss.uniformity, loss.uniform_target))
        for (v, i), masses in zip(rows, P):
            A[N * v + i, at] = len(rows) * masses
    return np.mean(losses), A


@given(
    st.integers(2, 4), st.integers(2, 5), st.sampled_from(CONSTRAINTS), st.floats(0.1, 2), st.integers(1, 8),
    st.sampled_from([0.0, 0.7]), st.sampled_from(["mean", "max"]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_iot_equals_the_formula(V, N, constraint, epsilon, rounds, weight, target, with_keys, with_memory):
    z, keys = normal(V, N, 5), normal(V, N, 5) if with_keys else None
    memory, loss = normal(6, 5) if with_memory else None, IOT(constraint, epsilon, rounds, weight, target)
    expected, A = iot_by_the_book(z, loss, keys, memory)
    assert float(loss(z, keys, memory)) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    close(loss.assignment(z, keys, memory), A, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("loss", [IOT("total", 0.3), IOT("rows", 0.3), IOT("both", 0.3, 3)], ids=str)
def test_gradients_with_keys_and_a_queue(loss):
    keys, memory = normal(2, 3, 4), normal(5, 4)
    for extra in ({"keys": keys}, {"keys": keys, "memory": memory}):
        assert torch.autograd.gradcheck(lambda z: loss(z, **extra), normal(2, 3, 4, grad=True))  # noqa: B023


@pytest.mark.parametrize("e", ["0.5", "0.1", "0.05"])
def test_golden_values(e):
    z = torch.tensor(GOLDENS["z_cat"]).view(2, 10, 8).requires_grad_()
    epsilon = float(e)
    found = {f"Ua_e{e}": IOT("rows", epsilon)(z), f"U1_e{e}": IOT("total", epsilon)(z) + math.log(20)}
    found |= {f"unif_{to}_detachQ_e{e}": penalty(z, "rows", epsilon, to) for to in ("mean", "max")}
    for K in (1, 2, 4, 8):
        name, loss = f"alg1_e{e}_K{K}", IOT("both", epsilon, K)
        found[name] = loss(z)
        np.testing.assert_allclose(loss.assignment(z), GOLDENS[f"{name}_P"], rtol=1e-9, atol=1e-15)
    for name, value in found.items():
        same_as_golden(value, z, GOLDENS[name], GOLDENS[f"{name}_g"])


def test_a_converged_coupling_with_a_queue_is_refused():
    """Its loss is constant: after many rounds nothing of z is left in it."""
    memory, settled = torch.randn(6, 5), IOT("both", 0.5, 500)
    values = [float(settled(torch.randn(2, 4, 5), memory=memory)) for _ in range(3)]
    assert max(values) - min(values) < 1e-4
    with pytest.raises(ValueError, match="iterations must be a number with memory, got None: .* constant"):
        IOT("both", 0.5, None)(torch.randn(2, 4, 5), memory=memory)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("target", ["mean", "max"])
def test_gradient_of_the_penalty_holds_q_fixed(constraint, target):
    z = normal(2, 4, 3, grad=True)
    cost = (1 - cosines(z)).masked_fill(torch.eye(8, dtype=torch.bool), torch.inf)
    masses = coupling_by_the_book(cost, constraint, 0.3, 2)[~of_one_image(2, 4)]
    q = masses.detach().max() if target == "max" else masses.detach().mean()
    gradient, expected = slope(penalty(z, constraint, 0.3, target, 2), z), slope(-(q * masses.log()).sum(), z)
    close(gradient, expected, rel=1e-9, abs=1e-13)
