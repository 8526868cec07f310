"""What the sorting panels show is what the library computes."""

import numpy as np
import pytest
import torch
from sweep import marks
from torch.nn import functional as F

from setclr.inner import sorting_network, top_probability
from setclr.losses import GroCo, InfoNCE
from setclr_course import panels
from setclr_course.kit.layout import Frame
from setclr_course.panels.sorting import groups
from setclr_course.panels.sorting.beta_table import ACCURACY, BEST, BETAS, NEGATIVES, beta_table
from setclr_course.panels.sorting.five import FIVE, spread
from setclr_course.panels.sorting.network import run
from setclr_course.panels.sorting.walk import RATE, walk

EIGHT = (6.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 5.0)


def double(x) -> torch.Tensor:
    return torch.as_tensor(np.array(x, float))


# Five numbers, the positive first


def info_nce(x: torch.Tensor, temperature: float) -> torch.Tensor:
    return (x / temperature).logsumexp(-1) - x[..., 0] / temperature


def groco(x: torch.Tensor, beta: float) -> torch.Tensor:
    p = top_probability(torch.cat([x[..., 1:].sort(-1).values, x[..., :1]], -1), 1, beta)
    return F.binary_cross_entropy(p, (torch.arange(5) == 4).to(p).expand_as(p), reduction="none").mean(-1)


LOSSES = {"InfoNCE": info_nce, "GroCo": groco}


def test_five_numbers_are_one_row_of_the_losses():
    """A list of one positive and four negatives is a row of a batch of two views of three images."""
    z = torch.randn(2, 3, 4, dtype=torch.float64)
    x = F.normalize(z, dim=-1).flatten(0, 1)
    of_anchor = [[(a + 3) % 6, *(c for c in range(6) if c % 3 != a % 3)] for a in range(6)]
    rows = torch.stack([x[columns] @ x[a] for a, columns in enumerate(of_anchor)])
    torch.testing.assert_close(info_nce(rows, 0.3).mean(), InfoNCE(0.3)(z))
    torch.testing.assert_close(groco(rows, 2.0).mean(), GroCo(2.0, negatives=4)(z))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("knob", [0.3, 1.0, 10.0, 100.0])
def test_a_walk_is_gradient_descent_step_by_step(loss, knob):
    for start in ((-0.05, -2.0, -0.1, 0.0, 0.1), *np.random.default_rng(0).normal(size=(3, 5)).tolist()):
        path = double(walk(loss, knob, tuple(start))[:40])
        x = path[:-1].clone().requires_grad_()
        (slope,) = torch.autograd.grad(LOSSES[loss](x, knob).sum(), x)
        np.testing.assert_allclose(path[1:], x.detach() - RATE * slope, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 5.0])
def test_the_bars_are_a_softmax_and_stand_on_the_beads(temperature):
    panel = panels.beads(temperature=temperature, rocket=-0.2)
    s = double([panel.values[name] for name in FIVE])
    share = (s / temperature).softmax(0)
    (bars,), (pieces,) = marks(panel, "line", "boxes"), marks(panel, "unit", "boxes")
    np.testing.assert_allclose(bars["v"], share, rtol=1e-5)
    np.testing.assert_allclose(np.add(bars["x"], bars["u"]) / 2, s, atol=1e-6)
    np.testing.assert_allclose(np.subtract(pieces["v"], pieces["y"]), share, atol=1e-5)
    assert f"the loss is {-share[0].log():.2f}" in panel.alt


def test_spread_keeps_the_order_and_the_middle():
    np.testing.assert_allclose(spread([0.0, 1.0, 5.0], 1.0), [0, 1, 5])
    np.testing.assert_allclose(spread([2.0, 2.0, 2.0], 1.0), [1, 2, 3])
    np.testing.assert_allclose(spread([2.0, 2.0, 0.0], 1.0, 0.5, 2.9), [1.5, 2.5, 0.5])
    apart = spread([0.3, -0.1, 0.2, 0.25, 4.0], 0.5)
    assert (np.diff(np.sort(apart)) > 0.5 - 1e-9).all() and apart.argsort().tolist() == [1, 2, 3, 0, 4]


