"""What the sorting panels show is what the library computes."""

import numpy as np
import pytest
import torch
from sweep import marks, slope
from torch.nn import functional as F

from setclr.inner import sorting_network, top_probability
from setclr.losses import GroCo, InfoNCE
from setclr_course import panels
from setclr_course.panels.sorting import beta_table, five, groups, network
from setclr_course.panels.sorting.walk import RATE, walk

EIGHT = (6.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 5.0)


def double(x) -> torch.Tensor:
    return torch.as_tensor(np.array(x, float))


# The losses of lists, and five numbers, the positive first


def info_nce(positives: torch.Tensor, negatives: torch.Tensor, temperature: float) -> torch.Tensor:
    near, far = positives / temperature, (negatives / temperature).logsumexp(-1, keepdim=True)
    return (torch.logaddexp(near, far) - near).mean(-1)


def groco(positives: torch.Tensor, negatives: torch.Tensor, beta: float) -> torch.Tensor:
    x = torch.cat([negatives.sort().values, positives.sort().values], -1)
    p = top_probability(x, positives.shape[-1], beta)
    wanted = (torch.arange(x.shape[-1]) >= negatives.shape[-1]).to(p).expand_as(p)
    return F.binary_cross_entropy(p, wanted, reduction="none").mean(-1)


LOSSES = {"InfoNCE": info_nce, "GroCo": groco}


def test_five_numbers_are_one_row_of_the_losses():
    """A list of one positive and four negatives is a row of a batch of two views of three images."""
    z = torch.randn(2, 3, 4, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    of_anchor = [[(a + 3) % 6, *(c for c in range(6) if c % 3 != a % 3)] for a in range(6)]
    rows = torch.stack([x[columns] @ x[a] for a, columns in enumerate(of_anchor)]).split([1, 4], dim=1)
    torch.testing.assert_close(info_nce(*rows, 0.3).mean(), InfoNCE(0.3)(z))
    torch.testing.assert_close(groco(*rows, 2.0).mean(), GroCo(2.0, negatives=4)(z))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("knob", [0.3, 100.0])
def test_a_walk_is_gradient_descent_step_by_step(loss, knob):
    for start in ((-0.05, -2.0, -0.1, 0.0, 0.1), *np.random.default_rng(0).normal(size=(3, 5)).tolist()):
        path = walk(loss, knob, tuple(start))[:40]
        downhill = slope(lambda x: LOSSES[loss](x[:, :1], x[:, 1:], knob), path[:-1])
        np.testing.assert_allclose(path[1:], path[:-1] - RATE * downhill, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("temperature", [0.1, 5.0])
def test_the_bars_are_a_softmax_and_stand_on_the_beads(temperature):
    panel = panels.beads(temperature=temperature, rocket=-0.2)
    s = double([panel.values[name] for name in five.FIVE])
    share = (s / temperature).softmax(0)
    (bars,) = marks(panel, "line", "boxes")
    np.testing.assert_allclose(bars["v"], share, rtol=1e-5)
    np.testing.assert_allclose(np.add(bars["x"], bars["u"]) / 2, s, atol=1e-6)
    assert f"the loss is {-share[0].log():.2f}" in panel.alt


# Networks on wires


@pytest.mark.parametrize("beta", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("numbers", [EIGHT, EIGHT[:5]])
def test_the_layers_make_the_network(numbers, beta):
    found = network.run(numbers, beta, len(numbers))
    values, P = sorting_network(double(numbers), beta)
    np.testing.assert_allclose(found.products[-1], P, atol=1e-13)
    np.testing.assert_allclose(found.values[-1], values, atol=1e-12)
    np.testing.assert_allclose(found.values, found.products @ numbers, atol=1e-12)
    for layer, before, after in zip(found.matrices, found.products[:-1], found.products[1:], strict=True):
        np.testing.assert_allclose(layer @ before, after, atol=1e-15)


# One anchor and its groups


@pytest.mark.parametrize("beta, temperature", [(1.0, 0.5), (100.0, 0.05)])
def test_pushes_are_minus_the_slopes(beta, temperature):
    s = np.array([0.0, 0.5, -0.4, 0.25, -0.15, 0.38, -0.65, 0.12, 0.6, 0.2])  # two positives come last
    sorting, push = groups.groco(s, beta, preorder=True), groups.info_nce(s, temperature)
    assert sorting.loss == pytest.approx(groco(double(s[8:]), double(s[:8]), beta).item(), rel=1e-9)
    for pushed, loss, knob in ((sorting.push, groco, beta), (push, info_nce, temperature)):
        downhill = slope(lambda x, loss=loss, knob=knob: loss(x[8:], x[:8], knob), s)
        np.testing.assert_allclose(pushed, -downhill, rtol=1e-5, atol=1e-8)
    assert push.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("preorder", ["on", "off"])
def test_first_places_are_a_row_of_the_loss(preorder):
    """A batch of the anchor, its views and five negatives; all others are farther."""
    panel = panels.first_places(preorder=preorder)
    found = panel.solve(panel.values)
    z = torch.zeros(3, 6, 20, dtype=torch.float64)
    z[:, :, 0] = -0.99
    z[0, 0, 0], z[1, 0, 0], z[2, 0, 0] = 1, 1 - found.d[5], 1 - found.d[6]
    z[0, 1:, 0] = 1 - double(found.d[:5])
    z[..., 1:19] = torch.eye(18, dtype=torch.float64).view(3, 6, 18) * (1 - z[..., :1] ** 2).sqrt()
    row = GroCo(8.0, 5, preorder=preorder == "on").assignment(z)[0]
    np.testing.assert_allclose(row[[1, 2, 3, 4, 5, 6, 12]], found.groco.chance, atol=1e-9)
    (bars,) = marks(panel, "chances", "boxes")
    np.testing.assert_allclose(bars["v"], found.groco.chance, rtol=1e-5)


# A swap, and a table


@pytest.mark.parametrize("beta", [0.8, 8.0])
def test_the_soft_step_is_the_librarys_and_its_slope(beta):
    panel = panels.soft_swap(beta=beta)
    for first, second in ((-0.2, 0.15), (0.3, 0.3), (0.9, -0.35)):
        now = panel.solve({"first": first, "second": second, "beta": beta})
        made = sorting_network(double([first, second]), beta)
        np.testing.assert_allclose(now.after, made.values, atol=1e-12)
        assert now.q == pytest.approx(made.P[0, 1].item())
        soft_step = slope(lambda x: torch.atan(beta * x) / np.pi + 0.5, first - second)
        assert now.slope == pytest.approx(soft_step.item())


def test_the_table_is_the_papers():
    best = [(beta_table.NEGATIVES[row], beta_table.BETAS[column]) for row, column in beta_table.BEST]
    assert best == [(1, 0.125), (5, 0.25), (10, 1), (20, 8)]
    assert np.isfinite(beta_table.ACCURACY).sum() == 15
    counted = 1 + np.arange(36.0).reshape(4, 9)
    picture = beta_table.beta_table({"noise": counted, "more": 2 * counted, "less": counted / 100})
    assert "noise: 2, 12, 23, 35; more: 4, 24" in picture.alt
