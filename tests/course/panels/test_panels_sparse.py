"""What the panels of the sparse support compute is what the library computes, and it is what they draw."""

import numpy as np
import pytest
import torch
from numpy.linalg import norm
from sweep import drag, marks, points, slope

from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.sparse import share_triangle as nearest
from setclr_course.panels.sparse.looked_at import looked_at

SCORES = [(1.0, 0.6), (0.0, -0.1), (0.5, 0.5), (-1.0, -0.5)]


def probabilities(places) -> np.ndarray:
    """(n, 3) of points (n, 2) of the triangle."""
    corners, with_sum = (np.column_stack([x, np.ones(len(x))]) for x in (nearest.CORNERS, places))
    return np.linalg.solve(corners.T, with_sum.T).T


@pytest.mark.parametrize("scores", SCORES)
def test_the_path_of_the_sparsemax_turns_where_the_leads_are_the_temperature(scores):
    x = torch.tensor([*scores, 0.0], dtype=torch.float64)
    panel = panels.share_triangle(cooled=True, first=scores[0], second=scores[1])
    bent, straight = (probabilities(points(line)) for line in marks(panel, "plane", "line"))
    np.testing.assert_allclose(straight[0], np.full(3, 1 / 3), atol=1e-5)
    rings = probabilities(points(marks(panel, "plane", "dots")[1]))
    np.testing.assert_allclose(rings, straight[1:])
    assert (np.diff((rings > 1e-5).sum(1)) < 0).all()  # each ring takes somebody
    for tau in np.geomspace(0.01, 100, 50):
        p = sparsemax(x / tau).numpy()
        way = straight - p
        detours = [norm(a) + norm(b) - norm(b - a) for a, b in zip(way, way[1:])]
        assert min(detours) < 1e-5
    assert (bent[:75] > 0).all()


@pytest.mark.parametrize("scores", [*SCORES, (0.0, 0.0)])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10**0.5])
def test_shares_are_those_of_the_scores_over_the_temperature_by_water_the_nearest_of_the_triangle(
    scores, temperature
):
    panel = panels.share_triangle(True, first=scores[0], second=scores[1], temperature=temperature)
    now = panel.solve(panel.values)
    x = torch.tensor([*scores, 0.0], dtype=torch.float64) / panel.values["temperature"]
    np.testing.assert_allclose(now.sparse, sparsemax(x), atol=1e-9)
    np.testing.assert_allclose(now.soft, x.softmax(-1), atol=1e-9)
    soft, end = (points(dots)[0] for dots in marks(panel, "plane", "dots")[-2:])
    np.testing.assert_allclose([soft, end], [now.soft, now.sparse] @ nearest.CORNERS, atol=1e-5)
    shares = np.concatenate([torch.distributions.Dirichlet(torch.ones(3)).sample((500,)), np.eye(3)])
    assert (norm(shares - x.numpy(), axis=1) >= norm(now.sparse - x.numpy()) - 1e-5).all()
    said = ", ".join(f"{share:.2f}" for share in now.sparse)
    where = ("a corner", "an edge", "the inside")[np.count_nonzero(now.sparse > 1e-9) - 1]
    assert f"The water shares out {said}: {where} of the triangle" in panel.alt


@pytest.mark.parametrize("heights", [{}, {"rocket": 0.9, "cat": -1.0}, dict.fromkeys(NAMES, -1.0)])
def test_the_dry_parts_are_the_sparsemax(heights):
    panel = panels.water(total=1.0, **heights)
    x = torch.tensor([panel.values[name] for name in NAMES], dtype=torch.float64)
    np.testing.assert_allclose(panel.solve(panel.values).dry, sparsemax(x), atol=1e-9)


def test_the_level_that_is_dragged_is_where_the_water_stands_and_keeps_the_pillars():
    panel = panels.water()
    drag(panel, "coffee", 0, 0.7)
    for y in (0.45, 0.3):
        drag(panel, "level", 0, y)
        heights = np.array([panel.values[name] for name in NAMES])
        assert heights[1] == 0.7 and panel.solve(panel.values).t == pytest.approx(y, abs=0.02)
        assert panel.values["total"] == pytest.approx((heights - y).clip(0).sum(), abs=0.026)


def test_pushes_are_the_slopes_of_the_losses():
    panel = panels.pushes(temple=40, margin=0.5)
    now = panel.solve(panel.values)
    cosines = np.cos(np.deg2rad([panel.values[name] for name in NAMES]))
    margin = 0.5 * torch.eye(6, dtype=torch.float64)[0]
    for slopes, loss in (
        (now.soft, lambda x: 0.5 * ((x / 0.5).logsumexp(0) - x[0] / 0.5)),
        (now.sparse, lambda x: sparse_maximum(x - margin) - x[0]),
    ):
        np.testing.assert_allclose(slopes, slope(loss, cosines), atol=1e-9)


def test_frames_tell_shares_and_relatives():
    views = torch.rand(2, 6, 3, 8, 8)
    weights = torch.zeros(12, 12)
    weights[0, 1:3] = 0.5  # of one thing, and of another
    weights[0, 6] = 0.9  # its positive
    picture = looked_at(views, torch.tensor([0, 0, 1, 1, 2, 2]), weights, [0])
    assert "2 of 10 negatives have a share. 1 of the framed" in picture.alt


@pytest.mark.parametrize(("far", "temperature"), [(1, 0.5), (10, 5), (1000, 0.1)])
def test_a_crowd_of_far_negatives_takes_the_push_from_the_near_one(far, temperature):
    panel = panels.crowd(far=far, temperature=temperature)
    far, temperature = round(panel.values["far"]), panel.values["temperature"]
    share = torch.tensor([0.9, 0.8, *far * [0.0]]).div(temperature).softmax(0)  # the positive first
    np.testing.assert_allclose(panel.solve(panel.values)[-1], share[1] / share[1:].sum(), rtol=1e-4)
