"""The contract that every loss keeps: composition, repr, input checks, and the laws of all losses."""

import copy
import inspect
import math

import pytest
import torch
from every_loss import EVERY, SUMS, views
from hypothesis import given, settings
from hypothesis import strategies as st
from looks_at_values import ON_A_GPU, why

import setclr
from setclr import losses
from setclr.losses import (
    HCL,
    IOT,
    LOSSES,
    MMCL,
    AlignUniform,
    DebiasedInfoNCE,
    DecoupledInfoNCE,
    GroCo,
    HardNegatives,
    InfoNCE,
    InvaSpread,
    LinearAssignment,
    NTLogistic,
    QARe,
    SetLoss,
    SparseCLR,
    SupCon,
    Triplet,
    parse,
)

every_loss = pytest.mark.parametrize("loss", EVERY, ids=repr)
with_assignment = pytest.mark.parametrize("loss", [x for x in EVERY if x.has_assignment], ids=repr)


def flat(V, N, images=None, order=None):
    """Where the points (v, i) go when images or views are put into another order."""
    points = torch.arange(V * N).view(V, N)
    points = points if images is None else points[:, images]
    return (points if order is None else points[order]).flatten()


def rotation(E):
    return torch.linalg.qr(torch.randn(E, E, dtype=torch.float64)).Q


def test_every_loss_is_in_the_list():
    assert {type(x) for x in EVERY[: -len(SUMS)]} == set(LOSSES)


@every_loss
@settings(max_examples=8)
@given(st.integers(2, 4), st.integers(2, 7))
def test_order_of_images_does_not_matter(loss, V, N):
    V = views(loss, V)
    z, p = torch.randn(V, N, 4, dtype=torch.float64), torch.randperm(N)
    torch.testing.assert_close(loss(z[:, p]), loss(z))
    if loss.has_assignment:
        at = flat(V, N, images=p)
        torch.testing.assert_close(loss.assignment(z[:, p]), loss.assignment(z)[at][:, at])


@pytest.mark.parametrize("loss", [x for x in EVERY if "batch-hard" not in repr(x)], ids=repr)
@settings(max_examples=8)
@given(st.integers(2, 4), st.integers(2, 7))
def test_order_of_views_does_not_matter(loss, V, N):
    V = views(loss, V)
    z, p = torch.randn(V, N, 4, dtype=torch.float64), torch.randperm(V)
    torch.testing.assert_close(loss(z[p]), loss(z))
    if loss.has_assignment:
        at = flat(V, N, order=p)
        torch.testing.assert_close(loss.assignment(z[p]), loss.assignment(z)[at][:, at])


def test_what_depends_on_an_order_does():
    z = torch.randn(2, 8, 4, dtype=torch.float64)
    rows = LinearAssignment(0.0, 0.2, "batch-hard")
    unordered = GroCo(preorder=False)
    following, drawn = GroCo(negatives=3, random=True), MMCL(solver="steps")
    assert (following(z.flip(1)) - following(z)).abs() > 1e-4
    assert (drawn(z.flip(1)) - drawn(z)).abs() > 1e-4
    assert (rows(z.flip(0)) - rows(z)).abs() > 1e-4
    assert (unordered(z.flip(1)) - unordered(z)).abs() > 1e-4


@every_loss
def test_rotations_and_lengths_do_not_matter(loss):
    V = views(loss, 3)
    z, R = torch.randn(V, 5, 4, dtype=torch.float64), rotation(4)
    lengths = 10 ** (2 * torch.rand(V, 5, 1, dtype=torch.float64) - 1)
    torch.testing.assert_close(loss(lengths * z @ R), loss(z))
    if loss.has_assignment:
        torch.testing.assert_close(loss.assignment(lengths * z @ R), loss.assignment(z))


