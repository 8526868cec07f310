"""Labels, and keys of other views than z: every loss against its literal formula, one anchor at a time."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import SupConLoss
from torch.nn import functional as F

from setclr.losses import (
    HCL,
    IOT,
    LOSSES,
    DebiasedInfoNCE,
    DecoupledInfoNCE,
    GroCo,
    HardNegatives,
    InfoNCE,
    NTLogistic,
    SparseCLR,
    SupCon,
    Triplet,
)

TAU = 0.3
LABELLED = [
    InfoNCE(TAU),
    InfoNCE(TAU, positive_views=2),
    InfoNCE(TAU, candidates="other view"),
    SupCon(TAU),
    NTLogistic(TAU),
    HardNegatives(TAU, 0.4),
    DebiasedInfoNCE(TAU, 0.05),
    HCL(TAU, 0.05, 0.7),
    DecoupledInfoNCE(TAU),
    SparseCLR(0.3),
    Triplet(0.4, negatives=4),
    Triplet(0.9, "all", 3, "cosine"),
    GroCo(2.0, 4),
    GroCo(2.0, 4, pool="view", positive_views=2),
    IOT("total", TAU),
    IOT("rows", TAU),
    IOT("both", TAU, 3),
    IOT("rows", TAU, uniformity=0.3),
]
labelled = pytest.mark.parametrize("loss", LABELLED, ids=repr)


def views(loss, V):
    return V if "views" in loss.takes else 2


def book(z, keys=None, memory=None, labels=None, G=None, other_view=False):
    """For each anchor: its similarities with its positives and with its negatives, as numpy arrays."""
    x = F.normalize(z, dim=-1)
    y = x if keys is None else F.normalize(keys, dim=-1)
    queue = [] if memory is None else list(F.normalize(memory, dim=-1))
    (V, N, _), U = x.shape, len(y)
    labels = range(N) if labels is None else labels.tolist()
    for v in range(V):
        for i in range(N):
            positives, negatives = [], [float(x[v, i] @ m) for m in queue]
            for u in range(U):
                if other_view and u == v:
                    continue
                for j in range(N):
                    s = float(x[v, i] @ y[u, j])
                    if labels[j] != labels[i]:
                        negatives.append(s)
                    elif (V == 1 or (u, j) != (v, i)) and (G is None or u < G):
                        positives.append(s)
            yield np.array(positives), np.array(negatives)


def info_nce(p, n, mass=lambda p, e: e.sum()):
    e = np.exp(n / TAU)
    return np.mean([math.log1p(mass(s, e) / math.exp(s / TAU)) for s in p])


def sup_con(p, n):
    below = np.exp(np.concatenate([p, n]) / TAU).sum()
    return np.mean([-math.log(math.exp(s / TAU) / below) for s in p])


def debiased(s, e, weighted):
    least = len(e) * math.exp(-1 / TAU)
    return max((weighted - len(e) * 0.05 * math.exp(s / TAU)) / 0.95, least)


def sparse(p, n):
    def maximum(x):
        x = np.sort(x)[::-1]
        k = max(k for k in range(1, len(x) + 1) if 1 + k * x[k - 1] > x[:k].sum())
        T = (x[:k].sum() - 1) / k
        return (x[:k] ** 2 - T**2).sum() / 2 + 0.5

    return np.mean([maximum(np.append(n, s - 0.3)) - (s - 0.3) for s in p])


def triplet(p, n):
    d_p, d_n = np.sqrt(2 - 2 * p), np.sort(np.sqrt(2 - 2 * n))[:4]
    return np.maximum(0, d_p.max() - d_n + 0.4).mean()


def triplet_all(p, n):
    d_p, d_n = 1 - p, np.sort(1 - n)[:3]
    return np.maximum(0, d_p[:, None] - d_n + 0.9).mean()


FORMULAS = {
    repr(InfoNCE(TAU)): info_nce,
    repr(SupCon(TAU)): sup_con,
    repr(NTLogistic(TAU)): lambda p, n: np.log1p(np.exp(-p / TAU)).mean() + np.log1p(np.exp(n / TAU)).mean(),
    repr(HardNegatives(TAU, 0.4)): lambda p, n: info_nce(p, np.sort(n)[-max(1, round(0.4 * len(n))) :]),
    repr(DebiasedInfoNCE(TAU, 0.05)): lambda p, n: info_nce(p, n, lambda s, e: debiased(s, e, e.sum())),
    repr(HCL(TAU, 0.05, 0.7)): lambda p, n: info_nce(
        p, n, lambda s, e: debiased(s, e, (e**1.7).sum() / (e**0.7).mean())
    ),
    repr(DecoupledInfoNCE(TAU)): lambda p, n: np.log(np.exp(n / TAU).sum()) - p.mean() / TAU,
    repr(SparseCLR(0.3)): sparse,
    repr(Triplet(0.4, negatives=4)): triplet,
    repr(Triplet(0.9, "all", 3, "cosine")): triplet_all,
    repr(IOT("rows", TAU)): sup_con,  # one matching of all points: the other positives stay in it
}
with_formula = pytest.mark.parametrize("loss", [x for x in LABELLED if repr(x) in FORMULAS], ids=repr)


def classes(N):
    """Classes of unequal size, two at least."""
    labels = torch.randint(0, max(2, N // 2), (N,))
    labels[:2] = torch.tensor([0, 1])
    return labels


@with_formula
@given(st.integers(2, 3), st.integers(2, 7), st.booleans())
def test_labels_follow_the_loss_s_own_rule_for_several_positives(loss, V, N, with_keys):
    z, labels = torch.randn(V, N, 5, dtype=torch.float64), classes(N)
    keys = torch.randn(V, N, 5, dtype=torch.float64) if with_keys and "keys" in loss.takes else None
    expected = [FORMULAS[repr(loss)](p, n) for p, n in book(z, keys, labels=labels)]
    values = loss(z, keys, labels=labels, reduction="none")
    np.testing.assert_allclose(values.flatten(), expected, rtol=1e-7)
    assert loss(z, keys, labels=labels).item() == pytest.approx(np.mean(expected), rel=1e-7)


@pytest.mark.parametrize("loss", [x for x in LABELLED if repr(x) in FORMULAS and "keys" in x.takes], ids=repr)
@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 5), st.booleans(), st.booleans())
def test_keys_may_have_other_views_than_z(loss, V, U, N, with_memory, with_labels):
    """MoCo's one view against one key, one view against two, eight crops against two globals."""
    assume(U > 1 or V == 1)
    z, keys = torch.randn(V, N, 5, dtype=torch.float64), torch.randn(U, N, 5, dtype=torch.float64)
    memory = torch.randn(4, 5, dtype=torch.float64) if with_memory else None
    labels = classes(N) if with_labels else None
    if isinstance(loss, IOT):
        memory = None  # eq. 38 forbids other pairs; tests/test_losses_transport.py has it
    expected = [FORMULAS[repr(loss)](p, n) for p, n in book(z, keys, memory, labels)]
    values = loss(z, keys, memory, labels, reduction="none")
    np.testing.assert_allclose(values.flatten(), expected, rtol=1e-7)
    A = loss.assignment(z, keys, memory, labels)
    assert A.shape == (V * N, U * N + (0 if memory is None else 4)) and A.min() >= 0
    torch.testing.assert_close(A.sum(1), torch.ones(V * N, dtype=A.dtype))
    if V > 1:
        assert A[:, : U * N].diagonal().abs().max() == 0