def test_the_film_says_who_moved_and_who_leads():
    panel = panels.downhill()
    far = {loss: places[-1, 3] + 1.5 for loss, places in panel.solve(panel.values).items()}
    assert far["InfoNCE"] < -0.3 and -0.05 < far["GroCo"] < 0
    panel.controls["cat"].value = -2.0
    first = [int((p[:, 0] > p[:, 1:].max(1)).argmax()) for p in panel.solve(panel.values).values()]
    assert 5 * first[0] < first[1]
    said = [marks(panel, plot["name"], "text")[0]["said"][0] for plot in panel.scene["plots"]]
    assert [text.split()[-1] for text in said] == [str(step) for step in first]


def test_a_film_can_be_of_one_loss():
    alone = panels.downhill(losses=["InfoNCE"])
    assert "sharpness" not in alone.controls and "GroCo" not in alone.alt and len(alone.scene["plots"]) == 1
    with pytest.raises(ValueError, match="losses must be one of 'InfoNCE', 'GroCo', got 'MMCL'"):
        panels.downhill(losses=["MMCL"])


# Networks on wires


@pytest.mark.parametrize("beta", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("numbers", [EIGHT, EIGHT[:5]])
def test_the_layers_make_the_network(numbers, beta):
    found = run(numbers, beta, len(numbers))
    values, P = sorting_network(double(numbers), beta)
    np.testing.assert_allclose(found.products[-1], P, atol=1e-13)
    np.testing.assert_allclose(found.values[-1], values, atol=1e-12)
    np.testing.assert_allclose(found.values, found.products @ numbers, atol=1e-12)
    for layer, before, after in zip(found.matrices, found.products[:-1], found.products[1:], strict=True):
        np.testing.assert_allclose(layer @ before, after, atol=1e-15)


def test_wires_table_and_sentence_are_those_of_the_library():
    panel = panels.photo_wires(flower=0.5)
    P = sorting_network(double([6, 1, 4, 2, 7, 0.5]), panel.values["beta"]).P.numpy()
    words = marks(panel, "table", "cells")[0]["words"]
    assert [float(word) for word in words] == P.round(2).ravel().tolist()
    panel.controls["beta"].value = 800.0
    assert "belongs to place 5 and is there with probability 1.00" in panel.alt


def test_beads_and_streams_hold_the_cats_probability():
    """What comes to the wires of a layer from all others, and from there, is what its beads hold."""
    panel = panels.photo_wires(layer=4, beta=0.8)
    products = panel.solve(panel.values).products[:5, :, 0]
    beads = marks(panel, "wires", "boxes")[-14:]  # those of seven columns, and what is filled of each
    for filled, product in zip(beads[1:10:2], products, strict=True):
        np.testing.assert_allclose(
            np.subtract(filled["y"], filled["v"]), 0.76 * product[product > 0.004], atol=1e-5
        )
    found, end = np.zeros(6), 4 * 1.7
    for x, y in (ring for mark in marks(panel, "wires", "area") for ring in mark["rings"]):
        tops = [b for a, b in zip(x, y) if abs(a - end) < 1e-6]
        found[round(sum(tops) / 2)] += (max(tops) - min(tops)) / 0.76 if tops else 0
    np.testing.assert_allclose(found, products[4], atol=0.01)


def test_hard_swaps_of_four_are_figure_6():
    panel = panels.photo_wires(4, beta=800.0)
    assert panel.knobs["layer"].high == 4 and set(panel.handles) == {"cat", "coffee", "astronaut", "rocket"}
    seen = [panel.seen({**panel.values, "layer": layer}).sentence for layer in (0, 4)]
    assert [sentence.split("hold ")[1].split(".")[0] for sentence in seen] == ["6, 1, 4, 2", "1, 2, 4, 6"]
    hard = run((6, 1, 4, 2), 1e6, 4).values[1:].round(1).tolist()
    assert hard == [[1, 6, 2, 4], [1, 2, 6, 4], [1, 2, 4, 6], [1, 2, 4, 6]]


@pytest.mark.parametrize("name, way, at", [("photo_wires", "y", range(6)), ("first_places", "x", (0.2, 1.8))])
def test_what_belongs_together_stands_in_one_row_or_column_of_all_plots(name, way, at):
    panel = getattr(panels, name)()
    boxes = panel.told()["boxes"]
    frames = [Frame(plot, *boxes[plot["name"]][2:]) for plot in panel.scene["plots"]]
    for frame in frames[1:]:
        np.testing.assert_allclose(getattr(frame, way)(at), getattr(frames[0], way)(at), atol=2)


# One anchor and its groups


SIMILARITIES, POSITIVE = (0.0, 0.5, -0.4, 0.25, -0.15, 0.38, -0.65, 0.12), 0.6


@pytest.mark.parametrize("beta, temperature", [(1.0, 0.5), (4.0, 0.3), (100.0, 0.05)])
def test_pushes_are_minus_the_slopes(beta, temperature):
    s = np.array([*SIMILARITIES, POSITIVE, 0.2])
    sorting, push = groups.groco(s, beta, preorder=True), groups.info_nce(s, temperature)
    x = double(s).requires_grad_()
    p = top_probability(torch.cat([x[:8].sort().values, x[8:].sort().values]), 2, beta)
    grouped = F.binary_cross_entropy(p, (torch.arange(10) >= 8).to(p))
    logits = x / temperature
    shared = (torch.logaddexp(logits[:-2].logsumexp(0), logits[-2:]) - logits[-2:]).mean()
    assert sorting.loss == pytest.approx(grouped.item(), rel=1e-9)
    for pushed, other in ((sorting.push, grouped), (push, shared)):
        (slope,) = torch.autograd.grad(other, x)
        np.testing.assert_allclose(pushed, -slope, rtol=1e-5, atol=1e-8)
    assert push.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("preorder", ["on", "off"])
def test_first_places_are_a_row_of_the_loss_and_arrows_its_slopes_by_the_distances(preorder):
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
    for arrows, push in zip(marks(panel, "line", "arrows"), (found.groco.push, found.info_nce), strict=True):
        flight = np.subtract(arrows["u"], arrows["x"])
        expected = -0.16 * push / np.abs(push).max()  # a distance is 1 minus a similarity
        np.testing.assert_allclose(flight, np.where(flight == 0, 0, expected), atol=1e-5)
        assert np.abs(flight).max() == pytest.approx(0.16, abs=1e-5)


# A swap, and a table


@pytest.mark.parametrize("beta", [0.8, 8.0])
def test_the_soft_step_is_the_librarys_and_its_tangent_the_slope(beta):
    panel = panels.soft_swap(beta=beta)
    for first, second in ((-0.2, 0.15), (0.3, 0.3), (0.9, -0.35)):
        now = panel.solve({"first": first, "second": second, "beta": beta})
        made = sorting_network(double([first, second]), beta)
        np.testing.assert_allclose(now.after, made.values, atol=1e-12)
        assert now.q == pytest.approx(made.P[0, 1].item())
        apart = double(first - second).requires_grad_()
        (torch.atan(beta * apart) / np.pi + 0.5).backward()
        assert now.slope == pytest.approx(apart.grad.item())
    tangent = marks(panel, panel.scene["plots"][0]["name"], "line")[-1]
    now = panel.solve(panel.values)
    np.testing.assert_allclose(np.mean([tangent["x"], tangent["y"]], 1), [now.apart, now.q], atol=1e-5)
    assert np.diff(tangent["y"]) / np.diff(tangent["x"]) == pytest.approx(now.slope, rel=1e-4)


def test_the_table_is_the_papers():
    best = [(NEGATIVES[row], BETAS[column]) for row, column in BEST]
    assert best == [(1, 0.125), (5, 0.25), (10, 1), (20, 8)]
    assert np.isfinite(ACCURACY).sum() == 15
    counted = 1 + np.arange(36.0).reshape(4, 9)
    picture = beta_table({"noise": counted, "more": 2 * counted, "less": counted / 100})
    assert "noise: 2, 12, 23, 35; more: 4, 24" in picture.alt and len(picture.png) > 5000
