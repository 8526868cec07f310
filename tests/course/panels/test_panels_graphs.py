"""The panels of molecules and of clips: what they compute is the library's, and they show what they say."""

import numpy as np
import pytest
import torch
from conftest import shifted
from sweep import drag
from torch.nn.functional import normalize

from setclr import graphs, video, views
from setclr.evaluation.neighbours import neighbours
from setclr.experiments import pretrain
from setclr.graphs.views import AUGMENTATIONS
from setclr.losses import parse
from setclr.recipes import GraphRecipe
from setclr.seeding import seeded
from setclr_course import panels
from setclr_course.kit.inner import assignment, tv_l1
from setclr_course.kit.palette import PURPLE
from setclr_course.panels.clips import clip_strips, moving_camera, nearest_clips, video_column
from setclr_course.panels.graphs import drawn, molecule_matching
from setclr_course.papers import moving
from setclr_course.search.statistics import paired

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


def test_only_pictures_that_are_seen_are_kept():
    panel = panels.moving_camera()
    front = panel.widget
    for x in (70, 80, 700):
        drag(panel, "camera", x, 100.4)
    assert len(panel.pictures) == len(front.pictures) == 2
    panel.close()


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
    expected = neighbours(x, torch.zeros(30, dtype=torch.long), x, 6)[1]
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
