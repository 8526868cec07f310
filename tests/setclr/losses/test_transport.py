"""Sinkhorn against plain rounds of division, POT and finite differences; IOT, which matches by it, against
literal formulas, golden values and POT; and the errors of the paper's print."""

import itertools
import math
from unittest import mock

import every_loss
import numpy as np
import ot
import pytest
import torch
from conftest import shifted
from every_loss import close, cosines, golden, normal, of_one_image, same_as_golden, slope
from hypothesis import given
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


@given(sizes, sizes, st.integers(1, 9), st.floats(0.05, 2), flags)
def test_sinkhorn_equals_the_formula(n, m, rounds, epsilon, uniform):
    cost, weight = torch.rand(n, m, dtype=torch.float64, requires_grad=True), normal(n, m)
    a, b = (marginal(k, uniform) for k in (n, m))
    coupling = sinkhorn(cost, epsilon, rounds, **({} if uniform else dict(a=a, b=b)))
    expected = rounds_by_the_book(cost, epsilon, rounds, a, b)
    close(coupling.P, expected, rel=1e-9)
    close(coupling.P.sum(1), a)
    close(coupling.error, (coupling.P.sum(0) / b - 1).abs().max().detach())
    assert coupling.rounds == rounds and bool(coupling.converged) == (coupling.error <= 1e-4)
    close(*(torch.autograd.grad(P, cost, weight) for P in (coupling.P, expected)), rel=1e-9, abs=1e-13)


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


def test_a_mean_matching_costs_least_among_couplings():
    """At convergence ⟨C, P⟩ − ε H(P) is below that of any other coupling with these marginals."""
    cost = torch.rand(5, 5, dtype=torch.float64)

    def objective(P):
        return (cost * P).sum() + 0.1 * (P * P.log()).sum()

    best = sinkhorn(cost, 0.1, tolerance=1e-12).P
    for _ in range(20):
        other = sinkhorn(torch.rand(5, 5, dtype=torch.float64), 0.2, tolerance=1e-12).P
        assert objective(best) < objective(0.9 * best + 0.1 * other)


@pytest.mark.filterwarnings("ignore:sinkhorn stopped")
def test_limits():
    """ε → ∞: uniform. ε → 0: the optimal permutation."""
    cost = torch.rand(6, 6, dtype=torch.float64)
    close(sinkhorn(cost, 1e9).P, torch.full_like(cost, 1 / 36), rel=1e-6)
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


@pytest.mark.filterwarnings("ignore:sinkhorn stopped")
@given(sizes, sizes, st.floats(1e-3, 10), st.sampled_from([1, 2, 7, None]), flags, flags, flags)
def test_matrix_times_vector_is_as_exact_as_exponentials(n, m, epsilon, rounds, forbidden, uniform, double):
    """Where the numbers allow products: beside the log domain in float64, values and gradients."""
    dtype, allowed = torch.float64 if double else torch.float32, torch.ones(2, n, m, dtype=torch.bool)
    if forbidden and min(n, m) > 2 and rounds is not None:  # else there may be no coupling
        allowed.diagonal(dim1=1, dim2=2).fill_(False)
    logits = (-torch.rand(2, n, m, dtype=dtype) / epsilon).masked_fill(~allowed, -torch.inf)
    log_a, log_b = (marginal(k, uniform).log().expand(2, k) for k in (n, m))
    path = transport._products(logits, log_a.to(dtype), log_b.to(dtype), rounds, 1e-3)
    if path is None:
        assert epsilon < 0.2  # float32's range holds e^22 four times
        return
    with mock.patch.object(transport, "values_readable", lambda _: False):
        exact = transport.rounds_of(logits.double(), log_a, log_b, len(path.columns))
    given, wanted = (x.clone().requires_grad_() for x in (logits, logits.double()))
    ours = transport.log_coupling_from(path, given, log_a.to(dtype), log_b.to(dtype))
    theirs = transport.log_coupling_from(exact, wanted, log_a, log_b)
    rounding, weight = 200 * torch.finfo(dtype).eps * (1 + 1 / epsilon), normal(2, n, m) * allowed
    close(ours.double(), theirs, rel=rounding, abs=rounding)
    one = slope((weight.to(dtype) * ours.where(allowed, 0)).sum(), given)
    other = slope((weight * theirs.where(allowed, 0)).sum(), wanted)
    close(one.double(), other, rel=rounding, abs=rounding * len(path.columns) * n * m)


def test_rounds_are_products_where_the_numbers_allow_it_and_nowhere_else():
    cost = torch.rand(6, 5)
    uniform = torch.full((6,), 6.0).log().neg(), torch.full((5,), 5.0).log().neg()
    for epsilon, products in ((0.5, True), (0.1, True), (1e-3, False)):
        assert (transport.rounds_of(-cost / epsilon, *uniform, 3).kernel is not None) == products
    assert transport.rounds_of(-cost.double() / 0.01, *uniform, 3).kernel is not None


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
def test_iot_equals_the_formula(V, N, constraint, epsilon, rounds, weight, target, with_keys, with_memory):
    z, keys = normal(V, N, 5), normal(V, N, 5) if with_keys else None
    memory, loss = normal(6, 5) if with_memory else None, IOT(constraint, epsilon, rounds, weight, target)
    expected = iot_by_the_book(z, loss, keys, memory)
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


def test_many_rounds_reach_both_marginals_and_pot():
    z = normal(2, 8, 5)
    P = IOT("both", 0.2, None).assignment(z)
    close(P.sum(0), torch.ones_like(P[0]), rel=1e-4)
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
