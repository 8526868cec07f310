"""IOT against literal formulas, golden values, InfoNCE and POT; and the errors of the paper's print."""

import itertools
import math
from pathlib import Path

import numpy as np
import ot
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from setclr.losses import InfoNCE
from setclr.losses.transport import IOT

GOLDENS = np.load(Path(__file__).parent / "goldens" / "iotcl_own_transcription.npz")
CONSTRAINTS = ["total", "rows", "both"]


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


def by_the_book(z, constraint, epsilon, iterations, weight=0.0, target="mean", keys=None):
    """One matching of all points, Python loops over the pairs."""
    V, N, _ = z.shape
    anchors = normalize(z, dim=-1).flatten(0, 1)
    candidates = anchors if keys is None else normalize(keys, dim=-1).flatten(0, 1)
    cost = 1 - anchors @ candidates.T
    pairs = [(i, j) for i in range(V * N) for j in range(V * N) if i != j]
    for i in range(V * N):
        cost[i, i] = math.inf
    P = coupling_by_the_book(cost, constraint, epsilon, iterations)
    positives = [(i, j) for i, j in pairs if i % N == j % N]
    negatives = [(i, j) for i, j in pairs if i % N != j % N]
    return score_by_the_book(P, positives, negatives, weight, target)


def with_a_queue_by_the_book(z, keys, memory, constraint, epsilon, iterations, weight, target):
    """Appendix C, eq. 38, once for every view as the anchors' view: the mean of the matchings' losses."""
    V, N, _ = z.shape
    z, keys, memory = (normalize(x, dim=-1) for x in (z, keys, memory))
    losses = []
    for v in range(V):
        others = torch.cat([keys[u] for u in range(V) if u != v])
        cost = 1 - z[v] @ torch.cat([others, memory]).T
        for i in range(N):
            for j in range(len(others)):
                if j % N != i:
                    cost[i, j] = math.inf
        P = coupling_by_the_book(cost, constraint, epsilon, iterations)
        positives = [(i, j) for i in range(N) for j in range(len(others)) if j % N == i]
        negatives = [(i, j) for i in range(N) for j in range(len(others), cost.shape[1])]
        losses.append(score_by_the_book(P, positives, negatives, weight, target))
    return np.mean(losses)


