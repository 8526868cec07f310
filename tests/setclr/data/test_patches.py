"""Patches of photographs and of a stereo pair: who gets which pixels, and how hard they are."""

from functools import cache

import numpy as np
import pytest
import torch
from conftest import numpy_shifted

from setclr import evaluation
from setclr.data import ImageSet, patches
from setclr_course.papers import stereo


@cache
def made(kind, split):
    images, labels, classes = {"photo": patches.photo_patches, "stereo": stereo.stereo_patches}[kind](split)
    return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), classes)


def pixels(images):
    """Raw pixels, each image about its own mean."""
    flat = images.flatten(1).float()
    return flat - flat.mean(1, keepdim=True)


def matching_accuracy(left, right):
    """Share of pairs that the best assignment on raw pixels puts together, in eight batches of 128."""
    rng, (x, y) = numpy_shifted(0), map(pixels, (left, right))
    batches = [rng.permutation(len(x))[:128] for _ in range(8)]
    return np.mean([evaluation.matching_accuracy(x[batch], y[batch]) for batch in batches])


@pytest.mark.parametrize("kind, split, n, mean, deviation", [
    ("photo", "train", 7200, 108.876, 65.689), ("photo", "test", 1800, 109.921, 62.818),
    ("stereo", "train", 2282, 101.556, 63.254), ("stereo", "test", 2686, 96.884, 64.368),
])  # fmt: skip
def test_everyone_has_the_same_patches(kind, split, n, mean, deviation):
    some = made(kind, split)
    if kind == "photo":
        assert some.labels.tolist() == sorted([*range(18)] * (n // 18))
        assert some.classes == tuple(patches.PHOTOGRAPHS)
    else:
        assert some.labels.tolist() == 2 * [*range(n // 2)], "left views first"
        assert len(set(some.classes)) == n // 2 and some.classes[0].startswith("row 32 column ")
    pixels = some.images.double()
    assert pixels.shape == (n, 3, 32, 32)
    assert [float(pixels.mean()), float(pixels.std())] == pytest.approx([mean, deviation], abs=1e-2)


@pytest.mark.parametrize("name", ["astronaut", "text"])
def test_no_photo_window_leaves_the_blocks_of_its_split(name):
    grey = patches.photograph(name)
    rows, columns = ((np.arange(length) + 1) * 4 - 1 for length in grey.shape)
    for_test = patches.blocks_for_test(name)[rows[:, None] // len(rows), columns // len(columns)]
    assert patches.blocks_for_test(name).sum() == 4
    for split, wanted in (("train", False), ("test", True)):
        for top, left, side in patches.photo_windows(name, grey, split):
            assert 32 <= side <= 64
            window = for_test[top : top + side, left : left + side]
            assert window.shape == (side, side) and (window == wanted).all()


def test_a_window_is_resized_without_looking_outside():
    picture = np.zeros((64, 64), np.uint8)
    picture[8:56, 8:56] = 100
    picture[:8], picture[:, 56:] = 255, 255
    assert (patches.cut(picture, (8, 8, 48)) == 100).all()


def test_stereo_halves_share_no_pixel_and_no_piece_of_the_scene():
    left, right, disparity = patches.photos.stereo_motorcycle()
    covered = {}
    for split in patches.SPLITS:
        for view, windows in zip(("left", "right"), stereo.stereo_windows(left, disparity, split)):
            shown = np.zeros(disparity.shape, dtype=bool)
            for top, edge, side in windows:
                assert 16 <= side <= 64 and min(top, edge) >= 0
                assert top + side <= len(shown) and edge + side <= shown.shape[1]
                shown[top : top + side, edge : edge + side] = True
            covered[view, split] = shown
    for view in ("left", "right"):
        assert not (covered[view, "train"] & covered[view, "test"]).any()

    # What the right windows show, where the left picture shows it.
    rows, columns = np.nonzero(np.isfinite(disparity))
    match = np.rint(columns - disparity[rows, columns]).astype(int)
    rows, columns, match = rows[match >= 0], columns[match >= 0], match[match >= 0]
    for split, other in (("train", "test"), ("test", "train")):
        seen = covered["right", split][rows, match]
        assert not covered["left", other][rows[seen], columns[seen]].any()


def test_hidden_unknown_and_outside_pixels_are_not_seen_by_both():
    disparity = np.full((3, 40), 5.0)
    disparity[:, 20:25] = 12  # a post: it covers right columns 8 to 12, where left columns 13 to 17 fall
    disparity[1, 30] = np.inf
    seen = np.ones((3, 40), bool)
    seen[:, :5] = seen[:, 13:18] = seen[1, 30] = False
    off = stereo.seen_by_both(disparity) != seen
    assert not off[:, :12].any() and not off[:, 13:18].any() and not off[:, 20:].any()


def test_stereo_pairs_lie_by_the_disparity_and_match_by_raw_pixels_only_without_the_alterations():
    left, right, disparity = patches.photos.stereo_motorcycle()
    rows, columns, matches = stereo.stereo_centres(left, disparity, "test").T
    assert np.abs(columns - disparity[rows, columns] - matches).max() <= 0.5
    plain = [[patches.cut(picture, (row - 16, column - 16, 32)) for row, column in zip(rows, where)]
             for picture, where in ((left, columns), (right, matches))]  # fmt: skip
    assert matching_accuracy(*torch.from_numpy(np.array(plain))) > 0.9  # 0.96 measured
    altered = made("stereo", "test").images.view(2, -1, 3, 32, 32)
    assert 0.3 < matching_accuracy(*altered) < 0.6  # 0.47 measured
