"""The contract that every loss keeps: laws, what it takes, anchors' values, sums and multiples, repr."""

import copy
import inspect
import math
import warnings

import pytest
import torch
from every_loss import EVERY, EXAMPLES, normal, slope, views
from hypothesis import given, settings
from hypothesis import strategies as st
from looks_at_values import ON_A_GPU, why
from torch import nn

import setclr
from setclr import losses
from setclr.losses import IOT, LOSSES, MMCL, GroCo, InfoNCE, LinearAssignment, QARe, SetLoss, parse

every_loss = pytest.mark.parametrize("loss", EVERY, ids=repr)
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_every_loss_is_in_the_list():
    assert {type(x) for x in EXAMPLES} == set(LOSSES)


@every_loss
@settings(max_examples=6)
@given(st.integers(2, 4), st.integers(2, 7))
def test_order_of_images_and_views_rotations_and_lengths_do_not_matter(loss, V, N):
    V = views(loss, V)
    z, points, lengths = normal(V, N, 4), torch.arange(V * N).view(V, N), 10 ** (2 * torch.rand(V, N, 1) - 1)
    A = loss.assignment(z) if loss.has_assignment else None
    of_images, of_views = torch.randperm(N), torch.randperm(V)
    changed = [
        (z[:, of_images], points[:, of_images]),
        (lengths * z @ torch.linalg.qr(normal(4, 4)).Q, points),
    ]
    if "batch-hard" not in repr(loss):
        changed.append((z[of_views], points[of_views]))
    for other, at in changed:
        torch.testing.assert_close(loss(other), loss(z))
        if A is not None:
            torch.testing.assert_close(loss.assignment(other), A[at.flatten()][:, at.flatten()])


def test_what_depends_on_an_order_does():
    z = normal(2, 8, 4)
    following, drawn = GroCo(negatives=3, random=True), MMCL(solver="steps")
    for loss, dim in ((following, 1), (drawn, 1), (GroCo(preorder=False), 1),
                      (LinearAssignment(0.0, 0.2, "batch-hard"), 0)):  # fmt: skip
        assert (loss(z.flip(dim)) - loss(z)).abs() > 1e-4


@pytest.mark.parametrize("loss", [x for x in EVERY if "keys" in x.takes], ids=repr)
def test_rotating_keys_and_memory_too_does_not_matter(loss):
    (z, keys), R = normal(2, views(loss, 3), 5, 4), torch.linalg.qr(normal(4, 4)).Q
    extra = {"keys": keys}
    if "memory" in loss.takes and "iterations=None" not in repr(loss):
        extra["memory"] = normal(6, 4)
        A = loss.assignment(z[:2], memory=extra["memory"])
        assert A.shape == (10, 16) and A.min() >= 0 and A[:, :10].diagonal().abs().max() == 0
        assert A[:, 10:].sum() > 0
    turned = {name: x @ R for name, x in extra.items()}
    torch.testing.assert_close(loss(z @ R, **turned), loss(z, **extra))
    torch.testing.assert_close(loss.assignment(z @ R, **turned), loss.assignment(z, **extra))
    assert (loss(z @ R, **extra) - loss(z, **extra)).abs() > 1e-6


