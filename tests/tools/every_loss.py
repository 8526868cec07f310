"""Examples of every loss, and what the tests of losses and of inner problems share."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from setclr.losses import (
    HCL,
    IOT,
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
)

EXAMPLES = [
    LinearAssignment(), LinearAssignment(0.3, 0.2, distance="euclidean"),
    LinearAssignment(0.3, 0.0, "batch-hard"), LinearAssignment(0.0, 0.2, "batch-hard", "euclidean"),
    InfoNCE(0.3, candidates="other view"),
    Triplet(), Triplet(None, "all", 3, "cosine"), Triplet(0.8, "all", 3, "cosine", stop_gradient=True),
    NTLogistic(0.2), InfoNCE(0.3), InfoNCE(0.3, clamped=True), SupCon(0.3),
    SparseCLR(0.5), SparseCLR(0.5, clamped=True), QARe(), QARe("clamped cosine"), QARe("euclidean"),
    GroCo(2.0, 5), GroCo(1.0, 3, pool="view", stop_gradient=False),
    IOT("total", 0.3), IOT("rows", 0.3, uniformity=0.5), IOT("both", 0.3, 3, 0.5, "max"),
    IOT("both", 0.3, None),
    MMCL(), MMCL("linear", C=1.0, pool="view"), MMCL("tanh", 0.2, ridge=1.0, offset=0.1),
    MMCL(bandwidth=0.5, solver="exact"), MMCL(solver="pgd"),
    AlignUniform(), HardNegatives(0.3, 0.3, stop_gradient=True), InvaSpread(0.3), DebiasedInfoNCE(0.3),
    HCL(0.3, 0.1, 2.0), DecoupledInfoNCE(0.3),
]  # fmt: skip
SUMS = [InfoNCE(0.5) + 0.25 * GroCo(), 0.6 * SparseCLR() + 0.4 * QARe()]
EVERY = EXAMPLES + SUMS


def views(loss: SetLoss, V: int) -> int:
    """V, or 2 where the loss knows no more."""
    return V if "views" in loss.takes else 2


def normal(*shape: int, grad: bool = False) -> Tensor:
    """Normal numbers in float64."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=grad)


def slope(value: Tensor, x: Tensor) -> Tensor:
    """The gradient of a value."""
    return torch.autograd.grad(value, x)[0]


def golden(name: str) -> np.lib.npyio.NpzFile:
    """Numbers that another program gave, tests/goldens/NAME.npz."""
    return np.load(Path(__file__).parents[1] / "goldens" / f"{name}.npz")


def same_as_golden(value: Tensor, x: Tensor, wanted: float, gradient: np.ndarray, rel: float = 1e-9) -> None:
    """A value, and its gradient with respect to x, are those that another program gave."""
    np.testing.assert_allclose(value.detach(), wanted, rtol=rel)
    np.testing.assert_allclose(slope(value, x).view(gradient.shape), gradient, rtol=10 * rel, atol=rel / 1e4)
