"""The panel of matched pools: what it draws is what the library computes."""

import numpy as np
import pytest
import torch
from test_explore import opened

from setclr.evaluation import matching_accuracy
from setclr_course import panels
from setclr_course.kit.tiles import thumbnails
from setclr_course.panels.assignments.matching_dots import matching_dots
from setclr_course.panels.assignments.matching_pools import PAGES, accuracy, page_of, solved
from setclr_course.panels.assignments.things import drawn_example


def test_pools_are_matched_as_evaluation_matches_them():
    features, _ = drawn_example()
    a, b = features["noisy encoder"]
    found = solved(a, b, [8, 64])
    for size in (8, 64):
        shares = []
        for page in range(PAGES):
            pool = found["one to one", size, page].pool
            assert len(set(pool)) == size
            assert sorted(found["one to one", size, page].got) == sorted(pool)
            shares.append(matching_accuracy(a[pool], b[pool]))
            assert found["one to one", size, page].right.mean() == shares[-1]
            similarity = torch.nn.functional.cosine_similarity(a[pool, None], b[pool], dim=-1)
            np.testing.assert_array_equal(found["nearest", size, page].got, pool[similarity.argmax(1)])
        assert accuracy(found, "one to one", size) == pytest.approx(100 * np.mean(shares))
    for page in range(PAGES):  # rivals join, nobody leaves
        np.testing.assert_array_equal(found["nearest", 64, page].pool[:8], found["nearest", 8, page].pool)


def test_the_panel_draws_the_page_and_says_the_curves():
    features, patches = drawn_example()
    panel = panels.matching_pools(features, patches, pool=64, page=3, matching="nearest")
    found = solved(*features["better encoder"], [64])
    matching = found["nearest", 64, 2]
    shown = list(zip(matching.pool, matching.got))[:16]
    small = np.stack([thumbnails(view, 44) for view in patches])
    picture, right, wrong, *_ = panel.artists
    np.testing.assert_array_equal(picture.get_array(), page_of(shown, small))
    hits = sum(thing == got for thing, got in shown)
    assert (len(right.get_xdata()), len(wrong.get_xdata())) == (hits, 16 - hits) and 0 < hits < 16
    assert f"{hits} of the 16 shown" in panel.alt
    best, other = (accuracy(found, way, 64) for way in ("one to one", "nearest"))
    assert f"one to one {best:.1f} %, nearest {other:.1f} %" in panel.alt
    assert panel.artists[8].get_text() == f"one to one: {best:.0f} %"
    one_to_one, nearest = panel.artists[6:8]
    assert (one_to_one.get_ydata()[0], nearest.get_ydata()[0]) == (best, other)
    assert nearest.get_markersize() > one_to_one.get_markersize()


def test_a_wrong_match_shows_the_true_one_beside_it():
    small = np.arange(2 * 3)[:, None, None, None].repeat(44, 1).repeat(44, 2).repeat(3, 3).astype(np.uint8)
    small = small.reshape(2, 3, 44, 44, 3)
    page = page_of([(0, 0), (1, 2)], small)
    colours = {tuple(colour) for colour in page.reshape(-1, 3)}
    assert colours == {(255,) * 3, (0, 158, 115), (213, 94, 0)} | {(k,) * 3 for k in (0, 1, 3, 4, 5)}


def test_few_things_make_small_pools_and_too_few_are_refused():
    features, patches = drawn_example(20)
    panel = panels.matching_pools(features, patches)
    assert panel.values["pool"] == 16 and panel.controls["pool"].max == pytest.approx(np.log10(16))
    with pytest.raises(ValueError, match="patches must show 16 things or more, got 10"):
        panels.matching_pools(*drawn_example(10))


def test_dots_say_the_means():
    picture = matching_dots({"all": {"Triplet": ([0.5, 0.6], [0.7, 0.6]), "InfoNCE": ([0.1], [0.2])}}, 0.4)
    assert "taken out, match 40.0%" in picture.alt
    assert "Triplet 55.0 %, with QARe 65.0 %; InfoNCE 10.0 %, with QARe 20.0 %." in picture.alt
    assert opened(picture.png).std() > 10
