"""Values and derivatives of every loss: finite or refused at the ends of what may be asked for, and true.

The first and second derivatives of losses and inner functions are those of torch.func and torch.export.
"""

import inspect
import math

import pytest
import torch
from every_loss import EVERY, EXAMPLES, close, normal, several, slope, views
from hypothesis import given, settings
from hypothesis import strategies as st
from looks_at_values import why
from torch.func import grad, jvp, vmap

from setclr import inner, losses
from setclr.inner.simplex import soft_maximum, sparse_maximum
from setclr.losses import LOSSES, MMCL, InfoNCE, QARe, SupCon

CONSTANT = several("""
GroCo(negatives=4); InfoNCE(stop_gradient=True); Triplet(stop_gradient=True); MMCL(); MMCL(solver="exact")
IOT(uniformity=1.0); InfoNCE() + GroCo(negatives=4)
""")
# What holds something constant has its gradient compared with the one with that part held fixed, elsewhere.
HELD = ("stop_gradient=True", "uniformity=0.5", "MMCL")
SMOOTH = [x for x in EVERY if not any(part in repr(x) for part in HELD)] + several("""
GroCo(2.0, 3, stop_gradient=False); IOT("both", 0.3, 3); IOT("rows", 0.3); InfoNCE(0.3, positive_views=2)
LinearAssignment(0.3, 0.5, distance="euclidean"); LinearAssignment(0.3, 0.5, "batch-hard")
Triplet(1.6, "all", 2, positive_views=2); Triplet(1.6, negatives=100); SparseCLR(0.0)
SparseCLR(1.0, positive_views=2); AlignUniform(1.0, 1.0, 0.5); HardNegatives(keep=0.4)
DebiasedInfoNCE(0.1, 0.2, positive_views=2); InfoNCE(0.3) + 0.5 * SparseCLR() + IOT("both")
""")
A, B = normal(2, 5, 5)
FUNCTIONS = {
    "linear_assignment": lambda x: inner.linear_assignment(x[:, :4, :4], 0.3).value,
    "batch-hard": lambda x: inner.linear_assignment(x, 0.0, "batch-hard").value,
    "quadratic_assignment": lambda x: sum(inner.quadratic_assignment(x, A + x, B + x)[:2]),
    "spectral_bounds": lambda x: inner.spectral_bounds(x + x.mT, x @ x.mT).upper,
    "soft_maximum": lambda x: soft_maximum(x, 0.3).sum(-1),
    "sparsemax": lambda x: (inner.sparsemax(x) * A).sum((-2, -1)),
    "sparse_maximum": lambda x: sparse_maximum(x).square().sum(-1),
    "sparse maxima": lambda x: sparse_maximum(x, x[..., :2] + 0.1).square().sum((-2, -1)),
    "sorting_network": lambda x: (inner.sorting_network(x, 2.0).P[..., 0] * A).sum((-2, -1)),
    "top_probability": lambda x: (inner.top_probability(x, 2, 2.0) * A).sum((-2, -1)),
    "sinkhorn": lambda x: (inner.sinkhorn(x, 0.5, 4).P * A).sum((-2, -1)),
    "sinkhorn with marginals": lambda x: inner.sinkhorn(x, 0.5, 4, a=A[0].softmax(0)).P[..., 0, 0],
    "kernel": lambda x: (inner.kernel(x, x + 1) * A).sum((-2, -1)),
}


def second(function, x):
    """A Hessian-vector product is the gradient's central difference; the first derivative stays the same.

    Steps of 1e-5 leave an error of 1e-10 from the curvature and 1e-11 from the rounding.
    """
    v, step = normal(*x.shape), 1e-5
    ahead, behind = (slope(function(y), y) for y in ((x + s * v).requires_grad_() for s in (step, -step)))
    x = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(function(x), x, create_graph=True)
    close(g, slope(function(x), x), rel=1e-10, abs=1e-12)
    right = (ahead - behind) / (2 * step)
    got = torch.autograd.grad((g * v).sum(), x)[0] if g.requires_grad else torch.zeros_like(x)
    assert (got - right).norm() <= 1e-6 * right.norm() + 1e-9


# Their gradient is written out by hand; a second one is refused.
BY_HAND = ("GroCo", "SparseCLR", "IOT(constraint='both'", "top_probability", "sparse", "sinkhorn")


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_a_loss_has_its_true_first_and_second_derivative(loss):
    assert torch.autograd.gradcheck(loss, normal(views(loss, 3), 5, 3, grad=True))
    second_or_refused(repr(loss), loss, normal(2, 6, 5))


def second_or_refused(name, function, x):
    if not any(part in name for part in BY_HAND) or name == "sparsemax":
        return second(function, x)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="second derivative .create_graph=True. would be wrong: .*const"):
        torch.autograd.grad(function(x), x, create_graph=True)


