"""Normals: from disparities of known planes, read from an encoder's maps, and their angles."""

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
from setclr_course.papers.normals import (
    MOTORCYCLE,
    Camera,
    DenseReadOut,
    NormalMaps,
    angular_errors,
    fit_normals,
    load_normals,
    normal_errors,
    normals_of,
    one_direction,
    predicted_normals,
    windows,
)

CAMERA = Camera(focal=50.0, x=19.0, y=14.0, offset=3.0)


def disparity_of_plane(normal: np.ndarray, camera: Camera, H: int, W: int, distance: float = 40.0):
    """By tracing rays: X on the plane n·X = −distance, Z = −distance / n·ray, d = 100 focal / Z − offset."""
    v, u = np.mgrid[:H, :W].astype(float)
    rays = np.stack([(u - camera.x) / camera.focal, (v - camera.y) / camera.focal, np.ones_like(u)])
    Z = -distance / np.tensordot(normal, rays, 1)
    return torch.from_numpy(100 * camera.focal / Z - camera.offset), rays


@given(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5), st.integers(1, 5))
def test_a_plane_has_its_normal_everywhere(across, down, reach):
    wanted = np.array([across, down, -1.0])
    wanted /= np.linalg.norm(wanted)
    disparity, _ = disparity_of_plane(wanted, CAMERA, 28, 38)
    normals, valid = normals_of(disparity, CAMERA, reach)
    inside = valid[reach:-reach, reach:-reach]
    assert inside.all()
    error = (normals - torch.from_numpy(wanted).float()[:, None, None])[:, valid].abs().max()
    assert error < 1e-4  # float32 normals, a 3 × 3 system in float64


def test_unknown_pixels_and_edges_are_left_out_and_spoil_nobody():
    near, _ = disparity_of_plane(np.array([0.0, 0.0, -1.0]), CAMERA, 30, 40, 20.0)
    far, _ = disparity_of_plane(np.array([0.0, 0.0, -1.0]), CAMERA, 30, 40, 40.0)
    disparity = torch.where(torch.arange(40) < 20, near, far)
    disparity[10:13, 5:9] = torch.nan
    disparity[0, 0] = torch.inf
    normals, valid = normals_of(disparity, CAMERA, 2)
    assert not valid[10:13, 5:9].any() and not valid[0, 0]
    assert not valid[5:, 18:22].any() and valid[3:9, 3:17].all() and valid[:, 24:38].all()
    assert (normals[2][valid] < -0.9999).all() and (normals[:, ~valid] == 0).all()


def test_the_motorcycle_pairs_halves():
    train, test = (load_normals("motorcycle", split) for split in ("train", "test"))
    for half in (train, test):
        assert half.images.shape[:3] == (1, 3, 500) and half.images.dtype == torch.uint8
        assert half.normals.shape == half.images.shape and half.valid.shape == half.images[:, 0].shape
        assert 0.7 < float(half.valid.float().mean()) < 0.8
        lengths = half.normals.norm(dim=1)
        torch.testing.assert_close(lengths, half.valid.float())
        # Nearly all of what a camera sees faces it: n · ray < 0, up to the error of the fit.
        v, u = torch.meshgrid(*(torch.arange(float(s)) for s in half.images.shape[2:]), indexing="ij")
        u = u + (0 if half is train else 741 - half.images.shape[3])
        rays = torch.stack(
            [(u - MOTORCYCLE.x) / MOTORCYCLE.focal, (v - MOTORCYCLE.y) / MOTORCYCLE.focal, u * 0 + 1]
        )
        facing = ((half.normals[0] * rays).sum(0) < 0)[half.valid[0]]
        assert facing.float().mean() > 0.999
    assert train.images.shape[3] + test.images.shape[3] + 16 == 741


def random_maps(n: int = 1, size: int = 40) -> NormalMaps:
    normals = normalize(torch.randn(n, 3, size, size, generator=shifted()), dim=1)
    images = torch.randint(0, 256, (n, 3, size, size), generator=shifted(1), dtype=torch.uint8)
    return NormalMaps(images, normals, torch.rand(n, size, size, generator=shifted(2)) < 0.7)


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
    assert angular_errors(maps.normals, maps).max() < 1e-4
    assert angular_errors(-maps.normals, maps).min() > 180 - 1e-4
    tilted = maps._replace(normals=torch.tensor([0.0, 0, -1])[:, None, None].expand(1, 3, 40, 40))
    by = math.radians(0.01)
    seen = torch.tensor([math.sin(by), 0, -math.cos(by)])[:, None, None].expand(1, 3, 40, 40)
    torch.testing.assert_close(
        angular_errors(seen, tilted).mean(), torch.tensor(0.01).double(), rtol=1e-4, atol=0
    )


def test_the_opponent_points_one_way():
    maps = random_maps(3)
    way = one_direction(maps, maps)
    mean = maps.normals.movedim(1, -1)[maps.valid].mean(0)
    torch.testing.assert_close(way[2, :, 5, 7], mean / mean.norm())


