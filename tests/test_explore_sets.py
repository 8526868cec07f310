"""The panels of notebook 04: what they compute is what the library computes, and it is what they draw."""

import numpy as np
import pytest
import torch
from sweep import arrow

from setclr.inner import quadratic_assignment, spectral_bounds
from setclr.losses import InfoNCE, QARe
from setclr_course.kit.cast import NAMES
from setclr_course.kit.circle import RADII
from setclr_course.panels import spectra, spreading, two_lists, two_shapes
from setclr_course.panels.sets.descent import BETAS, RATE, START, path
from setclr_course.panels.sets.two_lists import ORDERS, moved
from setclr_course.panels.sets.two_views import FIRST, wrapped

SIMILARITIES = ("cosine", "euclidean")
both = pytest.mark.parametrize("similarity", SIMILARITIES)


def plot_of(panel, name: str) -> dict:
    return next(plot for plot in panel.scene["plots"] if plot["name"] == name)


def marks(panel, name: str, kind: str) -> list[dict]:
    return [mark for mark in plot_of(panel, name)["marks"] if mark["kind"] == kind]


def dropped(panel, name: str, x: float, y: float) -> None:
    """A handle is dragged there."""
    panel.on_event({"event": "", "handle": name, "x": x, "y": y})


def test_sorted_lists_have_the_largest_sum():
    assert two_lists(order=0).alt.endswith("0 give more, 119 give less.")
    assert two_lists(order=119).alt.endswith("0 give less.")
    panel = two_lists()
    upper, lower = marks(panel, "lists", "boxes")
    assert -np.dot(upper["v"], lower["v"]) == 58 and "= 58." in panel.alt
    assert marks(panel, "totals", "line")[0]["x"] == [58, 58]


def test_a_bar_that_is_dragged_stays_on_its_way_and_keeps_the_others_in_order():
    panel = two_lists(order=0)
    order = lambda: ORDERS[panel.values["order"]]  # noqa: E731
    dropped(panel, "bar 7", 1.2, -4)
    assert order() == (1, 7, 2, 4, 5)
    for x, y in ((2, 0), (-3, 0), (99, 0)):  # beyond an end is the end
        dropped(panel, "bar 1", x, y)
    assert order() == (7, 2, 4, 5, 1)
    arrow(panel, "bar 4", -1, 0)
    assert order() == (7, 4, 2, 5, 1)
    arrow(panel, "bar 4", 9, 0)
    assert order() == (7, 2, 5, 1, 4)


@pytest.mark.parametrize("bar, way", [(1, (1, 2, 3, 4)), (7, (3, 1, 0)), (4, (3, 0, 4, 2))])
def test_a_slow_pull_ends_where_a_fast_one_does(bar, way):
    slow = ORDERS[0]
    for place in way:
        slow = moved(slow, bar, place)
    assert slow == moved(ORDERS[0], bar, way[-1])


@both
@pytest.mark.parametrize("start", [{}, {"turn": 90}, {"cat": 150, "rocket": -20}])
def test_the_fits_are_the_librarys_and_between_the_eigenvalues(start, similarity):
    panel = spectra(similarity, **start)
    now, z = panel.solve(panel.values), torch.from_numpy(panel.ring.vectors(panel.values))
    A, B = 1 + z @ z.mT if similarity == "cosine" else torch.cdist(z, z)
    values = quadratic_assignment(torch.zeros_like(A), A, B).values.numpy() / 36
    np.testing.assert_allclose(now.values, values, atol=1e-6)
    bounds = [float(bound) / 36 for bound in spectral_bounds(A, B)]
    np.testing.assert_allclose([now.lower, now.upper], bounds, atol=1e-6)
    assert float(QARe(similarity)(z)) == pytest.approx(bounds[1] if similarity == "cosine" else -bounds[0])
    assert (values <= now.upper + 1e-9).all() and (values >= now.lower - 1e-9).all()
    one, two = marks(panel, "lists", "boxes")
    np.testing.assert_allclose(np.dot(one["v"], two["v"]) / 36, now.upper, atol=1e-4)
    drawn = [line["x"][0] for line in marks(panel, "fits", "line")]
    expected = [now.upper, now.values[0], now.lower][: 2 if similarity == "cosine" else 3]
    np.testing.assert_allclose(drawn, expected, rtol=1e-5)
    (area,) = marks(panel, "fits", "area")
    heights = np.array(area["rings"][0][1][1::2][:-1])
    assert heights.max() == 1 and (heights * 720).sum() > 720, "some fits lie outside of the axis"