@every_loss
def test_two_views_one_by_one_autocast_and_an_assignment_without_gradient(loss):
    z = torch.randn(2, 5, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss(z)
    assert inside.dtype == torch.float32 and torch.equal(inside, loss(z))
    assert torch.equal(loss(z[0], z[1]), loss(z))
    if loss.has_assignment:
        A = loss.assignment(z)
        assert A.shape == (10, 10) and not A.requires_grad and A.dtype == torch.float32
        assert A.min() >= 0 and A.diagonal().abs().max() == 0
        assert torch.equal(loss.assignment(z[0], z[1]), A)


TWICE = (repr(EVERY[-2]), "SparseCLR(margin=0.5)")  # the other sum, and clamped, are compiled


@pytest.mark.parametrize("loss", [x for x in EVERY if why(x) is None and repr(x) not in TWICE], ids=repr)
def test_compiled_without_a_break_gives_the_same(loss):
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    z = normal(2, 5, 4, grad=True)
    value, expected = compiled(z), loss(z)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(slope(value, z), slope(expected, z), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [*EVERY, *(kind() for kind in LOSSES), MMCL(C=math.inf)], ids=repr)
def test_repr_evaluates_to_the_same(loss):
    z = torch.randn(2, 4, 5)
    assert (
        repr(eval(repr(loss), vars(losses)))
        == repr(parse(repr(loss)))
        == repr(copy.deepcopy(loss))
        == repr(loss)
    )
    assert torch.equal(parse(repr(loss))(z), loss(z))


def has_values(loss) -> bool:
    try:
        return loss(torch.randn(2, 4, 5), reduction="none") is not None
    except ValueError:
        return False


WITHOUT_VALUES = [loss for loss in EVERY if not has_values(loss)]


@pytest.mark.parametrize("loss", [x for x in EVERY if x not in WITHOUT_VALUES], ids=repr)
def test_the_loss_is_the_mean_of_the_anchors_values_weighed_by_image(loss):
    V = views(loss, 3)
    z, w = normal(V, 6, 5, grad=True), torch.rand(6)
    values = loss(z, reduction="none")
    assert values.shape == (V, 6)
    torch.testing.assert_close(values.mean(), loss(z))
    torch.testing.assert_close(slope(values.mean(), z), slope(loss(z), z))
    values = loss(z, reduction="none").detach()
    by_hand = sum(float(w[i]) * float(values[v, i]) for v in range(V) for i in range(6)) / (
        V * float(w.sum())
    )
    assert loss(z, weight=w).item() == pytest.approx(by_hand, rel=1e-6)
    torch.testing.assert_close(loss(z, weight=w, reduction="none"), w * values)
    torch.testing.assert_close(loss(z, weight=torch.full((6,), 3.0)), loss(z))


def test_who_has_no_value_for_each_anchor():
    assert {type(x) for x in WITHOUT_VALUES} == {
        LinearAssignment,
        QARe,
        IOT,
        losses.AlignUniform,
        losses.base.WeightedSum,
    }
    for loss in [LinearAssignment(), QARe(), IOT(uniformity=0.1), InfoNCE() + 0.1 * QARe()]:
        for more in (dict(reduction="none"), dict(weight=torch.ones(4))):
            with pytest.raises(ValueError, match="reduction must be 'mean' and weight None for .*no value"):
                loss(torch.randn(2, 4, 3), **more)
    a, b, z = InfoNCE(), GroCo(negatives=2), torch.randn(2, 4, 3)
    apart = a(z, reduction="none") + 0.3 * b(z, reduction="none")
    torch.testing.assert_close((a + 0.3 * b)(z, reduction="none"), apart)


def test_sums_and_multiples():
    z, a, b = torch.randn(2, 4, 5), InfoNCE(0.5), GroCo()
    torch.testing.assert_close((2 * (a + b * 0.5) + b)(z), 2 * a(z) + 2 * b(z))
    torch.testing.assert_close((0.5 * b + a).assignment(z), b.assignment(z))
    half = (InfoNCE() + 3 * QARe()) / 2
    assert repr(half) == repr(0.5 * InfoNCE() + 1.5 * QARe()) == repr(parse(repr(half)))
    torch.testing.assert_close(half(z), InfoNCE()(z) / 2 + 1.5 * QARe()(z))
    assert repr(sum([a, QARe(), b])) == repr(a + QARe() + b)
    for wrong in (lambda: a + 1, lambda: 1 + a, lambda: a * b, lambda: a / b, lambda: sum([a], start=2)):
        with pytest.raises(TypeError):
            wrong()


class Regulariser(SetLoss):
    """A loss without an inner solution."""

    def score(self, points):
        return points.anchors.square().sum()


def test_a_regulariser_has_no_assignment():
    z = torch.randn(2, 3, 4)
    for loss, name in (
        (Regulariser(), r"Regulariser\(\) is a"),
        (QARe(), r"QARe\(similarity='cosine'\) is a"),
    ):
        with pytest.raises(ValueError, match=f"{name} regulariser and has no assignment"):
            loss.assignment(z)
        with pytest.raises(ValueError, match="has no assignment"):
            (2.0 * loss).assignment(z)
        torch.testing.assert_close((loss + InfoNCE()).assignment(z), InfoNCE().assignment(z))


def test_a_tensor_times_a_loss_stays_in_the_graph():
    z, weight = torch.randn(2, 4, 5), torch.tensor(0.3, requires_grad=True)
    for loss in (weight * InfoNCE(), InfoNCE() * weight, 2 * (weight * InfoNCE() + QARe()) / 2):
        torch.testing.assert_close(slope(loss(z), weight), InfoNCE()(z))
        assert "0.3 * InfoNCE(temperature=0.5)" in repr(loss)
        assert repr(eval(repr(loss), vars(losses))) == repr(loss)


def test_a_learned_weight_is_a_parameter_of_the_sum_and_is_read_anew():
    z, weight = torch.randn(2, 4, 5), nn.Parameter(torch.tensor(0.3))
    loss = 0.5 * (weight * (InfoNCE() + 2 * QARe()))
    assert list(loss.parameters()) == [weight]
    with torch.no_grad():
        weight.fill_(0.8)
    torch.testing.assert_close(loss(z), 0.4 * InfoNCE()(z) + 0.8 * QARe()(z))
    twin = copy.deepcopy(loss)
    with torch.no_grad():
        next(twin.parameters()).zero_()
    assert twin(z) == 0 and loss(z) > 0


@pytest.mark.parametrize("way", ["assign", "setattr", "parametrize", "functional_call", "deepcopy"])
def test_the_weight_of_a_sum_is_held_once(way):
    """Every way to put another number in the place of a sum's learnt weight."""
    z, value = torch.randn(2, 8, 16), torch.tensor(3.0)
    loss = InfoNCE(0.2) + nn.Parameter(torch.tensor(0.5)) * QARe()

    class Fixed(nn.Module):
        def forward(self, x):
            return 0 * x + 3

    if way in ("assign", "deepcopy"):
        loss.load_state_dict({"weight0": value}, assign=True)
        loss = copy.deepcopy(loss) if way == "deepcopy" else loss
    elif way == "setattr":
        loss.weight0 = nn.Parameter(value)
    elif way == "parametrize":
        nn.utils.parametrize.register_parametrization(loss, "weight0", Fixed())
    right = InfoNCE(0.2)(z) + 3 * QARe()(z)
    found = torch.func.functional_call(loss, {"weight0": value}, z) if way == "functional_call" else loss(z)
    torch.testing.assert_close(found, right)
    if way == "assign":  # it learns, and enters a larger sum
        larger = 2 * loss + losses.SparseCLR()
        assert repr(larger).startswith("2.0 * InfoNCE(temperature=0.2) + 6.0 * QARe")
        torch.testing.assert_close(slope(larger(z), loss.weight0), 2 * QARe()(z))


def test_the_table_says_what_the_classes_do():
    """Each tick is tried out: what is ticked changes the value, what is not is refused by name."""
    head, _, *rows = [
        [x.strip() for x in line.strip("|").split("|")] for line in losses.capabilities().splitlines()
    ]
    names = ["`keys`", "`memory`", "`labels`", "`positive_views`", "`key_gradient`"]
    assert head == ["loss", "more than two views", *names]
    assert [row[0] for row in rows] == [f"`{kind.__name__}`" for kind in LOSSES]
    z, memory = torch.randn(4, 6, 4), torch.randn(50, 4)  # so many that some are harder than any negative
    more = dict(keys=z[2:], memory=memory, labels=torch.arange(6) // 2)
    for kind, row in zip(LOSSES, rows):
        cells, of_class = dict(zip(head, row)), inspect.signature(kind).parameters
        plain, two = kind(), z[:2]
        if cells["more than two views"] == "✓":
            assert plain(z).isfinite()
        else:
            with pytest.raises(ValueError, match=rf"z must hold two views for {kind.__name__}\(.*\), got 4"):
                plain(z)
        for name, x in more.items():
            if cells[f"`{name}`"] == "✓":
                assert not torch.equal(plain(two, **{name: x}), plain(two))
            else:
                with pytest.raises(ValueError, match=f"{name} must be None for {kind.__name__}"):
                    plain(two, **{name: x})
        for name in ("positive_views", "key_gradient"):
            assert (cells[f"`{name}`"] == "✓") == (name in of_class)
        if "positive_views" in of_class:
            assert not torch.equal(kind(positive_views=2)(z), plain(z))
            with pytest.raises(ValueError, match="positive_views must be an integer >= 2 and <= 4, got 5"):
                kind(positive_views=5)(z)


def test_what_is_odd_is_said_once():
    def warned(call) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [str(w.message) for w in caught if w.category is UserWarning]

    z = torch.randn(16, 2, 4)
    for loss in (InfoNCE(), QARe()):
        (message,) = warned(lambda: [loss(z), loss(z), loss(z[:9])])  # noqa: B023
        assert message.startswith("z is (V, N, E): 16 views of 2 images?")
    groco = GroCo(negatives=100)
    (message,) = warned(lambda: [groco(torch.randn(2, N, 4)) for N in (16, 16, 12)])
    assert message == "negatives=100 in GroCo, 30 at hand: all are taken"
    assert not warned(lambda: [InfoNCE()(torch.randn(4, 4, 3)), GroCo(negatives=30)(torch.randn(2, 16, 4))])


def test_dcl_is_two_losses():
    """lightly's is decoupled, the one that had this name here is debiased."""
    with pytest.warns(FutureWarning, match="DCL is DebiasedInfoNCE now; lightly's DCLLoss is Decoupled"):
        assert losses.DCL is losses.DebiasedInfoNCE
    assert repr(parse("DCL(prior=0.2)")) == repr(losses.DebiasedInfoNCE(prior=0.2))
    assert "DCL" not in losses.__all__ and not hasattr(setclr, "DCL")


@pytest.mark.gpu
@on_a_gpu
@every_loss
def test_the_gpu_gives_what_the_cpu_gives_and_nan_for_nan(loss):
    z = torch.randn(2, 16, 8, requires_grad=True)
    there = z.detach().cuda().requires_grad_()
    torch.testing.assert_close(loss(there).cpu(), loss(z), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(slope(loss(there), there).cpu(), slope(loss(z), z), rtol=1e-3, atol=1e-4)
    for wrong in (torch.nan, 0.0):
        there = z.detach().cuda().index_fill(1, torch.tensor([2], device="cuda"), wrong)
        assert loss(there).isnan()


@pytest.mark.gpu
@on_a_gpu
@every_loss
def test_a_step_does_not_wait_for_the_gpu(loss):
    if reason := why(loss, ON_A_GPU):
        pytest.skip(reason)
    z = torch.randn(2, 16, 8, device="cuda", requires_grad=True)
    loss(z).backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(z).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
