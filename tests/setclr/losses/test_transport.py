"""IOT against literal formulas, golden values, InfoNCE and POT; and the errors of the paper's print."""

import itertools
import math

import numpy as np
import ot
import pytest
import torch
from every_loss import close, cosines, golden, normal, of_one_image, same_as_golden, slope
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from setclr.losses import InfoNCE
from setclr.losses.transport import IOT

GOLDENS = golden("iotcl_own_transcription")
CONSTRAINTS = ["total", "rows", "both"]


def penalty(z, constraint, epsilon, target="mean", rounds=1):
    return IOT(constraint, epsilon, rounds, 1.0, target)(z) - IOT(constraint, epsilon, rounds)(z)


def coupling_by_the_book(cost, constraint, epsilon, iterations):
    """A coupling of mass 1 from the paper's divisions of exp(−C/ε) (eq. 12, 19; Algorithm 1)."""
    n, m = cost.shape
    P = (-cost / epsilon).exp()
    if constraint == "total":
        return P / P.sum()
    if constraint == "rows":
        return P / P.sum(1, keepdim=True) / n
    for _ in range(iterations):
        P = P / P.sum(0) / m
        P = P / P.sum(1, keepdim=True) / n
    return P


def score_by_the_book(P, positives, negatives, weight, target):
    """−mean log nP over positive pairs + λ Σ q log(q/P) over negative ones (eq. 24, 25)."""
    n = len(P)
    loss = -np.mean([math.log(n * float(P[i, j])) for i, j in positives])
    masses = [float(P[i, j]) for i, j in negatives]
    q = max(masses) if target == "max" else np.mean(masses)
    return loss + weight * sum(q * math.log(q / p) for p in masses)


def by_the_book(z, loss, keys=None, memory=None):
    """One matching of all points, one pair at a time.

    With a queue (appendix C, eq. 38) one for each view; pairs of two images of the batch are forbidden.
    """
    V, N, _ = z.shape
    x, keys, memory = (
        None if y is None else normalize(y, dim=-1) for y in (z, z if keys is None else keys, memory)
    )
    losses = []
    for views in [range(V)] if memory is None else [[v] for v in range(V)]:
        rows = [(v, i) for v in views for i in range(N)]
        columns = [(u, j) for u in range(V) for j in range(N) if memory is None or u not in views]
        candidates = torch.stack([keys[place] for place in columns])
        if memory is not None:
            candidates, columns = torch.cat([candidates, memory]), columns + [(None, None)] * len(memory)
        cost = 1 - torch.stack([x[place] for place in rows]) @ candidates.T
        positives, negatives = [], []
        for a, c in itertools.product(range(len(rows)), range(len(columns))):
            if rows[a] == columns[c] or (memory is not None and columns[c][1] not in (None, rows[a][1])):
                cost[a, c] = math.inf
            else:
                (positives if rows[a][1] == columns[c][1] else negatives).append((a, c))
        P = coupling_by_the_book(cost, loss.constraint, loss.epsilon, loss.iterations)
        losses.append(score_by_the_book(P, positives, negatives, loss.uniformity, loss.uniform_target))
    return np.mean(losses)