@pytest.mark.parametrize("loss", CONSTANT, ids=repr)
def test_a_loss_that_holds_something_constant_refuses_a_second_derivative_in_every_way(loss):
    z, weight = normal(2, 6, 5, grad=True), torch.ones((), dtype=torch.float64, requires_grad=True)
    slope(loss(z), z)  # the first derivative is there
    for ask in (
        lambda: torch.autograd.grad(loss(z), z, create_graph=True),
        lambda: loss(z).backward(create_graph=True),
        lambda: torch.autograd.functional.hessian(loss, z),
        lambda: torch.autograd.grad(loss(weight * z), [weight], create_graph=True),
    ):
        with pytest.raises(RuntimeError, match="second derivative .create_graph=True. would be wrong: .*con"):
            ask()


def agree(function, batch, alone):
    """Values and gradients of a batch of three by vmap, and a derivative along a direction, against autograd.

    `alone` is the function of one of them, a number.
    """
    wanted = batch.clone().requires_grad_()
    values = torch.stack([alone(x) for x in wanted])
    gradient = slope(values.sum(), wanted)
    close(vmap(function)(batch), values.detach(), rel=1e-9, abs=1e-11)
    close(vmap(grad(function))(batch), gradient, rel=1e-6, abs=1e-9)
    direction = torch.randn_like(batch[0])
    value, along = jvp(function, (batch[0],), (direction,))
    close(value, values[0].detach(), rel=1e-9, abs=1e-11)
    close(along, (gradient[0] * direction).sum(), rel=1e-6, abs=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", [loss for loss in EVERY if not why(loss)], ids=repr)
def test_torch_func_and_export_follow_every_loss_that_reads_no_values(loss):
    batch = normal(3, views(loss, 2), 6, 4)
    agree(loss, batch, loss)
    program = torch.export.export(loss, (batch[0],), strict=False)
    close(program.module()(batch[0]), loss(batch[0]), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_inner_function_has_its_derivatives_and_torch_func_follows(name):
    batch = torch.rand(3, 1, 5, 5, dtype=torch.float64)

    def one(x):
        return FUNCTIONS[name](x).sum()

    agree(one, batch, one)
    second_or_refused(name, one, normal(1, 5, 5))
    assert torch.autograd.gradcheck(one, normal(1, 5, 5, grad=True))


def test_what_cannot_be_followed_says_so_and_the_rest_is_autograd_s():
    z, keys = normal(2, 2, 4, 3)
    second(lambda x: InfoNCE(stop_gradient=True)(x, keys=keys), z)
    z.requires_grad_()
    for loss in (InfoNCE(0.3), InfoNCE(0.5) + QARe()):
        (first,) = torch.autograd.grad(loss(z), z, create_graph=True)
        twice = grad(lambda z, loss=loss: grad(loss)(z).square().sum())(z.detach())
        close(twice, slope(first.square().sum(), z))
    with pytest.raises(ValueError, match="iterations must be a number within torch.func, got None"):
        grad(lambda x: inner.sinkhorn(x, 0.5).P.max())(normal(5, 5))
    for loss, reason in ((losses.GroCo(), "stop_gradient=True"), (MMCL(), "MMCL holds")):
        with pytest.raises(RuntimeError, match=f"second derivative by torch.func would be wrong: {reason}"):
            grad(lambda z: grad(loss)(z).square().sum())(normal(2, 5, 4))  # noqa: B023


# Extremes

SOFT = (InfoNCE, losses.NTLogistic, losses.InvaSpread, losses.DebiasedInfoNCE, losses.GroCo)
EXTREME = EXAMPLES + [kind(tau) for kind in SOFT for tau in (1e-3, 1e3)] + [
    losses.LinearAssignment(0.5, tau, mining, distance) for tau in (0.0, 1e-3, 1e3)
    for mining in ("one-to-one", "batch-hard") for distance in ("cosine", "euclidean")
] + several("""
SparseCLR(0.0); SparseCLR(100.0); AlignUniform(1.0, 1e3); HardNegatives(1e-3, 0.01); HCL(1e-3, hardness=3.0)
HCL(1e3); IOT("both", 1e-3, 5); IOT("both", 1e3, 5, 1.0); IOT("total", 1e-3, uniformity=1.0)
IOT("rows", 1e-3, uniformity=1.0, uniform_target="max"); MMCL(bandwidth=1e-3); MMCL(bandwidth=1e3)
MMCL(bandwidth=1e3, C=float("inf")); MMCL(bandwidth=1e-3, solver="exact"); MMCL(bandwidth=1e3, solver="exact")
MMCL("linear", C=float("inf"), solver="exact"); MMCL("tanh", bandwidth=1e3, C=1.0)
""")  # fmt: skip
SIGNS = torch.tensor([1.0, -1.0])
BATCHES = {
    "all equal": lambda V: torch.ones(V, 4, 3),
    "all equal, N > E + 1": lambda V: torch.ones(V, 4, 2),
    "equal views": lambda V: torch.randn(1, 4, 3).repeat(V, 1, 1),
    "antipodal": lambda V: torch.randn(4, 3) * SIGNS.view(2, 1, 1),
    "antipodal images": lambda V: SIGNS.repeat(4).view(1, 8, 1) * torch.ones(2, 8, 3),
    "N=2": lambda V: torch.randn(V, 2, 3),
    "V=8": lambda V: torch.randn(2 if V == 2 else 8, 4, 3),
    "V=8, N > E + 1": lambda V: torch.randn(2 if V == 2 else 8, 5, 3),
} | {
    f"{scale} in {dtype}": lambda V, scale=scale, dtype=dtype: (scale * torch.randn(V, 4, 3)).to(dtype)
    for dtype, scales in ((torch.float32, (1e-6, 1e6)), (torch.bfloat16, (1,)), (torch.float16, (1e-2, 1e3)))
    for scale in scales
}


@pytest.mark.filterwarnings("ignore:the solver 'pgd' stopped", "ignore:sinkhorn stopped")
@pytest.mark.parametrize("loss", EXTREME, ids=repr)
def test_extremes_give_finite_values_and_gradients_and_the_right_ones(loss):
    for name, batch in BATCHES.items():
        z = batch(views(loss, 3)).requires_grad_()
        value = loss(z)
        scale = max(1, abs(value.item())) if z.dtype == torch.float16 else 1  # as fp16 training scales it
        assert value.dtype == torch.float32 and value.isfinite(), name
        assert slope(value / scale, z).isfinite().all(), name
        if loss.has_assignment:
            assert loss.assignment(z).isfinite().all(), name
        exact = loss(z.detach().double())
        near = dict(rtol=2e-3, atol=2e-4 * max(1, abs(float(exact))))
        torch.testing.assert_close(value.detach().double(), exact, **near, msg=lambda m: f"{name}: {m}")  # noqa: B023


@pytest.mark.parametrize("E", [3, 100])
@pytest.mark.parametrize("loss", several("""
Triplet(0.5, "all", 4); QARe("euclidean"); AlignUniform(0.3, weight=0); AlignUniform(1.0, weight=0)
AlignUniform(1.5, weight=0); AlignUniform(2.0, weight=0); AlignUniform(3.0, weight=0)
"""), ids=repr)  # fmt: skip
def test_equal_points_have_distance_and_gradient_0(loss, E):
    z = torch.randn(E).repeat(3, 5, 1).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        value = loss(z)
        assert value == getattr(loss, "margin", 0) and slope(value, z).abs().max() == 0


NUMBERS = [1e-38, 1e-30, 1e-20, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0, 64.0, 750.0, 1e6, 1e9, 1e12, 1e20,
           1e30, 0.0, -1.0]  # fmt: skip
SIZES = st.sampled_from([1e-40, 1e-37, 1e-20, 1e-12, 1e-9, 1.0, 1e9, 1e37])  # of the rows


def values_of(parameter: inspect.Parameter) -> st.SearchStrategy:
    options = {bool: [True, False], int: [0, 1, 2, 5, 1000], float: [*NUMBERS, math.inf]}
    return st.sampled_from(options.get(type(parameter.default), [parameter.default]))


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
@settings(max_examples=60)
@given(data=st.data())
def test_value_and_gradient_are_finite_or_refused(kind, data):
    """With any settings, of rows of any lengths, equal or opposite, with anything that a loss takes."""
    draw, parameters = data.draw, inspect.signature(kind).parameters.values()
    asked = {p.name: draw(values_of(p)) for p in parameters if draw(st.booleans())}
    sizes, weight = draw(st.tuples(SIZES, SIZES)), draw(st.sampled_from([None, *NUMBERS]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    z, keys = torch.randn(2, 2, 3, 4, generator=generator, dtype=torch.float64)
    z[1] = draw(st.sampled_from([z[1], z[0], -z[0], keys[0]]))
    z *= torch.tensor(sizes, dtype=z.dtype)[:, None, None]
    z = z.to(draw(st.sampled_from([z.dtype, torch.float32])))
    more = {"keys": keys.to(z), "memory": z[0].detach() - keys[0].to(z), "labels": torch.tensor([0, 0, 1])}
    more = {name: x for name, x in more.items() if name in kind.takes and draw(st.booleans())}
    try:
        loss = kind(**asked)
        value = (loss if weight is None else weight * loss)(z.requires_grad_(), **more)
        solution = loss.assignment(z, **more) if loss.has_assignment else value
    except ValueError:
        return
    assert value.isfinite() and slope(value, z).isfinite().all(), (asked, weight, more)
    assert solution.isfinite().all(), (asked, more)


@pytest.mark.parametrize("kind", [InfoNCE, SupCon])
def test_the_own_place_is_zero_at_any_temperature(kind):
    """Where positives point the other way, one's own similarity is far above all that is compared."""
    z = torch.tensor([[[1.0, 0.5], [0.2, -1.0]], [[-1.0, -0.5], [-0.2, 1.0]], [[1.0, -1.0], [-1.0, 0.1]]])
    for temperature in (1e-2, 1e-4, 1e-6, 1e-9):
        found = kind(temperature=temperature).assignment(z)
        assert found.isfinite().all() and (found.diagonal() == 0).all()
