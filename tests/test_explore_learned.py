"""The panels of notebook 13: maps, confusions, couplings and lists of trained features."""

from itertools import product

import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import NearestNeighbors
from sweep import ends

from setclr import evaluation
from setclr.data import ImageSet
from setclr_course import panels
from setclr_course.kit.few_patches import augmented_pair, few_patches, unlearned
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import GREEN, VERMILION
from setclr_course.kit.tiles import tiles
from setclr_course.panels.trained.class_confusions import confusions, favourite
from setclr_course.panels.trained.coarse import coarse
from setclr_course.panels.trained.feature_maps import maps_of, nearest_dot
from setclr_course.panels.trained.found_again import covered, few_tinted, nearest_patches
from setclr_course.panels.trained.normal_map import ball_of_colours, colours, made_up
from setclr_course.papers.normals import angular_errors

PANELS = ("anchor_list", "class_confusions", "coupled_patches", "feature_maps", "found_again", "normal_map")


@pytest.mark.parametrize("name", PANELS)
def test_both_ends_of_every_control_have_a_sentence_of_their_own(name):
    panel = getattr(panels, name)()
    for name, knob in panel.knobs.items():
        said = [panel.seen({**panel.values, name: value}).sentence for value in ends(knob)]
        assert len(set(said)) == len(said) > 1 and all(sentence.endswith(".") for sentence in said)


def test_the_favourite_mistake_is_the_largest_share_beside_the_diagonal():
    assert favourite(np.array([0.5, 0.2, 0.3]), 0, "abc") == (
        "is wrong about 50% of them and says c most often"
    )
    assert favourite(np.array([0.0, 1.0, 0.0]), 1, "abc") == "makes no mistake"


def all_and_none(**values):
    """Of 72 patches one encoder has all right, one takes each photograph for the next."""
    test = few_patches(4)
    predicted = {"all": test.labels, "none": (test.labels + 1) % 18}
    return test, panels.class_confusions(predicted, test, **values)


def test_the_patches_shown_are_those_that_one_alone_has_right():
    test, panel = all_and_none(photograph=6)
    assert panel.alt.startswith("Of 4 patches of grass both have 0 right, all alone 4, none alone 0.")
    assert "all makes no mistake; none is wrong about 100% of them and says gravel" in panel.alt
    strips = {plot["name"]: plot["marks"] for plot in panel.scene["plots"][3:]}
    shown, words = strips["alone_left"]
    patches = tiles(test.images)[24:28]
    np.testing.assert_array_equal([panel.pictures[face] for face in shown["faces"]], patches)
    assert words["said"] == ["gravel"] * 4 and strips["alone_right"][0]["faces"] == []


def test_confusions_are_scikit_learns():
    labels, found = numpy_shifted(3).integers(0, 7, (2, 100))
    expected = confusion_matrix(labels, found, labels=range(8), normalize="true")
    np.testing.assert_allclose(confusions(labels, found, 8), expected)


def test_the_row_of_the_matrix_is_dragged_and_its_cells_are_compared():
    _, panel = all_and_none(photograph=6)
    panel.on_event({"event": "", "handle": "row", "x": 3.0, "y": 11.2})
    assert panel.values["photograph"] == 11 and "patches of page" in panel.alt
    links = {said: (over, sets) for said, over, _, sets in panel.scene["links"]}
    over, _ = links["page taken for page: all 100%, none 0%"]
    assert over == [[0, 0, 11 * 18 + 11], [1, 0, 11 * 18 + 11]]
    assert "page taken for retina: all 0%, none 100%" in links
    over, sets = links["coins"]
    assert over[1][2:] == list(range(5 * 18, 6 * 18)) and sets == {"photograph": 5}


def test_nearest_on_the_map_is_scikit_learns():
    places = numpy_shifted(0).normal(size=(60, 2))
    nearest = NearestNeighbors(n_neighbors=2).fit(places).kneighbors(places, return_distance=False)[:, 1]
    np.testing.assert_array_equal(nearest_dot(places), nearest)


