"""What the panels of the sparse support compute is what the library computes, and it is what they draw."""

import numpy as np
import pytest
import torch

from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses import InfoNCE, SparseCLR
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.sparse import share_triangle as nearest
from setclr_course.panels.sparse.looked_at import looked_at
from setclr_course.panels.sparse.simplex_triangle import CORNERS, milestones, shares
from setclr_course.panels.sparse.support_drag import ANGLES, let_go, lists, solve
from setclr_course.panels.sparse.words import brief

SCORES = [(1.0, 0.6), (-2.0, 0.6), (0.0, -0.1), (0.5, 0.5), (-1.0, -0.5), (2.0, 0.0)]


def marks(panel, name: str, kind: str) -> list[dict]:
    (plot,) = (plot for plot in panel.scene["plots"] if plot["name"] == name)
    return [mark for mark in plot["marks"] if mark["kind"] == kind]


def points_of(mark: dict) -> np.ndarray:
    return np.array([mark["x"], mark["y"]]).T


def probabilities(points) -> np.ndarray:
    """(n, 3) of points (n, 2) of the triangle."""
    points = np.asarray(points)
    return np.linalg.solve(np.vstack([CORNERS.T, np.ones(3)]), np.vstack([points.T, np.ones(len(points))])).T


def dropped(panel, name: str, x: float, y: float) -> None:
    """A handle is dragged there."""
    panel.on_event({"event": "", "handle": name, "x": x, "y": y})


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10**0.5])
def test_the_points_and_pillars_are_the_two_shares(scores, temperature):
    panel = panels.simplex_triangle(x1=scores[0], x2=scores[1], temperature=temperature)
    x = torch.tensor([*scores, 0.0], dtype=torch.float64) / temperature
    sparse, soft = sparsemax(x).numpy(), x.softmax(0).numpy()
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.sparse, sparse, atol=1e-9)
    np.testing.assert_allclose(now.soft, soft, atol=1e-9)
    np.testing.assert_allclose(sparse, (x - now.level).clamp(min=0), atol=1e-9)
    for dots, p in zip(marks(panel, "plane", "dots")[-2:], (soft, sparse)):
        np.testing.assert_allclose(probabilities(points_of(dots))[0], p, atol=1e-5)

    _, pool, above, beside = marks(panel, "pillars", "boxes")
    assert pool["v"][0] + x.max() == pytest.approx(now.level, abs=1e-5)  # seen from the highest score
    for bars, p in ((above, sparse), (beside, soft)):
        np.testing.assert_allclose(np.subtract(bars["v"], pool["v"][0]), p, atol=1e-5)
    scale = next(mark for mark in marks(panel, "pillars", "text") if mark["y"] == [-2, -1, 0])["said"]
    assert scale == [f"{round(float(x.max()) + y, 2):g}".replace("-", "−") for y in (-2, -1, 0)]


@pytest.mark.parametrize("scores", SCORES)
def test_the_path_of_the_sparsemax_turns_where_a_score_leaves_the_support(scores):
    x = np.array([*scores, 0.0])
    edge, corner = milestones(x)
    support = [(shares(x / (tau * factor))[0] > 1e-9).sum() for tau in (edge, corner) if tau
               for factor in (1.001, 0.999)]  # fmt: skip
    ties = (x == x.max()).sum()
    assert support == {2: [3, 2], 1: [3, 1, 3, 1] if edge == corner else [3, 2, 2, 1]}[ties]

    panel = panels.simplex_triangle(x1=scores[0], x2=scores[1])
    bent, straight = (probabilities(points_of(line)) for line in marks(panel, "plane", "line"))
    np.testing.assert_allclose(straight[0], np.full(3, 1 / 3), atol=1e-5)
    for tau in np.geomspace(0.01, 100, 50):
        p = shares(x / tau)[0]
        detours = [np.linalg.norm(p - a) + np.linalg.norm(b - p) - np.linalg.norm(b - a)
                   for a, b in zip(straight, straight[1:])]  # fmt: skip
        assert min(detours) < 1e-5
    assert (bent[:75] > 0).all()


