"""What is trained on an encoder: itself, in plain torch too, and normals, read from its maps.

The normals come from disparities of known planes.
"""

import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import shifted
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import normalize
from torchvision.transforms.v2 import functional as TF

from setclr import models, views
from setclr.data import ImageSet
from setclr.evaluation import features
from setclr.seeding import seeded
from setclr_course.papers import fine_tune, fit_normals, load_normals, normal_errors, normals
from setclr_course.papers import fine_tuning as tuning
from setclr_course.papers.normals import DenseReadOut, NormalMaps, angular_errors, normals_of, one_direction


def stripes(n, seed=0, side=16):
    """Grey images of stripes under noise: two classes, the stripes' direction, which no flip changes."""
    drawn = shifted(seed)
    labels = torch.randint(0, 2, (n,), generator=drawn)
    phase = 2 * math.pi * torch.rand(n, 1, 1, 1, generator=drawn)
    waves = torch.sin(1.2 * torch.arange(side) + phase).expand(n, 3, side, side)
    waves = torch.where(labels[:, None, None, None] == 1, waves, waves.mT)
    noise = torch.randn(n, 3, side, side, generator=drawn)
    return ImageSet((127 + 40 * waves + 40 * noise).clamp(0, 255).byte(), labels, ("flat", "upright"))


def small_encoder(seed=0):
    torch.manual_seed(seed)
    return models.encoder("conv4")[0]


@pytest.mark.parametrize("frozen", [False, True])
def test_the_encoder_is_left_as_it_was(frozen):
    encoder, train = small_encoder().requires_grad_(not frozen), stripes(12)
    encoder[1].eval()
    before, modes = copy.deepcopy(encoder.state_dict()), [module.training for module in encoder.modules()]
    with torch.no_grad():  # as one may call it
        fine_tune(encoder, train, train, epochs=1, batch=6)
    after = encoder.state_dict()
    assert all(torch.equal(after[key], kept) for key, kept in before.items())
    assert [module.training for module in encoder.modules()] == modes
    assert all(p.grad is None and p.requires_grad is not frozen for p in encoder.parameters())


@pytest.fixture
def used(monkeypatch) -> list[nn.Module]:
    """The models whose features were asked for: of a fine-tuning, last of all its own."""
    kept = []
    monkeypatch.setattr(tuning, "features", lambda model, x: kept.append(model) or features(model, x))
    return kept


