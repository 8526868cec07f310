"""Which pairs are positive: flat batches, keys of other images, a memory's labels, masks, miners' indices."""

import inspect
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import CrossBatchMemory, SupConLoss, TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner, MultiSimilarityMiner
from pytorch_metric_learning.reducers import MeanReducer
from test_losses_labels import FORMULAS, LABELLED, TAU, labelled, views, with_formula
from torch.nn import functional as F

from setclr import DistributedLoss, losses
from setclr.inner import top_probability
from setclr.losses import (
    IOT,
    LOSSES,
    DebiasedInfoNCE,
    DecoupledInfoNCE,
    GroCo,
    HardNegatives,
    InfoNCE,
    LinearAssignment,
    QARe,
    SupCon,
    Triplet,
)

WITH_KEYS = [x for x in LABELLED if repr(x) in FORMULAS and "keys" in x.takes]
WITH_MEMORY = [
    x for x in WITH_KEYS if not isinstance(x, IOT)
]  # it forbids pairs of other images beside a queue
FLAT = [x for x in LABELLED if "views" in x.takes and getattr(x, "positive_views", None) is None]


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def expected(loss, x, columns, positive, negative):
    """The loss's formula for each anchor, a row of x, by the masks of its pairs; 0 if it lacks one kind."""
    s = F.normalize(x, dim=-1) @ F.normalize(columns, dim=-1).T
    kept = positive.any(1) & negative.any(1)
    values = [
        FORMULAS[repr(loss)](row[p].numpy(), row[n].numpy()) if k else 0.0
        for row, p, n, k in zip(s, positive, negative, kept)
    ]
    return np.array(values), kept.numpy()


def agree(loss, wanted, z, shape, **given):
    """Each anchor's value, and their mean over the anchors that are kept."""
    values, kept = wanted
    each = loss(z, **given, reduction="none")
    assert each.shape == shape
    np.testing.assert_allclose(each.flatten(), values, rtol=1e-7, atol=1e-12)
    if kept.any():
        assert loss(z, **given).item() == pytest.approx(values[kept].mean(), rel=1e-7)
    A = loss.assignment(z, **given)
    assert A.min() >= 0 and A[~torch.from_numpy(kept)].abs().sum() == 0
    np.testing.assert_allclose(A.sum(1)[torch.from_numpy(kept)], 1, rtol=1e-9) if "NTL" not in repr(
        loss
    ) else None


@with_formula
@given(st.lists(st.integers(-1, 3), min_size=3, max_size=9).filter(lambda y: len({*y}) > 1))
def test_a_flat_batch_has_the_pairs_of_its_classes(loss, classes):
    x, y = normal(len(classes), 5), torch.tensor(classes)
    same = (y.unsqueeze(1) == y) & (y.unsqueeze(1) >= 0) | torch.eye(len(y), dtype=torch.bool)
    wanted = expected(loss, x, x, same & ~torch.eye(len(y), dtype=torch.bool), ~same)
    if "other view" in repr(loss):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(loss, wanted, x, (len(y),), labels=y)
        assert torch.equal(loss(x[None], labels=y), loss(x, labels=y))
        weight = torch.rand(len(y), dtype=torch.float64) + 0.1
        values, kept = wanted
        if kept.any():
            mean = np.average(values[kept], weights=weight.numpy()[kept])
            assert loss(x, labels=y, weight=weight).item() == pytest.approx(mean, rel=1e-7)


@pytest.mark.parametrize("loss", FLAT, ids=repr)
def test_a_flat_batch_has_a_gradient_in_which_anchors_without_a_positive_are_candidates_alone(loss):
    x = normal(6, 4).requires_grad_()
    y = torch.tensor([0, 0, 1, 1, 1, 2])
    loss(x, labels=y).backward()
    assert x.grad.isfinite().all() and x.grad[:5].abs().sum() > 0
    if "stop_gradient=True" in repr(loss):
        assert x.grad[5].abs().max() == 0
    elif "uniformity=0.3" not in repr(loss):
        assert torch.autograd.gradcheck(lambda x: loss(x, labels=y), x)


@pytest.mark.parametrize("loss", FLAT, ids=repr)
def test_a_batch_without_a_positive_gives_zero_and_says_so_once(loss):
    loss, x = eval(repr(loss), vars(losses)), normal(4, 5).requires_grad_()
    if getattr(loss, "uniformity", 0):
        pytest.skip("uniformity is a penalty of all pairs, positives or not")
    with pytest.warns(UserWarning, match="no anchor of this batch has both a positive and a negative"):
        value = loss(x, labels=torch.arange(4))
    value.backward()
    assert value == 0 and x.grad.abs().max() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss(x, labels=torch.arange(4), reduction="none").tolist() == [0, 0, 0, 0]
        assert loss.assignment(x, labels=torch.arange(4)).abs().max() == 0


