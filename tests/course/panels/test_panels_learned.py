"""Panels of pages 10, 13, 15 and 16: what was learned of patches, molecules and clips."""

import numpy as np
import pytest
import torch
from conftest import numpy_shifted, shifted
from sklearn.metrics import confusion_matrix
from sklearn.neighbors import NearestNeighbors
from sweep import marks
from torch.nn.functional import normalize

from setclr import evaluation, graphs, pretrain, video, views
from setclr.data import ImageSet
from setclr.graphs.views import AUGMENTATIONS
from setclr.losses import parse
from setclr.recipes import GraphRecipe, ImageRecipe
from setclr.seeding import seeded
from setclr_course import panels
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.inner import assignment, tv_l1
from setclr_course.kit.palette import GREEN, PURPLE
from setclr_course.panels.clips import clip_strips, moving_camera, nearest_clips, video_column
from setclr_course.panels.graphs import drawn, molecule_matching
from setclr_course.panels.trained import feature_maps, film, found_again, likeness
from setclr_course.panels.trained.class_confusions import confusions, favourite
from setclr_course.papers import moving
from setclr_course.search.statistics import paired

# The panels of notebooks 10 and 13: films, maps, confusions and lists of trained features.


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


# The panels of molecules and of clips: what they compute is the library's, and they show what they say.


LOSSES = {  # what the panel of matched molecules computes in numpy, as the library makes it
    "assignment": "LinearAssignment()", "InfoNCE": "InfoNCE(temperature=0.2)", "SparseCLR": "SparseCLR()",
    "GroCo": "GroCo(beta=1.0, negatives=10)", "IOT": "IOT(constraint='rows', epsilon=0.2)",
    "MMCL": "MMCL(solver='exact')",
}  # fmt: skip


@pytest.fixture(scope="module")
def first_weights():
    return pretrain(GraphRecipe("InfoNCE(temperature=0.2)", epochs=0))


@torch.no_grad()
def embedded(run, graph) -> torch.Tensor:
    return run.head(run.encoder(graph)).double()


@pytest.mark.parametrize("view", ["any", *AUGMENTATIONS])
def test_the_views_of_the_panels_are_the_librarys_and_drawn_as_they_are(view):
    numbers, ratio = range(24, 30), 0.4
    plain = graphs.load_graphs("mutag").batch(numbers)
    wanted = graphs.graph_view(plain, view, ratio, seeded(4, 1))
    found, shown = drawn.random_views(numbers, view, ratio, 4, 1)
    for name in ("x", "edge_index", "batch", "ptr"):
        assert torch.equal(found[name], wanted[name])
    for i, (number, one) in enumerate(zip(numbers, shown)):
        x = wanted.x[wanted.batch == i]
        hidden = ((x != 0) & (x != 1)).any(1).numpy()
        assert one.said.tolist() == ["?" if h else "" for h in hidden]
        kinds = np.where(hidden, one.kinds, x.argmax(1))
        np.testing.assert_array_equal(one.kinds, kinds)
        assert {tuple(place) for place in one.places} <= {tuple(place) for place in drawn.positions()[number]}
        edges = wanted.edge_index[:, wanted.batch[wanted.edge_index[0]] == i] - wanted.ptr[i]
        bonds = {tuple(sorted(pair)) for pair in edges.T.tolist()}
        assert {tuple(sorted(pair)) for pair in one.bonds.T.tolist()} == bonds
        if view == "rewire":
            old = drawn.MOLECULES[number].bonds.T.tolist()
            known = [pair in old or pair[::-1] in old for pair in one.bonds.T.tolist()]
            assert [colour != PURPLE for colour in one.colours] == known


