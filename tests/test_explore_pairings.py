"""The panels of page 02 draw what the library computes."""

import itertools

import numpy as np
import pytest
import torch

from setclr.inner import linear_assignment
from setclr_course import panels
from setclr_course.panels.assignments import matching_game as game
from setclr_course.panels.assignments import pairings
from setclr_course.pixels.handles import place_of
from setclr_course.teach.pages.page_02 import EXERCISES, greedy

ALL = np.array(list(itertools.permutations(range(6))))


def test_the_game_can_be_won_and_neither_truth_nor_greed_wins_it():
    torch.testing.assert_close(torch.from_numpy(game.DISTANCE), torch.cdist(*torch.from_numpy(game.THINGS)))
    lengths = np.sort(game.DISTANCE[np.arange(6), ALL].sum(1))
    best = lengths[0]
    assert game.length(game.SHORTEST) == pytest.approx(best) and lengths[1] > best + 0.05
    assert game.length(game.TRUE) > best + 0.2
    assert greedy(torch.from_numpy(game.DISTANCE)) == pytest.approx(EXERCISES["1"].right, abs=1e-4)
    assert EXERCISES["1"].right > best + 0.1
    assert len(set(game.DISTANCE.argmin(1))) < 6  # nor each row alone


def test_a_line_is_dropped_on_the_nearest_square():
    panel = panels.matching_game()
    axis = panel.handles["cat"].axis

    def drop(name: str, square: int) -> None:
        x, y = place_of(axis, game.THINGS[1, square] + (0.08, -0.08))
        panel.front.moved = {"event": f"a:{name}", "handle": name, "x": x, "y": y}

    drop("cat", 4)
    assert "no matching: temple" in panel.alt
    drop("temple", 0)
    assert f"Your lines are {game.length(np.array([4, 1, 2, 3, 0, 5])):.2f} long" in panel.alt
    for name, square in zip(game.NAMES, game.SHORTEST):
        drop(name, square)
    assert "you have found the shortest" in panel.alt


@pytest.mark.parametrize("temperature, margin", [(0.005, 0.0), (0.05, 0.3), (0.5, 0.0)])
def test_pairings_are_the_librarys(temperature, margin):
    panel = panels.pairings(temperature=temperature, margin=margin)
    panel.controls["flower x"].value = 0.6
    found = pairings.paired(panel.values)
    S = torch.cdist(torch.tensor(pairings.CIRCLES), torch.from_numpy(found.squares))
    S += margin * torch.eye(6, dtype=S.dtype)
    choices = torch.stack([S[range(6), list(p)].sum() for p in ALL])
    one = (S.trace() + temperature * (-choices / temperature).logsumexp(0)) / 6
    rows = (S.diagonal() + temperature * (-S / temperature).logsumexp(1)).mean()
    assert found.loss["one-to-one"] == pytest.approx(float(one), abs=1e-9)
    assert found.loss["batch-hard"] == pytest.approx(float(rows), abs=1e-9)
    for (way, word), axis in zip(pairings.WAYS.items(), panel.figure.axes[1:3]):
        assert axis.get_title("left").startswith(word)
        drawn = np.asarray(axis.collections[0].get_array())
        np.testing.assert_array_equal(drawn, linear_assignment(S, temperature, way).matrix)


def test_the_one_to_one_loss_waits_and_the_other_does_not():
    panel, losses = panels.pairings(), []
    for x in (-1.3, -1.2, -1.1, -1.0, -0.6, 0.3):
        panel.controls["flower x"].value = x
        losses.append(pairings.paired(panel.values).loss)
    one = [loss["one-to-one"] for loss in losses]
    assert max(one[:3]) < 1e-6 < one[3] < one[4]
    assert all(loss["batch-hard"] > loss["one-to-one"] + 0.02 for loss in losses)
    assert "cat with rocket, rocket with flower, flower with cat" in panel.alt