@given(
    st.integers(2, 4), st.integers(2, 5), st.sampled_from(CONSTRAINTS), st.floats(0.1, 2), st.integers(1, 8),
    st.sampled_from([0.0, 0.7]), st.sampled_from(["mean", "max"]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_equals_the_formula(V, N, constraint, epsilon, rounds, weight, target, with_keys, with_memory):
    z, keys = normal(V, N, 5), normal(V, N, 5) if with_keys else None
    memory, loss = normal(6, 5) if with_memory else None, IOT(constraint, epsilon, rounds, weight, target)
    expected = by_the_book(z, loss, keys, memory)
    assert float(loss(z, keys, memory)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


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


@pytest.mark.parametrize("iterations", [1, 3])
def test_with_a_queue_both_moves_the_pairs_with_the_queue_only(iterations):
    """An in-batch column holds one entry, whose cost its scaling takes out; "rows" learns from it."""
    keys, memory = torch.randn(2, 4, 6).double(), torch.randn(5, 6).double()
    for constraint, positives_matter in (("both", False), ("rows", True)):
        loss, values = IOT(constraint, 0.2, iterations), []
        for angle in (0.0, 0.5):  # the positives come nearer, all similarities with the queue stay
            z = torch.cat([keys, torch.zeros(2, 4, 2).double()], dim=-1)
            z[0, :, 6], z[1, :, 6:] = 3, 3 * torch.tensor([math.sin(angle), math.cos(angle)])
            values.append(loss(z, memory=torch.cat([memory, torch.zeros(5, 2).double()], dim=-1)).item())
        assert (abs(values[1] - values[0]) > 1e-3) == positives_matter


@given(st.integers(3, 8), st.floats(0.05, 3))
def test_rows_are_infonce_for_two_views(N, epsilon):
    z = normal(2, N, 5)
    close(IOT("rows", epsilon)(z), InfoNCE(epsilon)(z))
    close(IOT("rows", epsilon).assignment(z), InfoNCE(epsilon).assignment(z))
    assert abs(IOT("both", 0.3, 1)(z) - InfoNCE(0.3)(z)) > 1e-4  # one round of both is another loss


def test_many_rounds_reach_both_marginals_and_pot():
    z = normal(2, 8, 5)
    P = IOT("both", 0.2, None).assignment(z)
    close(P.sum(0), torch.ones_like(P[0]), rel=1e-4)
    close(P.sum(1), torch.ones_like(P[0]))
    cost, uniform = (1 - cosines(z)).fill_diagonal_(1e3).numpy(), np.full(16, 1 / 16)
    expected = 16 * ot.bregman.sinkhorn_log(uniform, uniform, cost, 0.2, 20000, 1e-12)
    np.testing.assert_allclose(IOT("both", 0.2, 1000).assignment(z), expected, atol=1e-8)
    errors = [(IOT("both", 0.2, K).assignment(z).sum(0) - 1).abs().max() for K in (1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_large_epsilon_makes_the_coupling_uniform(constraint):
    off = IOT(constraint, 1e6).assignment(normal(3, 4, 5))[~torch.eye(12, dtype=torch.bool)]
    close(off, torch.full_like(off, 1 / 11), rel=1e-4)


@pytest.mark.parametrize("extra", ["", "keys", "queue"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_assignment_has_the_prescribed_sums(constraint, extra):
    z, other = normal(2, 3, 4, 5)
    memory = normal(7, 5) if extra == "queue" else None
    A = IOT(constraint, 0.3, 4).assignment(z, other if extra else None, memory)
    assert A.shape == (12, 12 + (7 if extra == "queue" else 0))
    assert A[:, :12].diagonal().abs().max() == 0
    if constraint == "total":
        for part in A.split(4) if extra == "queue" else [A]:
            assert float(part.sum()) == pytest.approx(len(part))
    else:
        close(A.sum(1), torch.ones_like(A[:, 0]))
    if extra == "queue":  # same-batch negatives are forbidden
        assert A[:, :12][~of_one_image(3, 4)].abs().max() == 0


def test_a_converged_coupling_with_a_queue_is_refused():
    """Its loss is constant: after many rounds nothing of z is left in it."""
    memory, settled = torch.randn(6, 5), IOT("both", 0.5, 500)
    values = [float(settled(torch.randn(2, 4, 5), memory=memory)) for _ in range(3)]
    assert max(values) - min(values) < 1e-4
    with pytest.raises(ValueError, match="iterations must be a number with memory, got None: .* constant"):
        IOT("both", 0.5, None)(torch.randn(2, 4, 5), memory=memory)


def test_what_does_not_converge_says_so():
    with pytest.warns(UserWarning, match="sinkhorn stopped after 1000 rounds"):
        IOT("both", 1e-3, None)(torch.randn(2, 20, 3))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_uniformity_is_zero_exactly_for_uniform_negatives(constraint):
    simplex = torch.eye(5, dtype=torch.float64) - 0.2  # every negative is as far as any other
    assert float(penalty(torch.stack([simplex, simplex]), constraint, 0.5)) == pytest.approx(0, abs=1e-12)
    assert all(penalty(z, constraint, 0.5) > 0 for z in normal(5, 2, 5, 5))


def test_the_printed_equation_25_is_no_divergence():
    """max for q has no unit mass: larger than the mean's divergence by far, and its Q̄ sums to more than
    1."""
    z, negative = normal(2, 20, 5), ~of_one_image(2, 20)
    assert penalty(z, "rows", 0.1, "max") > 3 * penalty(z, "rows", 0.1, "mean")
    P = IOT("rows", 0.1).assignment(z) / 40
    assert P[~negative].sum() + negative.sum() * P[negative].max() > 1.5


def test_the_scale_of_the_penalty_is_the_mass_of_the_coupling():
    """Algorithm 1's rows have mass 1; with its coupling nP the divergence is n times ours."""
    z = normal(2, 8, 5)
    ours = IOT("rows", 0.5, uniformity=0.7)(z) - IOT("rows", 0.5)(z)
    masses = IOT("rows", 0.5).assignment(z)[~of_one_image(2, 8)]
    q = masses.mean()
    close(0.7 * (q * (q / masses).log()).sum(), 16 * ours)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("target", ["mean", "max"])
def test_gradient_of_the_penalty_holds_q_fixed(constraint, target):
    z = normal(2, 4, 3, grad=True)
    cost = (1 - cosines(z)).masked_fill(torch.eye(8, dtype=torch.bool), torch.inf)
    masses = coupling_by_the_book(cost, constraint, 0.3, 2)[~of_one_image(2, 4)]
    q = masses.detach().max() if target == "max" else masses.detach().mean()
    gradient, expected = slope(penalty(z, constraint, 0.3, target, 2), z), slope(-(q * masses.log()).sum(), z)
    close(gradient, expected, rel=1e-9, abs=1e-13)
