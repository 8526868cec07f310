"""What the panels of the sparse support compute is what the library computes, and it is what they draw."""

import numpy as np
import pytest
import torch
from sweep import arrow

from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.sparse import share_triangle as nearest
from setclr_course.panels.sparse.looked_at import looked_at
from setclr_course.panels.sparse.pushes import brief

SCORES = [(1.0, 0.6), (-1.0, 0.6), (0.0, -0.1), (0.5, 0.5), (-1.0, -0.5), (1.5, 0.0)]


def marks(panel, name: str, kind: str) -> list[dict]:
    (plot,) = (plot for plot in panel.scene["plots"] if plot["name"] == name)
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


def points_of(mark: dict) -> np.ndarray:
    return np.array([mark["x"], mark["y"]]).T


def probabilities(points) -> np.ndarray:
    """(n, 3) of points (n, 2) of the triangle."""
    points = np.asarray(points)
    return np.linalg.solve(
        np.vstack([nearest.CORNERS.T, np.ones(3)]), np.vstack([points.T, np.ones(len(points))])
    ).T


def dropped(panel, name: str, x: float, y: float) -> None:
    """A handle is dragged there."""
    panel.on_event({"event": "", "handle": name, "x": x, "y": y})


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10**0.5])
def test_a_temperature_divides_the_scores(scores, temperature):
    panel = panels.share_triangle(True, first=scores[0], second=scores[1], temperature=temperature)
    x = torch.tensor([*scores, 0.0], dtype=torch.float64) / panel.values["temperature"]
    sparse, soft = sparsemax(x).numpy(), x.softmax(0).numpy()
    for dots, p in zip(marks(panel, "plane", "dots")[-2:], (soft, sparse)):
        np.testing.assert_allclose(probabilities(points_of(dots))[0], p, atol=1e-5)
    for bars, p in zip(marks(panel, "shares", "boxes"), (sparse, soft)):
        np.testing.assert_allclose(bars["v"], p, atol=1e-5)


@pytest.mark.parametrize("scores", SCORES)
def test_the_path_of_the_sparsemax_turns_where_the_leads_are_the_temperature(scores):
    x = torch.tensor([*scores, 0.0], dtype=torch.float64)
    panel = panels.share_triangle(cooled=True, first=scores[0], second=scores[1])
    bent, straight = (probabilities(points_of(line)) for line in marks(panel, "plane", "line"))
    np.testing.assert_allclose(straight[0], np.full(3, 1 / 3), atol=1e-5)
    rings = probabilities(points_of(marks(panel, "plane", "dots")[1]))
    np.testing.assert_allclose(rings, straight[1:])
    assert (np.diff((rings > 1e-5).sum(1)) < 0).all()  # each ring takes somebody
    for tau in np.geomspace(0.01, 100, 50):
        p = sparsemax(x / tau).numpy()
        detours = [np.linalg.norm(p - a) + np.linalg.norm(b - p) - np.linalg.norm(b - a)
                   for a, b in zip(straight, straight[1:])]  # fmt: skip
        assert min(detours) < 1e-5
    assert (bent[:75] > 0).all()


def test_equal_scores_stay_in_the_centre():
    panel = panels.share_triangle(cooled=True, first=0.0, second=0.0, temperature=0.1)
    assert "The water shares out 0.33, 0.33, 0.33: the inside" in panel.alt


@pytest.mark.parametrize(
    "p, text", [(0, "0"), (1, "1"), (0.999, "1.0"), (0.5, ".50"), (0.004, "4e-3"), (1e-17, "1e-17")]
)
def test_only_nothing_is_written_0(p, text):
    assert brief(p) == text


@pytest.mark.parametrize("heights", [{}, {"rocket": 0.9, "cat": -1.0}, dict.fromkeys(NAMES, -1.0)])
def test_the_dry_parts_are_the_sparsemax(heights):
    panel = panels.water(total=1.0, **heights)
    x = torch.tensor([panel.values[name] for name in NAMES], dtype=torch.float64)
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.dry, sparsemax(x), atol=1e-9)
    wet, tips, pool = marks(panel, "pillars", "boxes")
    (parts,) = marks(panel, "stack", "boxes")
    for drawn in (tips, parts):
        np.testing.assert_allclose(np.subtract(drawn["v"], drawn["y"]), now.dry, atol=1e-5)
    assert parts["v"][-1] == pytest.approx(1) and pool["v"] == [pytest.approx(now.t, abs=1e-5)]
    hollow = np.array(marks(panel, "pillars", "dots")[1]["colour"]) == "#ffffff"
    np.testing.assert_array_equal(hollow, now.dry[1:] == 0)


def test_the_water_stays_within_the_picture():
    (plot, _) = panels.water(total=2.0, **dict.fromkeys(NAMES, -1.0)).scene["plots"]
    level = next(mark for mark in plot["marks"] if mark["kind"] == "line")["y"][0]
    assert plot["y"][0] < level