def test_maps_fill_their_square_and_are_the_same_each_time():
    x = {"a": torch.randn(40, 6, generator=shifted(0))}
    one, two = (maps_of(x, (5, 10)) for _ in range(2))
    assert list(one["a"]) == ["5", "10"]
    for perplexity, places in one["a"].items():
        np.testing.assert_array_equal(places, two["a"][perplexity])
        np.testing.assert_allclose([places.min(0), places.max(0)], [[-1, -1], [1, 1]], rtol=1e-6)  # float32


def pairs_and_apart() -> tuple[dict, ImageSet]:
    """Two maps of 36 patches in pairs of a photograph: in one all pairs are together, in one two are torn."""
    shown = few_patches(2)
    places = np.stack([np.arange(36) + 0.4 * (np.arange(36) % 2 == 0), np.zeros(36)], axis=1) / 18 - 1
    torn = places.copy()
    torn[[0, 13]] = torn[[13, 0]]
    return {"pairs": {"5": places}, "torn": {"5": torn}}, shown


def test_a_dot_that_is_pointed_at_shows_its_patch():
    maps, shown = pairs_and_apart()
    panel = panels.feature_maps(maps, shown, encoder="pairs")
    panel.on_event({"event": "", "handle": "patch", "x": maps["pairs"]["5"][13, 0] + 0.01, "y": 0.3})
    assert panel.values["patch"] == 13 and "patch 13 is of grass, the nearest dot of grass" in panel.alt
    plane, pair, _ = panel.scene["plots"]
    faces = [panel.pictures[mark["face"]] for mark in pair["marks"] if mark["kind"] == "picture"]
    np.testing.assert_array_equal(faces, coarse(tiles(shown.images)[[12, 13]]))
    assert pair["marks"][-1]["said"] == ["you point at: grass"]
    rings = [mark for mark in plane["marks"] if mark["kind"] == "line"]
    middles = [(max(ring["x"]) + min(ring["x"])) / 2 for ring in rings]
    np.testing.assert_allclose(middles, maps["pairs"]["5"][[12, 13], 0], atol=1e-5)
    assert panel.alt.endswith("Of all 36 patches 100% have a dot of their own photograph nearest.")


