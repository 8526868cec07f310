"""The panels of pages 02 and 09 and of the careful page 01 show what the library computes."""

import itertools

import numpy as np
import pytest
import torch
from sweep import drag
from torch.nn import functional as F

from setclr.evaluation import matching_accuracy
from setclr.inner import linear_assignment, top_probability
from setclr_course import panels
from setclr_course.kit.cast import NAMES
from setclr_course.panels.assignments import matching_game as game
from setclr_course.panels.assignments import matching_pools as pools
from setclr_course.panels.assignments import pair_curves, pairings, things, who_is_it
from setclr_course.panels.assignments.matching_dots import matching_dots
from setclr_course.teach.pages.page_02 import EXERCISES, greedy


def test_the_game_can_be_won_and_neither_truth_nor_greed_wins_it():
    S = torch.cdist(torch.from_numpy(game.CIRCLES), torch.from_numpy(game.SQUARES))
    torch.testing.assert_close(torch.from_numpy(game.DISTANCE), S)
    orders = np.array(list(itertools.permutations(range(6))))
    best, second = np.sort(game.DISTANCE[np.arange(6), orders].sum(1))[:2]
    assert game.length(game.SHORTEST) == pytest.approx(best) and second > best + 0.05
    assert game.length(game.TRUE) > best + 0.2
    assert greedy(S) == pytest.approx(EXERCISES["1"].right, abs=1e-4)
    assert EXERCISES["1"].right > best + 0.1
    assert len(set(game.DISTANCE.argmin(1))) < 6  # nor each row alone
    assert game.DISTANCE.max(1).sum() < game.DEAREST


def test_a_line_belongs_to_the_nearest_square_and_snaps_to_where_the_sliders_can_put_it():
    panel = panels.matching_game()
    for handle in panel.handles.values():
        for j, point in enumerate(handle.snap):
            assert list(handle.values(panel.knobs, *point).values()) == pytest.approx(point, abs=1e-9)
            assert game.distances(np.array([point]), game.SQUARES).argmin() == j
    drag(panel, "cat", *(game.SQUARES[4] + (0.08, -0.08)))
    assert "no matching: temple" in panel.alt
    for i, name in enumerate(game.NAMES):
        drag(panel, name, *game.DROPS[i, game.SHORTEST[i]])
    assert "you have found the shortest" in panel.alt


@pytest.mark.parametrize("temperature, margin", [(0.005, 0.0), (0.05, 0.3), (0.5, 0.0)])
def test_pairings_are_the_shares_and_the_losses_of_the_library(temperature, margin):
    panel = panels.pairings(temperature=temperature, margin=margin, **{"flower x": 0.6})
    now = panel.solve(panel.values)
    S = torch.cdist(torch.tensor(pairings.CIRCLES), torch.from_numpy(things.placed(panel.values, NAMES)))
    S += margin * torch.eye(6, dtype=S.dtype)
    for way in ("batch-hard", "one-to-one"):
        found = linear_assignment(S, temperature, way)
        np.testing.assert_allclose(now.shares[way], found.matrix, atol=1e-10)
        loss = float(S.trace() - found.value) / 6
        assert now.loss[way] == pytest.approx(loss, abs=1e-10) and f"{loss:.3f}" in panel.alt


def test_the_one_to_one_loss_waits_and_the_other_does_not():
    panel = panels.pairings()
    places = (-1.3, -1.2, -1.1, -1.0, -0.6, 0.3)
    losses = [panel.solve({**panel.values, "flower x": x}).loss for x in places]
    one = [loss["one-to-one"] for loss in losses]
    assert max(one[:3]) < 1e-6 < one[3] < one[4]
    assert all(loss["batch-hard"] > loss["one-to-one"] + 0.02 for loss in losses)