@pytest.mark.parametrize("loss", [x for x in EVERY if "keys" in x.takes], ids=repr)
def test_rotating_keys_and_memory_too_does_not_matter(loss):
    z, keys, R = (*torch.randn(2, views(loss, 3), 5, 4, dtype=torch.float64), rotation(4))
    extra = {"keys": keys}
    if "memory" in loss.takes and "iterations=None" not in repr(loss):
        extra["memory"] = torch.randn(6, 4, dtype=torch.float64)
    turned = {name: x @ R for name, x in extra.items()}
    torch.testing.assert_close(loss(z @ R, **turned), loss(z, **extra))
    torch.testing.assert_close(loss.assignment(z @ R, **turned), loss.assignment(z, **extra))
    assert (loss(z @ R, **extra) - loss(z, **extra)).abs() > 1e-6


@with_assignment
def test_assignment_is_a_matrix_without_gradient(loss):
    z = torch.randn(2, 5, 4, requires_grad=True)
    A = loss.assignment(z)
    assert A.shape == (10, 10) and not A.requires_grad and A.dtype == torch.float32
    assert A.min() >= 0 and A.diagonal().abs().max() == 0


@pytest.mark.parametrize(
    "loss", [x for x in EVERY if "memory" in x.takes and "iterations=None" not in repr(x)], ids=repr
)
def test_assignment_has_a_column_for_each_memory(loss):
    z, memory = torch.randn(2, 5, 4), torch.randn(7, 4)
    A = loss.assignment(z, memory=memory)
    assert A.shape == (10, 17) and A.min() >= 0 and A[:, :10].diagonal().abs().max() == 0
    assert A[:, 10:].sum() > 0


HELD_FIXED = (
    "stop_gradient=True",
    "uniformity=0.5",
    "MMCL",
)  # what their own tests hold fixed in a gradcheck
SMOOTH = [x for x in EVERY if not any(text in repr(x) for text in HELD_FIXED)] + [
    GroCo(2.0, 3, stop_gradient=False),
    IOT("both", 0.3, 3),
    IOT("rows", 0.3),
]


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_gradcheck(loss):
    z = torch.randn(views(loss, 3), 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, z)


EXTREME = EVERY[: -len(SUMS)] + [
    InfoNCE(1e-3),
    InfoNCE(1e3),
    NTLogistic(1e-3),
    NTLogistic(1e3),
    LinearAssignment(0.5, 1e-3),
    LinearAssignment(0.5, 1e3),
    LinearAssignment(0.5, 1e-3, "batch-hard"),
    SparseCLR(100.0),
    GroCo(1e-3),
    GroCo(1e3),
    IOT("both", 1e-3, 5),
    IOT("both", 1e3, 5, 1.0),
    IOT("total", 1e-3, uniformity=1.0),
    IOT("rows", 1e-3, uniformity=1.0, uniform_target="max"),
    MMCL(bandwidth=1e-3),
    MMCL(bandwidth=1e3),
    MMCL(bandwidth=1e3, C=math.inf),
    MMCL(bandwidth=1e-3, solver="exact"),
    MMCL(bandwidth=1e3, solver="exact"),
    MMCL("linear", C=math.inf, solver="exact"),
    MMCL("tanh", bandwidth=1e3, C=1.0),
    AlignUniform(1.0, 1e3),
    HardNegatives(1e-3, 0.01),
    InvaSpread(1e-3),
    InvaSpread(1e3),
    DebiasedInfoNCE(1e-3),
    DebiasedInfoNCE(1e3),
    HCL(1e-3, hardness=3.0),
    HCL(1e3),
]


