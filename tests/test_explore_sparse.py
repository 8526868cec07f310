"""What the panels of the sparse support draw is what the library computes."""

import numpy as np
import pytest
import torch

from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses import InfoNCE, SparseCLR
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.sparse import share_triangle as nearest
from setclr_course.panels.sparse.looked_at import looked_at
from setclr_course.panels.sparse.pushes import solve as solve_pushes
from setclr_course.panels.sparse.simplex_triangle import CORNERS, milestones, shares
from setclr_course.panels.sparse.support_drag import ANGLES, let_go, lists, solve
from setclr_course.panels.sparse.water import HEIGHTS
from setclr_course.panels.sparse.words import brief
from setclr_course.pixels.handles import place_of

SCORES = [(1.0, 0.6), (-2.0, 0.6), (0.0, -0.1), (0.5, 0.5), (-1.0, -0.5), (2.0, 0.0)]


def probabilities(points) -> np.ndarray:
    """(n, 3) of points (n, 2) of the triangle."""
    points = np.asarray(points)
    return np.linalg.solve(np.vstack([CORNERS.T, np.ones(3)]), np.vstack([points.T, np.ones(len(points))])).T


def lines(panel, marker: str) -> list:
    return [a for a in panel.artists if hasattr(a, "get_xydata") and a.get_marker() == marker]


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10**0.5])
def test_the_points_and_pillars_are_the_two_shares(scores, temperature):
    panel = panels.simplex_triangle(x1=scores[0], x2=scores[1], temperature=temperature)
    x = torch.tensor([*scores, 0.0], dtype=torch.float64) / temperature
    sparse, soft = sparsemax(x).numpy(), x.softmax(0).numpy()
    (square,), (_, disc) = lines(panel, "s"), lines(panel, "o")
    np.testing.assert_allclose(probabilities(square.get_xydata())[0], soft, atol=1e-9)
    np.testing.assert_allclose(probabilities(disc.get_xydata())[0], sparse, atol=1e-9)

    (shapes,) = (a for a in panel.artists if hasattr(a, "set_verts"))
    boxes = np.array([path.vertices[:4] for path in shapes.get_paths()])
    above = np.ptp(boxes[4:, :, 1], axis=1)  # three pillars above the water, three softmax shares
    np.testing.assert_allclose(above, [*sparse, *soft], atol=1e-9)
    water = boxes[3, :, 1].max()
    level = x.max() + water  # heights are measured from the highest score
    np.testing.assert_allclose(sparse, (x - level).clamp(min=0), atol=1e-9)
    texts = [a for a in panel.artists if hasattr(a, "get_text")]
    scale = {a.get_position()[1]: a.get_text() for a in texts if a.get_position()[0] == -0.7}
    assert scale == {y: f"{round(float(x.max()) + y, 2):g}".replace("-", "−") for y in (-2, -1, 0)}
    assert f"level T = {level:.2f}".replace("-", "−") in [a.get_text() for a in texts]


@pytest.mark.parametrize("scores", SCORES)
def test_the_path_of_the_sparsemax_turns_where_a_score_leaves_the_support(scores):
    x = np.array([*scores, 0.0])
    edge, corner = milestones(x)
    support = [(shares(x / (tau * factor))[0] > 1e-9).sum() for tau in (edge, corner) if tau
               for factor in (1.001, 0.999)]  # fmt: skip
    ties = (x == x.max()).sum()
    assert support == {2: [3, 2], 1: [3, 1, 3, 1] if edge == corner else [3, 2, 2, 1]}[ties]

    panel = panels.simplex_triangle(x1=scores[0], x2=scores[1])
    straight, bent = (a for a in lines(panel, "None") if a.get_color() in ("#0072b2", "#d55e00"))
    if straight.get_color() != "#0072b2":
        straight, bent = bent, straight
    turns = probabilities(straight.get_xydata())
    np.testing.assert_allclose(turns[0], np.full(3, 1 / 3))
    for tau in np.geomspace(0.01, 100, 50):
        p = shares(x / tau)[0]
        detours = [np.linalg.norm(p - a) + np.linalg.norm(b - p) - np.linalg.norm(b - a)
                   for a, b in zip(turns, turns[1:])]  # fmt: skip
        assert min(detours) < 1e-9
    ends = probabilities(bent.get_xydata())
    assert (ends[:150] > 0).all()