def test_it_is_a_function_of_its_seed_and_leaves_the_global_one_alone(used):
    encoder, train, test = small_encoder(), stripes(16), stripes(8, seed=1)

    def weights(seed: int) -> torch.Tensor:
        found = fine_tune(encoder, train, test, epochs=1, batch=8, seed=seed)
        assert found.dtype == torch.int64 and found.shape == (8,)
        return torch.cat([w.detach().flatten() for w in used[-1].parameters()])

    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = weights(0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert torch.equal(weights(0), first) and not torch.equal(weights(1), first)


def test_its_weights_are_those_of_the_formulas_of_a_frozen_encoder_too(used):
    """Two epochs written out: crops and flips, Nesterov's momentum, weight decay, half a cosine."""
    train, epochs, batch, lr, decay, crop = stripes(40), 2, 16, 0.05, 0.01, tuning.CROP
    encoder, test, how = small_encoder().requires_grad_(False), stripes(9, seed=1), dict(precision="float32")
    found = fine_tune(encoder, train, test, epochs, lr, batch, decay, seed=5, **how)
    torch.manual_seed(5)
    model = nn.Sequential(encoder, nn.Linear(64, 2)).requires_grad_(True).train()
    weights = list(model.parameters())
    starts, velocity = [w.detach().clone() for w in weights], [torch.zeros_like(w) for w in weights]
    for epoch in range(epochs):
        order = torch.randperm(40, generator=seeded(5, epoch)).split(batch)
        for position, index in enumerate(order[:2]):
            p = views.parameters(crop, views.draw(crop, batch, seeded(5, epoch, position)), 16, 16)
            x = [train.images[i] / 255 for i in index]
            x = [TF.resized_crop(one, *box.int().tolist(), [16, 16]) for one, box in zip(x, p.box[0])]
            x = torch.stack([one.flip(-1) if flip else one for one, flip in zip(x, p.flip[0])])
            loss = F.cross_entropy(model(x), train.labels[index])
            rate = lr * (1 + math.cos(math.pi * (2 * epoch + position) / 4)) / 2
            with torch.no_grad():
                for w, v, g in zip(weights, velocity, torch.autograd.grad(loss, weights)):
                    g = g + decay * w
                    v.mul_(0.9).add_(g)
                    w.sub_(rate * (g + 0.9 * v))
    for mine, theirs, start in zip(used[-1].parameters(), weights, starts, strict=True):
        assert (mine - theirs).norm() < 0.02 * (theirs - start).norm()  # batch norms enlarge rounding
    assert torch.equal(found, features(used[-1], test.images).argmax(1))


def test_the_rate_and_decay_that_do_best_on_a_fifth_held_out_of_each_class(monkeypatch):
    train, test, asked, made = stripes(60), stripes(30, seed=1), [], []

    def tuned(encoder, part, seen, lr=None, weight_decay=0.0, **how):
        asked.append((part, seen, lr, weight_decay, how))
        if lr == 0.1:
            raise FloatingPointError("diverged")
        good = (lr, weight_decay) == (1e-2, 1e-4 / 1e-2)
        return seen.labels if good else 1 - seen.labels

    monkeypatch.setattr(tuning, "fine_tune", tuned)
    untrained = SimpleNamespace(fit=lambda: None)
    monkeypatch.setattr(tuning, "Trainer", lambda *given, **more: made.append(given[4]) or untrained)
    fine_tune(small_encoder(), train, test, epochs=3, lr=None, batch=8, seed=4, precision="float32")
    assert [(lr, decay * lr) for _, _, lr, decay, _ in asked] == [
        (lr, pytest.approx(decay)) for lr in (1e-4, 1e-3, 1e-2, 1e-1) for decay in (0, 1e-6, 1e-5, 1e-4, 1e-3)
    ]
    part, seen, _, _, how = asked[0]
    assert how == {"epochs": 3, "batch": 8, "seed": 4, "precision": "float32"}
    together = torch.cat([part.images, seen.images]).flatten(1).double().sum(1).sort().values
    assert torch.equal(together, train.images.flatten(1).double().sum(1).sort().values)
    counts = train.labels.bincount()
    assert len(seen) == 12 and (seen.labels.bincount() / counts - 0.2).abs().max() < 1 / counts.min()
    assert made[0].defaults["lr"] == 1e-2 and made[0].defaults["weight_decay"] == pytest.approx(1e-2)


@pytest.mark.parametrize("change, message", [
    (dict(epochs=0), "epochs must be an integer >= 1, got 0"),
    (dict(batch=41), "batch must be an integer >= 2 and <= 40, got 41; train has 40 images"),
    (dict(lr=0), "lr must be > 0, got 0"),
    (dict(weight_decay=-1), "weight_decay must be >= 0, got -1"),
    (dict(seed=-1), "seed must be an integer >= 0, got -1"),
    (dict(test=stripes(9, side=18)), r"test must have images of the shape of train, \(3, 16, 16\), got"),
    (dict(test=replace(stripes(9), classes=("upright", "flat"))), "they differ in their order"),
    (dict(lr=1e20, epochs=3), "became .* at step [01]; lower lr"),
])  # fmt: skip
def test_bad_arguments_are_named(change, message):
    good = dict(encoder=small_encoder(), train=stripes(40), test=stripes(9), batch=8)
    with pytest.raises(FloatingPointError if change.get("lr") == 1e20 else ValueError, match=message):
        fine_tune(**{**good, **change})


# Normals


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
    halves = {split: load_normals("motorcycle", split) for split in ("train", "test")}
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


@pytest.mark.parametrize("tuned", [False, True])
def test_what_can_be_read_off_is_read_and_the_encoder_given_stays_as_it_was(tuned):
    """The colour of a pixel says which way it faces; the maps of a chance encoder tell its colour."""
    coarse = torch.randn(1, 3, 6, 6, generator=shifted(5))
    ways = normalize(nn.functional.interpolate(coarse, (32, 32), mode="bilinear"), dim=1)
    images = (127.5 * (ways + 1)).round().byte()
    maps = NormalMaps(images, ways, torch.ones(1, 32, 32, dtype=torch.bool))
    encoder, how = small_encoder(), dict(steps=60, lr=5e-2, tuned=tuned, window=32)
    before = [x.clone() for x in encoder.state_dict().values()]
    model, again = (fit_normals(encoder, maps, **how) for _ in range(2))
    assert all(map(torch.equal, model.state_dict().values(), again.state_dict().values()))
    assert all(map(torch.equal, encoder.state_dict().values(), before))
    assert all(map(torch.equal, model.encoder.state_dict().values(), before)) != tuned
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


def test_nyuv2_is_read_from_its_arrays(tmp_path):
    generator = np.random.default_rng(0)
    for kind, least in (("image", 0), ("normal", 1)):
        (tmp_path / "val" / kind).mkdir(parents=True)
        for i in (0, 2, 10):
            array = least + generator.random((12, 16, 3)).astype("float32")
            array[0, 0], array[3, 4] = least + i / 10, 0
            np.save(tmp_path / "val" / kind / f"{i}.npy", array)
    maps = load_normals(f"nyuv2:{tmp_path}", "test")
    assert maps.images.shape == (3, 3, 12, 16)
    assert maps.images[:, 0, 0, 0].tolist() == [0, 51, 255]  # in the order of the numbers, not of the letters
    assert not maps.valid[:, 3, 4].any() and maps.valid.sum() == 3 * (12 * 16 - 1)
    torch.testing.assert_close(maps.normals.norm(dim=1), maps.valid.float())
    for damage, error, said in (
        (lambda path: np.save(path, np.ones((6, 8, 3))), ValueError, r"2.npy is .*, its normals \(6, 8, 3\)"),
        (lambda path: path.write_bytes(b"cut off"), ValueError, "2.npy is no array"),
        (lambda path: path.unlink(), FileNotFoundError, "each image needs its normals"),
    ):
        damage(tmp_path / "val/normal/2.npy")
        with pytest.raises(error, match=said):
            load_normals(f"nyuv2:{tmp_path}", "test")


FLAT = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 4))


@pytest.mark.parametrize("call, said", [
    (lambda: load_normals("motorbike"), "name must be one of 'motorcycle', 'nyuv2:PATH'"),
    (lambda: load_normals("motorcycle", "val"), "split must be one of"),
    (lambda: angular_errors(torch.ones(1, 3, 20, 20), random_maps()), "predicted must .* resize it"),
    (lambda: fit_normals(FLAT, random_maps()._replace(valid=torch.zeros(1, 40, 40) > 0)),
     "train must have valid pixels"),
    (lambda: fit_normals(FLAT, random_maps()), "layers that give maps"),
    (lambda: fit_normals(small_encoder(), random_maps(), tuned=1), "tuned must be"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
