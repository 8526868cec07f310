"""What the sorting panels draw is what the library computes."""

import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection

from setclr.inner import sorting_network
from setclr.losses import GroCo, InfoNCE
from setclr_course import panels
from setclr_course.panels.sorting.beta_table import ACCURACY, BEST, BETAS, NEGATIVES, beta_table
from setclr_course.panels.sorting.group_order import NEGATIVES as SIMILARITIES
from setclr_course.panels.sorting.group_order import POSITIVE, info_nce, sort_groups
from setclr_course.panels.sorting.swap_matrices import layers_of
from setclr_course.panels.sorting.wires import BEAD
from setclr_course.pixels.outlines import written


def areas(outlines) -> np.ndarray:
    """Of polygons, by the shoelace formula."""
    x, y = np.moveaxis(np.array([path.vertices for path in outlines]), -1, 0)
    return np.abs((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(1)) / 2


@pytest.mark.parametrize("kind", ["odd-even", "bitonic"])
@pytest.mark.parametrize("beta", [0.1, 1.0, 1000.0])
def test_the_layers_make_the_network(kind, beta):
    x = (6.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 5.0)
    layers = layers_of(x, beta, kind)
    values, P = sorting_network(torch.tensor(x, dtype=torch.float64), beta, kind)
    np.testing.assert_allclose(layers[-1].product, P, atol=1e-14)
    np.testing.assert_allclose(layers[-1].values, values, atol=1e-13)
    np.testing.assert_allclose(layers[-1].values, layers[-1].product @ x, atol=1e-13)


def test_beads_hold_the_first_numbers_probability_and_the_matrix_is_P():
    panel = panels.sorting_wires(beta=10**0.5, layer=5)
    layers = layers_of((6.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 5.0), panel.values["beta"], "odd-even")
    polygons = [artist for artist in panel.artists if isinstance(artist, PolyCollection)]
    mesh = next(a for a in polygons if a.get_array() is not None and len(a.get_array()) == 9 * 64)
    np.testing.assert_array_equal(mesh.get_array()[:64].reshape(8, 8), layers[4].product)
    assert mesh.get_array().mask.sum() == 3 * 64

    filled = next(a for a in polygons if len(a.get_paths()) == 6 * 8)
    shares = areas(filled.get_paths()).reshape(6, 8) / (np.pi * BEAD**2)
    np.testing.assert_allclose(shares[1:], [layer.product[:, 0] for layer in layers[:5]], atol=0.02)
    assert f"probability {layers[4].product[:, 0].max():.2f}" in panel.alt


def test_hard_swaps_are_figure_6():
    panel = panels.sorting_wires([6, 1, 4, 2], beta=1000)
    assert panel.controls["layer"].max == 4
    seen = []
    for layer in range(5):
        panel.controls["layer"].value = layer
        seen.append(panel.alt.split("hold ")[1].split(".")[0])
    assert seen[0] == "6, 1, 4, 2" and seen[-1] == "1, 2, 4, 6"
    hard = [layer.values.round(1).tolist() for layer in layers_of((6.0, 1.0, 4.0, 2.0), 1e6, "odd-even")]
    assert hard == [[1, 6, 2, 4], [1, 2, 6, 4], [1, 2, 4, 6], [1, 2, 4, 6]]


def test_lists_that_are_no_power_of_two_have_one_network():
    panel = panels.sorting_wires([3, 1, 2])
    assert panel.controls["kind"].options == ("odd-even",)
    assert "of 3 (odd-even)" in panel.alt


def anchors_batch(positive: float) -> torch.Tensor:
    """Three views of five images in which the first anchor has exactly the panel's similarities; its other
    four negatives are farther than all of them."""
    wanted = torch.full((3, 5), -0.99, dtype=torch.float64)
    wanted[0, 0], wanted[1, 0], wanted[2, 0] = 1, POSITIVE, positive
    negatives = [(v, i) for v in range(3) for i in range(1, 5)]
    for place, s in zip(negatives, SIMILARITIES):
        wanted[place] = s
    across = torch.eye(16, dtype=torch.float64)[1:].reshape(3, 5, 16) * (1 - wanted**2).sqrt().unsqueeze(-1)
    across[..., 0] = wanted
    return across


@pytest.mark.parametrize("preorder", [True, False])
@pytest.mark.parametrize("positive, beta, negatives", [(0.2, 1.0, 8), (0.95, 8.0, 8), (-0.8, 0.5, 3)])
def test_group_order_is_a_row_of_the_loss(positive, beta, negatives, preorder):
    sorting = sort_groups(positive, beta, negatives, preorder)
    row = GroCo(beta, negatives, preorder=preorder).assignment(anchors_batch(positive))[0]
    columns = [5 * v + i for v in range(3) for i in range(1, 5)][:8] + [5, 10]
    drawn = np.zeros(15)
    drawn[[columns[point] for point in sorting.points]] = sorting.p
    np.testing.assert_allclose(drawn, row, atol=1e-12)
    right = np.where(np.array(sorting.points) < 8, 1 - sorting.p, sorting.p)
    assert sorting.loss == pytest.approx(-np.log(right).mean())


def test_pushes_are_minus_the_slopes():
    step = 1e-6
    sorting, (_, other) = sort_groups(0.2, 4.0, 8, True), info_nce(0.2, 0.3)
    slopes = [
        sort_groups(0.2 + step, 4.0, 8, True).loss - sort_groups(0.2 - step, 4.0, 8, True).loss,
        info_nce(0.2 + step, 0.3)[0] - info_nce(0.2 - step, 0.3)[0],
    ]
    np.testing.assert_allclose([-sorting.push[9], -other[9]], np.array(slopes) / (2 * step), rtol=1e-5)
    assert other.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_info_nce_of_the_anchor_is_that_of_the_library(temperature):
    """The batch has four negatives more, all at −0.99: out of the sum, and the shares are the library's."""
    weights = np.exp(np.array([POSITIVE, 0.2, *SIMILARITIES]) / temperature)
    terms = -np.log(weights[:2] / (weights[:2] + weights[2:].sum()))
    assert info_nce(0.2, temperature)[0] == pytest.approx(terms.mean())
    everybody = weights[2:].sum() + 4 * np.exp(-0.99 / temperature)
    shares = InfoNCE(temperature).assignment(anchors_batch(0.2))[0, [5, 10]]
    np.testing.assert_allclose(shares, weights[:2] / (weights[:2] + everybody) / 2, rtol=1e-9)


def test_the_table_is_the_papers():
    assert [(NEGATIVES[row], BETAS[column]) for row, column in BEST] == [
        (1, 0.125),
        (5, 0.25),
        (10, 1),
        (20, 8),
    ]
    assert np.isfinite(ACCURACY).sum() == 15
    picture = beta_table({"noise": np.arange(36.0).reshape(4, 9)})
    assert "noise: 1, 11, 22, 34" in picture.alt


def test_numbers_stand_where_they_should():
    path = written([".5", "10"], [(1, 2), (30, 40)], 0.5)
    half = len(written([".5"], [(1, 2)], 0.5).vertices)
    first, second = path.vertices[:half], path.vertices[half:]
    assert np.ptp(first[:, 1]) == pytest.approx(0.5 * 0.74, abs=0.03)
    for outline, centre in ((first, (1, 2)), (second, (30, 40))):
        ink = outline[(outline != 0).any(1)]
        assert np.allclose((ink.min(0) + ink.max(0)) / 2, centre, atol=0.3)


@pytest.mark.parametrize("beta", [0.8, 8.0])
def test_the_soft_step_is_the_librarys_and_its_tangent_the_slope(beta):
    from setclr_course.panels.sorting.soft_swap import after, slope, swapped

    values = {"first": -0.2, "second": 0.15, "beta": beta}
    made = sorting_network(torch.tensor([-0.2, 0.15], dtype=torch.float64), beta).values
    np.testing.assert_allclose(sorted(after(values)), sorted(made.numpy()))
    apart = torch.tensor([-0.35, 0.0, 0.6], dtype=torch.float64, requires_grad=True)
    (torch.atan(beta * apart) / np.pi + 0.5).sum().backward()
    np.testing.assert_allclose([slope(x, beta) for x in (-0.35, 0.0, 0.6)], apart.grad)
    np.testing.assert_allclose(swapped([-0.35], beta)[0], np.arctan(-0.35 * beta) / np.pi + 0.5)


def test_the_photographs_on_the_wires_are_sorted_as_the_library_does():
    from matplotlib.collections import QuadMesh

    panel = panels.photo_wires(flower=0.5)
    x = torch.tensor([6, 1, 4, 2, 7, 0.5], dtype=torch.float64)
    (mesh,) = (a for a in panel.artists if isinstance(a, QuadMesh))
    np.testing.assert_allclose(mesh.get_array(), sorting_network(x, panel.values["beta"]).P, atol=1e-12)
    panel.controls["beta"].value = 800
    assert "belongs to place 5 and is there with probability 1.00" in panel.alt


@pytest.mark.parametrize("preorder", [True, False])
def test_first_places_are_a_row_of_the_loss_and_arrows_its_slopes(preorder):
    from setclr_course.panels.sorting.first_places import START, pushed

    found = pushed(START, 8.0, preorder)
    z = torch.zeros(
        3, 6, 20, dtype=torch.float64
    )  # the anchor, its views, five negatives; others are farther
    z[:, :, 0] = -0.99
    z[0, 0, 0], z[1, 0, 0], z[2, 0, 0] = 1, 1 - START[5], 1 - START[6]
    z[0, 1:, 0] = 1 - torch.tensor(START[:5])
    z[..., 1:19] = torch.eye(18, dtype=torch.float64).view(3, 6, 18) * (1 - z[..., :1] ** 2).sqrt()
    row = GroCo(8.0, 5, preorder=preorder).assignment(z)[0]
    np.testing.assert_allclose(row[[1, 2, 3, 4, 5, 6, 12]], found.chance, atol=1e-9)
    step = np.array(START)
    step[0] += 1e-6
    slope = (pushed(step, 8.0, preorder).loss - found.loss) / 1e-6  # by the distance, which is 1 − s
    assert slope == pytest.approx(found.groco[0], rel=1e-4)
