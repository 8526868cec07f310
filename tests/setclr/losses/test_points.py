"""Who is whose positive, with keys, memory, labels and pairs: every contrast against its paper's formula."""

import inspect
import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from every_loss import close, normal, several, slope, views
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from torch.nn import functional as F

from setclr import DistributedLoss, losses
from setclr.losses import HCL, IOT, LOSSES, GroCo, HardNegatives, InfoNCE, NTLogistic, SupCon, Triplet

pytestmark = pytest.mark.filterwarnings("ignore:no anchor of this batch", "ignore:negatives=10 in GroCo")

# Each formula solves one anchor's inner problem from its cosines with positives and with negatives: value
# and what the positives and the negatives get.


def each_positive_alone(mass):
    """−log of its share beside the negatives, whose mass and shares are mass(loss, e⁺, e⁻)."""

    def solve(loss, p, n):
        e_p, e_n = np.exp(p / loss.temperature), np.exp(n / loss.temperature)
        g, shares = (np.array(x) for x in zip(*(mass(loss, e, e_n) for e in e_p)))
        spread = (g / (e_p + g))[:, None] * shares
        return np.log1p(g / e_p).mean(), e_p / (e_p + g) / len(p), spread.mean(0)

    return solve


def hardest(loss, e_p, e_n):
    least = np.sort(e_n)[-max(1, round(loss.keep * len(e_n)))]
    kept = np.where(e_n >= least, e_n, 0)
    return kept.sum(), kept / kept.sum()


def debiased(loss, e_p, e_n):
    w = e_n ** getattr(loss, "hardness", 0)
    total = (w * e_n).sum() / w.mean()
    bound = len(e_n) * math.exp(-1 / loss.temperature)
    return max((total - len(e_n) * loss.prior * e_p) / (1 - loss.prior), bound), w * e_n / (w * e_n).sum()


def decoupled(loss, p, n):
    value = np.log(np.exp(n / loss.temperature).sum()) - p.mean() / loss.temperature
    return value, 0 * p, softmax(n / loss.temperature)


def one_of_all(loss, p, n):
    """SupCon, eq. 2 and 3; IOT's rows are the same: the other positives stay among the candidates."""
    share = softmax(np.append(p, n) / getattr(loss, "temperature", getattr(loss, "epsilon", None)))
    near = share[: len(p)]
    value = -math.log(near.mean()) if getattr(loss, "average", None) else -np.log(near).mean()
    return value, near, share[len(p) :]


def each_pair_alone(loss, p, n):
    p, n = p / loss.temperature, n / loss.temperature
    return np.logaddexp(0, -p).mean() + np.logaddexp(0, n).mean(), expit(p), expit(n)


def sparse(loss, p, n):
    """max_Ω of each positive, less the margin, and the negatives (eq. 14); its gradient is the sparsemax."""
    value, shares = [], []
    for s in p - loss.margin:
        x = np.append(s, n)
        down = np.sort(x)[::-1]
        k = max(k for k in range(1, len(x) + 1) if 1 + k * down[k - 1] > down[:k].sum())
        T = (down[:k].sum() - 1) / k
        value.append((down[:k] ** 2 - T**2).sum() / 2 + 0.5 - s)
        shares.append(np.maximum(x - T, 0))
    shares = np.array(shares) / len(p)
    return np.mean(value), shares[:, 0], shares[:, 1:].sum(0)


def triplet(loss, p, n):
    d_p, d_n = (1 - x if loss.distance == "cosine" else np.sqrt(np.maximum(2 - 2 * x, 0)) for x in (p, n))
    near = d_n.argsort()[: loss.negatives]
    gap = (d_p.max(keepdims=True) if loss.positives == "hardest" else d_p)[:, None] - d_n[near]
    gap = gap if loss.margin is None else np.maximum(0, gap + loss.margin)
    share = np.zeros_like(n)
    share[near] = 1 / len(near)
    return gap.mean(), 0 * p, share