def test_one_view_of_keys_beside_many_of_z_is_refused():
    with pytest.raises(ValueError, match="keys must hold two views or more beside 8 views in z, got 1"):
        InfoNCE()(torch.randn(8, 9, 5), torch.randn(1, 9, 5))


@given(st.integers(1, 4), st.integers(2, 4), st.integers(2, 5), st.sampled_from([None, 2]))
def test_info_nce_s_positive_views_count_keys(V, U, N, G):
    z, keys = torch.randn(V, N, 5, dtype=torch.float64), torch.randn(U, N, 5, dtype=torch.float64)
    expected = np.mean([info_nce(p, n) for p, n in book(z, keys, labels=torch.arange(N), G=G)])
    for labels in (None, torch.arange(N)):
        assert InfoNCE(TAU, G)(z, keys, labels=labels).item() == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 6), st.sampled_from([None, 2]))
def test_groco_sorts_as_many_positives_as_there_are_keys(V, U, N, G):
    """With hard swaps p says who stands on top, so the loss is that of a plain sort."""
    assume(U > 1 or (V == 1 and G is None))
    z, keys = torch.randn(V, N, 5, dtype=torch.float64), torch.randn(U, N, 5, dtype=torch.float64)
    A = GroCo(1e9, 3, positive_views=G).assignment(z, keys)
    for a, (p, n) in enumerate(book(z, keys, G=G)):
        listed = np.concatenate([np.sort(n)[-3:], p])
        assert A[a].sum().item() == pytest.approx(len(p))
        x, y = F.normalize(z, dim=-1).flatten(0, 1)[a], F.normalize(keys, dim=-1).flatten(0, 1)
        np.testing.assert_allclose(np.sort((y @ x)[A[a] > 0.5]), np.sort(listed)[-len(p) :])