def test_windows_are_cut_alike_and_mirrored_with_their_normals():
    maps = random_maps(2, 48)
    coded = maps._replace(normals=torch.stack([maps.images[:, 0].float()] * 3, 1))
    flipped = 0
    for images, normals, valid in windows(coded, 40, 32, 0):
        assert images.shape == normals.shape == (1, 3, 32, 32) and valid.shape == (1, 32, 32)
        sign = -1 if torch.equal(normals[0, 0], -normals[0, 1]) else 1
        flipped += sign < 0
        torch.testing.assert_close(normals[0, 1], 255 * images[0, 0], rtol=0, atol=1e-3)
        assert torch.equal(normals[0, 0], sign * normals[0, 1])
    assert 5 < flipped < 35


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("name", ["conv4", "resnet32"])
def test_what_can_be_read_off_is_read_and_the_encoder_given_stays_as_it_was(name, tuned):
    """The colour of a pixel says which way it faces; the maps of a chance encoder tell its colour."""
    coarse = torch.randn(1, 3, 6, 6, generator=shifted(5))
    normals = normalize(nn.functional.interpolate(coarse, (48, 48), mode="bilinear"), dim=1)
    images = (127.5 * (normals + 1)).round().byte()
    maps = NormalMaps(images, normals, torch.ones(1, 48, 48, dtype=torch.bool))
    torch.manual_seed(0)
    encoder = models.encoder(name)[0]
    before = {key: x.clone() for key, x in encoder.state_dict().items()}
    model = fit_normals(encoder, maps, steps=100, lr=3e-2, tuned=tuned, window=48)
    assert all(torch.equal(x, before[key]) for key, x in encoder.state_dict().items())
    learnt = any(not torch.equal(x, before[key]) for key, x in model.encoder.state_dict().items())
    assert learnt == tuned
    found = predicted_normals(model, images)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(1, 48, 48))
    assert (
        normal_errors(found, maps)["median"] < 0.7 * normal_errors(one_direction(maps, maps), maps)["median"]
    )
    again = fit_normals(encoder, maps, steps=3, tuned=tuned, window=48)
    twice = fit_normals(encoder, maps, steps=3, tuned=tuned, window=48)
    assert all(torch.equal(x, twice.state_dict()[key]) for key, x in again.state_dict().items())


@pytest.mark.parametrize(
    "name, sizes",
    [("conv4", [8, 16, 32, 64]), ("resnet32", [16, 32, 64]), ("resnet18-imagenet", [2, 4, 8, 16, 32])],
)
def test_the_last_map_of_each_size_is_looked_at(name, sizes):
    model = DenseReadOut(models.encoder(name)[0])
    maps = model.maps(torch.zeros(1, 3, 64, 64))
    assert sorted(x.shape[-1] for x in maps) == sizes
    assert model(torch.rand(2, 3, 64, 48)).shape == (2, 3, 64, 48)


def test_it_is_one_linear_map_of_all_maps_at_the_images_size():
    torch.manual_seed(0)
    model, x = DenseReadOut(models.encoder("conv4")[0]).eval(), torch.rand(2, 3, 40, 32)
    for norm in model.norms:
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    normed = [norm(y) for norm, y in zip(model.norms, model.maps(x))]
    stacked = torch.cat([nn.functional.interpolate(y, (40, 32), mode="bilinear") for y in normed], dim=1)
    weight = torch.cat([read.weight for read in model.reads], dim=1)
    wanted = nn.functional.conv2d(stacked, weight, model.reads[0].bias)
    torch.testing.assert_close(model(x), normalize(wanted, dim=1), rtol=1e-4, atol=1e-5)


def test_nyuv2_is_read_from_its_arrays(tmp_path):
    generator = np.random.default_rng(0)
    for part in ("train", "val"):
        for kind in ("image", "normal"):
            (tmp_path / part / kind).mkdir(parents=True)
        for i in (0, 2, 10):
            image = generator.random((12, 16, 3)).astype("float32")
            image[0, 0] = i / 10
            normal = generator.standard_normal((12, 16, 3)).astype("float32")
            normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
            normal[3, 4] = 0
            np.save(tmp_path / part / "image" / f"{i}.npy", image)
            np.save(tmp_path / part / "normal" / f"{i}.npy", normal)
    maps = load_normals(f"nyuv2:{tmp_path}", "test")
    assert maps.images.shape == (3, 3, 12, 16)
    assert maps.images[:, 0, 0, 0].tolist() == [0, 51, 255]  # in the order of the numbers, not of the letters
    assert not maps.valid[:, 3, 4].any() and maps.valid.sum() == 3 * (12 * 16 - 1)
    torch.testing.assert_close(maps.normals.norm(dim=1), maps.valid.float())
    np.save(tmp_path / "val/normal/2.npy", np.ones((6, 8, 3), "float32"))
    with pytest.raises(ValueError, match=r"2.npy is \(12, 16, 3\), its normals \(6, 8, 3\)"):
        load_normals(f"nyuv2:{tmp_path}", "test")
    (tmp_path / "val/normal/2.npy").write_bytes(b"cut off")
    with pytest.raises(ValueError, match="2.npy is no array"):
        load_normals(f"nyuv2:{tmp_path}", "test")
    (tmp_path / "val/normal/2.npy").unlink()
    with pytest.raises(FileNotFoundError, match="each image needs its normals"):
        load_normals(f"nyuv2:{tmp_path}", "test")


def test_what_cannot_be_used_is_refused(tmp_path):
    maps = random_maps()
    with pytest.raises(ValueError, match="name must be one of 'motorcycle', 'nyuv2:PATH'"):
        load_normals("motorbike")
    with pytest.raises(ValueError, match="split must be one of"):
        load_normals("motorcycle", "val")
    with pytest.raises(FileNotFoundError, match="no .npy files"):
        load_normals(f"nyuv2:{tmp_path}")
    with pytest.raises(ValueError, match=r"predicted must be of the shape of the true normals, .* resize it"):
        angular_errors(torch.ones(1, 3, 20, 20), maps)
    with pytest.raises(ValueError, match="train must have valid pixels"):
        fit_normals(models.encoder("conv4")[0], maps._replace(valid=torch.zeros_like(maps.valid)))
    with pytest.raises(ValueError, match="encoder must be made of layers that give maps"):
        fit_normals(nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 4)), maps)
    with pytest.raises(ValueError, match="tuned must be"):
        fit_normals(models.encoder("conv4")[0], maps, tuned=1)