temperatures, flags = dict(temperature=st.floats(0.05, 3)), st.booleans()
priors = st.sampled_from([0.0, 0.01, 0.1, 0.5, 0.99])
FORMULAS = {
    InfoNCE: (each_positive_alone(lambda loss, e_p, e_n: (e_n.sum(), e_n / e_n.sum())),
              temperatures | dict(clamped=flags)),
    SupCon: (one_of_all, temperatures | dict(average=st.sampled_from([None, "inside"]))),
    NTLogistic: (each_pair_alone, temperatures),
    HardNegatives: (each_positive_alone(hardest), temperatures | dict(keep=st.floats(0.01, 1))),
    losses.DebiasedInfoNCE: (each_positive_alone(debiased), temperatures | dict(prior=priors)),
    HCL: (each_positive_alone(debiased),
          temperatures | dict(prior=priors, hardness=st.sampled_from([0.0, 0.5, 1.0, 3.0]))),
    losses.DecoupledInfoNCE: (decoupled, temperatures),
    losses.SparseCLR: (sparse, dict(margin=st.sampled_from([0.0, 0.3, 1.0, 3.0]), clamped=flags)),
    Triplet: (triplet, dict(margin=st.sampled_from([None, 0.0, 0.5, 1.6]), negatives=st.integers(1, 20),
                            positives=st.sampled_from(["hardest", "all"]),
                            distance=st.sampled_from(["euclidean", "cosine"]))),
    IOT: (one_of_all, dict(constraint=st.just("rows"), epsilon=st.floats(0.05, 3))),
}  # fmt: skip
every_formula = pytest.mark.parametrize("kind", FORMULAS)


