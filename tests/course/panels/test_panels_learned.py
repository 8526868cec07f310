"""The panels of notebooks 10 and 13: films, maps, confusions and lists of trained features."""

import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import NearestNeighbors
from sweep import marks

from setclr import evaluation, pretrain
from setclr.data import ImageSet
from setclr.recipes import ImageRecipe
from setclr_course import panels
from setclr_course.kit.few_patches import few_patches
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import GREEN
from setclr_course.panels.trained import feature_maps, film, found_again, likeness, normal_map
from setclr_course.panels.trained.class_confusions import confusions, favourite
from setclr_course.papers.normals import angular_errors

# Confusions


def test_confusions_are_scikit_learns_and_the_favourite_is_the_largest_beside_the_diagonal():
    labels, found = numpy_shifted(3).integers(0, 7, (2, 100))
    expected = confusion_matrix(labels, found, labels=range(8), normalize="true")
    np.testing.assert_allclose(confusions(labels, found, 8), expected)
    said = "is wrong about 50% of them and says c most often"
    assert favourite(np.array([0.5, 0.2, 0.3]), 0, "abc") == said
    assert favourite(np.array([0.0, 1.0, 0.0]), 1, "abc") == "makes no mistake"


# Maps


def test_nearest_on_the_map_is_scikit_learns_and_a_handle_stays_between_two_as_near():
    places = numpy_shifted(0).normal(size=(60, 2))
    nearest = NearestNeighbors(n_neighbors=2).fit(places).kneighbors(places, return_distance=False)[:, 1]
    np.testing.assert_array_equal(feature_maps.nearest_dot(places), nearest)
    points = np.array([[0, 0], [1, 1], [1, 1], [5, 5]])
    assert [nearest_to(points, now)(1.1, 1)[0] for now in (0, 1, 2)] == [1, 1, 2]
    assert nearest_to(points, 1)(4, 4) == [3]


def test_maps_fill_their_square_and_are_the_same_each_time():
    x = {"a": torch.randn(40, 6, generator=shifted(0))}
    one, two = (feature_maps.maps_of(x, (5,))["a"]["5"] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose([one.min(0), one.max(0)], [[-1, -1], [1, 1]], rtol=1e-6)  # float32


def test_a_map_says_what_lies_near_the_dot_that_is_pointed_at():
    """36 patches in pairs of a photograph: on one map all pairs are together, on one two are torn."""
    shown, torn = few_patches(2), np.arange(36)
    places = np.stack([torn + 0.4 * (torn % 2 == 0), np.zeros(36)], axis=1) / 18 - 1
    torn[[0, 13]] = 13, 0
    maps = {"pairs": {"5": places}, "torn": {"5": places[torn]}}
    panel = panels.feature_maps(maps, shown, encoder="pairs", patch=13)
    assert "patch 13 is of grass, the nearest dot of grass. Of all 36 patches 100% have" in panel.alt
    assert "Of all 36 patches 100%" not in panels.feature_maps(maps, shown).alt


# Found again


def test_shared_pixels_are_counted():
    windows, sheets = np.array([[0, 0, 10], [5, 5, 10], [10, 0, 10], [2, 2, 5]]), np.zeros((4, 400))
    for sheet, (top, left, side) in zip(sheets.reshape(4, 20, 20), windows):
        sheet[top : top + side, left : left + side] = 1
    np.testing.assert_allclose(found_again.covered(windows), sheets @ sheets.T / sheets.sum(1)[:, None])


def test_retrieval_is_the_librarys_and_without_overlap_shares_nothing():
    x, labels = torch.randn(40, 6, generator=shifted(2)), torch.arange(40) // 10
    shared = np.where(labels[:, None] == labels, 0.5, 0.0)
    found = found_again.nearest_patches(x, shared)
    right = (labels[found["all"]] == labels).double().mean()
    assert right == pytest.approx(evaluation.retrieval_at_1(x, labels), abs=1e-6)
    assert not (labels[found["without overlap"]] == labels).any()


def test_what_was_found_is_framed_if_it_is_of_the_same_photograph():
    test = found_again.few_tinted(5)
    alike = torch.eye(18)[test.labels.clamp(max=16)]  # the last photograph is taken for the one before
    panel = panels.found_again({"some": alike}, test)
    for photograph, patch, framed in ((0, 1, 2), (5, 4, 2), (17, 1, 1)):
        values = {**panel.values, "photograph": photograph, "patch": patch}
        assert panel.solve(values).pair[0] == 5 * photograph + patch
        assert len(marks(panel.seen(values), "sheet", "boxes")) == framed


# Normals


def test_the_point_says_how_far_off_it_is_and_where_nothing_is_known():
    maps, read = normal_map.made_up(16)
    maps.valid[0, :, :4] = False
    panel = panels.normal_map(maps, read, features="much noise", right=9, down=13)
    angles = torch.full((16, 16), torch.nan, dtype=torch.float64)
    angles[maps.valid[0]] = angular_errors(read["much noise"], maps)
    found = [[panel.solve({**panel.values, "right": x, "down": y}) for x in range(16)] for y in range(16)]
    np.testing.assert_array_equal(found, angles)
    assert f"at column 9, row 13 off by {angles[13, 9]:.0f} degrees." in panel.alt
    assert "row 13 the true direction is not known." in panel.seen({**panel.values, "right": 2}).sentence
    with pytest.raises(ValueError, match="predicted must have the true normals' shape"):
        panels.normal_map(maps, {"small": read["much noise"][:, :, :8]})


# A film of a training


def patches(n: int = 60, seed: int = 0) -> ImageSet:
    images = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8, generator=shifted(seed))
    return ImageSet(images, torch.arange(n) % 3, tuple("abc"))