@pytest.mark.filterwarnings("ignore:the solver 'pgd' stopped", "ignore:sinkhorn stopped")
@pytest.mark.parametrize("loss", EXTREME, ids=repr)
@pytest.mark.parametrize(
    "extreme",
    [
        lambda V: torch.ones(V, 4, 3),
        lambda V: torch.stack([torch.randn(4, 3)] * 2) * torch.tensor([1.0, -1.0]).view(2, 1, 1),
        lambda V: torch.randn(V, 2, 3),
        lambda V: torch.randn(2 if V == 2 else 8, 4, 3),
        lambda V: 1e-6 * torch.randn(V, 4, 3),
        lambda V: 1e6 * torch.randn(V, 4, 3),
        lambda V: torch.randn(V, 4, 3).bfloat16(),
        lambda V: 1e-2 * torch.randn(V, 4, 3).half(),
        lambda V: 1e3 * torch.randn(V, 4, 3).half(),
    ],
    ids=["all equal", "antipodal", "N=2", "V=8", "tiny", "huge", "bf16", "fp16 tiny", "fp16 huge"],
)
def test_extremes_give_finite_values_and_gradients_and_the_right_ones(loss, extreme):
    z = extreme(views(loss, 3)).requires_grad_()
    value = loss(z)
    scale = max(1, abs(value.item())) if z.dtype == torch.float16 else 1  # as fp16 training scales its loss
    (value / scale).backward()
    assert value.dtype == torch.float32 and value.isfinite() and z.grad.isfinite().all()
    if loss.has_assignment:
        assert loss.assignment(z).isfinite().all()
    exact = loss(z.detach().double())
    torch.testing.assert_close(
        value.detach().double(), exact, rtol=2e-3, atol=2e-4 * max(1, abs(float(exact)))
    )


@every_loss
def test_autocast_does_not_reach_inside(loss):
    z = torch.randn(2, 6, 16)
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss(z)
    assert inside.dtype == torch.float32 and torch.equal(inside, loss(z))


@pytest.mark.parametrize("loss", [x for x in EVERY if why(x) is None], ids=repr)
def test_compiled_without_a_break_gives_the_same(loss):
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    z = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    value, expected = compiled(z), loss(z)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    (gradient,), (expected,) = (torch.autograd.grad(x, z) for x in (value, expected))
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


def test_sums_and_multiples():
    z = torch.randn(2, 4, 5)
    a, b = InfoNCE(0.5), GroCo()
    torch.testing.assert_close((a + 1.5 * b)(z), a(z) + 1.5 * b(z))
    torch.testing.assert_close((2 * (a + b * 0.5) + b)(z), 2 * a(z) + 2 * b(z))
    torch.testing.assert_close((0.5 * b + a).assignment(z), b.assignment(z))
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        a * b
    with pytest.raises(ValueError, match="weight must be a finite number, got nan"):
        math.nan * a


class Regulariser(SetLoss):
    """A loss without an inner solution."""

    def score(self, points):
        return points.anchors.square().sum()


def test_a_regulariser_has_no_assignment():
    z = torch.randn(2, 3, 4)
    with pytest.raises(ValueError, match=r"Regulariser\(\) is a regulariser and has no assignment"):
        Regulariser().assignment(z)
    with pytest.raises(ValueError, match="has no assignment"):
        (2.0 * Regulariser()).assignment(z)
    both = Regulariser() + InfoNCE()
    torch.testing.assert_close(both.assignment(z), InfoNCE().assignment(z))


@pytest.mark.parametrize("loss", [*EVERY, *(kind() for kind in LOSSES), MMCL(C=math.inf)], ids=repr)
def test_repr_evaluates_to_the_same(loss):
    assert repr(eval(repr(loss), vars(losses))) == repr(loss)
    assert repr(parse(repr(loss))) == repr(loss)
    assert repr(copy.deepcopy(loss)) == repr(loss)
    z = torch.randn(2, 4, 5)
    assert torch.equal(parse(repr(loss))(z), loss(z))


def with_row(value):
    z = torch.randn(2, 3, 4)
    z[1, 2] = value
    return z


@pytest.mark.parametrize(
    "z, message",
    [
        ([[1.0]], "z must be a floating tensor .* got list"),
        (None, "z must be a floating tensor .* got NoneType"),
        (torch.randn(6, 4), r"z must be .*torch.stack.* got shape \(6, 4\)"),
        (torch.ones(2, 3, 4, dtype=torch.int64), r"z must be .* got torch.int64; use z.float\(\)"),
        (torch.ones(2, 3, 4, dtype=torch.complex64), "z must be .* got torch.complex64"),
        (torch.randn(1, 3, 4), r"V >= 2.* got \(1, 3, 4\)"),
        (torch.randn(2, 1, 4), r"N >= 2.* got \(2, 1, 4\)"),
        (torch.randn(2, 3, 0), r"E >= 1.* got \(2, 3, 0\)"),
        (with_row(torch.nan), r"z\[1, 2\] must be finite .* NaN or inf"),
        (with_row(torch.inf), r"z\[1, 2\] must be finite .* NaN or inf"),
        (with_row(0.0), r"z\[1, 2\] must be .* only zeros"),
    ],
)
def test_bad_z_is_refused(z, message):
    for call in (InfoNCE(), InfoNCE().assignment):
        with pytest.raises(ValueError, match=message):
            call(z)