def test_equal_scores_stay_in_the_centre():
    panel = panels.simplex_triangle(x1=0.0, x2=0.0, temperature=0.1)
    assert milestones(np.zeros(3)) == (0, 0) and "stay in the centre" in panel.alt


@pytest.mark.parametrize("p, text", [(0, "0"), (1, "1.00"), (0.5, ".50"), (0.004, "4e-3"), (1e-17, "1e-17")])
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
        x = lists(angle, 0.4)[1].numpy()
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
    now = solve(120, 0.5, 0.5)
    rays = [a for a in panel.artists if hasattr(a, "set_segments")]
    dots = [
        a for a in panel.artists if hasattr(a, "set_sizes") and a not in rays and len(a.get_offsets()) == 6
    ]
    for name, ray, dot in zip(("InfoNCE", "SparseCLR"), rays, dots):
        weights = now[name][0]
        np.testing.assert_array_equal(np.array(ray.get_linewidths()) > 0, weights > 0)
        hollow = (dot.get_facecolors() == 1).all(1)
        np.testing.assert_array_equal(hollow, weights[1:] == 0)
        assert hollow.sum() == {"InfoNCE": 0, "SparseCLR": 4}[name]


@pytest.mark.parametrize("heights", [{}, {"rocket": 0.9, "cat": -1.0}, dict.fromkeys(NAMES, -1.0)])
def test_the_dry_parts_are_the_sparsemax(heights):
    panel = panels.water(total=1.0, **heights)
    x = torch.tensor([panel.values[name] for name in NAMES], dtype=torch.float64)
    (shapes, stack) = (a for a in panel.artists if hasattr(a, "set_verts"))
    tips = [np.ptp(path.vertices[:, 1]) for path in shapes.get_paths()[6:12]]
    np.testing.assert_allclose(tips, sparsemax(x), atol=1e-9)
    parts = [np.ptp(path.vertices[:, 1]) for path in stack.get_paths()]
    np.testing.assert_allclose(parts, sparsemax(x), atol=1e-9)


def test_the_level_that_is_dragged_is_where_the_water_stands():
    panel = panels.water()
    level = panel.handles["level"]
    for y in (0.45, 0.3):
        moved = level.values(panel.controls, place_of(level.axis, (0, y)))
        assert moved == {"total": pytest.approx(sum(max(0.0, h - y) for h in HEIGHTS.values()), abs=0.026)}
    assert level.nudged(panel.controls, 0, 1)["total"] < panel.values["total"]


@pytest.mark.parametrize("scores", [(1.2, 0.8), (0.3, 0.4), (-1.0, 1.5), (-0.5, -0.8)])
def test_the_shares_by_water_are_the_nearest_point_of_the_triangle(scores):
    panel = panels.share_triangle(first=scores[0], second=scores[1])
    way, *_ = (a for a in panel.artists if hasattr(a, "get_xydata"))
    start, end = way.get_xydata()
    np.testing.assert_allclose(nearest.scores_at(*start), scores, atol=1e-9)
    shares = torch.distributions.Dirichlet(torch.ones(3)).sample((500,)).numpy()
    others = np.concatenate([shares, np.eye(3)]) @ nearest.CORNERS
    assert (np.linalg.norm(others - start, axis=1) >= np.linalg.norm(end - start) - 1e-6).all()


def test_pushes_are_the_slopes_of_the_losses():
    values = panels.pushes(temple=40, margin=0.5).values
    cosines = torch.tensor([values[name] for name in NAMES], dtype=torch.float64).deg2rad().cos()
    cosines.requires_grad_()
    margin = 0.5 * torch.eye(6, dtype=torch.float64)[0]
    for name, loss in (
        ("InfoNCE", 0.5 * ((cosines / 0.5).logsumexp(0) - cosines[0] / 0.5)),
        ("SparseCLR", sparse_maximum(cosines - margin) - cosines[0]),
    ):
        (slope,) = torch.autograd.grad(loss, cosines)
        np.testing.assert_allclose(solve_pushes(values)[name], slope, atol=1e-9)


def test_frames_tell_shares_and_relatives():
    views = torch.rand(2, 6, 3, 8, 8)
    weights = torch.zeros(12, 12)
    weights[0, 1:3] = 0.5  # of one thing, and of another
    weights[0, 6] = 0.9  # its positive
    picture = looked_at(views, torch.tensor([0, 0, 1, 1, 2, 2]), weights, [0])
    assert "2 of 10 negatives have a share. 1 of the framed" in picture.alt
