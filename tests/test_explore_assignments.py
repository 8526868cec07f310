"""The panels of notebook 02 draw what the library computes."""

import itertools

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba_array

from setclr.inner import linear_assignment
from setclr_course import panels
from setclr_course.kit.palette import SKY, VERMILION
from setclr_course.panels.assignments.assignment_plane import N, choices, five_things
from setclr_course.panels.assignments.softened_assignment import CURVE, KINDS, THINGS, soften


def text_of(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


def axis_of(panel, title: str):
    (axis,) = (a for a in panel.figure.axes if title in a.get_title("left"))
    return axis


@pytest.mark.parametrize("place", [(0.2, -0.3, 0.0, 0), (-1.4, -0.3, 0.0, 0), (0.9, 0.5, 0.4, 7)])
def test_the_plane_shows_the_costs_the_cheapest_matching_and_both_losses(place):
    panel = panels.assignment_plane(**dict(zip(("x", "y", "margin", "seed"), place)))
    x, y, margin, seed = place
    things = five_things(x, y, seed)
    S_m = (torch.cdist(*things) + margin * torch.eye(N, dtype=things.dtype)).numpy()
    best = min(itertools.permutations(range(N)), key=lambda p: S_m[range(N), p].sum())

    costs, plane = axis_of(panel, "what each pair costs"), axis_of(panel, "view 1")
    np.testing.assert_array_equal(costs.collections[0].get_array(), S_m)
    assert [float(t) for t in text_of(costs)] == [round(float(v), 2) for v in S_m.ravel()]
    true, lines = plane.collections[:2]
    np.testing.assert_array_equal(true.get_segments(), things.numpy().transpose(1, 0, 2))
    ends = np.array(lines.get_segments())[:, 1]
    np.testing.assert_array_equal(ends, things[1, list(best)].numpy())
    colours = to_rgba_array([SKY if i == j else VERMILION for i, j in enumerate(best)])
    np.testing.assert_array_equal(lines.get_colors(), colours)
    frames, circles = costs.collections[3], costs.collections[4]
    middles = np.array(frames.get_segments())[:, :4].mean(1)
    np.testing.assert_allclose(middles, np.stack([best, np.arange(N)], 1))
    np.testing.assert_allclose(circles.get_offsets()[:, 0] - 0.32, S_m.argmin(1))

    truth, one, rows = S_m.trace() / N, S_m[range(N), best].sum() / N, S_m.min(1).mean()
    words = [f"costs {truth:.3f}", f"loss {truth - one:.3f}", f"loss {truth - rows:.3f}"]
    bars = axis_of(panel, "cost per thing")
    assert text_of(bars) == words
    for level, cost in zip((2, 1, 0), (truth, one, rows)):  # right ends of the bars, at their heights
        boxes = [path.vertices for kind in bars.collections[:3] for path in kind.get_paths()]
        assert max(b[:, 0].max() for b in boxes if abs(b[:4, 1].mean() - level) < 0.4) == pytest.approx(cost)
    assert f"so the loss is {truth - one:.3f}" in panel.alt and f"loss {truth - rows:.3f};" in panel.alt


def test_draws_differ_and_keep_the_moved_square():
    draws = [five_things(0.4, 0.1, seed) for seed in range(10)]
    assert len({tuple(d[0].flatten().tolist()) for d in draws}) == 10
    for things in draws:
        assert things[1, 2].tolist() == [0.4, 0.1]
        assert torch.pdist(things[0]).min() > 0.4


def test_a_thing_wanted_twice_is_named():
    panel = panels.assignment_plane()
    columns = choices(torch.cdist(*five_things(0.2, -0.3, 0)))
    assert columns[1].tolist() == [0, 1, 2, 3, 4] and columns[2].tolist() == [0, 1, 0, 3, 4]
    assert panel.alt.endswith("wanted by more than one row: ■1.")


@pytest.mark.parametrize("temperature, n", [(0.005, 5), (0.5, 6), (50.0, 2)])
def test_the_soft_matrices_are_the_librarys(temperature, n):
    panel = panels.softened_assignment(temperature=temperature, N=n)
    S = torch.cdist(*THINGS[:, :n])
    for mining, title in (("one-to-one", "mean of all"), ("batch-hard", "softmax")):
        solved = linear_assignment(S, temperature, mining)
        axis = axis_of(panel, title)
        grid = np.ma.filled(axis.collections[0].get_array(), np.nan)
        np.testing.assert_array_equal(grid[:n, :n], solved.matrix.numpy())
        assert np.isnan(grid[n:]).all() and np.isnan(grid[:, n:]).all()
        assert text_of(axis)[:n] == [f"{total:.2f}" for total in solved.matrix.sum(0)]
        loss = float(S.trace() - solved.value) / n
        assert f"{loss:.3f}" in panel.alt
        (text,) = (t for t in text_of(axis_of(panel, "loss per thing")) if t.startswith(KINDS[mining].symbol))
        assert text == f"{KINDS[mining].symbol} {KINDS[mining].words}: {loss:.3g}"


def test_the_truth_is_never_best_and_rows_are_never_cheaper_to_satisfy():
    for n in range(2, 7):
        one, rows = (soften(mining, 0.005, n).loss for mining in KINDS)
        assert 0.02 < one < rows
        for temperature in CURVE:
            one, rows = (soften(mining, float(temperature), n).loss for mining in KINDS)
            assert one < rows