@pytest.mark.parametrize("loss", WITH_KEYS, ids=repr)
@settings(max_examples=15)
@given(st.integers(1, 2), st.integers(1, 3), st.integers(2, 4), st.integers(1, 6), st.data())
def test_keys_of_other_images_have_labels_of_their_own(loss, V, U, N, C, data):
    y, of_keys = (
        torch.tensor(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))) for n in (N, C)
    )
    if len({*y.tolist(), *of_keys.tolist()}) < 2:
        of_keys[0] = 5
    z, keys = normal(V, N, 5), normal(U, C, 5)
    same = ((y.unsqueeze(1) == of_keys) & (of_keys >= 0)).repeat(V, U)
    wanted = expected(loss, z.flatten(0, 1), keys.flatten(0, 1), same, ~same)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(loss, wanted, z, (V, N), keys=keys, labels=y, key_labels=of_keys)


@pytest.mark.parametrize("loss", WITH_MEMORY, ids=repr)
@settings(max_examples=15)
@given(st.integers(1, 2), st.integers(3, 5), st.integers(1, 6), st.data())
def test_a_memory_may_have_labels(loss, V, N, Q, data):
    of_memory = torch.tensor(data.draw(st.lists(st.integers(-1, 2), min_size=Q, max_size=Q)))
    y = torch.cat([torch.tensor([0, 1]), torch.randint(0, 3, (N - 2,))])
    z, memory = normal(V, N, 5), normal(Q, 5)
    x, every = z.flatten(0, 1), y.repeat(V)
    same = torch.cat([every.unsqueeze(1) == every, every.unsqueeze(1) == of_memory], dim=1)
    positive = same.clone()
    positive[:, : V * N].fill_diagonal_(False)
    wanted = expected(loss, x, torch.cat([x, memory]), positive, ~same)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(loss, wanted, z, (V, N), memory=memory, labels=y, memory_labels=of_memory)


@with_formula
@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(3, 5), st.sampled_from(["mask", "two", "four"]))
def test_pairs_may_be_chosen(loss, V, N, how):
    V = views(loss, V)
    if "other view" in repr(loss) or (isinstance(loss, IOT) and how == "four"):
        return  # of all that is neither, IOT's coupling still holds the mass
    z = normal(V, N, 5)
    x, kind = z.flatten(0, 1), torch.rand(V * N, V * N)
    itself = torch.eye(V * N, dtype=torch.bool)
    positive, negative = (kind < 0.3) & ~itself, ~(kind < 0.3) & ~itself
    if how == "four":
        negative &= kind < 0.8
    pairs = {
        "mask": positive | itself,  # the anchor itself is never a positive
        "two": positive.nonzero().unbind(1),
        "four": (*positive.nonzero().unbind(1), *negative.nonzero().unbind(1)),
    }[how]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(loss, expected(loss, x, x, positive, negative), z, (V, N), positives=pairs)


@labelled
def test_a_mask_of_the_classes_is_their_labels(loss):
    z, y = normal(views(loss, 3), 5, 4), torch.tensor([0, 0, 1, 2, 2])
    every = y.repeat(len(z))
    given = {"positives": every.unsqueeze(1) == every}
    torch.testing.assert_close(loss(z, **given), loss(z, labels=y))
    torch.testing.assert_close(loss.assignment(z, **given), loss.assignment(z, labels=y))


