"""The panels of notebook 13: maps, confusions, couplings and lists of trained features."""

import ipywidgets
import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from PIL import Image
from sklearn.neighbors import NearestNeighbors
from test_explore import ends, made, opened

from setclr import evaluation
from setclr.data import ImageSet
from setclr.losses import GroCo, SparseCLR
from setclr_course import panels
from setclr_course.kit.few_patches import augmented_pair, few_patches, icons, unlearned
from setclr_course.kit.png import DPI
from setclr_course.kit.tiles import tiles
from setclr_course.panels.couplings.coupled_patches import cost_of, coupling, mistakes
from setclr_course.panels.family.anchor_list import (
    NEGATIVES,
    alpha_of,
    cosine_of,
    in_short,
    listed,
    sparse_of,
    top_of,
)
from setclr_course.panels.trained.class_confusions import by_neighbours, favourite
from setclr_course.panels.trained.feature_maps import apart, maps_of, middle, nearest_dot
from setclr_course.panels.trained.few_tinted import few_tinted
from setclr_course.panels.trained.found_again import covered, nearest_patches
from setclr_course.pixels.handles import place_of

PANELS = ("anchor_list", "class_confusions", "coupled_patches", "feature_maps", "found_again")


@pytest.mark.parametrize("name", PANELS)
def test_both_ends_of_every_control_have_a_sentence_of_their_own(name):
    panel = made(name)
    panel.reset()
    for control in panel.controls.values():
        said = set()
        for value in ends(control):
            control.value = value
            said.add(panel.alt)
            assert isinstance(control, ipywidgets.ValueWidget) and panel.alt.endswith(".")
        assert len(said) == len(set(ends(control)))
        panel.reset()


@pytest.mark.parametrize("name", PANELS)
def test_a_row_of_three_is_drawn(name):
    panel = made(name)
    panel.reset()
    control = next(name for name, control in panel.controls.items() if len(ends(control)) == 3)
    row = panel.row(control, ends(panel.controls[control]))
    assert opened(row.png).shape[1] == pytest.approx(3.3 * 3 * DPI, abs=1) and opened(row.png).std() > 10


