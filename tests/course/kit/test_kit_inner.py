"""The kit's inner problems and losses in numpy are the library's."""

import numpy as np
import pytest
import torch
from conftest import shifted

from setclr import inner as library
from setclr.losses import IOT, MMCL, GroCo, InfoNCE, SparseCLR
from setclr_course.kit import inner
from setclr_course.kit.losses import gradient
from setclr_course.panels.family.batch import FAMILY, MATRICES, SIX


@pytest.mark.parametrize("n", [2, 5, 6, 9])
def test_the_kits_inner_problems_are_the_librarys(n):
    numbers = np.random.default_rng(n)
    x, points, cost = numbers.normal(size=(4, n)), numbers.normal(size=(n + 1, 2)), numbers.random((n, n))
    t, K = torch.from_numpy, library.kernel(*[torch.from_numpy(points)] * 2, "rbf", 1.5)
    pairs = [
        (inner.softmax(x, 0.3), (t(x) / 0.3).softmax(-1)),
        (inner.sparsemax(x), library.sparsemax(t(x))),
        ((x - inner.level(x, 0.4)[:, None]).clip(0).sum(1), np.full(4, 0.4)),
        *zip(inner.sort_softly(x, 3.0), library.sorting_network(t(x), 3.0)),
        (inner.top_probability(x, 1, 3.0), library.top_probability(t(x), 1, 3.0)),
        *((inner.scaled(cost, 0.3, 2 * k), n * library.sinkhorn(t(cost), 0.3, k).P) for k in (1, 7)),
        (inner.rbf(points, points, 1.5), K),
        *((inner.dual(K.numpy(), C, 0.01), library.svm_dual(K, C=C, ridge=0.01).alpha[1:])
          for C in (0.3, 100.0, np.inf)),
    ]  # fmt: skip
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine, theirs, atol=1e-9, rtol=1e-9)
    if n < 8:
        best = library.linear_assignment(t(cost)).matrix.argmax(1)
        np.testing.assert_array_equal(inner.assignment(cost), best)


@pytest.mark.parametrize("smoothing", [0.01, 0.3, 1, 10])
@pytest.mark.parametrize(("name", "loss"), [*FAMILY.items(), *SIX.items()])
def test_the_formulas_are_the_librarys_losses(name, loss, smoothing):
    """Assignments and gradients; what the library holds constant is held constant."""
    theirs = loss.at(smoothing)
    for shape in ((2, 5, 2), (2, 6, 3)):
        z = torch.randn(*shape, generator=shifted(0), dtype=torch.float64)
        z = torch.nn.functional.normalize(z, dim=-1).requires_grad_()
        answer = loss.solved(z.detach().numpy(), smoothing)
        if theirs.has_assignment:
            np.testing.assert_allclose(answer.shares, theirs.assignment(z), atol=1e-9)
        (slope,) = torch.autograd.grad(theirs(z), z)
        ours = gradient(answer, z.detach().numpy().reshape(-1, shape[-1]))
        np.testing.assert_allclose(ours, slope.flatten(0, 1), atol=1e-6 * max(1e-3, slope.abs().max()))


def test_usual_values_stand_at_smoothing_1_and_all_but_the_regulariser_have_a_matrix():
    assert repr(FAMILY["InfoNCE"].at(1)) == repr(InfoNCE(0.5))
    assert repr(FAMILY["GroCo"].at(0.1)) == repr(GroCo(10.0, negatives=4))
    assert repr(FAMILY["IOT both"].at(2)) == repr(IOT("both", 1.0, iterations=8))
    assert repr(FAMILY["MMCL"].at(1)) == repr(MMCL(bandwidth=1.0, solver="exact"))
    assert repr(SIX["SparseCLR"].at(1)) == repr(SparseCLR(margin=0.0))
    assert [name for name in FAMILY if FAMILY[name].at(1).has_assignment] == MATRICES