@pytest.mark.parametrize("loss", LOSSES)
def test_the_shares_of_matched_molecules_are_the_librarys(first_weights, loss):
    matched = panels.molecule_matching({"first weights": first_weights})
    assert set(LOSSES) == {"assignment", *molecule_matching.LOSSES}
    every = embedded(first_weights, drawn.MUTAG.batch(range(188)))  # as the panel does: it rounds alike
    for six, draw in ((4, 1), (0, 7), (30, 12)):
        batch = drawn.MUTAG.batch(range(6 * six, 6 * six + 6))
        other = graphs.graph_view(batch, "any", first_weights.recipe.ratio, seeded(six, draw))
        z = torch.stack([every[6 * six : 6 * six + 6], embedded(first_weights, other)])
        given = parse(LOSSES[loss]).assignment(z)[:6, 6:]
        found = matched.solve(matched.start | {"loss": loss, "six": six, "draw": draw}).shares
        np.testing.assert_allclose(found, given / given.sum(1, keepdim=True).clamp(min=1e-12), atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_molecules_that_all_look_alike_are_matched_by_chance(first_weights, monkeypatch, value):
    panel = panels.molecule_matching({"first weights": first_weights})
    panel.whole["first weights"] = np.full((188, 4), value)
    monkeypatch.setattr(drawn, "embedded", lambda *_: np.full((6, 4), value))
    for loss in ("assignment", "InfoNCE", "GroCo", "IOT"):
        panel.controls["loss"].value = loss
        assert "1 of 6 anchors give most to their own view, on average 17%" in panel.alt, loss
    shares = np.eye(6)[[0, 1, 2, 3, 5, 4]]  # where nothing ties, the best is taken
    assert assignment(-shares).tolist() == [0, 1, 2, 3, 5, 4]


def test_a_molecule_without_an_atom_is_compared_with_its_random_view(first_weights):
    panel = panels.molecule_views(first_weights)
    x, y = drawn.positions()[2][5] + 0.02
    panel.on_event({"event": "", "handle": "ring", "x": x, "y": y})
    assert panel.values["atom"] == 6 and "without atom 6" in panel.alt
    batch = drawn.MUTAG.batch([2])
    first = graphs.keep_nodes(batch, torch.arange(len(batch.x)) != 5)
    second = graphs.graph_view(batch, "drop", 0.2, seeded(2, 1))
    graphs_seen = (first, second, drawn.MUTAG.batch(range(188)))
    one, two, every = (normalize(embedded(first_weights, graph), dim=1) for graph in graphs_seen)
    every[2] = one[0]
    far = panel.solve(panel.values).far
    np.testing.assert_allclose(far, (1 - every @ two[0]).clamp(min=1e-4), atol=1e-6)
    assert f"place {(far < far[2]).sum() + 1} of 188" in panel.alt


def test_atoms_stand_where_they_do_on_every_machine(monkeypatch):
    """Other signs and other rounding of eigenvectors are as right, and classical scaling puts atoms in one
    place."""
    real = np.linalg.eigh

    def other(a):
        values, vectors = real(a)
        return values, vectors * (1e-12 * np.sin(np.arange(a.size)).reshape(a.shape) - 1)

    monkeypatch.setattr(np.linalg, "eigh", other)
    for mine, also in zip(drawn.positions(), drawn.positions.__wrapped__()):
        np.testing.assert_allclose(mine, also, atol=1e-6)


# Clips


def test_the_camera_films_and_moves_as_the_library_says():
    panel = panels.moving_camera(motion="zoom in", frame=7, speed=2.0, right=100)
    now = panel.solve(panel.values)
    camera = moving.drive("zoom in", 1 + 2 / 16, 64)
    camera = camera._replace(centre=camera.centre + (256, 100))
    frames = moving.film(panel.picture, camera).clip(0, 255).round().astype(np.uint8)
    np.testing.assert_array_equal(now.frame, frames[6, 0])
    np.testing.assert_allclose(now.true, moving.camera_flow(camera)[6])
    right = video.tv_l1(torch.from_numpy(frames).transpose(0, 1)).numpy()
    grey = frames[:, 0].astype(np.float32) / 255
    found = np.stack([tv_l1(one, two) for one, two in zip(grey[:-1], grey[1:])], 1)
    # One may end a round later than the other, by rounding: a hundredth of a pixel.
    off = np.sqrt(np.square(found - right).mean((0, 2, 3)))
    assert np.median(off) < 1e-3 and off.max() < 0.03
    np.testing.assert_array_equal(now.found, found[:, 6])
    assert np.hypot(*now.true)[16, 0] == pytest.approx(2, abs=0.15)  # at the edge of a frame
    assert tuple(moving_camera.SEEN_AS) == moving.MOTIONS
    with pytest.raises(ValueError, match="picture must be"):
        panels.moving_camera(np.zeros((127, 300)))


@pytest.mark.parametrize("shown", ["colours", "flow"])
def test_strips_are_the_librarys_views(shown):
    videos, flow = (video.load_videos("moving-patches", "test", kind) for kind in ("rgb", "camera flow"))
    panel = panels.clip_strips(videos, flow, shown=shown, video=2, draw=5)
    whole, first, second = panel.solve(panel.values)
    clips = (videos if shown == "colours" else flow).tensor[2]
    photo = video.video_views("photo", 32, flip=0)
    draws = views.draw(photo, 8, seeded(16, 2, 5))
    made = video.clip_views(torch.stack([clips[:, 1:9], clips[:, 3:11]])[:, None], photo, draws[:1])[:, 0]
    for strip, view in zip((first, second), made.numpy()):
        last = view[:, 7] if shown == "colours" else clip_strips.coloured(view)[:, 7]
        np.testing.assert_allclose(strip[:, -32:] / 255, last.transpose(1, 2, 0).clip(0, 1), atol=0.003)
    own = panel.solve({**panel.values, "frames": list(clip_strips.KINDS)[1]})[1]
    assert (own[:, :32] == first[:, :32]).all() and (own[:, 32:64] != first[:, 32:64]).any()
    assert whole.shape == (32, 32 * clips.shape[1], 3)


def test_nearest_clips_are_the_librarys_and_what_points_nowhere_has_none():
    x = torch.randn(30, 6, generator=shifted(3))
    x[4] = 0
    found = nearest_clips.map_of(x.numpy())
    expected = evaluation.nearest(x, x, 6)[1]
    for query in set(range(30)) - {4}:
        assert found.nearest[query] == [int(i) for i in expected[query] if i != query][:5]
    assert found.nearest[4] == [] and np.abs(found.places).max(0) == pytest.approx(1)
    panel = panels.nearest_clips(query=11)
    clips = [sets["query"] for said, _, _, sets in panel.scene["links"] if said.startswith("clip ")]
    assert clips == [11, *panel.solve(panel.values)]
    still = panel.seen({**panel.values, "query": 0, "features": "true flow"})
    assert "nothing is nearest" in still.sentence


def test_intervals_are_students():
    x = np.array([50.0, 53.1, 47.2, 49.0, 51.5])
    expected = paired(x, np.zeros(5))
    half = (expected.high - expected.low) / 2
    assert video_column.half_width(x) == pytest.approx(half) and video_column.half_width([3.0]) == 0
