"""The panel of matched pools: what it shows is what the library computes."""

import numpy as np
import pytest
import torch
from test_explore import opened

from setclr.evaluation import matching_accuracy
from setclr_course import panels
from setclr_course.kit.palette import GREEN, VERMILION
from setclr_course.kit.tiles import thumbnails
from setclr_course.panels.assignments.matching_dots import matching_dots
from setclr_course.panels.assignments.matching_pools import PAGES, accuracy, solved


def seen_twice(n=256):
    """Features of n things by two noisy encoders, and pictures of them."""
    things, patches = torch.randn(n, 12), torch.randint(0, 256, (2, n, 3, 32, 32), dtype=torch.uint8)
    noise = {"noisy encoder": 0.75, "better encoder": 0.5}
    features = {name: tuple(things + s * torch.randn(2, n, 12)) for name, s in noise.items()}
    return features, patches


def test_pools_are_matched_as_evaluation_matches_them():
    features, _ = seen_twice()
    a, b = features["noisy encoder"]
    found = solved(a, b, [8, 64])
    for size in (8, 64):
        shares = []
        for page in range(PAGES):
            pool, got = found["one to one", size, page]
            assert len(set(pool)) == size and sorted(got) == sorted(pool)
            shares.append(matching_accuracy(a[pool], b[pool]))
            assert (pool == got).mean() == shares[-1]
            similarity = torch.nn.functional.cosine_similarity(a[pool, None], b[pool], dim=-1)
            np.testing.assert_array_equal(found["nearest", size, page][1], pool[similarity.argmax(1)])
        assert accuracy(found, "one to one", size) == pytest.approx(100 * np.mean(shares))
    for page in range(PAGES):  # rivals join, nobody leaves
        np.testing.assert_array_equal(found["nearest", 64, page][0][:8], found["nearest", 8, page][0])


def test_the_panel_shows_the_pairs_and_says_the_curves():
    features, patches = seen_twice()
    panel = panels.matching_pools(features, patches, pool=64, page=3, matching="nearest")
    found = solved(*features["better encoder"], [64])
    pool, got = (things[:16] for things in found["nearest", 64, 2])
    right = pool == got
    small = np.stack([thumbnails(view, 44) for view in patches])
    page, curves = panel.scene["plots"]
    left, gets, true = (mark for mark in page["marks"] if mark["kind"] == "photographs")
    for mark, faces in ((left, small[0, pool]), (gets, small[1, got]), (true, small[1, pool[~right]])):
        np.testing.assert_array_equal([panel.pictures[name] for name in mark["faces"]], faces)
    assert gets["frame"] == [GREEN if hit else VERMILION for hit in right]
    assert true["y"] == [y for y, hit in zip(left["y"], right) if not hit] and 0 < right.sum() < 16
    assert f"{right.sum()} of the 16 shown" in panel.alt and f"{right.sum()} of the 16" in page["xlabel"]
    best, other = (accuracy(found, way, 64) for way in ("one to one", "nearest"))
    assert f"one to one {best:.1f} %, nearest {other:.1f} %" in panel.alt
    one_to_one, nearest = (mark for mark in curves["marks"] if mark["kind"] == "dots")
    assert (one_to_one["y"][0], nearest["y"][0]) == pytest.approx((best, other), rel=1e-5)
    assert one_to_one["x"] == [64] and nearest["size"] > one_to_one["size"]
    said = [word for mark in curves["marks"] if mark["kind"] == "text" for word in mark["said"]]
    assert f"● one to one: {best:.0f} %" in said


def test_few_things_make_small_pools_and_too_few_are_refused():
    features, patches = seen_twice(20)
    panel = panels.matching_pools(features, patches)
    assert panel.values["pool"] == 16 and panel.knobs["pool"].high == 16
    with pytest.raises(ValueError, match="patches must show 16 things or more, got 10"):
        panels.matching_pools(*seen_twice(10))


def test_dots_say_the_means():
    picture = matching_dots({"all": {"Triplet": ([0.5, 0.6], [0.7, 0.6]), "InfoNCE": ([0.1], [0.2])}}, 0.4)
    assert "taken out, match 40.0%" in picture.alt
    assert "Triplet 55.0 %, with QARe 65.0 %; InfoNCE 10.0 %, with QARe 20.0 %." in picture.alt
    assert opened(picture.png).std() > 10
