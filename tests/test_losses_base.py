"""The contract that every loss keeps: composition, repr, input checks, and the laws of all losses."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setclr import losses
from setclr.losses import GroCo, InfoNCE, SetLoss, parse

EVERY = [InfoNCE(0.3), GroCo(2.0, 5), GroCo(1.0, 3, pool="view"), InfoNCE(0.5) + 0.25 * GroCo()]
every_loss = pytest.mark.parametrize("loss", EVERY, ids=repr)


def rotation(E):
    return torch.linalg.qr(torch.randn(E, E, dtype=torch.float64)).Q


@every_loss
@given(st.integers(2, 4), st.integers(2, 7))
def test_order_of_images_does_not_matter(loss, V, N):
    z, p = torch.randn(V, N, 4, dtype=torch.float64), torch.randperm(N)
    torch.testing.assert_close(loss(z[:, p]), loss(z))
    points = torch.arange(V * N).view(V, N)[:, p].flatten()
    torch.testing.assert_close(loss.assignment(z[:, p]), loss.assignment(z)[points][:, points])


@every_loss
@given(st.integers(2, 4), st.integers(2, 7))
def test_order_of_views_does_not_matter(loss, V, N):
    z, p = torch.randn(V, N, 4, dtype=torch.float64), torch.randperm(V)
    torch.testing.assert_close(loss(z[p]), loss(z))
    points = torch.arange(V * N).view(V, N)[p].flatten()
    torch.testing.assert_close(loss.assignment(z[p]), loss.assignment(z)[points][:, points])


@every_loss
def test_rotations_and_lengths_do_not_matter(loss):
    z, R = torch.randn(3, 5, 4, dtype=torch.float64), rotation(4)
    lengths = 10 ** (2 * torch.rand(3, 5, 1, dtype=torch.float64) - 1)
    torch.testing.assert_close(loss(lengths * z @ R), loss(z))
    torch.testing.assert_close(loss.assignment(lengths * z @ R), loss.assignment(z))


@every_loss
def test_assignment_is_a_matrix_without_gradient(loss):
    z = torch.randn(2, 5, 4, requires_grad=True)
    A = loss.assignment(z)
    assert A.shape == (10, 10) and not A.requires_grad
    assert A.min() >= 0 and A.diagonal().abs().max() == 0


@pytest.mark.parametrize("loss", [InfoNCE(0.3), GroCo(2.0, 3, stop_gradient=False)], ids=repr)
def test_gradcheck(loss):
    z = torch.randn(3, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, z)


@pytest.mark.parametrize("loss", [InfoNCE(1e-3), InfoNCE(1e3), GroCo(1e-3), GroCo(1e3), GroCo(1.0)], ids=repr)
@pytest.mark.parametrize(
    "extreme",
    [
        lambda: torch.ones(2, 4, 3),
        lambda: torch.stack([torch.randn(4, 3)] * 2) * torch.tensor([1.0, -1.0]).view(2, 1, 1),
        lambda: torch.randn(2, 2, 3),
        lambda: torch.randn(8, 4, 3),
        lambda: 1e-6 * torch.randn(2, 4, 3),
        lambda: 1e6 * torch.randn(2, 4, 3),
        lambda: torch.randn(2, 4, 3).bfloat16(),
        lambda: 1e-2 * torch.randn(2, 4, 3).half(),
    ],
    ids=["all equal", "antipodal", "N=2", "V=8", "tiny", "huge", "bf16", "fp16"],
)
def test_extremes_give_finite_values_and_gradients(loss, extreme):
    z = extreme().requires_grad_()
    value = loss(z)
    value.backward()
    assert value.dtype == torch.float32 and value.isfinite() and z.grad.isfinite().all()
    assert loss.assignment(z).isfinite().all()


@every_loss
def test_autocast_does_not_reach_inside(loss):
    z = torch.randn(2, 8, 16)
    with torch.autocast("cpu", torch.bfloat16):
        inside = loss(z)
    assert inside.dtype == torch.float32 and torch.equal(inside, loss(z))


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


@every_loss
def test_repr_evaluates_to_the_same(loss):
    assert repr(eval(repr(loss), vars(losses))) == repr(loss)
    assert repr(parse(repr(loss))) == repr(loss)
    assert repr(copy.deepcopy(loss)) == repr(loss)
    z = torch.randn(2, 4, 5)
    assert torch.equal(parse(repr(loss))(z), loss(z))


@pytest.mark.parametrize(
    "text, message",
    [
        ("InfoNC()", "loss must be one of .*did you mean 'InfoNCE'"),
        ("InfoNCE(temprature=1)", "unexpected keyword argument 'temprature'"),
        ("InfoNCE(temperature=-1)", "temperature must be > 0, got -1"),
        ("__import__('os').system('true')", "loss must be"),
        ("InfoNCE", "loss must be"),
        ("3", "loss must be an expression"),
        ("InfoNCE(", "loss must be an expression"),
        ("InfoNCE() + 3", "losses are added, and multiplied by numbers"),
        ("InfoNCE() * GroCo()", "losses are added, and multiplied by numbers"),
        ("InfoNCE() - GroCo()", "loss must be made of losses"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def with_row(value):
    z = torch.randn(2, 3, 4)
    z[1, 2] = value
    return z


@every_loss
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
def test_bad_z_is_refused(loss, z, message):
    with pytest.raises(ValueError, match=message):
        loss(z)
    with pytest.raises(ValueError, match=message):
        loss.assignment(z)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (dict(keys=torch.randn(2, 4, 4)), r"keys must fit z of shape \(2, 3, 4\) .* got \(2, 4, 4\)"),
        (dict(keys=torch.randn(3, 4)), r"keys must be a floating tensor .* got shape \(3, 4\)"),
        (dict(keys=torch.zeros(2, 3, 4)), r"keys\[0, 0\] must be finite and not zero"),
        (dict(memory=torch.randn(5, 3)), r"memory must fit z"),
        (dict(memory=torch.randn(0, 4)), r"memory must fit z"),
        (dict(memory=torch.full((5, 4), torch.nan)), r"memory\[0\] must be finite"),
        (dict(memory=torch.ones(5, 4, dtype=torch.uint8)), "memory must be a floating tensor .* torch.uint8"),
    ],
)
def test_bad_keys_and_memory_are_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        InfoNCE()(torch.randn(2, 3, 4), **inputs)


def test_what_a_loss_does_not_take_is_refused():
    z = torch.randn(2, 3, 4)
    with pytest.raises(ValueError, match="memory must be None for GroCo"):
        GroCo()(z, memory=torch.randn(5, 4))
    with pytest.raises(ValueError, match="keys must be None for Regulariser"):
        Regulariser()(z, keys=z)
    with pytest.raises(ValueError, match="memory must be None for GroCo"):
        (InfoNCE() + GroCo())(z, memory=torch.randn(5, 4))


@pytest.mark.parametrize("loss", [InfoNCE(0.3), GroCo(stop_gradient=False)], ids=repr)
def test_keys_get_no_gradient(loss):
    z, keys = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 3, 4, requires_grad=True)
    loss(z, keys=keys).backward()
    assert keys.grad is None and z.grad.abs().max() > 0


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: InfoNCE(0), "temperature must be > 0, got 0; the papers use 0.05 to 0.5"),
        (lambda: InfoNCE(math.nan), "temperature must be > 0, got nan"),
        (lambda: InfoNCE(math.inf), "temperature must be > 0, got inf"),
        (lambda: InfoNCE("0.5"), "temperature must be > 0, got '0.5'"),
        (lambda: InfoNCE(True), "temperature must be > 0, got True"),
        (lambda: InfoNCE(positive_views=1), "positive_views must be an integer >= 2, got 1"),
        (lambda: InfoNCE(positive_views=2.5), "positive_views must be an integer >= 2, got 2.5"),
        (lambda: InfoNCE(positive_views=3)(torch.randn(2, 3, 4)), "positive_views must be .* <= 2, got 3"),
        (lambda: GroCo(-1), "beta must be > 0, got -1"),
        (lambda: GroCo(negatives=0), "negatives must be an integer >= 1, got 0"),
        (lambda: GroCo(pool="views"), "pool must be one of 'all', 'view', got 'views'; did you mean 'view'"),
        (lambda: GroCo(preorder=1), "preorder must be True or False, got 1"),
        (lambda: GroCo(stop_gradient=None), "stop_gradient must be True or False, got None"),
        (lambda: GroCo(positive_views=1), "positive_views must be an integer >= 2, got 1"),
        (lambda: GroCo(positive_views=3)(torch.randn(2, 3, 4)), "positive_views must be .* <= 2, got 3"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@every_loss
def test_the_gpu_gives_what_the_cpu_gives_and_nan_for_nan(loss):
    z = torch.randn(2, 16, 8)
    torch.testing.assert_close(loss(z.cuda()).cpu(), loss(z), rtol=1e-5, atol=1e-6)
    assert loss(with_row(torch.nan).cuda()).isnan()
    assert loss(with_row(0.0).cuda()).isnan()
