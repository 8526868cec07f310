"""What the papers measure beside the library: few shots, cameras, other sorting networks."""

import diffsort
import numpy as np
import pytest
import torch
from conftest import shifted
from every_loss import close, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestCentroid

from setclr import video
from setclr.data.patches import PHOTOGRAPHS
from setclr.inner import sorting_network
from setclr.seeding import seeded
from setclr.video import flow
from setclr_course.papers import moving
from setclr_course.papers.networks import comparators, soft_network
from setclr_course.papers.shots import draw_episodes, few_shot

# Few shots: against scikit-learn's nearest centroids.


def blobs(classes=7, each=30, D=6, noise=2.0, seed=0):
    """Points around one centre a class, in random order; the labels are 0, 3, 6, …"""
    drawn = shifted(seed)
    labels = torch.arange(classes).repeat_interleave(each)[torch.randperm(classes * each, generator=drawn)]
    centres = 2 * torch.randn(classes, D, generator=drawn)
    return centres[labels] + noise * torch.randn(len(labels), D, generator=drawn), 3 * labels


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # one shot has no variance
@pytest.mark.parametrize("ways, shots, queries", [(5, 20, 10), (2, 1, 1), (7, 5, 15)])
def test_few_shots_equal_nearest_centroids(ways, shots, queries):
    x, y = blobs()
    expected = []
    for episode in draw_episodes(y, ways, shots, queries, 10, seed=3):
        shown, asked = ((x[images.flatten()].numpy(), y[images.flatten()].numpy()) for images in episode)
        expected.append(100 * NearestCentroid().fit(*shown).score(*asked))
    got = few_shot(x, y, ways, shots, queries, 10, seed=3)
    assert 40 < got.mean < 99 and got.half_width > 0
    assert got.mean == pytest.approx(np.mean(expected), abs=1e-4)
    assert got.half_width == pytest.approx(1.96 * np.std(expected) / np.sqrt(10), abs=1e-4)


def test_an_episode_shows_and_asks_other_images_of_the_same_classes():
    _, y = blobs()
    seen = set()
    for shown, asked in draw_episodes(y, 3, 4, 5, 40, seed=0):
        assert shown.shape == (3, 4) and asked.shape == (3, 5)
        both = torch.cat([shown, asked], dim=1)
        of = y[both]
        assert len(both.unique()) == 27 and (of == of[:, :1]).all() and len(of.unique()) == 3
        seen |= set(of[:, 0].tolist())
    assert seen == set(y.tolist())
    one, other = (list(draw_episodes(y, 3, 4, 5, 1, seed)) for seed in (0, 1))
    assert not torch.equal(one[0][0], other[0][0])


def test_features_near_each_other_keep_their_digits():
    """Far from the origin, where distances by a matrix product lose all of them in float32."""
    x, y = blobs(noise=0.01)
    assert few_shot(x + 10_000, y, shots=1, queries=5, episodes=20) == (100, 0)


@pytest.mark.parametrize("changes, message", [
    (dict(ways=8), "ways must be <= 7, the number of classes in labels, got 8"),
    (dict(features=torch.ones(5, 2, 2)), r"features must be \(N, D\)"),
    (dict(labels=torch.tensor([3] * 182 + [12] * 28)),
     r"class 12 has 28 images, and shots \+ queries need 20 \+ 10; lower"),
])  # fmt: skip
def test_bad_arguments_are_named(changes, message):
    x, y = blobs()
    with pytest.raises(ValueError, match=message):
        few_shot(**{"features": x, "labels": y, "ways": 2, "queries": 10} | changes)


# moving-patches: cameras and what they film, by their laws; the set.


SPEEDS = {"pan": (-2.0, 2.0), "zoom": (1.0, 1.1), "turn": (0.0, 0.1)}


@st.composite
def cameras(draw_):
    motion = draw_(st.sampled_from(moving.MOTIONS))
    speed = draw_(st.floats(*SPEEDS[motion.split()[0]] if motion != "still" else (0, 0)))
    made = moving.drive(motion, speed, draw_(st.floats(10, 60)), draw_(st.integers(2, 9)))
    return made._replace(centre=made.centre + 100)