def agree(loss, z, columns, positive, negative, **given):
    """Values, mean, weighted mean and assignment, by the masks of each anchor's positives and negatives."""
    s = F.normalize(z.reshape(-1, z.shape[-1]), dim=-1) @ F.normalize(columns, dim=-1).T
    s = s.clamp(min=0) if getattr(loss, "clamped", False) else s
    values, shares = np.zeros(len(s)), np.zeros(s.shape)
    kept = (positive.any(1) & negative.any(1)).numpy()
    for a in kept.nonzero()[0]:
        p, n = positive[a].numpy(), negative[a].numpy()
        solve = FORMULAS[type(loss)][0]
        values[a], shares[a, p], shares[a, n] = solve(loss, s[a, p].numpy(), s[a, n].numpy())
    N = z.shape[-2]
    for weight in (None, torch.rand(N, dtype=torch.float64) + 0.1):
        w = np.ones(len(s)) if weight is None else weight.repeat(len(s) // N).numpy()
        weighed = loss(z, **given, reduction="none", weight=weight).flatten()
        np.testing.assert_allclose(weighed, w * values, rtol=1e-7, atol=1e-12)
        if kept.any():
            mean = np.average(values[kept], weights=w[kept])
            assert loss(z, **given, weight=weight).item() == pytest.approx(mean, rel=1e-7, abs=1e-12)
    A = loss.assignment(z, **given)
    if isinstance(loss, NTLogistic):  # it judges the pairs that are neither, too
        A = A * (positive | negative)
    np.testing.assert_allclose(A, shares, rtol=1e-6, atol=1e-9)


def classes(N):
    """Labels of N images: two classes at least, of unequal size, some images without one."""
    labels = torch.randint(-1, max(2, N // 2), (N,))
    labels[:2] = torch.tensor([0, 1])
    return labels


def positives_by_the_book(z, U, keys, Q, labels, G, candidates):
    """Masks (V·N, U·N + Q), one pair at a time."""
    V, N, _ = z.shape
    y = torch.arange(N) if labels is None else torch.where(labels < 0, -1 - torch.arange(N), labels)
    positive = torch.zeros(V * N, U * N + Q, dtype=torch.bool)
    negative = (torch.arange(U * N + Q) >= U * N).repeat(V * N, 1)
    for v, i, u, j in itertools.product(range(V), range(N), range(U), range(N)):
        if candidates == "other view" and u == v:
            continue
        if y[i] != y[j]:
            negative[v * N + i, u * N + j] = candidates != "memory"
        elif ((u, j) != (v, i) or (keys and V == 1)) and (G is None or u < G):
            positive[v * N + i, u * N + j] = True
    return positive, negative


@every_formula
@given(st.data())
def test_equals_the_formula(kind, data):
    """MoCo's one view against one key, one against two, crops against two globals, flat batches."""
    draw, signature = data.draw, inspect.signature(kind).parameters
    settings = draw(st.fixed_dictionaries(FORMULAS[kind][1]))
    with_keys, with_memory = (name in kind.takes and draw(flags) for name in ("keys", "memory"))
    N, labels = draw(st.integers(2, 6)), None
    V = draw(st.integers(1, 4))
    U = draw(st.integers(1 if V == 1 else 2, 4)) if with_keys else V
    if (V == 1 and not with_keys or draw(flags)) and not (kind is IOT and with_memory):
        one_class = with_memory and draw(flags)  # beside a queue, which then has the negatives
        labels = torch.zeros(N, dtype=torch.int64) if one_class else classes(N)
    V, U = (2, 2) if V == 1 and labels is None and not with_keys else (V, U)
    if "positive_views" in signature and U > 1 and draw(flags):
        settings["positive_views"] = 2
    if "candidates" in signature:
        fit = [None] + ["other view"] * (V == U == 2) + ["memory"] * with_memory
        settings["candidates"] = draw(st.sampled_from(fit))
    z = normal(V, N, 5) + normal(N, 5)  # positives are more alike than negatives
    keys, memory = normal(U, N, 5) if with_keys else None, normal(3, 5) if with_memory else None
    columns = torch.cat([(z if keys is None else keys).flatten(0, 1), *([] if memory is None else [memory])])
    masks = positives_by_the_book(z, U, with_keys, 3 * with_memory, labels,
                                  settings.get("positive_views"), settings.get("candidates"))  # fmt: skip
    if kind is IOT and with_memory:  # eq. 38: pairs of two images of the batch are forbidden
        masks[1][:, : U * N] = False
    agree(kind(**settings), z, columns, *masks, keys=keys, memory=memory, labels=labels)


@every_formula
@given(st.data())
def test_labels_of_keys_and_memory_and_chosen_pairs(kind, data):
    draw = data.draw
    how = ["mask", "two"] + ["four"] * (kind is not IOT)  # of what is neither its coupling holds the mass
    how += ["key_labels"] * ("keys" in kind.takes)
    how += ["memory_labels"] * ("memory" in kind.takes and kind is not IOT)
    how, loss = draw(st.sampled_from(how)), kind(**draw(st.fixed_dictionaries(FORMULAS[kind][1])))
    V, N, C = draw(st.integers(1, 3)), draw(st.integers(3, 5)), draw(st.integers(1, 6))
    z, other, y = normal(V, N, 5), normal(draw(st.integers(1, 3)), C, 5), classes(N)
    of_others = torch.tensor(draw(st.lists(st.integers(-1, 2), min_size=C, max_size=C)))
    x, every, itself = z.flatten(0, 1), y.repeat(V), torch.eye(V * N, dtype=torch.bool)
    same = (every.unsqueeze(1) == of_others) & (of_others >= 0)
    if how == "key_labels":
        same = same.repeat(1, len(other))
        return agree(loss, z, other.flatten(0, 1), same, ~same, keys=other, labels=y, key_labels=of_others)
    if how == "memory_labels":
        own = torch.where(y < 0, -1 - torch.arange(N), y).repeat(V)
        same = torch.cat([own.unsqueeze(1) == own, same], dim=1)
        positive = same & ~torch.cat([itself, torch.zeros(V * N, C, dtype=torch.bool)], dim=1)
        return agree(loss, z, torch.cat([x, other[0]]), positive, ~same, memory=other[0], labels=y,
                     memory_labels=of_others)  # fmt: skip
    drawn = torch.rand(V * N, V * N)
    positive, negative = (drawn < 0.3) & ~itself, (drawn >= 0.3) & ~itself & ((drawn < 0.8) | (how != "four"))
    pairs = {
        "mask": positive | itself,  # the anchor itself is never a positive
        "two": positive.nonzero().unbind(1),
        "four": (*positive.nonzero().unbind(1), *negative.nonzero().unbind(1)),
    }[how]
    agree(loss, z, x, positive, negative, positives=pairs)


TAU = 0.3
LABELLED = several(f"""
InfoNCE({TAU}); InfoNCE({TAU}, positive_views=2); InfoNCE({TAU}, candidates="other view"); SupCon({TAU})
NTLogistic({TAU}); HardNegatives({TAU}, 0.4); DebiasedInfoNCE({TAU}, 0.05); HCL({TAU}, 0.05, 0.7)
DecoupledInfoNCE({TAU}); SparseCLR(0.3); Triplet(0.4, negatives=4); Triplet(0.9, "all", 3, "cosine")
GroCo(2.0, 4); GroCo(2.0, 4, pool="view", positive_views=2)
IOT("total", {TAU}); IOT("rows", {TAU}); IOT("both", {TAU}, 3); IOT("rows", {TAU}, uniformity=0.3)
""")
LABELLED += [kind() for kind in LOSSES if "labels" in kind.takes and kind not in set(map(type, LABELLED))]
labelled = pytest.mark.parametrize("loss", LABELLED, ids=repr)


@labelled
def test_a_mask_of_the_classes_is_their_labels_and_none_is_a_class_of_its_own(loss):
    z = normal(views(loss, 3), 8, 5, grad=True)
    y, own = torch.tensor([[0, 0, 1, 1, -1, -1, -100, 2], [0, 0, 1, 1, 5, 6, 7, 2]])
    mask = {"positives": own.repeat(len(z)).unsqueeze(1) == own.repeat(len(z))}
    distinct = {"labels": torch.tensor([-1, 0, 1, 2, -100, 3, -1, 4])}
    for both in (mask, {"labels": y}), ({"labels": own}, {"labels": y.to(torch.int8)}), (distinct, {}):
        close(*(loss(z, **how) for how in both), rel=1e-9, abs=1e-12)
        close(*(slope(loss(z, **how), z) for how in both), rel=1e-7, abs=1e-9)
        close(*(loss.assignment(z, **how) for how in both), rel=1e-9, abs=1e-12)


@labelled
def test_gradients_with_labels_of_views_and_of_a_flat_batch(loss):
    """There anchors without a positive are candidates alone, and the loss is 0 without any other."""
    held = getattr(loss, "uniformity", 0) > 0 or getattr(loss, "stop_gradient", False)
    z, two = normal(2, 4, 3, grad=True), torch.tensor([0, 1, 1, 0])
    assert held or torch.autograd.gradcheck(lambda z: loss(z, labels=two), z)
    for extreme in (torch.ones(2, 4, 3), torch.randn(2, 4, 3).bfloat16(), torch.randn(2, 4, 3) * 1e-6):
        value = loss(extreme.requires_grad_(), labels=two)
        assert value.isfinite() and slope(value, extreme).isfinite().all()
        assert loss.assignment(extreme, labels=two).isfinite().all()
    if "views" not in loss.takes or getattr(loss, "positive_views", None):
        return
    x, y = normal(6, 4, grad=True), torch.tensor([0, 0, 1, 1, 1, 2])
    gradient = slope(loss(x, labels=y), x)
    assert torch.equal(loss(x[None], labels=y), loss(x, labels=y))
    assert gradient.isfinite().all() and gradient[:5].abs().sum() > 0
    assert held or torch.autograd.gradcheck(lambda x: loss(x, labels=y), x)
    assert not getattr(loss, "stop_gradient", False) or gradient[5].abs().max() == 0
    if getattr(loss, "uniformity", 0):
        return  # a penalty of all pairs, positives or not
    alone, x, each = eval(repr(loss), vars(losses)), x[:4].detach().requires_grad_(), torch.arange(4)
    with pytest.warns(UserWarning, match="no anchor of this batch has both a positive and a negative"):
        value = alone(x, labels=each)
    assert value == 0 and slope(value, x).abs().max() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert alone(x, labels=each, reduction="none").tolist() == [0, 0, 0, 0]
        assert alone.assignment(x, labels=each).abs().max() == 0


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if "keys" in kind.takes])
def test_keys_that_learn_and_keys_and_memory_that_do_not(kind):
    z, keys = normal(2, 5, 4, grad=True), normal(2, 5, 4, grad=True)
    memory = normal(5, 4, grad=True) if "memory" in kind.takes else None
    kind()(z, keys, memory).backward()
    assert keys.grad is None and z.grad.abs().max() > 0 and getattr(memory, "grad", None) is None
    constant = {"stop_gradient": False} if kind in (GroCo, Triplet) else {}
    loss = kind(**constant, key_gradient=True)
    assert torch.autograd.gradcheck(lambda z, keys: loss(z, keys=keys), (z, keys))
    assert torch.equal(loss(z[0], z[1], keys=keys), kind(**constant)(z, keys=keys))
    assert eval(repr(loss), vars(losses)).key_gradient
    if "stop_gradient" in inspect.signature(kind).parameters:
        with pytest.raises(ValueError, match="key_gradient must be False with stop_gradient=True"):
            kind(stop_gradient=True, key_gradient=True)


@pytest.mark.parametrize("kind", [InfoNCE, HardNegatives, Triplet, GroCo])
def test_stopped_candidates_are_keys(kind):
    """GroCo's table 9a: only the anchor learns."""
    z, free, stopped = normal(2, 6, 5, grad=True), kind(1, stop_gradient=False), kind(1, stop_gradient=True)
    value, with_keys = stopped(z), free(z, keys=z.detach())
    assert value == with_keys == free(z) and "stop_gradient=True" in repr(stopped)
    found = slope(value, z)
    assert torch.equal(found, slope(with_keys, z)) and (slope(free(z), z) - found).abs().max() > 1e-3


def test_a_sum_gives_each_term_what_it_takes():
    z, keys, memory, labels = normal(2, 8, 4), normal(2, 8, 4), normal(5, 4), torch.arange(8) // 2
    info, qare, groco = InfoNCE(), losses.QARe(), GroCo(negatives=3)
    apart = info(z, keys, memory, labels) + 0.5 * qare(z) + groco(z, keys, labels=labels)
    close((info + 0.5 * qare + groco)(z, keys, memory, labels), apart)
    with pytest.raises(ValueError, match="keys must be None for WeightedSum"):
        (qare + losses.MMCL())(z, keys)
    shown = (qare + groco + info).assignment(z, keys, memory, labels)
    close(shown, groco.assignment(z, keys, labels=labels))
    assert (info + qare).takes == {"views", "keys", "memory", "labels"}
    assert (info + losses.LinearAssignment()).takes == {"keys", "memory", "labels"}
    mask, x, both = labels.repeat(2).unsqueeze(1) == labels.repeat(2), z[0], info + 2 * SupCon()
    close((info + qare)(z, positives=mask), info(z, labels=labels) + qare(z))
    expected = info(x, labels=labels) + 2 * SupCon()(x, labels=labels)
    close((both(x, labels=labels), DistributedLoss(both)(x, labels=labels)), (expected, expected))
