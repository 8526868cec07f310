"""Examples of every loss, and what the tests of losses and of inner problems share."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from setclr.losses import LOSSES, SetLoss, parse


def several(text: str) -> list[SetLoss]:
    """The losses of a text, with a semicolon or a new line between them."""
    return [parse(each) for each in text.strip().replace("\n", ";").split(";")]


EXAMPLES = several("""
LinearAssignment(); LinearAssignment(0.3, 0.2, distance="euclidean")
LinearAssignment(0.3, 0.0, "batch-hard"); LinearAssignment(0.0, 0.2, "batch-hard", "euclidean")
InfoNCE(0.3, candidates="other view"); InfoNCE(0.3); InfoNCE(0.3, clamped=True)
Triplet(); Triplet(None, "all", 3, "cosine"); Triplet(0.8, "all", 3, "cosine", stop_gradient=True)
NTLogistic(0.2); SupCon(0.3); SparseCLR(0.5); SparseCLR(0.5, clamped=True)
QARe(); QARe("clamped cosine"); QARe("euclidean"); GroCo(2.0, 5); GroCo(1.0, 3, "view", stop_gradient=False)
IOT("total", 0.3); IOT("rows", 0.3, uniformity=0.5); IOT("both", 0.3, 3, 0.5, "max"); IOT("both", 0.3, None)
MMCL(); MMCL("linear", C=1.0, pool="view"); MMCL("tanh", 0.2, ridge=1.0, offset=0.1)
MMCL(bandwidth=0.5, solver="exact"); MMCL(solver="pgd")
AlignUniform(); HardNegatives(0.3, 0.3, stop_gradient=True); InvaSpread(0.3); DebiasedInfoNCE(0.3)
HCL(0.3, 0.1, 2.0); DecoupledInfoNCE(0.3)
""")
EXAMPLES += [kind() for kind in LOSSES if kind not in set(map(type, EXAMPLES))]  # a new loss, by default
EVERY = EXAMPLES + several("InfoNCE(0.5) + 0.25 * GroCo(); 0.6 * SparseCLR() + 0.4 * QARe()")


def views(loss: SetLoss, V: int) -> int:
    """V, or 2 where the loss knows no more."""
    return V if "views" in loss.takes else 2


def normal(*shape: int, grad: bool = False) -> Tensor:
    """Normal numbers in float64."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=grad)


def cosines(z: Tensor) -> Tensor:
    """The cosines (M, M) of all points of all views with one another."""
    x = normalize(z, dim=-1).flatten(0, -2)
    return x @ x.T


def of_one_image(V: int, N: int) -> Tensor:
    """Which points (V·N, V·N) show the same image, themselves included."""
    return torch.eye(N, dtype=torch.bool).repeat(V, V)


def slope(value: Tensor, x: Tensor) -> Tensor:
    """The gradient of a value."""
    return torch.autograd.grad(value, x)[0]


def close(value, wanted, *x: Tensor, rel: float | None = None, abs: float | None = None) -> None:
    """Two values, and their gradients with respect to each x, are equal, as torch's assert_close has it.

    With `rel` alone there is no absolute tolerance.
    """
    near = dict(rtol=rel, atol=0 if abs is None and rel is not None else abs)
    assert_close(value, wanted, **near)
    if x:
        assert_close(*(torch.autograd.grad(y, x) for y in (value, wanted)), **near)


def golden(name: str) -> np.lib.npyio.NpzFile:
    """Numbers that another program gave, tests/goldens/NAME.npz."""
    return np.load(Path(__file__).parents[1] / "goldens" / f"{name}.npz")


def same_as_golden(value: Tensor, x: Tensor, wanted: float, gradient: np.ndarray, rel: float = 1e-9) -> None:
    """A value, and its gradient with respect to x, are those that another program gave."""
    np.testing.assert_allclose(value.detach(), wanted, rtol=rel)
    np.testing.assert_allclose(slope(value, x).view(gradient.shape), gradient, rtol=10 * rel, atol=rel / 1e4)


def weights_by_svc(K: np.ndarray, C: float, ridge: float) -> np.ndarray:
    """scikit-learn's α, from the kernel K of a positive point, the first, and its negatives (MMCL, eq. 3)."""
    from sklearn.svm import SVC  # not at once: most of those that import this file need none

    n = len(K) - 1
    ridges = np.diag([0.0] + n * [ridge])
    svc = SVC(kernel="precomputed", C=C, tol=1e-10, class_weight={1: 1e6, -1: 1})
    svc.fit(K + ridges, [1] + n * [-1])
    alpha = np.zeros(n + 1)
    alpha[svc.support_] = -svc.dual_coef_[0]
    return alpha


def kept_for_the_gradient(call) -> list[tuple[int, int]]:
    """Place and size of each tensor that the graph of a call keeps."""
    kept = []

    def note(x):
        kept.append((x.data_ptr(), x.numel()))
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        call()
    return kept
