"""The panels of notebook 04: what they compute is what the library computes."""

import numpy as np
import pytest
import torch
from sweep import drag, slope

from setclr.inner import quadratic_assignment, spectral_bounds
from setclr.losses import InfoNCE, QARe
from setclr_course.kit.cast import NAMES
from setclr_course.panels import spectra, spreading, two_lists, two_shapes
from setclr_course.panels.sets.descent import BETAS, RATE, path
from setclr_course.panels.sets.two_lists import ORDERS, moved
from setclr_course.panels.sets.two_views import FIRST, wrapped

SIMILARITIES = ("cosine", "euclidean")
both = pytest.mark.parametrize("similarity", SIMILARITIES)


def test_sorted_lists_have_the_largest_sum():
    assert two_lists(order=0).alt.endswith("0 give more, 119 give less.")
    assert two_lists(order=119).alt.endswith("0 give less.")
    assert "= 58." in two_lists().alt


def test_a_bar_that_is_moved_stays_on_its_way_and_keeps_the_others_in_order():
    """A slow pull ends where a fast one does."""
    for bar, way in ((1, (1, 2, 3, 4)), (7, (3, 1, 0)), (4, (3, 0, 4, 2))):
        slow = ORDERS[0]
        for place in way:
            slow = moved(slow, bar, place)
        fast = moved(ORDERS[0], bar, way[-1])
        assert slow == fast and fast.index(bar) == way[-1]
        assert [one for one in fast if one != bar] == [one for one in ORDERS[0] if one != bar]


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


@both
def test_identical_views_reach_the_bound(similarity):
    beside = dict(zip(NAMES, wrapped(FIRST).tolist()))
    assert beside in spectra.also  # the site shows what page 04 asks for
    panel = spectra(similarity, **beside)
    now = panel.solve(panel.values)
    assert "0 fit better" in panel.alt
    assert now.values[0] == pytest.approx(now.values.max()) == pytest.approx(now.upper)


def test_pairs_may_be_equal_and_shapes_not():
    """What the careful page 04 says about all ■ turned by 30° as one, each its own way, or to one side."""
    ways = ([1] * 6, [1, 1, 1, -1, -1, -1], [-1, -1, 1, -1, -1, 1])
    turns = [dict(zip(NAMES, wrapped(FIRST + 30 * np.array(way)).tolist())) for way in ways]
    shapes = [two_shapes(turn=0, **turn) for turn in turns]
    assert all("● with its ■ is 0.87" in panel.alt for panel in shapes)
    found = [panel.solve(panel.values).mismatch for panel in shapes]
    assert found[0] == pytest.approx(0) and 0.2 < found[1] < found[2]


def test_turning_a_view_changes_the_pairs_and_not_its_table_and_takes_moved_squares_along():
    for shown, said in (({"turn": 0}, "● with its ■ is 1.00"), ({"turn": 90}, "0.00;")):
        assert said in two_shapes(**shown).alt and "the tables is 0.000" in two_shapes(**shown).alt
    assert "the tables is 0.000" not in two_shapes(cat=100).alt
    panel = two_shapes(turn=30)
    for name, degrees in (("cat", 100), ("rocket", -20)):
        drag(panel, name, np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees)))
    assert (panel.values["cat"], panel.values["rocket"], panel.values["turn"]) == (70, -50, 30)
    panel.controls["turn"].value = 50
    z = panel.solve(panel.values).z[1]
    np.testing.assert_allclose(np.rad2deg(np.arctan2(z[:, 1], z[:, 0]))[[0, 3]], [120, 0], atol=1e-9)


def test_every_descent_begins_where_torch_drew_it():
    generator = torch.Generator().manual_seed(0)
    thing = 2.6 * torch.rand(6, generator=generator, dtype=torch.float64) + 0.3
    drawn = thing + 0.45 * torch.randn(2, 6, generator=generator, dtype=torch.float64)
    for similarity in SIMILARITIES:
        np.testing.assert_allclose(path(similarity).angles[0], drawn.expand(len(BETAS), 2, 6), atol=1e-6)


def around(angles: torch.Tensor) -> torch.Tensor:
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


@both
@pytest.mark.parametrize("beta", [0.5, 1.125])
def test_the_batched_descent_is_that_of_the_librarys_loss(beta, similarity):
    k, found = BETAS.tolist().index(beta), path(similarity)
    for step in (0, 7, 30):
        angles = found.angles[step, k]
        downhill = slope(lambda a: InfoNCE(0.5)(around(a)) + beta * QARe(similarity)(around(a)), angles)
        np.testing.assert_allclose(found.angles[step + 1, k], angles - RATE * downhill, rtol=1e-7, atol=1e-9)
        z = around(torch.from_numpy(angles))
        cosines = (z @ z.mT)[:, ~torch.eye(6, dtype=torch.bool)]
        assert found.within[step, k] == pytest.approx(cosines.mean().item())


def test_cosine_leaves_the_end_alone_and_euclidean_collapses():
    """What the careful page 04 says about every β of the slider, and page 04 about the walk downhill."""
    cosine, euclidean = (path(similarity) for similarity in SIMILARITIES)
    assert np.abs(cosine.within[-1] + 1 / 5).max() < 0.005
    assert (euclidean.within[-1][BETAS >= 2] > 0.99).all() and euclidean.within[-1][BETAS <= 0.5].max() < 0
    assert {"weight": 4.0, "step": 80} in spreading.also  # the site plays every weight to its end
    within = spreading(step=8).solve(spreading(step=8).values)[1]
    assert within[-1] == pytest.approx(-0.2, abs=0.01) and within[8, 1] < within[8, 0] - 0.2
