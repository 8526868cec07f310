"""The panels of page 02 show what the library computes."""

import itertools

import numpy as np
import pytest
import torch

from setclr.inner import linear_assignment
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.assignments import matching_game as game
from setclr_course.panels.assignments import pairings
from setclr_course.panels.assignments.things import placed
from setclr_course.teach.pages.page_02 import EXERCISES, greedy

ALL = np.array(list(itertools.permutations(range(6))))


def test_the_game_can_be_won_and_neither_truth_nor_greed_wins_it():
    S = torch.cdist(torch.from_numpy(game.CIRCLES), torch.from_numpy(game.SQUARES))
    torch.testing.assert_close(torch.from_numpy(game.DISTANCE), S)
    lengths = np.sort(game.DISTANCE[np.arange(6), ALL].sum(1))
    best = lengths[0]
    assert game.length(game.SHORTEST) == pytest.approx(best) and lengths[1] > best + 0.05
    assert game.length(game.TRUE) > best + 0.2
    assert greedy(S) == pytest.approx(EXERCISES["1"].right, abs=1e-4)
    assert EXERCISES["1"].right > best + 0.1
    assert len(set(game.DISTANCE.argmin(1))) < 6  # nor each row alone
    assert game.DISTANCE.max(1).sum() < game.DEAREST


def test_a_line_belongs_to_the_nearest_square():
    panel = panels.matching_game()

    def drop(name: str, point: np.ndarray) -> None:
        panel.on_event({"event": "", "handle": name, "x": point[0], "y": point[1]})

    drop("cat", game.SQUARES[4] + (0.08, -0.08))
    assert "no matching: temple" in panel.alt
    drop("temple", game.SQUARES[0] + (-0.08, 0.08))
    assert f"Your lines are {game.length(np.array([4, 1, 2, 3, 0, 5])):.2f} long" in panel.alt
    for i, name in enumerate(game.NAMES):
        drop(name, game.DROPS[i, game.SHORTEST[i]])
    assert "you have found the shortest" in panel.alt


def test_a_line_that_snaps_ends_where_the_sliders_can_put_it():
    panel = panels.matching_game()
    for i, name in enumerate(game.NAMES):
        handle = panel.handles[name]
        assert len(handle.snap) == 6
        for j, point in enumerate(handle.snap):
            assert list(handle.values(panel.knobs, *point).values()) == pytest.approx(point, abs=1e-9)
            assert game.distances(np.array([point]), game.SQUARES).argmin() == j
            assert np.hypot(*(point - game.SQUARES[j])) < 0.21  # 30 pixels of the widest picture
        start = panel.start[f"{name} x"], panel.start[f"{name} y"]
        assert start == pytest.approx(handle.snap[i])


@pytest.mark.parametrize("temperature, margin", [(0.005, 0.0), (0.05, 0.3), (0.5, 0.0)])
def test_pairings_show_the_shares_and_the_losses(temperature, margin):
    panel = panels.pairings(temperature=temperature, margin=margin, **{"flower x": 0.6})
    now = panel.solve(panel.values)
    S = torch.cdist(torch.tensor(pairings.CIRCLES), torch.from_numpy(placed(panel.values, NAMES)))
    S += margin * torch.eye(6, dtype=S.dtype)
    plots = {plot["name"]: plot for plot in panel.scene["plots"]}
    lines = [mark for mark in plots["plane"]["marks"] if mark["kind"] == "segments"]
    for way, drawn in zip(("batch-hard", "one-to-one"), lines):
        found = linear_assignment(S, temperature, way)
        np.testing.assert_allclose(now.shares[way], found.matrix, atol=1e-10)
        loss = float(S.trace() - found.value) / 6
        assert now.loss[way] == pytest.approx(loss, abs=1e-10) and f"{loss:.3f}" in panel.alt
        share = found.matrix.flatten().numpy()
        width = pairings.LINES[way][0] * np.where(share > pairings.SEEN, share, 0)
        np.testing.assert_allclose(drawn["width"], width, rtol=1e-4)
        cells, *_, sums = plots[way]["marks"][1:]
        assert np.argmax(np.reshape(cells["shades"], (6, 6)), 1).tolist() == found.matrix.argmax(1).tolist()
        assert sums["said"] == [f"{total:.1f}" for total in found.matrix.sum(0).tolist()]


def test_the_one_to_one_loss_waits_and_the_other_does_not():
    panel, losses = panels.pairings(), []
    for x in (-1.3, -1.2, -1.1, -1.0, -0.6, 0.3):
        panel.controls["flower x"].value = x
        losses.append(panel.solve(panel.values).loss)
    one = [loss["one-to-one"] for loss in losses]
    assert max(one[:3]) < 1e-6 < one[3] < one[4]
    assert all(loss["batch-hard"] > loss["one-to-one"] + 0.02 for loss in losses)
    assert "cat with rocket, rocket with flower, flower with cat" in panel.alt