@pytest.mark.parametrize("pool", ["all", "view"])
def test_groco_sorts_each_anchor_s_list_whatever_its_length(pool):
    z, y = normal(2, 7, 5), torch.tensor([0, 0, 0, 1, 1, 2, 3])
    loss = GroCo(2.0, 10, pool)
    x, every = F.normalize(z, dim=-1).flatten(0, 1), y.repeat(2)
    view = torch.arange(14) // 7
    with pytest.warns(UserWarning, match="negatives=10 in GroCo, "):
        values = loss(z, labels=y, reduction="none").flatten()
    for a in range(14):
        s, same = x @ x[a], every == every[a]
        rivals = s[~same & ((view == view[a]) | (pool == "all"))].sort().values[-10:]
        same[a] = False
        own = s[same].sort().values
        p = top_probability(torch.cat([rivals, own]), len(own), 2.0)
        right = torch.cat([1 - p[: len(rivals)], p[len(rivals) :]])
        torch.testing.assert_close(values[a], -right.log().mean())


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if "keys" in kind.takes])
def test_keys_that_learn(kind):
    z, keys = (normal(2, 5, 4).requires_grad_() for _ in range(2))
    constant = {"stop_gradient": False} if kind in (GroCo, Triplet) else {}
    loss = kind(**constant, key_gradient=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(lambda z, keys: loss(z, keys=keys), (z, keys))
        assert torch.equal(loss(z, keys=keys), kind(**constant)(z, keys=keys))
        (found,) = torch.autograd.grad(kind(**constant)(z, keys=keys), keys, allow_unused=True)
    assert found is None and eval(repr(loss), vars(losses)).key_gradient
    if "stop_gradient" in inspect.signature(kind).parameters:
        with pytest.raises(ValueError, match="key_gradient must be False with stop_gradient=True"):
            kind(stop_gradient=True, key_gradient=True)


@given(st.integers(2, 6), st.integers(1, 20), st.floats(0.05, 1))
def test_the_memory_alone_is_moco_s_loss(N, Q, temperature):
    """MoCo's program: cross-entropy of the logits of the key, then of the queue, with the class 0."""
    query, key, queue = (F.normalize(normal(n, 8), dim=1) for n in (N, N, Q))
    near = torch.einsum("ne,ne->n", query, key).unsqueeze(1)
    logits = torch.cat([near, query @ queue.T], dim=1) / temperature
    moco = F.cross_entropy(logits, torch.zeros(N, dtype=torch.int64))
    loss = InfoNCE(temperature, candidates="memory")
    torch.testing.assert_close(loss(query[None], keys=key[None], memory=queue), moco)
    A = loss.assignment(query[None], keys=key[None], memory=queue)
    torch.testing.assert_close(torch.cat([A[:, :N].diagonal().unsqueeze(1), A[:, N:]], 1), logits.softmax(1))
    assert A[:, :N].fill_diagonal_(0).abs().max() == 0
    labels = torch.arange(N)
    labelled = loss(query[None], keys=key[None], memory=queue, labels=labels)
    torch.testing.assert_close(labelled, moco)


def test_the_memory_alone_needs_a_memory():
    with pytest.raises(ValueError, match="memory must be given for InfoNCE.*holds all negatives"):
        InfoNCE(candidates="memory")(normal(2, 3, 4))


@given(st.lists(st.integers(0, 3), min_size=4, max_size=9).filter(lambda y: len({*y}) > 1))
def test_the_mean_inside_the_logarithm(classes):
    """Khosla et al., eq. 3, one anchor at a time."""
    x, y = normal(len(classes), 5), torch.tensor(classes)
    s = F.normalize(x, dim=1) @ F.normalize(x, dim=1).T / TAU
    found = SupCon(TAU, "inside")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = found(x, labels=y, reduction="none")
    for a in range(len(y)):
        own = (y == y[a]) & (torch.arange(len(y)) != a)
        rest = s[a][torch.arange(len(y)) != a]
        wanted = -(s[a][own].exp().mean() / rest.exp().sum()).log() if own.any() else torch.tensor(0.0)
        torch.testing.assert_close(values[a], wanted.to(values))


def in_classes(N, least=1):
    """Labels of N images, at least two classes, at least one of several images."""
    y = torch.randint(0, max(2, N // 3), (N,))
    y[:3] = torch.tensor([0, 0, 1])
    return y


@given(st.integers(4, 20), st.floats(0.05, 1))
def test_a_flat_batch_is_pytorch_metric_learning_s(N, temperature):
    x, y = normal(N, 6), in_classes(N)
    theirs = SupConLoss(temperature)(x, y)  # it, too, leaves out anchors without a positive
    torch.testing.assert_close(SupCon(temperature)(x, labels=y), theirs)
    mined = BatchHardMiner()(x, y)
    hard = TripletMarginLoss(margin=0.5, reducer=MeanReducer())(x, y, mined)
    torch.testing.assert_close(Triplet(0.5)(x, labels=y), hard)


@given(st.integers(6, 16))
def test_a_miner_s_indices_are_pytorch_metric_learning_s(N):
    x, y = normal(N, 6), in_classes(N)
    mined = MultiSimilarityMiner(epsilon=0.5)(x, y)
    kept = torch.tensor([a for a in range(N) if (mined[0] == a).any() and (mined[2] == a).any()])
    wanted = SupConLoss(0.2, reducer=MeanReducer())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = SupCon(0.2)(x, positives=mined, reduction="none")
    near = F.normalize(x, dim=1) @ F.normalize(x, dim=1).T / 0.2
    for a in kept.tolist():
        p, n = mined[1][mined[0] == a], mined[3][mined[2] == a]
        total = near[a][torch.cat([p, n])].logsumexp(0)
        torch.testing.assert_close(ours[a], total - near[a][p].mean())
    if len(kept) == N:
        torch.testing.assert_close(ours.mean(), wanted(x, y, mined))


def test_a_cross_batch_memory_is_pytorch_metric_learning_s():
    memory = CrossBatchMemory(SupConLoss(0.2), 6, memory_size=14)
    first, second = normal(8, 6), normal(6, 6)
    y1, y2 = torch.tensor([0, 0, 1, 1, 2, 2, 3, 4]), torch.tensor([0, 1, 1, 3, 5, 5])
    memory.embedding_memory = memory.embedding_memory.double()
    memory(first, y1)
    theirs = memory(second, y2)
    ours = SupCon(0.2)(second, labels=y2, memory=first, memory_labels=y1)
    torch.testing.assert_close(ours, theirs)


Y, THREE, HERE = torch.arange(4), torch.arange(3), torch.tensor([0])
REFUSED = {
    r"z must be a floating tensor \(V, N, E\)": lambda x: InfoNCE()(x),
    r"V >= 2 \(with keys or labels V >= 1\)": lambda x: InfoNCE()(x[None]),
    "drop_last=True": lambda x: InfoNCE()(x[:1], labels=Y[:1]),
    "drop_last=True.*": lambda x: InfoNCE()(x[:1], x[:1]),
    "labels are named: loss": lambda x: InfoNCE()(x, Y),
    "labels must be None for QARe": lambda x: QARe()(x, labels=Y),
    "positives must be None for LinearAssignment": lambda x: LinearAssignment()(x, positives=x > 0),
    "keys of other images than z come with key_labels": lambda x: InfoNCE()(x[None], keys=x[None, :3]),
    "key_labels must come with labels": lambda x: InfoNCE()(x[None], keys=x[None], key_labels=Y),
    r"key_labels must be a tensor of N = 3 integers .* got torch.int64 \(4,\)": lambda x: InfoNCE()(
        x, keys=x[None, :3], labels=Y, key_labels=Y
    ),
    "memory_labels must come with labels": lambda x: SupCon()(
        torch.stack([x, x + 1]), memory=x, memory_labels=Y
    ),
    "memory_labels must be None for GroCo": lambda x: GroCo()(x, labels=Y, memory_labels=Y),
    r"positives must be a bool mask \(4, 4\)": lambda x: InfoNCE()(x, positives=torch.ones(4, 3).bool()),
    "got torch.float32.*use positives.bool": lambda x: InfoNCE()(x, positives=torch.ones(4, 4)),
    "two or four tensors of indices": lambda x: InfoNCE()(x, positives=(HERE,)),
    "indices from 0 to 3, got": lambda x: InfoNCE()(x, positives=(HERE, HERE + 4)),
    "of equal length": lambda x: InfoNCE()(x, positives=(HERE, THREE)),
    "labels must be None where positives": lambda x: InfoNCE()(x, positives=x @ x.T > 0, labels=Y),
    "takes a flat batch": lambda x: InfoNCE(average="probabilities")(x, labels=Y // 2),
    "average must be one of 'inside', got 'outside'": lambda x: SupCon(average="outside"),
}


@pytest.mark.parametrize("message, call", REFUSED.items())
def test_what_does_not_fit_is_refused(message, call):
    with pytest.raises(ValueError, match=message):
        call(torch.randn(4, 5))


def test_a_sum_gives_each_term_the_pairs_that_it_takes():
    z, y = normal(2, 5, 4), torch.tensor([0, 0, 1, 2, 2])
    mask = y.repeat(2).unsqueeze(1) == y.repeat(2)
    torch.testing.assert_close((InfoNCE() + QARe())(z, positives=mask), InfoNCE()(z, labels=y) + QARe()(z))
    x = z[0]
    both = InfoNCE() + 2 * SupCon()
    torch.testing.assert_close(both(x, labels=y), InfoNCE()(x, labels=y) + 2 * SupCon()(x, labels=y))
    torch.testing.assert_close(DistributedLoss(SupCon())(x, labels=y), SupCon()(x, labels=y))


def test_every_loss_that_takes_labels_takes_a_flat_batch():
    x, y = torch.randn(6, 5), torch.tensor([0, 0, 1, 1, 1, 2])
    for kind in LOSSES:
        if "labels" in kind.takes:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert kind()(x, labels=y).isfinite() and kind().assignment(x, labels=y).shape == (6, 6)
    for kind in (HardNegatives, DebiasedInfoNCE, DecoupledInfoNCE):
        assert kind()(x, labels=y, memory=x + 1, memory_labels=y).isfinite()