@given(st.integers(2, 3), st.sampled_from([(4, 2), (6, 2), (6, 3)]), st.booleans())
def test_groco_with_classes_of_one_size_sorts_them_whole(V, sizes, view):
    N, c = sizes
    z, order = torch.randn(V, N, 5, dtype=torch.float64), torch.randperm(N)
    labels = torch.arange(N)[order] // c
    loss = GroCo(1e9, 3, pool="view" if view else "all")
    A = loss.assignment(z, labels=labels).view(V, N, V, N)
    x = F.normalize(z, dim=-1)
    for v in range(V):
        for i in range(N):
            mate = labels == labels[i]
            s = torch.einsum("e,uje->uj", x[v, i], x)
            rivals = s[v, ~mate] if view else s[:, ~mate].flatten()
            own = s[:, mate].flatten().sort().values[:-1]  # without the anchor itself, its nearest
            listed = torch.cat([rivals.topk(min(3, len(rivals))).values, own])
            chosen = s[A[v, i] > 0.5].sort().values
            torch.testing.assert_close(chosen, listed.topk(V * c - 1).values.sort().values)
    assert loss(z, labels=labels) != loss(z)


@labelled
@settings(max_examples=10)
@given(st.integers(2, 4), st.integers(2, 6))
def test_distinct_labels_equal_no_labels(loss, V, N):
    V = views(loss, V)
    z, labels = torch.randn(V, N, 4, dtype=torch.float64, requires_grad=True), torch.randperm(N) - 2
    torch.testing.assert_close(loss(z, labels=labels), loss(z), rtol=1e-9, atol=1e-12)
    (with_labels,), (without,) = (torch.autograd.grad(x, z) for x in (loss(z, labels=labels), loss(z)))
    torch.testing.assert_close(with_labels, without, rtol=1e-7, atol=1e-9)
    A = loss.assignment(z.detach(), labels=labels)
    torch.testing.assert_close(A, loss.assignment(z.detach()), rtol=1e-9, atol=1e-12)


def test_the_list_holds_every_loss_that_takes_labels():
    assert {type(x) for x in LABELLED} == {kind for kind in LOSSES if "labels" in kind.takes}


HELD_FIXED = ("stop_gradient=True", "uniformity=0.3")  # what has a part without gradient


@pytest.mark.parametrize(
    "loss", [x for x in LABELLED if not any(part in repr(x) for part in HELD_FIXED)], ids=repr
)
def test_gradcheck_with_labels(loss):
    z = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels=torch.tensor([0, 1, 1, 0])), z)