@every_loss
def test_every_loss_looks_at_its_input(loss):
    for call in (loss, loss.assignment) if loss.has_assignment else (loss,):
        with pytest.raises(ValueError, match=r"z\[1, 2\] must be finite"):
            call(with_row(torch.nan))


TAKES = {  # what each loss understands: keys, memory, positive_views
    LinearAssignment: (False, False, False),
    Triplet: (True, True, True),
    NTLogistic: (False, False, False),
    InfoNCE: (True, True, True),
    SupCon: (True, True, False),
    HardNegatives: (True, True, True),
    DebiasedInfoNCE: (True, True, True),
    HCL: (True, True, True),
    DecoupledInfoNCE: (True, True, True),
    InvaSpread: (False, False, False),
    AlignUniform: (False, False, False),
    SparseCLR: (False, False, True),
    QARe: (False, False, False),
    GroCo: (True, False, True),
    IOT: (True, True, False),
    MMCL: (False, False, False),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_what_a_loss_takes_is_used_and_the_rest_refused(kind):
    z, keys = torch.randn(2, 2, 3, 4)
    memory = torch.randn(50, 4)  # so many that some are harder than any negative of the batch
    takes_keys, takes_memory, takes_positive_views = TAKES[kind]
    assert takes_positive_views == ("positive_views" in inspect.signature(kind).parameters)
    for name, extra, takes in (("keys", keys, takes_keys), ("memory", memory, takes_memory)):
        if takes:
            assert not torch.equal(kind()(z, **{name: extra}), kind()(z))
        else:
            with pytest.raises(ValueError, match=f"{name} must be None for {kind.__name__}"):
                kind()(z, **{name: extra})
    if takes_positive_views:
        z = torch.randn(4, 3, 5)
        assert not torch.equal(kind(positive_views=2)(z), kind()(z))
        with pytest.raises(ValueError, match="positive_views must be an integer >= 2 and <= 4, got 5"):
            kind(positive_views=5)(z)


@pytest.mark.parametrize("kind", [k for k, (keys, _, _) in TAKES.items() if keys])
@pytest.mark.parametrize(
    "inputs, message",
    [
        (dict(keys=torch.randn(2, 4, 4)), r"keys must fit z of shape \(2, 3, 4\) .* got \(2, 4, 4\)"),
        (dict(keys=torch.randn(3, 4)), r"keys must be a floating tensor .* got shape \(3, 4\)"),
        (dict(keys=torch.zeros(2, 3, 4)), r"keys\[0, 0\] must be finite and not zero"),
        (dict(keys=torch.randn(2, 3, 4).tolist()), "keys must be a floating tensor .* got list"),
        (dict(memory=torch.randn(5, 3)), r"memory must fit z"),
        (dict(memory=torch.randn(0, 4)), r"memory must fit z"),
        (dict(memory=torch.randn(1, 5, 4)), r"memory must be a floating tensor .* got shape \(1, 5, 4\)"),
        (dict(memory=torch.full((5, 4), torch.nan)), r"memory\[0\] must be finite"),
        (dict(memory=torch.ones(5, 4, dtype=torch.uint8)), "memory must be a floating tensor .* torch.uint8"),
    ],
)
def test_bad_keys_and_memory_are_refused(kind, inputs, message):
    if "memory" in inputs and not TAKES[kind][1]:
        message = "memory must be None"
    with pytest.raises(ValueError, match=message):
        kind()(torch.randn(2, 3, 4), **inputs)


def test_each_term_of_a_sum_gets_what_it_takes():
    z, keys, memory = torch.randn(2, 8, 4), torch.randn(2, 8, 4), torch.randn(5, 4)
    labels = torch.arange(8) // 2
    total = (InfoNCE() + 0.5 * QARe() + GroCo(negatives=3))(z, keys, memory, labels)
    apart = InfoNCE()(z, keys, memory, labels) + 0.5 * QARe()(z) + GroCo(negatives=3)(z, keys, labels=labels)
    torch.testing.assert_close(total, apart)
    with pytest.raises(ValueError, match="keys must be None for WeightedSum"):
        (QARe() + MMCL())(z, keys)
    shown = (QARe() + GroCo(negatives=3) + InfoNCE()).assignment(z, keys, memory, labels)
    torch.testing.assert_close(shown, GroCo(negatives=3).assignment(z, keys, labels=labels))
    assert (InfoNCE() + QARe()).takes == {"views", "keys", "memory", "labels"}
    assert (InfoNCE() + LinearAssignment()).takes == {"keys", "memory", "labels"}


@pytest.mark.parametrize("kind", [k for k, (keys, _, _) in TAKES.items() if keys])
def test_keys_and_memory_get_no_gradient(kind):
    z, keys = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 3, 4, requires_grad=True)
    memory = torch.randn(5, 4, requires_grad=True) if TAKES[kind][1] else None
    kind()(z, keys, memory).backward()
    assert keys.grad is None and z.grad.abs().max() > 0
    assert memory is None or memory.grad is None