def test_equal_scores_stay_in_the_centre():
    panel = panels.simplex_triangle(x1=0.0, x2=0.0, temperature=0.1)
    assert milestones(np.zeros(3)) == (0, 0) and "stay in the centre" in panel.alt


@pytest.mark.parametrize(
    "p, text", [(0, "0"), (1, "1"), (0.999, "1.0"), (0.5, ".50"), (0.004, "4e-3"), (1e-17, "1e-17")]
)
def test_only_nothing_is_written_0(p, text):
    assert brief(p) == text


@pytest.mark.parametrize("margin", [0.0, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("temperature", [0.05, 0.5, 5.0])
def test_the_weights_are_a_row_of_the_assignment_of_a_batch(margin, temperature):
    """Two views of four images: an anchor has one positive and six negatives."""
    for angle in (0, 30, 97, 180):
        pairs = [(0, ANGLES[0]), (angle, ANGLES[2]), ANGLES[3:5], ANGLES[5:7]]  # of one image, two views
        radians = torch.tensor(pairs, dtype=torch.float64).deg2rad().T
        z = torch.stack([radians.cos(), radians.sin()], dim=-1)
        order = [4, 1, 5, 2, 6, 3, 7]  # point v·N + i: the positive, the dragged one, the others
        now = solve(angle, margin, temperature)
        for name, loss in (("InfoNCE", InfoNCE(temperature)), ("SparseCLR", SparseCLR(margin))):
            row = loss.assignment(z)[0]
            np.testing.assert_allclose(now[name][0], row[order], atol=1e-12)
            assert row.sum() == pytest.approx(1)


def test_the_losses_are_those_of_one_anchor():
    for angle in (0, 60, 120):
        weights, loss = solve(angle, 0.4, 0.3)["InfoNCE"]
        assert loss == pytest.approx(-np.log(weights[0]))
        weights, loss = solve(angle, 0.4, 0.3)["SparseCLR"]
        x = lists(angle, 0.4)[1]
        assert loss == pytest.approx(x @ weights - weights @ weights / 2 + 0.5 - x[0])
    many = solve(np.array([0.0, 60.0, 120.0]), 0.4, 0.3)
    for name, (weights, loss) in many.items():
        np.testing.assert_allclose(weights[1], solve(60, 0.4, 0.3)[name][0])
        assert loss[2] == pytest.approx(solve(120, 0.4, 0.3)[name][1])


@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0, 2.0])
def test_sparseclr_lets_go_where_the_panel_says(margin):
    end = let_go(margin)
    weights, _ = solve(np.array([end - 0.1, end + 0.1]), margin, 0.5)["SparseCLR"]
    assert weights[0, 1] > 0 == weights[1, 1]


def test_hollow_is_exactly_nothing_and_has_no_line():
    panel = panels.support_drag(angle=120, margin=0.5)
    for name, count in (("InfoNCE", 0), ("SparseCLR", 4)):
        weights = panel.solve(panel.values)[name][0]
        (lines,), (_, plus, crosses) = marks(panel, name, "segments"), marks(panel, name, "dots")
        np.testing.assert_array_equal(np.array(lines["width"]) > 0, weights > 0)
        hollow = np.array(plus["colour"] + crosses["colour"]) == "#ffffff"
        np.testing.assert_array_equal(hollow, weights == 0)
        assert hollow[1:].sum() == count


def test_the_negative_is_dragged_on_the_right_half_and_stops_at_its_ends():
    panel = panels.support_drag(margin=0.5)
    for (x, y), angle in (((1, 0), 90), ((0.5, -0.5), 136), ((-0.3, 1), 0), ((-1, -0.2), 180)):
        for name in ("InfoNCE", "SparseCLR"):
            panel.controls["angle"].value = 60
            dropped(panel, name, x, y)
            assert abs(panel.values["angle"] - angle) <= 1 and panel.values["margin"] == 0.5


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
    panel.on_event({"event": "", "handle": "level", "right": 0, "up": 1})
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
        panel.on_event({"event": "", "handle": "scores", "right": right, "up": up})
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