def test_the_pairs_losses_are_the_librarys_and_the_forces_their_slopes():
    panel = panels.pair_curves(temperature=0.4, margin=0.3, beta=2.0)
    gap = torch.from_numpy(pair_curves.GAP.copy()).requires_grad_()
    true = torch.zeros(len(gap), dtype=torch.long)
    contrastive = F.cross_entropy(torch.stack([gap, 0 * gap], 1) / 0.4, true, reduction="none")
    triplet = F.margin_ranking_loss(gap, 0 * gap, true + 1, margin=0.3, reduction="none")
    groco = -top_probability(torch.stack([-gap / 2, gap / 2], 1), 1, 2.0)[:, 1].log()
    for (found, force), loss in zip(panel.solve(panel.values), (contrastive, triplet, groco)):
        np.testing.assert_allclose(found, loss.detach(), atol=1e-12)
        (slope,) = torch.autograd.grad(loss.sum(), gap)
        smooth = np.abs(pair_curves.GAP - 0.3) > 0.03  # the triplet's has a kink there
        smooth[[0, -1]] = False
        np.testing.assert_allclose(force[smooth], -slope[smooth], atol=1e-3)


def seen_twice(n=256):
    """Features of n things by two noisy encoders, and pictures of them."""
    things, patches = torch.randn(n, 12), torch.randint(0, 256, (2, n, 3, 32, 32), dtype=torch.uint8)
    noise = {"noisy encoder": 0.75, "better encoder": 0.5}
    features = {name: tuple(things + s * torch.randn(2, n, 12)) for name, s in noise.items()}
    return features, patches


def test_pools_are_matched_as_evaluation_matches_them():
    a, b = seen_twice()[0]["noisy encoder"]
    found = pools.solved(a, b, [8, 64])
    for size in (8, 64):
        shares = []
        for page in range(pools.PAGES):
            pool, got = found["one to one", size, page]
            assert len(set(pool)) == size and sorted(got) == sorted(pool)
            shares.append(matching_accuracy(a[pool], b[pool]))
            assert (pool == got).mean() == shares[-1]
            similarity = F.cosine_similarity(a[pool, None], b[pool], dim=-1)
            np.testing.assert_array_equal(found["nearest", size, page][1], pool[similarity.argmax(1)])
        assert pools.accuracy(found, "one to one", size) == pytest.approx(100 * np.mean(shares))
    for page in range(pools.PAGES):  # rivals join, nobody leaves
        np.testing.assert_array_equal(found["nearest", 64, page][0][:8], found["nearest", 8, page][0])


def test_pools_say_the_means_and_how_many_of_the_pairs_shown_are_right_and_too_few_are_refused():
    features, patches = seen_twice()
    panel = panels.matching_pools(features, patches, pool=64, page=3, matching="nearest")
    found = pools.solved(*features["better encoder"], [64])
    right = np.equal(*found["nearest", 64, 2])[:16].sum()
    best, other = (pools.accuracy(found, way, 64) for way in ("one to one", "nearest"))
    assert f"{right} of the 16 shown" in panel.alt and 0 < right < 16
    assert f"one to one {best:.1f} %, nearest {other:.1f} %" in panel.alt
    assert panels.matching_pools(*seen_twice(20)).knobs["pool"].high == 16
    with pytest.raises(ValueError, match="patches must show 16 things or more, got 10"):
        panels.matching_pools(*seen_twice(10))
    with pytest.raises(ValueError, match="patches must show 32 things or more, got 20"):
        panels.who_is_it(*seen_twice(20))


def test_dots_say_the_means():
    picture = matching_dots({"all": {"Triplet": ([0.5, 0.6], [0.7, 0.6]), "InfoNCE": ([0.1], [0.2])}}, 0.4)
    assert "Triplet 55.0 %, with QARe 65.0 %; InfoNCE 10.0 %, with QARe 20.0 %." in picture.alt


def test_the_places_of_partners_are_those_of_the_cosines():
    features, patches = seen_twice()
    panel, some = panels.who_is_it(features, patches), torch.linspace(0, 255, who_is_it.POOL).long()
    for (name, (a, b)), query in itertools.product(features.items(), (0, 17, 31)):
        similarity = F.cosine_similarity(a[some, None].double(), b[some], dim=-1).numpy()
        seen = panel.seen({"features": name, "query": query})
        place = 1 + int((similarity[query] > similarity[query, query]).sum())
        assert f"patch {query} stands at place {place} of {who_is_it.POOL}" in seen.sentence
        right = (similarity.argmax(1) == np.arange(who_is_it.POOL)).mean()
        assert f"{right:.0%} have their partner" in seen.sentence