def batch(n: int = 8, seed: int = 0) -> torch.Tensor:
    z = torch.randn(2, n, 5, generator=shifted(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(z, dim=-1)


def test_the_list_is_the_one_that_groco_sorts():
    z = batch(8)
    for anchor, beta in ((0, 1.0), (5, 20.0)):
        column, similarity = listed(z, anchor)
        row = GroCo(beta=beta, negatives=NEGATIVES).assignment(z)[anchor]
        torch.testing.assert_close(top_of(z, anchor, beta), row[column])
        assert column[-1] == 8 + anchor and similarity[anchor] == -torch.inf
        torch.testing.assert_close(cosine_of(z, anchor, 0), similarity[column])
        assert (similarity[column[:-1]].diff() >= 0).all()


def test_the_sparsemax_is_that_of_sparseclr_without_its_margin():
    z = batch(6)
    for anchor in range(6):
        row = SparseCLR(margin=0.0).assignment(z)[anchor]
        torch.testing.assert_close(sparse_of(z, anchor, 1.0), row[listed(z, anchor)[0]])


def test_the_second_view_has_no_weight_and_the_bound_holds():
    z = batch(8)
    for bound in (0.1, 100.0):
        alpha = alpha_of(z, 3, bound)
        assert alpha[-1] == 0 and len(alpha) == NEGATIVES + 1 and 0 < alpha.max() <= bound * (1 + 1e-9)


def test_the_anchor_sees_what_its_sentence_says():
    views = augmented_pair(few_patches().images[:8])
    same = torch.eye(8).expand(2, 8, 8)
    panel = panels.anchor_list({"exact": same}, views, anchor=3, beta=1000, temperature=0.1, C=1)
    assert "exact, anchor 3: its second view is number 1 of 11 in its list, at cosine 1.00" in panel.alt
    assert "sparsemax gives it 1.00 and something to 0 negatives" in panel.alt
    assert [in_short(x) for x in (0.001, 0.5, -0.25, 1.0, 12.3)] == ["", ".50", "-.25", "1.00", "12"]


def test_a_coupling_has_the_sums_that_were_asked_for():
    cost = cost_of(batch(9))
    rows, both = (coupling(cost, 0.3, constraint) for constraint in ("rows", "both"))
    for P in (rows, both):
        np.testing.assert_allclose(P.sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(both.sum(0), 1, atol=1e-4)
    assert np.abs(rows.sum(0) - 1).max() > 0.05


def test_coupled_patches_say_how_many_find_their_second_view():
    views = augmented_pair(few_patches().images[:8])
    z = torch.eye(8).expand(2, 8, 8).clone()
    z[1, [0, 1]] = z[1, [1, 0]]
    panel = panels.coupled_patches({"swapped": z}, views, epsilon=0.1)
    assert "6 of 8 patches give their largest share to their own second view" in panel.alt
    wrong = next(a for a in panel.artists if a.get_label() == "wrong")
    np.testing.assert_array_equal(wrong.get_xydata(), [[1, 0], [0, 1]])
    assert mistakes([tiles(views[0])[:3]], 32)[2:34, 2:34].std() > 0


def test_the_favourite_mistake_is_the_largest_share_beside_the_diagonal():
    assert favourite(np.array([0.5, 0.2, 0.3]), 0, "abc") == (
        "is wrong about 50% of them and says c most often"
    )
    assert favourite(np.array([0.0, 1.0, 0.0]), 1, "abc") == "makes no mistake"


def test_the_patches_shown_are_those_that_one_alone_has_right():
    test = few_patches(4)
    right, never = test.labels, (test.labels + 1) % 18
    panel = panels.class_confusions({"all": right, "none": never}, test, photograph=6)
    assert panel.alt.startswith("Of 4 patches of grass both have 0 right, all alone 4, none alone 0.")
    assert "all makes no mistake; none is wrong about 100% of them and says gravel" in panel.alt


def test_neighbours_vote_across_the_two_halves():
    x = torch.eye(3).repeat_interleave(4, 0)
    labels = torch.arange(3).repeat_interleave(4)
    assert torch.equal(by_neighbours(x, labels), labels)


def test_the_row_of_the_matrix_is_dragged_and_its_cells_are_compared():
    test = few_patches(4)
    right, never = test.labels, (test.labels + 1) % 18
    panel = panels.class_confusions({"all": right, "none": never}, test, photograph=6)
    row = panel.handles["row"]
    x, y = place_of(row.axis, (3.0, 11.2))
    panel.on_event({"event": "", "handle": "row", "x": x, "y": y})
    assert panel.values["photograph"] == 11 and "patches of page" in panel.alt
    said = [link["text"] for link in panel.front.shown["links"]]
    assert said[11] == "page taken for page: all 100%, none 0%" and "none 100%" in said[12]


def test_nearest_on_the_map_is_scikit_learns():
    places = numpy_shifted(0).normal(size=(60, 2))
    nearest = NearestNeighbors(n_neighbors=2).fit(places).kneighbors(places, return_distance=False)[:, 1]
    np.testing.assert_array_equal(nearest_dot(places), nearest)
    assert middle(np.array([[0.0, 0], [1, 0], [1.1, 0], [9, 9]])).tolist() == [1, 0]


def test_maps_fill_their_square_and_are_the_same_each_time():
    x = {"a": torch.randn(40, 6, generator=shifted(0))}
    one, two = (maps_of(x, (5, 10)) for _ in range(2))
    assert list(one["a"]) == ["5", "10"]
    for perplexity, places in one["a"].items():
        np.testing.assert_array_equal(places, two["a"][perplexity])
        np.testing.assert_allclose([places.min(0), places.max(0)], [[-1, -1], [1, 1]], rtol=1e-6)  # float32


def test_names_on_the_map_stand_apart():
    places = np.concatenate([np.zeros((3, 2)), numpy_shifted(1).uniform(-1, 1, (15, 2))])
    x, y = np.abs(apart(places)[:, None] - apart(places)).transpose(2, 0, 1)
    clash = (x < 0.2) & (y < 0.04)
    assert clash.sum() == len(places)  # each with itself
    np.testing.assert_array_equal(apart(places)[:, 0], places[:, 0])


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
    picture, sentence = panel.picture.value, panel.said.value
    panel.on_pointed([13])
    assert panel.values["patch"] == 13 and "patch 13 is of grass, the nearest dot of grass" in panel.alt
    assert panel.picture.value != picture and panel.said.value != sentence
    seen = opened(panel.picture.value)[4:154, 4:154]
    large = Image.fromarray(tiles(shown.images)[13]).resize((150, 150), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(seen, large)
    np.testing.assert_array_equal(panel.plot.data[1].x, maps["pairs"]["5"][[13, 12], 0])
    assert list(panel.plot.data[0].text)[13] == "grass"
    panel.controls["lit"].value = "its photograph"
    assert "the 2 patches of grass 100%" in panel.alt
    assert len(set(panel.plot.data[0].marker.color)) == 2
    panel.controls["encoder"].value = "torn"
    assert "of the 2 patches of grass 0%" in panel.alt.lower()


def test_pointing_at_the_same_dot_draws_nothing():
    maps, shown = pairs_and_apart()
    panel = panels.feature_maps(maps, shown, patch=4)
    sent = []
    panel.front.observe(lambda change: sent.append(change["new"]), names="shown")
    panel.on_pointed([4])
    panel.on_pointed([])
    assert not sent
    panel.on_pointed([5])
    assert len(sent) == 1


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
    frame = panel.handles["patch"]
    for patch in (0, 7, 19):
        panel.controls["patch"].value = patch
        x, y = frame.place(panel.values)
        panel.controls["patch"].value = 3
        panel.on_event({"event": "", "handle": "patch", "x": x, "y": y})
        assert panel.values["patch"] == patch and f"patch {patch} of coins" in panel.alt


def test_stand_ins_are_small_and_always_the_same():
    patches = few_patches()
    assert isinstance(patches, ImageSet) and len(patches) == 108 and len(patches.classes) == 18
    made = unlearned(patches.images[:5])
    assert list(made) == ["raw pixels", "untrained"] and made["raw pixels"].shape == (5, 3072)
    torch.testing.assert_close(made["untrained"], unlearned(patches.images[:5])["untrained"])
    views = augmented_pair(patches.images[:3])
    assert views.shape == (2, 3, 3, 32, 32) and views.dtype == torch.uint8
    assert icons(20).shape == (18, 20, 20, 3) and tiles(views[0]).shape == (3, 32, 32, 3)
