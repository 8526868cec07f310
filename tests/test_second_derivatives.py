"""Second derivatives: the true Hessian-vector product, or an error in every way of asking for one."""

import pytest
import torch

from setclr.inner import sinkhorn, sparsemax, top_probability
from setclr.inner.simplex import sparse_maximum
from setclr.losses import (
    HCL,
    IOT,
    MMCL,
    AlignUniform,
    DebiasedInfoNCE,
    GroCo,
    HardNegatives,
    InfoNCE,
    InvaSpread,
    LinearAssignment,
    NTLogistic,
    QARe,
    SparseCLR,
    SupCon,
    Triplet,
)

LOSSES = [
    InfoNCE(), SupCon(), NTLogistic(0.5), DebiasedInfoNCE(), HCL(), HardNegatives(keep=0.5), InvaSpread(),
    SparseCLR(), SparseCLR(margin=0.2, clamped=True), QARe(), QARe("clamped cosine"), QARe("euclidean"),
    GroCo(stop_gradient=False, negatives=4), GroCo(stop_gradient=False, negatives=4, pool="view"),
    IOT("total"), IOT("rows"), IOT("both"), IOT("both", iterations=5), IOT("both", iterations=None),
    Triplet(), Triplet(positives="all", negatives=3), Triplet(margin=None, distance="cosine"),
    AlignUniform(), AlignUniform(alpha=1.0), LinearAssignment(), LinearAssignment(temperature=0.2),
    LinearAssignment(temperature=0.2, mining="batch-hard", distance="euclidean"),
    InfoNCE(0.3) + 0.5 * SparseCLR() + IOT("both"),
]  # fmt: skip
CONSTANT = [
    GroCo(negatives=4), InfoNCE(stop_gradient=True), Triplet(stop_gradient=True), MMCL(),
    MMCL(solver="exact"), IOT(uniformity=1.0), InfoNCE() + GroCo(negatives=4),
]  # fmt: skip
FUNCTIONS = {
    "sparsemax": lambda x: sparsemax(x).square().sum(),
    "sparse maximum": lambda x: sparse_maximum(x).square().sum(),
    "sparse maxima": lambda x: sparse_maximum(x[..., :-2], x[..., -2:]).square().sum(),
    "arctan sort": lambda x: top_probability(x, 2, 0.7).square().sum(),
    "logistic sort": lambda x: top_probability(x, 2, 0.7, swap="logistic").square().sum(),
    "sinkhorn": lambda x: sinkhorn(x, 0.5, 7).P.square().sum(),
    "sinkhorn to the end": lambda x: sinkhorn(x, 0.5).P.square().sum(),
    "sinkhorn with marginals": lambda x: sinkhorn(x, 0.5, 4, a=torch.tensor([0.1, 0.9]).double()).P[0, 0, 0],
}


def gradient(function, x, **how):
    return torch.autograd.grad(function(x), x, **how)[0]


def differences(function, x, v, step=1e-5):
    """The Hessian-vector product by central differences of the gradient."""
    ahead, behind = (gradient(function, (x + sign * step * v).requires_grad_()) for sign in (1, -1))
    return (ahead - behind) / (2 * step)


def compare(function, x):
    v = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(9))
    right = differences(function, x, v)
    x = x.clone().requires_grad_()
    g = gradient(function, x, create_graph=True)
    got = torch.autograd.grad((g * v).sum(), x)[0] if g.requires_grad else torch.zeros_like(x)
    assert (got - right).norm() <= 1e-6 * right.norm() + 1e-9


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_loss_has_its_true_second_derivative(loss):
    z = torch.randn(2, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    compare(loss, z)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_inner_function_has_its_true_second_derivative(name):
    x = torch.randn(3, 2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    compare(FUNCTIONS[name], x)


@pytest.mark.parametrize("loss", [SparseCLR(), IOT("both"), GroCo(stop_gradient=False)], ids=str)
def test_asking_for_a_second_derivative_changes_no_first_one(loss):
    z = torch.randn(
        2, 12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(5)
    ).requires_grad_()
    torch.testing.assert_close(
        gradient(loss, z, create_graph=True), gradient(loss, z), rtol=1e-10, atol=1e-12
    )


def test_with_keys_a_loss_without_the_other_side_has_one():
    z, keys = torch.randn(2, 2, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    compare(lambda x: GroCo(negatives=4)(x, keys=keys), z)


@pytest.mark.parametrize("loss", CONSTANT, ids=str)
def test_a_loss_that_holds_something_constant_refuses_in_every_way(loss):
    z = torch.randn(2, 6, 5, dtype=torch.float64).requires_grad_()
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    gradient(loss, z)  # the first derivative is there
    for ask in (
        lambda: gradient(loss, z, create_graph=True),
        lambda: loss(z).backward(create_graph=True),
        lambda: torch.autograd.functional.hessian(loss, z),
        lambda: torch.autograd.grad(loss(weight * z), [weight], create_graph=True),
    ):
        with pytest.raises(RuntimeError, match="second derivative .create_graph=True. would be wrong: .*con"):
            ask()