@settings(max_examples=20)
@given(cameras(), st.integers(2, 12))
def test_the_flow_leads_to_the_same_place_of_the_picture(camera, side):
    """By hand, a pixel at a time: where it looks, and where the next frame sees that place."""
    found = moving.camera_flow(camera, side)
    for t in range(len(camera.side) - 1):
        for row, column in ((0, 0), (side - 1, 0), (side // 2, side - 1)):
            right, down = found[t, :, row, column]
            here = looks_at(camera, t, column + 0.5, row + 0.5, side)
            there = looks_at(camera, t + 1, column + 0.5 + right, row + 0.5 + down, side)
            assert np.allclose(here, there, atol=1e-9)


def looks_at(camera, t, x, y, side):
    """The place of the picture, to the right and down, at a point of a frame."""
    x, y = x / side - 0.5, y / side - 0.5
    cos, sin = np.cos(camera.angle[t]), np.sin(camera.angle[t])
    down, right = camera.centre[t]
    width = camera.side[t]
    return right + width * (cos * x - sin * y), down + width * (sin * x + cos * y)


def test_a_camera_films_what_lies_there():
    """A ramp tells each place: the mean over a pixel is the value at its middle."""
    ramp = np.arange(200.0)[:, None] + 3 * np.arange(200.0)
    camera = moving.drive("turn right", 0.05, 40, 5)
    camera = camera._replace(centre=camera.centre + 100)
    seen = moving.film(ramp, camera, 8)
    for t in range(5):
        right, down = looks_at(camera, t, 2.5, 5.5, 8)
        assert seen[t, 0, 5, 2] == pytest.approx(3 * (right - 0.5) + down - 0.5)


def test_the_picture_moves_against_the_camera():
    for way, right, down in (("right", -1.5, 0), ("left", 1.5, 0), ("down", 0, -1.5), ("up", 0, 1.5)):
        found = moving.camera_flow(moving.drive(f"pan {way}", 1.5, 32))
        assert np.allclose(found[:, 0], right) and np.allclose(found[:, 1], down)
    out = moving.camera_flow(moving.drive("zoom in", 1.1, 32))
    assert (out[:, 0, :, -1] > 0).all() and (out[:, 0, :, 0] < 0).all() and (out[:, 1, -1] > 0).all()
    turned = moving.camera_flow(moving.drive("turn right", 0.05, 32))
    assert (turned[:, 0, 0] < 0).all() and (turned[:, 0, -1] > 0).all()


def test_moving_patches_are_whole_and_the_same_again(monkeypatch):
    made = moving.moving_patches("test")
    assert made.clips.shape == (324, 3, 12, 32, 32) and made.clips.dtype == np.uint8
    assert made.flow.shape == (324, 2, 11, 32, 32)
    pairs = list(zip(made.photographs.tolist(), made.motions.tolist()))
    assert {pairs.count(pair) for pair in set(pairs)} == {2} and len(set(pairs)) == len(PHOTOGRAPHS) * 9
    still = made.motions == moving.MOTIONS.index("still")
    moves = np.abs(np.diff(made.clips.astype(int), axis=2)).max((1, 2, 3, 4))
    assert (moves[still] == 0).all() and (moves[~still] > 0).all()
    monkeypatch.setattr(moving, "PHOTOGRAPHS", list(PHOTOGRAPHS)[:2])
    again = moving.moving_patches.__wrapped__("test")
    assert all(np.array_equal(a[: 2 * 9 * 2], b) for a, b in zip(made, again))


def test_no_camera_leaves_its_block():
    """Nor does it, so, film what belongs to the other split."""
    grey, rng = np.random.default_rng(0).normal(128, 60, (200, 240)), np.random.default_rng(1)
    corners = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])
    for motion in moving.MOTIONS * 5:
        camera = moving.draw_camera(grey, np.array([[1, 2]]), motion, rng)
        rows, columns = np.moveaxis(moving.looked_at(camera, corners), -1, 0)
        assert rows.min() >= 50 and rows.max() <= 100 and columns.min() >= 120 and columns.max() <= 180


def test_the_flow_of_clips_is_kept_by_what_they_show(tmp_path):
    x = torch.randint(256, (2, 3, 3, 32, 32), generator=seeded(1), dtype=torch.uint8)
    first = moving.flow_of_clips(x, tmp_path)
    assert len([*tmp_path.glob("*.npz")]) == 1
    assert torch.equal(moving.flow_of_clips(x, tmp_path), first)
    assert torch.equal(first[0], flow.to_bytes(video.tv_l1(x[0])))


# Other sorting networks than GroCo's, against diffsort.


@pytest.mark.parametrize("kind, name", [("odd-even", "odd_even"), ("bitonic", "bitonic")])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_equals_diffsort(kind, name, n):
    x = normal(5, n)
    values, transposed = diffsort.DiffSortNet(name, n, steepness=3.0, distribution="cauchy")(x)
    close(tuple(soft_network(x, 3.0, kind)), (values, transposed.mT), rel=0, abs=1e-10)
    if kind == "odd-even":
        close(tuple(soft_network(x, 3.0, kind)), tuple(sorting_network(x, 3.0)), rel=0, abs=1e-12)


def test_layers_of_the_bitonic_network_sort():
    assert [len(comparators(n, "bitonic")) for n in (8, 16, 32)] == [6, 10, 15]
    shuffled = torch.randperm(16).double()
    close(soft_network(shuffled, 1e9, "bitonic").values, torch.arange(16.0).double(), rel=0, abs=1e-6)