@given(
    st.integers(2, 4),
    st.integers(2, 5),
    st.sampled_from(CONSTRAINTS),
    st.floats(0.1, 2),
    st.integers(1, 8),
    st.sampled_from([0.0, 0.7]),
    st.sampled_from(["mean", "max"]),
    st.sampled_from(["", "keys", "queue", "keys and queue"]),
)
def test_equals_the_formula(V, N, constraint, epsilon, iterations, weight, target, extra):
    z = torch.randn(V, N, 5, dtype=torch.float64)
    keys = torch.randn(V, N, 5, dtype=torch.float64) if "keys" in extra else None
    loss = IOT(constraint, epsilon, iterations, weight, target)
    if "queue" in extra:
        memory = torch.randn(6, 5, dtype=torch.float64)
        candidates = z if keys is None else keys
        expected = with_a_queue_by_the_book(
            z, candidates, memory, constraint, epsilon, iterations, weight, target
        )
    else:
        memory = None
        expected = by_the_book(z, constraint, epsilon, iterations, weight, target, keys)
    assert float(loss(z, keys, memory)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("e", ["0.5", "0.1", "0.05"])
def test_golden_values(e):
    z = torch.tensor(GOLDENS["z_cat"]).view(2, 10, 8).requires_grad_()
    epsilon = float(e)

    def check(loss, name, shift=0.0):
        value = loss(z) + shift
        (gradient,) = torch.autograd.grad(value, z)
        assert value.item() == pytest.approx(float(GOLDENS[name]), rel=1e-9)
        np.testing.assert_allclose(gradient.view(20, 8), GOLDENS[f"{name}_g"], rtol=1e-9, atol=1e-13)

    for K in (1, 2, 4, 8):
        check(IOT("both", epsilon, K), f"alg1_e{e}_K{K}")
        np.testing.assert_allclose(
            IOT("both", epsilon, K).assignment(z), GOLDENS[f"alg1_e{e}_K{K}_P"], rtol=1e-9, atol=1e-15
        )
    check(IOT("rows", epsilon), f"Ua_e{e}")
    check(IOT("total", epsilon), f"U1_e{e}", math.log(20))
    for target in ("mean", "max"):
        plain = IOT("rows", epsilon)
        penalised = IOT("rows", epsilon, uniformity=1.0, uniform_target=target)
        penalty = penalised(z) - plain(z)
        (gradient,) = torch.autograd.grad(penalty, z)
        assert penalty.item() == pytest.approx(float(GOLDENS[f"unif_{target}_detachQ_e{e}"]), rel=1e-9)
        expected = GOLDENS[f"unif_{target}_detachQ_e{e}_g"]
        np.testing.assert_allclose(gradient.view(20, 8), expected, rtol=1e-9, atol=1e-13)


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


@given(st.integers(2, 8), st.floats(0.05, 3), st.booleans())
def test_rows_are_infonce_for_two_views(N, epsilon, with_keys):
    z = torch.randn(2, N, 5, dtype=torch.float64)
    torch.testing.assert_close(IOT("rows", epsilon)(z), InfoNCE(epsilon)(z))
    torch.testing.assert_close(IOT("rows", epsilon).assignment(z), InfoNCE(epsilon).assignment(z))


def test_one_round_of_both_is_not_infonce():
    z = torch.randn(2, 8, 5, dtype=torch.float64)
    assert abs(IOT("both", 0.3, 1)(z) - InfoNCE(0.3)(z)) > 1e-2


def test_many_rounds_reach_both_marginals_and_pot():
    z = torch.randn(2, 8, 5, dtype=torch.float64)
    P = IOT("both", 0.2, None).assignment(z)
    torch.testing.assert_close(P.sum(0), torch.ones_like(P[0]), rtol=1e-4, atol=0)
    torch.testing.assert_close(P.sum(1), torch.ones_like(P[0]))
    x = normalize(z, dim=-1).flatten(0, 1)
    cost = (1 - x @ x.T).fill_diagonal_(1e3).numpy()
    uniform = np.full(16, 1 / 16)
    expected = 16 * ot.bregman.sinkhorn_log(uniform, uniform, cost, 0.2, 20000, 1e-12)
    np.testing.assert_allclose(IOT("both", 0.2, 1000).assignment(z), expected, atol=1e-8)
    errors = [(IOT("both", 0.2, K).assignment(z).sum(0) - 1).abs().max() for K in (1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_large_epsilon_makes_the_coupling_uniform(constraint):
    n = 12
    A = IOT(constraint, 1e6).assignment(torch.randn(3, 4, 5, dtype=torch.float64))
    off = ~torch.eye(n, dtype=torch.bool)
    expected = n / (n * n - n) if constraint == "total" else 1 / (n - 1)
    torch.testing.assert_close(A[off], torch.full_like(A[off], expected), rtol=1e-4, atol=0)


@pytest.mark.parametrize("extra", ["", "keys", "queue"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_assignment_has_the_prescribed_sums(constraint, extra):
    z, other = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    memory = torch.randn(7, 5, dtype=torch.float64) if extra == "queue" else None
    A = IOT(constraint, 0.3, 4).assignment(z, other if extra else None, memory)
    assert A.shape == (12, 12 + (7 if extra == "queue" else 0))
    assert A[:, :12].diagonal().abs().max() == 0
    if constraint == "total":
        matchings = A.split(4) if extra == "queue" else [A]
        for part in matchings:
            assert float(part.sum()) == pytest.approx(len(part))
    else:
        torch.testing.assert_close(A.sum(1), torch.ones_like(A[:, 0]))
    if extra == "queue":  # same-batch negatives are forbidden
        images = torch.arange(4).repeat(3)
        assert A[:, :12][images.unsqueeze(1) != images].abs().max() == 0


def test_with_columns_last_a_queue_would_make_the_loss_constant():
    """Each in-batch column holds one entry, so a column step prescribes the positives' mass."""
    z, memory = torch.randn(4, 5), torch.randn(6, 5)
    cost = torch.full((4, 10), torch.inf)
    cost.diagonal().copy_(torch.rand(4))
    cost[:, 4:] = 1 - normalize(z, dim=-1) @ normalize(memory, dim=-1).T
    P = coupling_by_the_book(cost, "both", 0.5, 3)
    P = P / P.sum(0) / 10
    torch.testing.assert_close(P.diagonal(), torch.full((4,), 0.1))


def test_a_converged_coupling_with_a_queue_is_refused():
    """Its loss is constant: after many rounds nothing of z is left in it."""
    memory, settled = torch.randn(6, 5), IOT("both", 0.5, 500)
    values = [float(settled(torch.randn(2, 4, 5), memory=memory)) for _ in range(3)]
    assert max(values) - min(values) < 1e-4
    with pytest.raises(ValueError, match="iterations must be a number with memory, got None: .* constant"):
        IOT("both", 0.5, None)(torch.randn(2, 4, 5), memory=memory)


def test_what_does_not_converge_says_so():
    z = torch.randn(2, 20, 3)
    with pytest.warns(UserWarning, match="sinkhorn stopped after 1000 rounds"):
        IOT("both", 1e-3, None)(z)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_uniformity_is_zero_exactly_for_uniform_negatives(constraint):
    plain, with_penalty = IOT(constraint, 0.5), IOT(constraint, 0.5, uniformity=1.0)
    simplex = torch.eye(5, dtype=torch.float64) - 0.2
    z = torch.stack([simplex, simplex])  # every negative is as far as any other
    assert float(with_penalty(z) - plain(z)) == pytest.approx(0, abs=1e-12)
    for _ in range(5):
        z = torch.randn(2, 5, 5, dtype=torch.float64)
        assert with_penalty(z) > plain(z)


def test_the_printed_equation_25_is_no_divergence():
    """max for q has no unit mass: larger than the mean's divergence by far, and its Q̄ sums to more than
    1."""
    z = torch.randn(2, 20, 5, dtype=torch.float64)
    mean, largest = (
        IOT("rows", 0.1, uniformity=1.0, uniform_target=t)(z) - IOT("rows", 0.1)(z) for t in ("mean", "max")
    )
    assert largest > 3 * mean
    P = IOT("rows", 0.1).assignment(z) / 40
    negative = torch.arange(20).repeat(2).unsqueeze(1) != torch.arange(20).repeat(2)
    assert P[~negative].sum() + negative.sum() * P[negative].max() > 1.5


def test_the_scale_of_the_penalty_is_the_mass_of_the_coupling():
    """Algorithm 1's rows have mass 1; with its coupling nP the divergence is n times ours."""
    z = torch.randn(2, 8, 5, dtype=torch.float64)
    ours = IOT("rows", 0.5, uniformity=0.7)(z) - IOT("rows", 0.5)(z)
    nP = IOT("rows", 0.5).assignment(z)
    negative = torch.arange(8).repeat(2).unsqueeze(1) != torch.arange(8).repeat(2)
    q = nP[negative].mean()
    torch.testing.assert_close(0.7 * (q * (q / nP[negative]).log()).sum(), 16 * ours)


def test_a_finite_cost_on_the_diagonal_leaks_mass():
    """Algorithm 1 puts a "large enough" C on the diagonal; at ε = 0.5 a C of 1 or 2 keeps mass at home."""
    z = torch.randn(2, 6, 5, dtype=torch.float64)
    x = normalize(z, dim=-1).flatten(0, 1)
    leak = []
    for C in (1.0, 2.0, 50.0):
        P = coupling_by_the_book((1 - x @ x.T).fill_diagonal_(C), "rows", 0.5, 1)
        leak.append(float(P.diagonal().sum()))
    assert leak[0] > 0.05 and leak[1] > 0.005 and leak[2] < 1e-30


@pytest.mark.parametrize(
    "loss, extra",
    [
        *itertools.product([IOT("total", 0.3), IOT("rows", 0.3), IOT("both", 0.3, 3)], ["", "keys", "queue"]),
        *itertools.product([IOT("both", 0.3, None)], ["", "keys"]),
    ],
    ids=str,
)
def test_gradients(loss, extra):
    z = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(2, 3, 4, dtype=torch.float64) if extra else None
    memory = torch.randn(5, 4, dtype=torch.float64) if extra == "queue" else None
    assert torch.autograd.gradcheck(lambda z: loss(z, keys, memory), z)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("target", ["mean", "max"])
def test_gradient_of_the_penalty_holds_q_fixed(constraint, target):
    z = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    penalised = IOT(constraint, 0.3, 2, uniformity=1.0, uniform_target=target)
    (gradient,) = torch.autograd.grad(penalised(z) - IOT(constraint, 0.3, 2)(z), z)
    x = normalize(z, dim=-1).flatten(0, 1)
    cost = (1 - x @ x.T).masked_fill(torch.eye(8, dtype=torch.bool), torch.inf)
    P = coupling_by_the_book(cost, constraint, 0.3, 2)
    negative = torch.arange(4).repeat(2).unsqueeze(1) != torch.arange(4).repeat(2)
    masses = P[negative]
    q = masses.detach().max() if target == "max" else masses.detach().mean()
    (expected,) = torch.autograd.grad(-(q * masses.log()).sum(), z)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(constraint="columns"), "constraint must be one of 'total', 'rows', 'both', got 'columns'"),
        (dict(epsilon=0), "epsilon must be > 0, got 0; the paper uses 0.5, and 0.07"),
        (dict(epsilon=math.nan), "epsilon must be > 0, got nan"),
        (dict(iterations=0), "iterations must be an integer >= 1 and <= 100000, got 0; None runs"),
        (dict(iterations=1.5), "iterations must be an integer >= 1 and <= 100000, got 1.5"),
        (dict(uniformity=-1), "uniformity must be >= 0, got -1"),
        (dict(uniform_target="median"), "uniform_target must be one of 'mean', 'max', got 'median'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        IOT(**arguments)
