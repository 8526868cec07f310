"""The panels of notebook 04: what they compute is what the library computes, and it is what they draw."""

import numpy as np
import pytest
import torch

from setclr.inner import quadratic_assignment, spectral_bounds
from setclr.losses import InfoNCE, QARe
from setclr_course import panels
from setclr_course.kit.circle import RADII
from setclr_course.panels import quadratic_histogram, same_pairs, spectra, spreading, two_lists, two_shapes
from setclr_course.panels.sets.descent import BETAS, RATE, START, path
from setclr_course.panels.sets.qare_pictures import cost_picture, spectrum_picture
from setclr_course.panels.sets.quadratic_histogram import EDGES, LIMITS, inner
from setclr_course.panels.sets.same_pairs import KITE, MEASURES, measures, second_view
from setclr_course.panels.sets.two_lists import ORDERS, moved

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
    panel.on_event({"event": "", "handle": "bar 4", "right": -1, "up": 0})
    assert order() == (7, 4, 2, 5, 1)
    panel.on_event({"event": "", "handle": "bar 4", "right": 9, "up": 0})
    assert order() == (7, 2, 5, 1, 4)


@pytest.mark.parametrize("bar, way", [(1, (1, 2, 3, 4)), (7, (3, 1, 0)), (4, (3, 0, 4, 2))])
def test_a_slow_pull_ends_where_a_fast_one_does(bar, way):
    slow = ORDERS[0]
    for place in way:
        slow = moved(slow, bar, place)
    assert slow == moved(ORDERS[0], bar, way[-1])


@pytest.mark.parametrize("start", [{}, {"turn": 90}, {"cat": 150, "rocket": -20}])
def test_the_fits_are_the_librarys_and_below_the_eigenvalues(start):
    panel = spectra(**start)
    now, z = panel.solve(panel.values), panel.ring.vectors(panel.values)
    A, B = (1 + torch.from_numpy(view @ view.T) for view in z)
    values = quadratic_assignment(torch.zeros_like(A), A, B).values.numpy() / 36
    np.testing.assert_allclose(now.values, values, atol=1e-9)
    assert now.upper == pytest.approx(float(QARe()(torch.from_numpy(z))))
    assert (values <= now.upper + 1e-9).all()
    one, two = marks(panel, "lists", "boxes")
    np.testing.assert_allclose(np.dot(one["v"], two["v"]) / 36, now.upper, rtol=1e-5)


@both
@pytest.mark.parametrize("N, turned", [(3, 90), (5, 20), (7, 44)])
def test_the_histogram_and_its_bounds_are_the_librarys(N, turned, similarity):
    panel = quadratic_histogram(things=N, turned=turned, similarity=similarity)
    now = panel.solve(panel.values)
    z = torch.from_numpy(now.z)
    one, two = torch.from_numpy(inner(now.z, similarity))
    expected = 1 + z @ z.mT if similarity == "cosine" else torch.cdist(z, z)
    torch.testing.assert_close(torch.stack([one, two]), expected, rtol=0, atol=1e-7)
    values = quadratic_assignment(torch.zeros_like(one), one, two).values.numpy() / N**2
    bounds = [float(bound) / N**2 for bound in spectral_bounds(one, two)]
    np.testing.assert_allclose(now.fits.values, values, atol=1e-9)
    np.testing.assert_allclose([now.fits.lower, now.fits.upper], bounds, atol=1e-9)
    assert float(QARe(similarity)(z)) == pytest.approx(bounds[1] if similarity == "cosine" else -bounds[0])

    lower, upper, true, span = marks(panel, "fits", "line")
    drawn = [lower["x"][0], upper["x"][0], true["x"][0], *span["x"]]
    np.testing.assert_allclose(drawn, [*bounds, values[0], values.min(), values.max()], rtol=1e-5, atol=1e-9)
    heights = np.histogram(now.fits.values, EDGES)[0]
    assert heights.sum() == len(values), "some values lie outside of the axis"
    (area,) = marks(panel, "fits", "area")
    np.testing.assert_allclose(area["rings"][0][1][1::2][:-1], heights / heights.max(), rtol=1e-5)


@both
def test_everything_stays_on_the_histograms_axis_and_identical_views_reach_the_bound(similarity):
    panel, (left, right) = quadratic_histogram(), LIMITS[similarity]
    for N in range(3, 8):
        for turned in range(0, 91, 2):
            now = panel.solve({"things": N, "turned": turned, "similarity": similarity})
            low, high = now.fits.values.min(), now.fits.values.max()
            assert left < now.fits.lower <= low and high <= now.fits.upper + 1e-9
            assert now.fits.upper < right - 0.15 * (right - left), "the bound's label would be cut off"
            if not turned:
                assert now.fits.values[0] == pytest.approx(high) == pytest.approx(now.fits.upper)


@pytest.mark.parametrize("spread", [-1.0, -0.35, 0.0, 0.6, 1.0])
def test_all_links_have_the_same_length_and_the_bars_are_the_measures(spread):
    panel = same_pairs(spread=spread, length=0.4)
    b = second_view(spread, 0.4)
    np.testing.assert_allclose(np.linalg.norm(b - KITE, axis=1), 0.4)
    for side, view in (("left", second_view(0, 0.4)), ("right", b)):
        links = marks(panel, side, "segments")[2]
        drawn = np.array([links[way] for way in "xyuv"]).T
        np.testing.assert_allclose(drawn, np.hstack([KITE, view]), atol=1e-5)
    bars = np.array([marks(panel, name, "boxes")[0]["u"] for name in MEASURES])
    np.testing.assert_allclose(bars.T, [measures(second_view(0, 0.4)), measures(b)], atol=1e-4)
    assert bars[0] == pytest.approx(1.6) and (bars[2, 1] > 0.1) == (spread != 0)


def test_its_measures_are_the_quadratic_assignment_of_the_true_matching():
    a, b = torch.tensor(KITE), torch.tensor(second_view(0.7, 0.3))
    S, S_A, S_B = torch.cdist(a, b), torch.cdist(a, a), torch.cdist(b, b)
    pairs, quadratic, mismatch = measures(b.numpy())
    exact = quadratic_assignment(S, S_A, S_B)
    assert pairs + quadratic == pytest.approx(float(exact.values[0]))
    assert mismatch == pytest.approx(float((S_A - S_B).square().sum()))


def test_the_mismatch_grows_with_the_spread_and_the_quadratic_term_follows_the_size():
    found = np.array([measures(second_view(spread, 0.5)) for spread in np.linspace(-1, 1, 41)])
    assert (np.diff(found[:, 1]) < 0).all()
    assert (np.diff(found[:21, 2]) < 0).all() and (np.diff(found[20:, 2]) > 0).all()
    largest = [measures(second_view(spread, 0.6)) for spread in (-1, 1)]
    for (_, most), values in zip(MEASURES.values(), np.array(largest).T):
        assert 0.8 * most < values.max() <= 1.01 * most


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


def test_still_pictures_of_the_cost():
    Z = torch.cat([torch.randn(9, 2, dtype=torch.float64), torch.ones(9, 1, dtype=torch.float64)], dim=1)
    assert spectrum_picture(Z @ Z.T, Z.T @ Z).alt.startswith("The 3 eigenvalues")
    picture = cost_picture([64, 128], {"large": [2.0, 4.0], "small": [1.5, 1.2]}, "a test")
    assert "large 2.0 to 4.0, small 1.5 to 1.2" in picture.alt
    assert set(panels.__all__) >= {"same_pairs", "quadratic_histogram", "spreading"}
