"""What the papers measure beside the library: few shots, normals, cameras, other sorting networks."""

import math

import diffsort
import numpy as np
import pytest
import torch
from conftest import shifted
from every_loss import close, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestCentroid
from torch import nn
from torch.nn.functional import normalize

from setclr import models, video
from setclr.data.patches import PHOTOGRAPHS
from setclr.inner import sorting_network
from setclr.seeding import seeded
from setclr.video import flow
from setclr_course.papers import moving, normals
from setclr_course.papers.networks import comparators, soft_network
from setclr_course.papers.normals import (
    DenseReadOut,
    NormalMaps,
    angular_errors,
    fit_normals,
    motorcycle,
    normal_errors,
    normals_of,
    one_direction,
)
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


# Normals that are read from an encoder's maps, and the true ones, from disparities of known planes.


def small_encoder():
    torch.manual_seed(0)
    return models.encoder("conv4")[0]


CAMERA = normals.Camera(focal=50.0, x=19.0, y=14.0, offset=3.0)


def disparity_of_plane(normal: np.ndarray, H: int, W: int, distance: float = 40.0):
    """By tracing rays: X on the plane n·X = −distance, Z = −distance / n·ray, d = 100 focal / Z − offset."""
    v, u = np.mgrid[:H, :W].astype(float)
    rays = np.stack([(u - CAMERA.x) / CAMERA.focal, (v - CAMERA.y) / CAMERA.focal, np.ones_like(u)])
    Z = -distance / np.tensordot(normal, rays, 1)
    return torch.from_numpy(100 * CAMERA.focal / Z - CAMERA.offset)


@given(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5), st.integers(1, 5))
def test_a_plane_has_its_normal_everywhere(across, down, reach):
    wanted = np.array([across, down, -1.0])
    wanted /= np.linalg.norm(wanted)
    found, valid = normals_of(disparity_of_plane(wanted, 28, 38), CAMERA, reach)
    assert valid[reach:-reach, reach:-reach].all()
    error = (found - torch.from_numpy(wanted).float()[:, None, None])[:, valid].abs().max()
    assert error < 1e-4  # float32 normals, a 3 × 3 system in float64


def test_unknown_pixels_and_edges_are_left_out_and_spoil_nobody():
    ahead = np.array([0.0, 0.0, -1.0])
    near, far = (disparity_of_plane(ahead, 30, 40, distance) for distance in (20.0, 40.0))
    disparity = torch.where(torch.arange(40) < 20, near, far)
    disparity[10:13, 5:9] = torch.nan
    disparity[0, 0] = torch.inf
    found, valid = normals_of(disparity, CAMERA, 2)
    assert not valid[10:13, 5:9].any() and not valid[0, 0]
    assert not valid[5:, 18:22].any() and valid[3:9, 3:17].all() and valid[:, 24:38].all()
    assert (found[2][valid] < -0.9999).all() and (found[:, ~valid] == 0).all()


def test_the_motorcycle_pairs_halves():
    halves = {split: motorcycle(split) for split in ("train", "test")}
    for split, half in halves.items():
        assert half.images.shape[:3] == (1, 3, 500) and half.images.dtype == torch.uint8
        assert half.normals.shape == half.images.shape and half.valid.shape == half.images[:, 0].shape
        assert 0.7 < float(half.valid.float().mean()) < 0.8
        torch.testing.assert_close(half.normals.norm(dim=1), half.valid.float())
        # Nearly all of what a camera sees faces it: n · ray < 0, up to the error of the fit.
        v, u = torch.meshgrid(*(torch.arange(float(s)) for s in half.images.shape[2:]), indexing="ij")
        u = u + (0 if split == "train" else 741 - half.images.shape[3])
        camera = normals.MOTORCYCLE
        rays = torch.stack([u - camera.x, v - camera.y, 0 * u + camera.focal])
        facing = ((half.normals[0] * rays).sum(0) < 0)[half.valid[0]]
        assert facing.float().mean() > 0.999
    assert sum(half.images.shape[3] for half in halves.values()) + 16 == 741


def random_maps(n: int = 1, size: int = 40) -> NormalMaps:
    ways = normalize(torch.randn(n, 3, size, size, generator=shifted()), dim=1)
    images = torch.randint(0, 256, (n, 3, size, size), generator=shifted(1), dtype=torch.uint8)
    return NormalMaps(images, ways, torch.rand(n, size, size, generator=shifted(2)) < 0.7)


