"""The panels of notebook 13: maps, confusions, couplings and lists of trained features."""

import ipywidgets
import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from sklearn.neighbors import NearestNeighbors
from test_explore import ends, made, opened

from setclr import explore
from setclr.data import ImageSet
from setclr.explore.couplings.coupled_patches import cost_of, coupling, mistakes
from setclr.explore.family.anchor_list import (
    NEGATIVES,
    alpha_of,
    cosine_of,
    in_short,
    listed,
    sparse_of,
    top_of,
)
from setclr.explore.kit.few_patches import augmented_pair, few_patches, icons, unlearned
from setclr.explore.kit.png import DPI
from setclr.explore.kit.tiles import tiles
from setclr.explore.trained.class_confusions import by_neighbours, favourite
from setclr.explore.trained.feature_maps import CANVAS, FRAMED, labelled, maps_of, middle, same_nearest, stamp
from setclr.losses import GroCo, SparseCLR

PANELS = ("anchor_list", "class_confusions", "coupled_patches", "feature_maps")


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
    control = "perplexity" if name == "feature_maps" else next(iter(panel.controls))
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
    panel = explore.anchor_list({"exact": same}, views, anchor=3, beta=1000, temperature=0.1, C=1)
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
    panel = explore.coupled_patches({"swapped": z}, views, epsilon=0.1)
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
    panel = explore.class_confusions({"all": right, "none": never}, test, photograph=6)
    assert panel.alt.startswith("Of 4 patches of grass both have 0 right, all alone 4, none alone 0.")
    assert "all makes no mistake; none is wrong about 100% of them and says gravel" in panel.alt


def test_neighbours_vote_across_the_two_halves():
    x = torch.eye(3).repeat_interleave(4, 0)
    labels = torch.arange(3).repeat_interleave(4)
    assert torch.equal(by_neighbours(x, labels), labels)


def test_nearest_on_the_map_is_scikit_learns():
    rng = numpy_shifted(0)
    places, labels = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    nearest = NearestNeighbors(n_neighbors=2).fit(places).kneighbors(places, return_distance=False)[:, 1]
    np.testing.assert_array_equal(same_nearest(places, labels), labels[nearest] == labels)
    assert middle(np.array([[0.0, 0], [1, 0], [1.1, 0], [9, 9]])).tolist() == [1, 0]


def test_maps_fill_their_square_and_are_the_same_each_time():
    x = {"a": torch.randn(40, 6, generator=shifted(0))}
    one, two = (maps_of(x, (5, 10)) for _ in range(2))
    assert list(one["a"]) == ["5", "10"]
    for perplexity, places in one["a"].items():
        np.testing.assert_array_equal(places, two["a"][perplexity])
        np.testing.assert_allclose([places.min(0), places.max(0)], [[-1, -1], [1, 1]], rtol=1e-6)  # float32


def test_no_photograph_hides_a_name():
    one, two = (labelled(k, icon, name) for k, icon, name in zip((0, 1), icons(28), ("upper", "lower")))
    canvas = np.zeros((CANVAS, CANVAS, 4), np.uint8)
    for rows in (slice(FRAMED), slice(FRAMED, None)):
        stamp(canvas, one, 200, 200, rows)
        stamp(canvas, two, 200, 230, rows)
    top, left = 200 - 16 + FRAMED, 200 - one.shape[1] // 2
    letters = one[FRAMED:, :, 3] > 127
    shown = canvas[top : top + len(letters), left : left + one.shape[1]]
    assert letters.any() and (shown[letters] == one[FRAMED:][letters]).all()


def test_one_photograph_is_looked_at():
    shown = few_patches(2)
    places = np.stack([np.arange(36) // 2, np.zeros(36)], axis=1) / 9 - 1
    places[[0, 13]] = places[[13, 0]]
    apart = {"pairs": {"5": places}, "same": {"5": places}}
    panel = explore.feature_maps(apart, shown)
    assert panel.alt.startswith("Of 36 patches a patch of the same photograph is the nearest")
    panel.controls["photograph"].value = 7
    assert "the 2 patches of grass" in panel.alt and "pairs 0%" in panel.alt


def test_stand_ins_are_small_and_always_the_same():
    patches = few_patches()
    assert isinstance(patches, ImageSet) and len(patches) == 108 and len(patches.classes) == 18
    made = unlearned(patches.images[:5])
    assert list(made) == ["raw pixels", "untrained"] and made["raw pixels"].shape == (5, 3072)
    torch.testing.assert_close(made["untrained"], unlearned(patches.images[:5])["untrained"])
    views = augmented_pair(patches.images[:3])
    assert views.shape == (2, 3, 3, 32, 32) and views.dtype == torch.uint8
    assert icons(20).shape == (18, 20, 20, 3) and tiles(views[0]).shape == (3, 32, 32, 3)
