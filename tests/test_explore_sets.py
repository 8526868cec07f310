"""The panels of notebook 04: what they draw is what the library computes."""

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import StepPatch

from setclr.inner import quadratic_assignment, spectral_bounds
from setclr.losses import InfoNCE, QARe
from setclr_course import panels
from setclr_course.panels import qare_descent, quadratic_histogram, same_pairs, spectra, two_lists, two_shapes
from setclr_course.panels.sets.descent import BETAS, RATE, info_nce, paths, points, qare, start
from setclr_course.panels.sets.qare_pictures import cost_picture, spectrum_picture
from setclr_course.panels.sets.quadratic_histogram import EDGES, LIMITS, inner, problem
from setclr_course.panels.sets.ring import degrees_of, vectors
from setclr_course.panels.sets.same_pairs import KITE, measures, second_view
from setclr_course.panels.sets.spectra import seen
from setclr_course.panels.sets.spreading import course
from setclr_course.panels.sets.two_lists import ORDERS
from setclr_course.pixels.circle import RADII
from setclr_course.pixels.handles import place_of

both = pytest.mark.parametrize("similarity", ["cosine", "euclidean"])


def of_kind(panel, kind) -> list:
    return [artist for artist in panel.artists if isinstance(artist, kind)]


def numbers_drawn(panel) -> list[float]:
    return [rectangle.get_width() for axis in panel.figure.axes for rectangle in axis.patches]


@pytest.mark.parametrize("spread", [-1.0, -0.35, 0.0, 0.6, 1.0])
def test_all_links_have_the_same_length_and_the_bars_are_the_measures(spread):
    panel = same_pairs(spread=spread, length=0.4)
    b = second_view(spread, 0.4)
    np.testing.assert_allclose(np.linalg.norm(b - KITE, axis=1), 0.4)
    drawn = [np.asarray(dots.get_offsets()) for dots in of_kind(panel, PathCollection)]
    np.testing.assert_array_equal(drawn, [second_view(0, 0.4), b])
    expected = [value for pair in zip(measures(second_view(0, 0.4)), measures(b)) for value in pair]
    np.testing.assert_allclose(numbers_drawn(panel), expected, atol=1e-12)
    assert expected[0] == pytest.approx(expected[1]) == pytest.approx(1.6)
    assert (expected[5] > 0.1) == (spread != 0)


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


@both
@pytest.mark.parametrize("N, turned", [(3, 90), (5, 20), (7, 44)])
def test_the_histogram_and_its_bounds_are_the_librarys(N, turned, similarity):
    panel = quadratic_histogram(things=N, turned=turned, similarity=similarity)
    z = torch.from_numpy(problem(N, turned, similarity).z)
    S_A, S_B = inner(z, similarity)
    values = quadratic_assignment(torch.zeros_like(S_A), S_A, S_B).values.numpy() / N**2
    heights = np.histogram(values, EDGES)[0]
    assert heights.sum() == len(values), "some values lie outside of the axis"
    (bars,) = of_kind(panel, StepPatch)
    np.testing.assert_allclose(bars.get_data().values, heights / heights.max())
    lines = [line.get_xdata() for line in panel.artists if hasattr(line, "get_xdata")]
    bounds = [float(bound) / N**2 for bound in spectral_bounds(S_A, S_B)]
    np.testing.assert_allclose([line[0] for line in lines[:3]], [*bounds, values[0]], atol=1e-9)
    np.testing.assert_allclose(lines[3], [values.min(), values.max()])
    expected = bounds[1] if similarity == "cosine" else -bounds[0]
    assert float(QARe(similarity)(z)) == pytest.approx(expected)


@both
def test_everything_stays_on_the_histograms_axis_and_identical_views_reach_the_bound(similarity):
    left, right = LIMITS[similarity]
    for N in range(3, 8):
        for turned in range(0, 91, 2):
            seen = problem(N, turned, similarity)
            assert left < seen.lower <= seen.values[0] and seen.values[-1] <= seen.upper + 1e-9
            assert seen.upper < right - 0.15 * (right - left), "the bound's label would be cut off"
        same = problem(N, 0, similarity)
        assert same.true == pytest.approx(same.values[-1]) == pytest.approx(same.upper)