def test_the_level_that_is_dragged_is_where_the_water_stands_and_keeps_the_pillars():
    panel = panels.water()
    dropped(panel, "coffee", 0, 0.7)
    dropped(panel, "rocket", 0, 0.2)
    for y in (0.45, 0.3):
        dropped(panel, "level", 0, y)
        heights = np.array([panel.values[name] for name in NAMES])
        assert heights[1] == 0.7 and heights[3] == 0.2
        assert panel.values["total"] == pytest.approx((heights - y).clip(0).sum(), abs=0.026)
        assert panel.solve(panel.values).t == pytest.approx(y, abs=0.02)
    before = panel.values["total"]
    arrow(panel, "level", 0, 1)
    assert panel.values["total"] < before
    low, high = panel.handles["level"].ends
    for end, total in ((low, 2.0), (high, 0.05)):
        dropped(panel, "level", 0, end)
        assert panel.values["total"] == total


@pytest.mark.parametrize("scores", [(1.2, 0.8), (0.3, 0.4), (-1.0, 1.5), (-0.5, -0.8)])
def test_the_shares_by_water_are_the_nearest_point_of_the_triangle(scores):
    panel = panels.share_triangle(first=scores[0], second=scores[1])
    now, x = panel.solve(panel.values), torch.tensor([*scores, 0.0], dtype=torch.float64)
    np.testing.assert_allclose(now.sparse, sparsemax(x), atol=1e-9)
    np.testing.assert_allclose(now.soft, x.softmax(-1), atol=1e-9)
    (start,), (soft,), (end,) = map(points_of, marks(panel, "plane", "dots")[1:])
    np.testing.assert_allclose(soft, now.soft @ nearest.CORNERS, atol=1e-5)
    np.testing.assert_allclose(nearest.scores_at(*start), scores, atol=1e-4)
    shares = torch.distributions.Dirichlet(torch.ones(3)).sample((500,)).numpy()
    others = np.concatenate([shares, np.eye(3)]) @ nearest.CORNERS
    assert (np.linalg.norm(others - start, axis=1) >= np.linalg.norm(end - start) - 1e-5).all()


def test_an_arrow_key_moves_the_scores_the_way_it_points():
    panel = panels.share_triangle()
    for right, up in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        before = np.array(panel.handles["scores"].point)
        arrow(panel, "scores", right, up)
        moved = panel.handles["scores"].point - before
        assert moved @ (right, up) > 0.9 * np.linalg.norm(moved) > 0


def test_pushes_are_the_slopes_of_the_losses():
    panel = panels.pushes(temple=40, margin=0.5)
    now = panel.solve(panel.values)
    cosines = torch.tensor([panel.values[name] for name in NAMES], dtype=torch.float64).deg2rad().cos()
    cosines.requires_grad_()
    margin = 0.5 * torch.eye(6, dtype=torch.float64)[0]
    for slopes, loss in (
        (now.soft, 0.5 * ((cosines / 0.5).logsumexp(0) - cosines[0] / 0.5)),
        (now.sparse, sparse_maximum(cosines - margin) - cosines[0]),
    ):
        (slope,) = torch.autograd.grad(loss, cosines)
        np.testing.assert_allclose(slopes, slope, atol=1e-9)
    for bars, slopes in zip(marks(panel, "bars", "boxes"), (now.soft, now.sparse)):
        np.testing.assert_allclose(bars["v"], slopes, atol=1e-5)
    (lines,) = marks(panel, "circle", "segments")
    np.testing.assert_array_equal(np.array(lines["width"]) > 0, now.sparse != 0)


def test_a_photograph_that_is_dragged_round_the_circle_leaves_the_others_alone():
    panel = panels.pushes()
    for name, degrees in (("rocket", 20), ("temple", -90), ("cat", -179)):
        dropped(panel, name, 3 * np.cos(np.deg2rad(degrees)), 3 * np.sin(np.deg2rad(degrees)))
    assert [panel.values[name] for name in NAMES] == [-180, 60, -80, 20, -90, -55]


def test_frames_tell_shares_and_relatives():
    views = torch.rand(2, 6, 3, 8, 8)
    weights = torch.zeros(12, 12)
    weights[0, 1:3] = 0.5  # of one thing, and of another
    weights[0, 6] = 0.9  # its positive
    picture = looked_at(views, torch.tensor([0, 0, 1, 1, 2, 2]), weights, [0])
    assert "2 of 10 negatives have a share. 1 of the framed" in picture.alt


@pytest.mark.parametrize("far", [1, 10, 1000])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 5])
def test_a_crowd_of_far_negatives_takes_the_push_from_the_near_one(far, temperature):
    panel = panels.crowd(far=far, temperature=temperature)
    far, temperature = round(panel.values["far"]), panel.values["temperature"]
    share = torch.tensor([0.9, 0.8, *far * [0.0]]).div(temperature).softmax(0)  # the positive first
    np.testing.assert_allclose(panel.solve(panel.values)[-1], share[1] / share[1:].sum(), rtol=1e-4)
    (curve,) = marks(panel, "curve", "line")
    (cross,) = marks(panel, "curve", "dots")
    assert np.diff(curve["y"]).max() < 0 and cross["x"] == pytest.approx([panel.values["far"]], rel=1e-4)