def test_a_click_on_a_dot_points_at_it_and_its_class_in_the_legend_lights_all_its_dots():
    maps, shown = pairs_and_apart()
    panel = panels.feature_maps(maps, shown)
    plots, clicks, classes = panel.scene["plots"], {}, {}
    for said, [(_, mark, *piece)], [*_, (_, dots)], sets in panel.scene["links"]:
        classes[said] = plots[0]["marks"][dots]["x"]
        if sets:
            clicks[sets["patch"]] = (said, plots[0]["marks"][mark]["x"][piece[0]])
    assert set(clicks) == set(range(36)) and set(classes) == set(shown.classes)
    for k, (said, x) in clicks.items():
        assert said == shown.classes[k // 2] and x in classes[said] and len(classes[said]) == 2
        assert x == pytest.approx(maps["torn"]["5"][k, 0], abs=1e-5)


def test_a_handle_stays_where_two_dots_lie_on_one_place():
    points = np.array([[0, 0], [1, 1], [1, 1], [5, 5]])
    assert [nearest_to(points, now)(1.1, 1)[0] for now in (0, 1, 2)] == [1, 1, 2]
    assert nearest_to(points, 1)(4, 4) == [3]


def test_shared_pixels_are_counted():
    windows = np.array([[0, 0, 10], [5, 5, 10], [10, 0, 10], [2, 2, 5]])
    sheets = np.zeros((4, 20, 20), bool)
    for sheet, (top, left, side) in zip(sheets, windows):
        sheet[top : top + side, left : left + side] = True
    counted = (sheets[:, None] & sheets).sum((2, 3)) / sheets.sum((1, 2))[:, None]
    np.testing.assert_allclose(covered(windows), counted)


def test_retrieval_is_the_librarys_and_without_overlap_shares_nothing():
    x, labels = torch.randn(40, 6, generator=shifted(2)), torch.arange(40) // 10
    shared = np.where(labels[:, None] == labels, 0.5, 0.0)
    found = nearest_patches(x, shared)
    right = (labels[found["all"]] == labels).double().mean()
    assert right == pytest.approx(evaluation.retrieval_at_1(x, labels), abs=1e-6)
    assert not (labels[found["without overlap"]] == labels).any()


def test_the_frame_is_dragged_to_the_nearest_window():
    test = few_tinted(20)
    panel = panels.found_again({"colours": test.images.flatten(1).float()}, test, photograph=5)
    for patch in (0, 7, 19):
        x, y = panel.seen({**panel.values, "patch": patch}).handles["patch"].point
        panel.controls["patch"].value = 3
        panel.on_event({"event": "", "handle": "patch", "x": x, "y": y})
        assert panel.values["patch"] == patch and f"patch {patch} of coins" in panel.alt


def test_what_was_found_is_shown_and_framed_if_it_is_of_the_same_photograph():
    test = few_tinted(20)
    panel = panels.found_again(None, test, encoder="untrained")
    for photograph, patch in product((0, 5, 17), (1, 4)):
        values = {**panel.values, "photograph": photograph, "patch": patch}
        now, seen = panel.solve(values), panel.seen(values)
        sheet, pair = seen.scene["plots"]
        shown = [seen.pictures[mark["face"]] for mark in pair["marks"] if mark["kind"] == "picture"]
        np.testing.assert_array_equal(shown, tiles(test.images)[list(now.pair)])
        frames = [mark["edge"] for mark in sheet["marks"] if mark["kind"] == "boxes"]
        same = test.labels[now.pair[0]] == test.labels[now.pair[1]]
        assert now.pair[0] == 20 * photograph + patch and frames == [GREEN, VERMILION][: 1 + int(same)]


def test_the_point_says_how_far_off_it_is_and_where_nothing_is_known():
    maps, read = made_up(16)
    maps.valid[0, :, :4] = False
    panel = panels.normal_map(maps, read, features="much noise")
    angles = torch.full((16, 16), torch.nan, dtype=torch.float64)
    angles[maps.valid[0]] = angular_errors(read["much noise"], maps)
    found = [[panel.solve({**panel.values, "right": x, "down": y}) for x in range(16)] for y in range(16)]
    np.testing.assert_array_equal(found, angles)
    panel.on_event({"event": "", "handle": "point", "x": 9.2, "y": 12.9})
    assert panel.values["right"] == 9 and panel.values["down"] == 13
    assert f"at column 9, row 13 off by {angles[13, 9]:.0f} degrees." in panel.alt
    wrong = panel.scene["plots"][3]
    assert wrong["title"] == f"off by {angles[13, 9]:.0f}°"
    assert (panel.pictures[wrong["marks"][0]["face"]] == 255).all(2).tolist() == (~maps.valid[0]).tolist()
    assert "row 13 the true direction is not known." in panel.seen({**panel.values, "right": 2}).sentence
    with pytest.raises(ValueError, match="predicted must be of the shape of the true normals"):
        panels.normal_map(maps, {"small": read["much noise"][:, :, :8]})


def test_normals_have_the_colours_of_the_small_ball():
    towards, right, up = np.array([0, 0, -1.0]), np.array([1.0, 0, 0]), np.array([0, -1.0, 0])
    seen = colours(np.stack([towards, right, up], 1)[:, None], np.ones((1, 3), bool))
    np.testing.assert_array_equal(seen[0], [[127, 127, 255], [255, 127, 127], [127, 255, 127]])
    key = ball_of_colours()
    assert np.abs(key[20, 20, :3] - seen[0, 0].astype(int)).max() < 8 and key[0, 0, 3] == 0


def test_stand_ins_are_small_and_always_the_same():
    patches = few_patches()
    assert isinstance(patches, ImageSet) and len(patches) == 108 and len(patches.classes) == 18
    made = unlearned(patches.images[:5])
    assert list(made) == ["raw pixels", "untrained"] and made["raw pixels"].shape == (5, 3072)
    torch.testing.assert_close(made["untrained"], unlearned(patches.images[:5])["untrained"])
    views = augmented_pair(patches.images[:3])
    assert views.shape == (2, 3, 3, 32, 32) and views.dtype == torch.uint8
    assert tiles(views[0]).shape == (3, 32, 32, 3)