def test_angles_are_those_of_the_arc_cosine_and_exact_where_that_is_not():
    maps = random_maps()
    other = normalize(torch.randn(maps.normals.shape, generator=shifted(3)), dim=1)
    errors = angular_errors(other, maps)
    cosine = (other * maps.normals).sum(1)[maps.valid].double()
    torch.testing.assert_close(errors, cosine.arccos().rad2deg(), rtol=0, atol=0.05)
    found = normal_errors(other, maps)
    assert found["median"] == pytest.approx(float(np.median(errors)), rel=1e-2)
    assert found["mean"] == pytest.approx(float(errors.mean()))
    assert found["within 30°"] == pytest.approx(100 * float((errors <= 30).double().mean()))
    turns = torch.tensor([0.0, math.radians(0.01)])
    ways = torch.stack([turns.sin(), 0 * turns, -turns.cos()], 1)[:, None, :, None, None]
    ahead, tilted = ways.expand(2, 1, 3, 40, 40)
    exact = angular_errors(tilted, maps._replace(normals=ahead)).mean()
    assert float(exact) == pytest.approx(0.01, rel=1e-4)


def test_windows_are_cut_alike_and_mirrored_with_their_normals():
    maps = random_maps(2, 48)
    coded = maps._replace(normals=torch.stack([maps.images[:, 0].float()] * 3, 1))
    flipped = 0
    for images, ways, valid in normals.windows(coded, 40, 32, 0):
        assert images.shape == ways.shape == (1, 3, 32, 32) and valid.shape == (1, 32, 32)
        flips = torch.equal(ways[0, 0], -ways[0, 1])
        flipped += flips
        torch.testing.assert_close(ways[0, 1], 255 * images[0, 0], rtol=0, atol=1e-3)
        assert flips or torch.equal(ways[0, 0], ways[0, 1])
    assert 5 < flipped < 35


def test_what_can_be_read_off_is_read_and_the_encoder_stays_as_it_was():
    """The colour of a pixel says which way it faces; the maps of a chance encoder tell its colour."""
    coarse = torch.randn(1, 3, 6, 6, generator=shifted(5))
    ways = normalize(nn.functional.interpolate(coarse, (32, 32), mode="bilinear"), dim=1)
    images = (127.5 * (ways + 1)).round().byte()
    maps = NormalMaps(images, ways, torch.ones(1, 32, 32, dtype=torch.bool))
    encoder, how = small_encoder(), dict(steps=60, lr=5e-2)
    before = [x.clone() for x in encoder.state_dict().values()]
    model, again = (fit_normals(encoder, maps, **how) for _ in range(2))
    assert all(map(torch.equal, model.state_dict().values(), again.state_dict().values()))
    assert all(map(torch.equal, encoder.state_dict().values(), before))
    assert all(map(torch.equal, model.encoder.state_dict().values(), before))
    found, blind = normals.predicted_normals(model, images), one_direction(maps, maps)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(1, 32, 32))
    assert normal_errors(found, maps)["median"] < 0.7 * normal_errors(blind, maps)["median"]


@pytest.mark.parametrize("name, sizes", [
    ("conv4", [8, 16, 32, 64]), ("resnet32", [16, 32, 64]), ("resnet18-imagenet", [2, 4, 8, 16, 32]),
])  # fmt: skip
def test_the_last_map_of_each_size_is_looked_at(name, sizes):
    maps = DenseReadOut(models.encoder(name)[0]).maps(torch.zeros(1, 3, 64, 64))
    assert sorted(x.shape[-1] for x in maps) == sizes


def test_it_is_one_linear_map_of_all_maps_at_the_images_size():
    model, x = DenseReadOut(small_encoder()).eval(), torch.rand(2, 3, 40, 32)
    for norm in model.norms:
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    normed = [norm(y) for norm, y in zip(model.norms, model.maps(x))]
    stacked = torch.cat([nn.functional.interpolate(y, (40, 32), mode="bilinear") for y in normed], dim=1)
    weight = torch.cat([read.weight for read in model.reads], dim=1)
    wanted = nn.functional.conv2d(stacked, weight, model.reads[0].bias)
    torch.testing.assert_close(model(x), normalize(wanted, dim=1), rtol=1e-4, atol=1e-5)


FLAT = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 4))


@pytest.mark.parametrize("call, said", [
    (lambda: angular_errors(torch.ones(1, 3, 20, 20), random_maps()), "predicted must .* resize it"),
    (lambda: fit_normals(FLAT, random_maps()._replace(valid=torch.zeros(1, 40, 40) > 0)),
     "train must have valid pixels"),
    (lambda: fit_normals(FLAT, random_maps()), "layers that give maps"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


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
