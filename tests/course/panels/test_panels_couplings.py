"""Shares, by water and by sand: the panels of pages 03 and 06 compute what the library does, and draw it."""

import re

import numpy as np
import pytest
import torch
from conftest import shifted
from numpy.linalg import norm
from sweep import drag, marks, points, slope
from torch.nn.functional import normalize

from setclr.inner import sinkhorn
from setclr.inner.simplex import sparse_maximum, sparsemax
from setclr.losses import IOT
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.couplings.buckets import BUCKETS, cost
from setclr_course.panels.couplings.sinkhorn_rounds import after, made_up_cost
from setclr_course.panels.sparse import share_triangle as nearest

COST = torch.from_numpy(cost(BUCKETS))


def constrained(d, epsilon: float, rounds: int = 100) -> dict[str, torch.Tensor]:
    """The shares by the library if their total is asked for, or rows too, or rows and columns."""
    return {
        "total": len(d) * (-d / epsilon).flatten().softmax(0).view(d.shape),
        "rows": (-d / epsilon).softmax(1),
        "both": len(d) * sinkhorn(d, epsilon, iterations=rounds).P,
    }


@pytest.mark.parametrize("epsilon, rounds", [(0.5, 1), (0.05, 8), (0.005, 30)])
def test_a_round_is_sinkhorns(epsilon, rounds):
    panel, d = panels.sinkhorn_rounds(epsilon=epsilon, rounds=rounds), torch.from_numpy(made_up_cost())
    made, now = sinkhorn(d, epsilon, iterations=rounds), panel.solve(panel.values)
    np.testing.assert_allclose(now.shares, 64 * made.P, atol=1e-10)
    assert now.errors[rounds] == pytest.approx(made.error.item(), rel=1e-6, abs=1e-12)
    begun, shares = after(d.numpy(), epsilon, 0), constrained(d, epsilon)["total"]
    np.testing.assert_allclose(begun.shares, shares, rtol=1e-9)
    assert begun.errors[0] == pytest.approx(abs(torch.cat([shares.sum(0), shares.sum(1)]) - 1).max().item())


@pytest.mark.parametrize("constraint", ["rows", "both"])
@pytest.mark.parametrize("queue", [0, 2])
def test_a_coupling_is_that_of_the_loss_and_a_queue_its_memory(constraint, queue):
    z = normalize(torch.randn(13, 3, generator=shifted(3), dtype=torch.float64), dim=-1)
    faces = torch.zeros(13, 3, 8, 8, dtype=torch.uint8)
    panel = panels.coupled_patches({"own": (z[:5], z[5:])}, (faces[:5], faces[5:]), constraint=constraint)
    panel.controls["queue"].value = queue
    now = panel.solve(panel.values)
    A = constrained(1 - z[:5] @ z[5:10].T, 0.5)[constraint]
    if queue:
        A = IOT(constraint, 0.5, 100).assignment(z[:10].unflatten(0, (2, 5)), memory=z[10:12])[:5, 5:]
    np.testing.assert_allclose(now, A, atol=1e-9)
    who = "second views and 2 of" if queue else "second views receive"
    assert f"all of them together {now.trace() / 5:.0%} of their mass; {who}" in panel.alt
    received = (5 + queue) / 5 * now.sum(0)
    assert f"between {received.min():.2f} and {received.max():.2f} fair shares" in panel.alt


def test_coupled_patches_say_how_many_find_their_second_view():
    views = torch.zeros(2, 8, 3, 8, 8, dtype=torch.uint8)
    z = torch.eye(8).expand(2, 8, 8).clone()
    z[1, [0, 1]] = z[1, [1, 0]]
    panel = panels.coupled_patches({"swapped": z}, views, epsilon=0.1)
    assert "6 of 8 patches give their largest share to their own second view" in panel.alt
    (crosses,) = marks(panel, "matrix", "dots")
    assert (crosses["x"], crosses["y"]) == ([1, 0], [0, 1])
    listed = marks(panel, "listed", "photographs")  # those first that take another, then the others
    assert [row["frame"] != ["", "", ""] for row in listed] == [True, True, *6 * [False]]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_coupled_patches_that_are_all_equal_find_their_second_view_by_chance(value):
    """Their own second view stands before the queue, and as far away: a tie, and no find."""
    z, faces = torch.full((20, 4), value), torch.zeros(20, 3, 8, 8, dtype=torch.uint8)
    panel = panels.coupled_patches({"flat": (z[:6], z[6:])}, (faces[:6], faces[6:]), constraint="rows")
    for queue, most in ((0, 2), (1, 5), (8, 2)):
        panel.controls["queue"].value = queue
        assert np.isfinite(panel.solve(panel.values)).all()
        right = int(re.search(r"(\d+) of 6 patches give their largest share to their own", panel.alt)[1])
        assert right <= most, queue


@pytest.mark.parametrize("epsilon, presses", [(0.2, 2), (0.05, 6), (1.0, 40)])
def test_presses_in_turn_are_sinkhorns_rounds(epsilon, presses):
    panel, wanted = panels.sand(epsilon=epsilon), constrained(COST, epsilon, presses // 2)
    states = {"both": {"presses": presses}, "rows": {"presses": 1, "first": "rows"}, "total": {}}
    for way, values in states.items():
        np.testing.assert_allclose(panel.solve({**panel.values, **values}).shares, wanted[way], atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_the_three_constraints_of_the_hub(epsilon):
    panel = panels.hub(epsilon=epsilon)
    for way, share in constrained(COST, epsilon).items():
        np.testing.assert_allclose(panel.solve(panel.values).shares[way], share, atol=1e-9)
        assert f"loss {-share.diagonal().log().mean():.2f}" in panel.alt


# Water


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
        way = straight - sparsemax(x / tau).numpy()
        assert min(norm(a) + norm(b) - norm(b - a) for a, b in zip(way, way[1:])) < 1e-5
    assert (bent[:75] > 0).all()


@pytest.mark.parametrize("scores", [*SCORES, (0.0, 0.0)])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10**0.5])
def test_shares_are_those_of_the_scores_over_the_temperature(scores, temperature):
    panel = panels.share_triangle(True, first=scores[0], second=scores[1], temperature=temperature)
    now = panel.solve(panel.values)
    x = torch.tensor([*scores, 0.0], dtype=torch.float64) / panel.values["temperature"]
    np.testing.assert_allclose(now.sparse, sparsemax(x), atol=1e-9)
    np.testing.assert_allclose(now.soft, x.softmax(-1), atol=1e-9)
    soft, end = (points(dots)[0] for dots in marks(panel, "plane", "dots")[-2:])
    np.testing.assert_allclose([soft, end], [now.soft, now.sparse] @ nearest.CORNERS, atol=1e-5)


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


@pytest.mark.parametrize(("far", "temperature"), [(1, 0.5), (10, 5), (1024, 0.1)])
def test_a_crowd_of_far_negatives_takes_the_push_from_the_near_one(far, temperature):
    panel = panels.crowd(far=far, temperature=temperature)
    far, temperature = round(panel.values["far"]), panel.values["temperature"]
    share = torch.tensor([0.9, 0.8, *far * [0.0]]).div(temperature).softmax(0)  # the positive first
    np.testing.assert_allclose(panel.solve(panel.values)[-1], share[1] / share[1:].sum(), rtol=1e-4)