@pytest.mark.parametrize("V", [3, 4])
def test_a_loss_of_two_views_refuses_more(V):
    with pytest.raises(ValueError, match=rf"z must hold two views for LinearAssignment\(.*\), got {V}"):
        LinearAssignment()(torch.randn(V, 3, 4))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_loss
def test_the_gpu_gives_what_the_cpu_gives_and_nan_for_nan(loss):
    z = torch.randn(2, 16, 8, requires_grad=True)
    there = z.detach().cuda().requires_grad_()
    torch.testing.assert_close(loss(there).cpu(), loss(z), rtol=1e-4, atol=1e-5)
    loss(z).backward()
    loss(there).backward()
    torch.testing.assert_close(there.grad.cpu(), z.grad, rtol=1e-3, atol=1e-4)
    assert loss(with_row(torch.nan).cuda()).isnan()
    assert loss(with_row(0.0).cuda()).isnan()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
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


@every_loss
def test_two_views_can_be_given_one_by_one(loss):
    z = torch.randn(2, 5, 4, dtype=torch.float64)
    assert torch.equal(loss(z[0], z[1]), loss(z))
    if loss.has_assignment:
        assert torch.equal(loss.assignment(z[0], z[1]), loss.assignment(z))


def test_two_views_that_are_none_are_refused_in_words():
    z = torch.randn(2, 5, 4)
    with pytest.raises(ValueError, match=r"z2 must be a second view .* got torch.int64 \(5,\); .*labels=y"):
        InfoNCE()(z[0], torch.arange(5))
    with pytest.raises(ValueError, match=r"z must be a floating tensor \(V, N, E\)"):  # not a second view
        InfoNCE()(z[0], keys=z[1])
    with pytest.raises(ValueError, match="keys must be given once"):
        InfoNCE()(z, z, keys=z)
    assert torch.equal(InfoNCE()(z[0], z[1], keys=z + 1), InfoNCE()(z, keys=z + 1))
    with pytest.raises(ValueError, match=r"z1 and z2 must be two views .*\(5, 4\) on cpu and \(4, 4\)"):
        InfoNCE()(z[0], z[1, :4])


def test_dcl_is_two_losses():
    """lightly's is decoupled, the one that had this name here is debiased."""
    with pytest.warns(FutureWarning, match="DCL is DebiasedInfoNCE now; lightly's DCLLoss is Decoupled"):
        assert losses.DCL is DebiasedInfoNCE
    assert repr(parse("DCL(prior=0.2)")) == repr(DebiasedInfoNCE(prior=0.2))
    assert "DCL" not in losses.__all__ and not hasattr(setclr, "DCL")