def test_uniformity_counts_pairs_of_two_classes_as_negatives():
    z, labels = torch.randn(2, 4, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0])
    P = IOT("rows", TAU).assignment(z, labels=labels) / 8
    masses = P[labels.repeat(2)[:, None] != labels.repeat(2)]
    penalty = (masses.mean() * (masses.mean() / masses).log()).sum()
    both = [IOT("rows", TAU, uniformity=u)(z, labels=labels) for u in (1.0, 0.0)]
    torch.testing.assert_close(both[0] - both[1], penalty)


@labelled
def test_extremes_with_labels_are_finite(loss):
    labels = torch.tensor([0, 1, 1, 0])
    for z in (torch.ones(2, 4, 3), torch.randn(2, 4, 3).bfloat16(), torch.randn(2, 4, 3) * 1e-6):
        z.requires_grad_()
        value = loss(z, labels=labels)
        value.backward()
        assert (
            value.isfinite()
            and z.grad.isfinite().all()
            and loss.assignment(z, labels=labels).isfinite().all()
        )


@given(st.integers(2, 4), st.integers(3, 8), st.floats(0.05, 2))
def test_sup_con_equals_pytorch_metric_learning(V, N, temperature):
    z, labels = torch.randn(V, N, 6, dtype=torch.float64), classes(N)
    expected = SupConLoss(temperature)(z.flatten(0, 1), labels.repeat(V))
    torch.testing.assert_close(SupCon(temperature)(z, labels=labels), expected)


def test_sup_con_without_labels_is_info_nce_for_two_views_and_not_for_three():
    two, three = torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(3, 5, 4, dtype=torch.float64)
    torch.testing.assert_close(SupCon(0.2)(two), InfoNCE(0.2)(two))
    torch.testing.assert_close(SupCon(0.2).assignment(two), InfoNCE(0.2).assignment(two))
    assert SupCon(0.2)(three) > InfoNCE(0.2)(three) + 1e-2


@given(st.integers(2, 6), st.booleans(), st.booleans(), st.booleans())
def test_the_other_view_s_candidates_alone(N, with_keys, with_labels, with_memory):
    z = torch.randn(2, N, 5, dtype=torch.float64)
    keys = torch.randn(2, N, 5, dtype=torch.float64) if with_keys else None
    memory = torch.randn(3, 5, dtype=torch.float64) if with_memory else None
    labels = classes(N) if with_labels else None
    loss = InfoNCE(TAU, candidates="other view")
    expected = [info_nce(p, n) for p, n in book(z, keys, memory, labels, other_view=True)]
    np.testing.assert_allclose(loss(z, keys, memory, labels, reduction="none").flatten(), expected)
    assert loss.assignment(z, keys, memory, labels)[:N, :N].abs().max() == 0


def test_the_other_view_s_candidates_are_those_of_clip():
    """CLIP's program: cross-entropy of the rows and of the columns of one N×N matrix, halved."""
    z = torch.randn(2, 9, 5, dtype=torch.float64)
    a, b = F.normalize(z, dim=-1)
    logits, own = a @ b.T / 0.07, torch.arange(9)
    clip = (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2
    torch.testing.assert_close(InfoNCE(0.07, candidates="other view")(z), clip)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda z: InfoNCE()(z, labels=[0, 1, 2]), "labels must be a tensor of N = 3 integers .* got list"),
        (lambda z: InfoNCE()(z, labels=torch.tensor([0.0, 1, 1])), "labels must be .* got torch.float32"),
        (lambda z: InfoNCE()(z, labels=torch.tensor([0, 1])), r"labels must be .* got torch.int64 \(2,\)"),
        (lambda z: InfoNCE()(z, labels=torch.ones(3).long()), "labels must name two classes .* got only 1"),
        (lambda z: IOT()(z, memory=torch.ones(2, 4), labels=torch.arange(3)), "labels and positives must be"),
        (lambda z: InfoNCE(candidates="all")(z), "candidates must be one of .* got 'all'"),
        (lambda z: InfoNCE(candidates="other view")(z, z[[0, 1, 1]]), "z and keys must hold two views each"),
        (lambda z: GroCo(pool="view")(z, z[[0, 1, 1]]), "keys must have the 2 views of z .* got 3"),
        (lambda z: InfoNCE(positive_views=3)(z, z), "positive_views must be .* <= 2, got 3"),
        (lambda z: InfoNCE()(z[:1]), r"V >= 2 \(with keys or labels V >= 1\).* got \(1, 3, 4\)"),
        (lambda z: InfoNCE()(z, z[:0]), r"keys must fit z .* got \(0, 3, 4\)"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.randn(2, 3, 4))