def test_a_patch_is_most_alike_to_itself_and_as_alike_as_any_to_all():
    images = patches().images
    itself, everybody = torch.arange(60)[:, None], torch.arange(60).expand(60, 60)
    for same, none in likeness.likeness(images, images, [itself, everybody]).values():
        assert same == 1 and abs(none) < 1e-5


def test_a_look_tells_tint_brightness_and_pattern_apart():
    """A pattern of stripes, a pixel wide or four, under two casts and two brightnesses."""
    stripes = torch.stack([(torch.arange(32) // width % 2).expand(3, 32, 32) for width in (1, 4)]) * 100.0
    cast = torch.tensor([1.0, 0.5, 0.25])[:, None, None]
    seen = likeness.looks(torch.cat([stripes, stripes * cast, stripes + 50]).byte())
    fine, coarse = both = seen["pattern"][:2, 0]
    torch.testing.assert_close(seen["pattern"][:, 0], both.repeat(3), rtol=0.02, atol=0)
    assert fine > 3 * coarse
    torch.testing.assert_close(seen["tint"][[0, 1]], seen["tint"][[4, 5]])
    assert (seen["tint"][0] - seen["tint"][2]).norm() > 0.3
    assert seen["brightness"][4] > seen["brightness"][0]


def test_a_film_is_recorded_kept_and_cut_where_its_run_goes_on(tmp_path, monkeypatch):
    few = patches(30)
    assert np.abs(film.flat(torch.randn(20, 4), None)).max() == pytest.approx(1)
    monkeypatch.setattr(film, "flat", lambda points, before: points[:, :2].numpy())  # in place of t-SNE
    recipe = ImageRecipe("InfoNCE()", views="photo", epochs=2, batch=15)
    shots = film.Film(few, few, tmp_path / "film.npz")
    run = pretrain(recipe, tmp_path, on_epoch=shots, data=few)
    assert len(shots) == 3 and list(run.history.knn) == shots.accuracy[1:]
    again = film.Film(few, few, tmp_path / "film.npz")
    np.testing.assert_array_equal(again.positions, shots.positions)
    run.rows = run.rows[:1]
    again(run)
    assert len(again) == 2
    with pytest.raises(ValueError, match="film must hold the 1 frames before this epoch, got 0"):
        film.Film(few, few)(run)
    with pytest.raises(ValueError, match="films must have two frames or more, got 0"):
        panels.training_film({"InfoNCE": film.Film(few, few)})


def test_a_film_says_how_many_neighbours_are_of_the_same_photograph_and_frames_them():
    one, drawn = film.Film(patches(60, 0), patches(60, 1)), numpy_shifted(2)  # without a training
    for accuracy in (0.25, 0.5):
        one.positions.append(drawn.uniform(-1, 1, (60, 2)))
        one.neighbours.append(drawn.integers(0, 60, (60, film.NEIGHBOURS)))
        one.accuracy.append(accuracy)
    panel = panels.training_film({"InfoNCE": one}, patch=40, epoch=1)
    same = one.train.labels[one.neighbours[1][40]] == one.shown.labels[40]
    assert marks(panel, "strip", "photographs")[1]["frame"] == [GREEN if x else "" for x in same]
    assert "epoch 1: 50% of the test patches" in panel.alt
    label = "abc"[one.shown.labels[40]]
    assert f"Patch 40 ({label}) has {same.sum()} of {film.NEIGHBOURS} neighbours" in panel.alt
