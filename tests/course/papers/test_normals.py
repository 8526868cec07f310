"""Normals that are read from an encoder's maps, and the true ones, from disparities of known planes."""

import math

import numpy as np
import pytest
import torch
from conftest import shifted
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import normalize

from setclr import models
from setclr_course.papers import normals
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


def test_the_opponent_points_one_way():
    maps = random_maps(3)
    way = one_direction(maps, maps)
    mean = maps.normals.movedim(1, -1)[maps.valid].mean(0)
    torch.testing.assert_close(way[2, :, 5, 7], mean / mean.norm())


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
    (lambda: motorcycle("val"), "split must be one of"),
    (lambda: angular_errors(torch.ones(1, 3, 20, 20), random_maps()), "predicted must .* resize it"),
    (lambda: fit_normals(FLAT, random_maps()._replace(valid=torch.zeros(1, 40, 40) > 0)),
     "train must have valid pixels"),
    (lambda: fit_normals(FLAT, random_maps()), "layers that give maps"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
