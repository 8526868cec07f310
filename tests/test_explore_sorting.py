"""What the sorting panels draw is what the library computes."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from setclr.inner import sorting_network, top_probability
from setclr.losses import GroCo, InfoNCE
from setclr_course import panels
from setclr_course.panels.sorting import groups
from setclr_course.panels.sorting.beta_table import ACCURACY, BEST, BETAS, NEGATIVES, beta_table
from setclr_course.panels.sorting.first_places import WHO
from setclr_course.panels.sorting.network import run
from setclr_course.panels.sorting.walk import PUSHES, RATE, walk

EIGHT = (6.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 5.0)


def plots(panel) -> dict:
    return {plot["name"]: plot for plot in panel.scene["plots"]}


def marks(plot: dict, kind: str) -> list[dict]:
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


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
def test_the_pushes_are_what_autograd_says(loss):
    generator = np.random.default_rng(0)
    for _ in range(10):
        s, knob = generator.normal(size=5), float(10 ** generator.uniform(-1, 1))
        x = double(s).requires_grad_()
        (slope,) = torch.autograd.grad(LOSSES[loss](x, knob), x)
        np.testing.assert_allclose(PUSHES[loss](s.tolist(), knob), -slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "loss, knob", [("InfoNCE", 0.5), ("InfoNCE", 10.0), ("GroCo", 1.0), ("GroCo", 100.0)]
)
def test_descent_is_gradient_descent(loss, knob):
    starts = (-0.05, -2.0, -0.1, 0.0, 0.1)
    path = [double(starts)]
    for _ in range(30):
        x = path[-1].detach().requires_grad_()
        (slope,) = torch.autograd.grad(LOSSES[loss](x, knob), x)
        path.append(path[-1] - RATE * slope)
    np.testing.assert_allclose(walk(loss, knob, starts)[:31], torch.stack(path), rtol=1e-8, atol=1e-9)


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


def test_beads_hold_the_cats_probability_and_the_matrix_is_P():
    panel = panels.photo_wires(beta=10**0.5, layer=4)
    products = panel.solve(panel.values).products
    plot = plots(panel)
    words = [float(word) for word in marks(plot["table"], "cells")[0]["words"]]
    assert words == products[4].round(2).ravel().tolist()
    beads = marks(plot["wires"], "boxes")[-14:]  # those of seven columns, and what is filled of each
    for filled, product in zip(beads[1::2], products[:5], strict=False):
        shares = product[:, 0][product[:, 0] > 0.004]
        np.testing.assert_allclose(np.subtract(filled["y"], filled["v"]), 0.76 * shares, atol=1e-5)
    assert [len(filled["x"]) for filled in beads[11::2]] == [0, 0]
    assert f"most likely at place {1 + products[4, :, 0].argmax()}" in panel.alt


def test_the_stream_is_as_broad_as_the_probability():
    """What comes to the wires of a layer from all others, and from there, is what its beads hold."""
    panel = panels.photo_wires(layer=4, beta=0.8)
    wires = plots(panel)["wires"]
    shares = panel.solve(panel.values).products[4, :, 0]
    found, end = np.zeros(6), 4 * 1.7
    for x, y in (ring for mark in marks(wires, "area") for ring in mark["rings"]):
        ends = [b for a, b in zip(x, y) if abs(a - end) < 1e-6]
        found[round(sum(ends) / 2)] += (max(ends) - min(ends)) / 0.76 if ends else 0
    np.testing.assert_allclose(found, shares, atol=0.01)


def test_hard_swaps_of_four_are_figure_6():
    panel = panels.photo_wires(4, beta=800.0)
    assert panel.knobs["layer"].high == 4 and set(panel.handles) == {"cat", "coffee", "astronaut", "rocket"}
    seen = [panel.seen({**panel.values, "layer": layer}).sentence for layer in range(5)]
    held = [sentence.split("hold ")[1].split(".")[0] for sentence in seen]
    assert held[0] == "6, 1, 4, 2" and held[-1] == "1, 2, 4, 6"
    hard = run((6, 1, 4, 2), 1e6, 4).values[1:].round(1).tolist()
    assert hard == [[1, 6, 2, 4], [1, 2, 6, 4], [1, 2, 4, 6], [1, 2, 4, 6]]


def test_the_photographs_on_the_wires_are_sorted_as_the_library_does():
    panel = panels.photo_wires(flower=0.5)
    P = sorting_network(double([6, 1, 4, 2, 7, 0.5]), panel.values["beta"]).P.numpy()
    np.testing.assert_allclose(panel.solve(panel.values).products[-1], P, atol=1e-12)
    words = marks(plots(panel)["table"], "cells")[0]["words"]
    assert [float(word) for word in words] == P.round(2).ravel().tolist()
    panel.controls["beta"].value = 800.0
    assert "belongs to place 5 and is there with probability 1.00" in panel.alt


@pytest.mark.parametrize("images", [4, 6])
def test_rows_of_photographs_wires_and_table_stand_beside_one_another(images):
    from setclr_course.kit.layout import Frame

    panel = panels.photo_wires(images)
    boxes = panel.told()["boxes"]
    frames = [Frame(plot, *boxes[plot["name"]][2:]) for plot in panel.scene["plots"]]
    for frame in frames[1:]:
        np.testing.assert_allclose(frame.y(range(images)), frames[0].y(range(images)), atol=2)


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
def test_first_places_are_a_row_of_the_loss(preorder):
    panel = panels.first_places(preorder=preorder)
    found = panel.solve(panel.values)
    z = torch.zeros(
        3, 6, 20, dtype=torch.float64
    )  # the anchor, its views, five negatives; others are farther
    z[:, :, 0] = -0.99
    z[0, 0, 0], z[1, 0, 0], z[2, 0, 0] = 1, 1 - found.d[5], 1 - found.d[6]
    z[0, 1:, 0] = 1 - double(found.d[:5])
    z[..., 1:19] = torch.eye(18, dtype=torch.float64).view(3, 6, 18) * (1 - z[..., :1] ** 2).sqrt()
    row = GroCo(8.0, 5, preorder=preorder == "on").assignment(z)[0]
    np.testing.assert_allclose(row[[1, 2, 3, 4, 5, 6, 12]], found.groco.chance, atol=1e-9)
    (bars,) = marks(plots(panel)["chances"], "boxes")
    np.testing.assert_allclose(bars["v"], found.groco.chance, rtol=1e-5)


def test_bars_stand_below_their_signs():
    from setclr_course.kit.layout import Frame

    panel = panels.first_places()
    boxes = panel.told()["boxes"]
    line, chances = (Frame(plot, *boxes[plot["name"]][2:]) for plot in panel.scene["plots"])
    np.testing.assert_allclose(line.x([0.2, 1.8]), chances.x([0.2, 1.8]), atol=2)


def test_arrows_are_the_slopes_by_the_distances():
    panel = panels.first_places()
    found, step = panel.solve(panel.values), 1e-6
    moved = groups.groco(1 - found.d - step * (np.arange(7) == 0), 8.0, preorder=True).loss
    assert (moved - found.groco.loss) / step == pytest.approx(found.groco.push[0], rel=1e-4)  # d is 1 − s
    for arrows, push in zip(
        marks(plots(panel)["line"], "arrows"), (found.groco.push, found.info_nce), strict=True
    ):
        flight = np.subtract(arrows["u"], arrows["x"])
        seen = flight != 0
        np.testing.assert_allclose(flight[seen], (-0.16 * push / np.abs(push).max())[seen], atol=1e-5)
        assert np.abs(flight).max() == pytest.approx(0.16, abs=1e-5) and len(flight) == len(WHO)


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


def test_the_spot_is_on_the_step_and_the_tangent_goes_through_it():
    panel = panels.soft_swap()
    now, (step, _) = panel.solve(panel.values), panel.scene["plots"]
    _, curve, tangent = marks(step, "line")
    (spot,) = marks(step, "dots")
    assert np.interp(spot["x"], curve["x"], curve["y"]) == pytest.approx(spot["y"], abs=0.005)
    np.testing.assert_allclose(np.mean([tangent["x"], tangent["y"]], 1), [now.apart, now.q], atol=1e-5)
    assert np.diff(tangent["y"]) / np.diff(tangent["x"]) == pytest.approx(now.slope, rel=1e-4)


def test_the_table_is_the_papers():
    assert [(NEGATIVES[row], BETAS[column]) for row, column in BEST] == [
        (1, 0.125),
        (5, 0.25),
        (10, 1),
        (20, 8),
    ]
    assert np.isfinite(ACCURACY).sum() == 15
    counted = 1 + np.arange(36.0).reshape(4, 9)
    picture = beta_table({"noise": counted, "more": 2 * counted, "less": counted / 100})
    assert "noise: 2, 12, 23, 35; more: 4, 24" in picture.alt and len(picture.png) > 5000
