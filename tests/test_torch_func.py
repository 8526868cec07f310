"""torch.func (grad, vmap, jvp) and torch.export through the losses and the inner problems."""

import warnings

import pytest
import torch
from every_loss import EVERY, views
from looks_at_values import why
from torch.func import grad, jvp, vmap

from setclr import inner
from setclr.inner.assignment import log_permanent
from setclr.inner.simplex import soft_maximum, sparse_maximum
from setclr.losses import MMCL, GroCo, InfoNCE, QARe

FOLLOWED = [loss for loss in EVERY if not why(loss)]
A, B = torch.randn(2, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
FUNCTIONS = {
    "linear_assignment": lambda x: inner.linear_assignment(x[:, :4, :4], 0.3).value,
    "batch-hard": lambda x: inner.linear_assignment(x, 0.0, "batch-hard").value,
    "quadratic_assignment": lambda x: inner.quadratic_assignment(x, A + 0 * x, B + 0 * x).minimum,
    "log_permanent": log_permanent,
    "spectral_bounds": lambda x: inner.spectral_bounds(x + x.mT, x @ x.mT).upper,
    "soft_maximum": lambda x: soft_maximum(x, 0.3).sum(-1),
    "sparsemax": lambda x: (inner.sparsemax(x) * A).sum((-2, -1)),
    "sparse_maximum": lambda x: sparse_maximum(x, x[..., :2] + 0.1).sum((-2, -1)),
    "sorting_network": lambda x: (inner.sorting_network(x, 2.0).P[..., 0] * A).sum((-2, -1)),
    "top_probability": lambda x: (inner.top_probability(x, 2, 2.0) * A).sum((-2, -1)),
    "sinkhorn": lambda x: (inner.sinkhorn(x, 0.5, 4).P * A).sum((-2, -1)),
    "kernel": lambda x: (inner.kernel(x, x + 1) * A).sum((-2, -1)),
}


def batches(loss):
    return torch.randn(3, views(loss, 2), 6, 4, dtype=torch.float64)


def agree(function, batch, alone):
    """Values and gradients of a batch of three by vmap, and a derivative along a direction, against autograd.

    `alone` is the function of one of them, a number.
    """
    wanted = batch.clone().requires_grad_()
    values = torch.stack([alone(x) for x in wanted])
    (gradient,) = torch.autograd.grad(values.sum(), wanted)
    torch.testing.assert_close(vmap(function)(batch), values.detach(), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(vmap(grad(function))(batch), gradient, rtol=1e-6, atol=1e-9)
    direction = torch.randn_like(batch[0])
    value, along = jvp(function, (batch[0],), (direction,))
    torch.testing.assert_close(value, values[0].detach(), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(along, (gradient[0] * direction).sum(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", FOLLOWED, ids=repr)
def test_every_loss_that_reads_no_values(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(loss, batches(loss), loss)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_inner_problem(name):
    batch = torch.rand(3, 1, 5, 5, dtype=torch.float64)

    def one(x):
        return FUNCTIONS[name](x).sum()

    agree(one, batch, one)


def test_what_cannot_be_followed_says_so():
    x = torch.rand(5, 5, dtype=torch.float64)
    with pytest.raises(ValueError, match="iterations must be a number within torch.func, got None"):
        grad(lambda x: inner.sinkhorn(x, 0.5).P.max())(x)
    z = torch.randn(2, 5, 4, dtype=torch.float64)
    with pytest.raises(
        RuntimeError, match="second derivative by torch.func would be wrong: stop_gradient=True"
    ):
        grad(lambda z: grad(GroCo())(z).sum())(z)
    with pytest.raises(RuntimeError, match="second derivative by torch.func would be wrong: MMCL holds"):
        grad(lambda z: grad(MMCL())(z).square().sum())(z)


def test_second_derivatives_are_autograd_s():
    z = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    for loss in (InfoNCE(0.3), InfoNCE(0.5) + QARe()):
        (first,) = torch.autograd.grad(loss(z), z, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), z)
        torch.testing.assert_close(
            grad(lambda z, loss=loss: grad(loss)(z).square().sum())(z.detach()), second
        )


@pytest.mark.parametrize("loss", FOLLOWED, ids=repr)
def test_torch_export_holds_the_loss(loss):
    z = batches(loss)[0]
    program = torch.export.export(loss, (z,), strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(program.module()(z), loss(z), rtol=1e-9, atol=1e-11)