@both
def test_everything_stays_on_the_axes_and_identical_views_reach_the_bound(similarity):
    panel = spectra(similarity, **dict(zip(NAMES, wrapped(FIRST).tolist())))
    assert "0 fit better" in panel.alt
    now = panel.solve(panel.values)
    assert now.values[0] == pytest.approx(now.values.max()) == pytest.approx(now.upper)
    for cat in range(-180, 180, 20):
        for turn in (0, 75):
            now = panel.solve({**panel.values, "cat": cat, "turn": turn})
            left, right = plot_of(panel, "fits")["x"]
            low, high = plot_of(panel, "lists")["y"]
            assert now.upper < right - 0.15 * (right - left), "the bound's label would be cut off"
            assert left < now.values.min() and low <= now.eigenvalues.min() and now.eigenvalues.max() < high


def test_pairs_may_be_equal_and_shapes_not():
    """What the careful page 04 says about all ■ turned by 30° as one, each its own way, or to one side."""
    ways = {"as one": [1] * 6, "crowded": [1, 1, 1, -1, -1, -1], "in pairs": [-1, -1, 1, -1, -1, 1]}
    panels = {
        way: two_shapes(turn=0, **dict(zip(NAMES, wrapped(FIRST + 30 * np.array(signs)).tolist())))
        for way, signs in ways.items()
    }
    assert all("● with its ■ is 0.87" in panel.alt for panel in panels.values())
    found = [panel.solve(panel.values).mismatch for panel in panels.values()]
    assert found[0] == pytest.approx(0) and 0.2 < found[1] < found[2]


def test_turning_a_view_changes_the_pairs_and_not_its_table():
    first, second = (two_shapes(turn=turn) for turn in (0, 90))
    assert "● with its ■ is 1.00" in first.alt and "0.00;" in second.alt
    assert "the tables is 0.000" in first.alt and "the tables is 0.000" in second.alt
    assert "the tables is 0.000" not in two_shapes(cat=100).alt
    for panel in (first, second):
        A, B = (marks(panel, name, "cells")[0]["words"] for name in "AB")
        assert A == B == marks(first, "A", "cells")[0]["words"]


def test_squares_that_are_dragged_keep_their_places_and_a_turn_takes_them_along():
    panel = two_shapes(turn=30)
    for name, degrees in (("cat", 100), ("rocket", -20)):
        dropped(panel, name, np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees)))
    assert (panel.values["cat"], panel.values["rocket"], panel.values["turn"]) == (70, -50, 30)
    panel.controls["turn"].value = 50
    z = panel.solve(panel.values).z[1]
    np.testing.assert_allclose(np.rad2deg(np.arctan2(z[:, 1], z[:, 0]))[[0, 3]], [120, 0], atol=1e-9)
    np.testing.assert_allclose(panel.handles["cat"].point, RADII[1] * z[0])


def test_every_descent_begins_where_torch_drew_it():
    generator = torch.Generator().manual_seed(0)
    thing = 2.6 * torch.rand(6, generator=generator, dtype=torch.float64) + 0.3
    drawn = thing + 0.45 * torch.randn(2, 6, generator=generator, dtype=torch.float64)
    np.testing.assert_allclose(START, drawn, atol=1e-6)
    for similarity in SIMILARITIES:
        assert (path(similarity).angles[0] == np.array(START)).all()


@both
@pytest.mark.parametrize("beta", [0.5, 1.125])
def test_the_batched_descent_is_that_of_the_librarys_loss(beta, similarity):
    k, found = BETAS.tolist().index(beta), path(similarity)
    for step in (0, 7, 30):
        angles = torch.tensor(found.angles[step, k], requires_grad=True)
        z = torch.stack([angles.cos(), angles.sin()], dim=-1)
        (slope,) = torch.autograd.grad(InfoNCE(0.5)(z) + beta * QARe(similarity)(z), angles)
        after = found.angles[step, k] - RATE * slope.numpy()
        np.testing.assert_allclose(found.angles[step + 1, k], after, rtol=1e-7, atol=1e-9)
        cosines = (z @ z.mT)[:, ~torch.eye(6, dtype=torch.bool)]
        assert found.within[step, k] == pytest.approx(cosines.mean().item())


def test_cosine_leaves_the_end_alone_and_euclidean_collapses():
    """What the careful page 04 says about every β of the slider."""
    cosine, euclidean = (path(similarity) for similarity in SIMILARITIES)
    assert np.abs(cosine.within[-1] + 1 / 5).max() < 0.005
    assert (euclidean.within[-1][BETAS >= 2] > 0.99).all() and euclidean.within[-1][BETAS <= 0.5].max() < 0
    assert "draws a view together" in plot_of(spreading("euclidean"), "curves")["title"]


def test_six_photographs_walk_downhill_and_spread():
    panel = spreading(step=8)
    within = panel.solve(panel.values)[1]
    assert within[-1] == pytest.approx(-0.2, abs=0.01) and within[8, 1] < within[8, 0] - 0.2
    dropped(panel, "step", 80, 0)
    assert panel.values["step"] == 80 and "Step 80" in panel.alt