@both
@pytest.mark.parametrize("beta", [0.5, 1.125])
def test_the_batched_descent_is_that_of_the_librarys_loss(beta, similarity):
    k = BETAS.tolist().index(beta)
    path = paths()[similarity]
    loss = InfoNCE(0.5) + beta * QARe(similarity)
    for step in (0, 7, 30):
        angles = torch.tensor(path["angles"][step, k], requires_grad=True)
        value = loss(points(angles))
        torch.testing.assert_close(value, info_nce(angles) + beta * qare(angles, similarity))
        (slope,) = torch.autograd.grad(value, angles)
        after = torch.from_numpy(path["angles"][step + 1, k])
        torch.testing.assert_close(after, angles.detach() - RATE * slope, rtol=1e-7, atol=1e-9)
        assert path["InfoNCE"][step, k] == pytest.approx(float(InfoNCE(0.5)(points(angles.detach()))))
        z = points(angles).detach()
        cosines = (z @ z.mT)[:, ~torch.eye(8, dtype=torch.bool)]
        assert path["within"][step, k] == pytest.approx(float(cosines.mean()))


def test_the_drawn_batch_is_that_of_the_step_and_every_descent_begins_alike():
    panel = qare_descent(beta=2.0, step=5, similarity="euclidean")
    z = points(torch.from_numpy(paths()["euclidean"]["angles"][5, 16])).numpy()
    (links,) = of_kind(panel, LineCollection)
    for v, dots in enumerate(of_kind(panel, PathCollection)):
        np.testing.assert_allclose(dots.get_offsets(), RADII[v] * z[v])
        np.testing.assert_allclose(np.array(links.get_segments())[:, v], RADII[v] * z[v])
    for path in paths().values():
        np.testing.assert_array_equal(path["angles"][0], np.broadcast_to(start(), (len(BETAS), 2, 8)))


def test_cosine_leaves_the_end_alone_and_euclidean_collapses():
    """What notebook 04 says about every β of the slider."""
    end = {name: path["within"][-1] for name, path in paths().items()}
    assert np.abs(end["cosine"] + 1 / 7).max() < 0.005
    assert paths()["cosine"]["InfoNCE"][-1].max() < 1.385
    assert (end["euclidean"][BETAS >= 2] > 0.99).all() and end["euclidean"][BETAS <= 0.5].max() < 0


def test_still_pictures_of_the_cost():
    Z = torch.cat([torch.randn(9, 2, dtype=torch.float64), torch.ones(9, 1, dtype=torch.float64)], dim=1)
    assert spectrum_picture(Z @ Z.T, Z.T @ Z).alt.startswith("The 3 eigenvalues")
    picture = cost_picture([64, 128], {"large": [2.0, 4.0], "small": [1.5, 1.2]}, "a test")
    assert "large 2.0 to 4.0, small 1.5 to 1.2" in picture.alt
    assert set(panels.__all__) >= {"same_pairs", "quadratic_histogram", "qare_descent"}


def test_sorted_lists_have_the_largest_sum_and_a_bar_that_is_moved_changes_places():
    assert two_lists(order=0).alt.endswith("0 give more, 119 give less.")
    assert two_lists(order=119).alt.endswith("0 give less.")
    panel = two_lists(order=0)
    handle = panel.handles["bar 7"]
    (number,) = handle.values(panel.controls, place_of(handle.axis, (1.2, -4))).values()
    assert ORDERS[number] == (0, 4, 2, 3, 1)
    assert ORDERS[handle.nudged(panel.controls, -1, 0)["order"]] == (0, 1, 2, 4, 3)


def test_turning_a_view_changes_the_pairs_and_not_its_table():
    first, second = (two_shapes(turn=turn) for turn in (0, 90))
    assert "● with its ■ is 1.00" in first.alt and "0.00;" in second.alt
    assert "the tables is 0.000" in first.alt and "the tables is 0.000" in second.alt
    assert "the tables is 0.000" not in two_shapes(cat=100).alt


@pytest.mark.parametrize("moved", [{}, {"turn": 90}, {"cat": 150, "rocket": -20}])
def test_the_fits_are_the_librarys_and_below_the_eigenvalues(moved):
    z = vectors(degrees_of(spectra(**moved).values))
    found = seen(z)
    A, B = (1 + torch.from_numpy(view @ view.T) for view in z)
    values = quadratic_assignment(torch.zeros_like(A), A, B).values.numpy() / 36
    np.testing.assert_allclose(np.sort(found.fits), np.sort(values), atol=1e-9)
    assert (
        found.bound == pytest.approx(float(QARe()(torch.from_numpy(z))))
        and (values <= found.bound + 1e-9).all()
    )
    assert found.fits[0] == pytest.approx(float(values[0]))


def test_six_photographs_walk_downhill_and_spread():
    angles, within = course(1.125)
    assert angles.shape == (81, 2, 6)
    step = torch.tensor(angles[3], requires_grad=True)
    (slope,) = torch.autograd.grad((InfoNCE(0.5) + 1.125 * QARe())(points(step)), step)
    np.testing.assert_allclose(angles[4], angles[3] - RATE * slope.numpy(), atol=1e-7)
    assert within[-1] == pytest.approx(-0.2, abs=0.01) and within[8] < course(0.0)[1][8] - 0.2