def test_labels_are_refused_where_the_inner_problem_knows_no_second_positive():
    for kind in LOSSES:
        if "labels" not in kind.takes:
            with pytest.raises(ValueError, match=f"labels must be None for {kind.__name__}"):
                kind()(torch.randn(2, 3, 4), labels=torch.tensor([0, 0, 1]))


def test_one_class_beside_a_queue_has_the_queue_for_negatives():
    z, memory, labels = torch.randn(2, 3, 4), torch.randn(5, 4), torch.zeros(3, dtype=torch.int64)
    for loss in (InfoNCE(TAU), SupCon(TAU), HardNegatives(TAU), Triplet(), DebiasedInfoNCE(TAU, 0.05)):
        z.requires_grad_()
        value = loss(z, memory=memory, labels=labels)
        (gradient,) = torch.autograd.grad(value, z)
        assert value > 0 and gradient.isfinite().all()


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(2, 5))
def test_iot_with_a_queue_matches_each_view_with_the_keys_there_are(V, U, N):
    """Appendix C for any number of keys: its image's other keys and the queue."""
    assume(U > 1 or V == 1)
    z, keys = torch.randn(V, N, 5, dtype=torch.float64), torch.randn(U, N, 5, dtype=torch.float64)
    memory = torch.randn(4, 5, dtype=torch.float64)
    loss = IOT("rows", TAU)
    expected = [sup_con(p, n[:4]) for p, n in book(z, keys, memory)]
    np.testing.assert_allclose(loss(z, keys, memory, reduction="none").flatten(), expected, rtol=1e-9)
    A = loss.assignment(z, keys, memory)
    assert A.shape == (V * N, U * N + 4)
    torch.testing.assert_close(A.sum(1), torch.ones(V * N, dtype=A.dtype))
    same = torch.eye(N, dtype=torch.bool).repeat(V, U)
    assert A[:, : U * N][~same].abs().max() == 0
    if V > 1:
        assert A[:, : U * N].diagonal().abs().max() == 0


@labelled
@pytest.mark.parametrize("none", [-1, -100])
def test_an_image_without_a_label_is_a_class_of_its_own(loss, none):
    z = torch.randn(views(loss, 2), 8, 16, generator=torch.Generator().manual_seed(0))
    marked = torch.tensor([none, 0, 1, 2, none, 3, none, 4])
    own = torch.tensor([5, 0, 1, 2, 6, 3, 7, 4])
    torch.testing.assert_close(loss(z, labels=marked), loss(z, labels=own), rtol=0, atol=0)
    torch.testing.assert_close(loss(z, labels=marked.to(torch.int8)), loss(z, labels=own), rtol=0, atol=0)


def test_unlabelled_images_beside_classes_of_several():
    z = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
    marked, own = torch.tensor([0, 0, 1, 1, -1, -1, -100, -1]), torch.tensor([0, 0, 1, 1, 2, 3, 4, 5])
    for loss in (SupCon(), InfoNCE(), SparseCLR(), DebiasedInfoNCE(), Triplet(), IOT("both")):
        assert loss(z, labels=marked) == loss(z, labels=own)
        assert loss(z, labels=torch.full((8,), -1)) == loss(z, labels=torch.arange(8))
        assert torch.equal(loss.assignment(z, labels=marked), loss.assignment(z, labels=own))


def test_labels_that_are_no_whole_numbers_are_refused():
    z = torch.randn(2, 4, 5)
    for kind in (torch.float32, torch.float64, torch.complex64):
        with pytest.raises(ValueError, match="labels must be a tensor of N = 4 integers"):
            InfoNCE()(z, labels=torch.tensor([0, 1, 0, 1]).to(kind))
