"""Encoders against torchvision's and the published numbers of weights; heads against the papers' layers."""

import copy
import functools
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from setclr import models
from setclr.models import ENCODERS
from setclr.training import load_run

CHECKPOINTS = Path(__file__).resolve().parent.parent / "data" / "checkpoints"


@functools.cache
def fresh(name: str) -> nn.Module:
    """An encoder for three channels in eval mode, made once; tests that change it take a copy."""
    torch.manual_seed(0)
    return models.encoder(name)[0].eval()


def weights(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# resnet32: 464,154 with its classifier of 650 (He et al., 0.46 M), 2,752 of shortcuts, and 64 → 64.
# resnet18 and 50 with ten classes and a 3×3 stem: 11,173,962 and 23,520,842. timm's ViT-S/16: 21,665,664.
COUNTS = {
    "conv4": (24_408 + 240, 64),
    "resnet32": (464_154 - 650 + 2_752 + 65 * 64, 64),
    "resnet18": (11_173_962 - 5_130, 512),
    "resnet50": (23_520_842 - 20_490, 2048),
    "resnet18-imagenet": (11_689_512 - 513_000, 512),
    "resnet50-imagenet": (25_557_032 - 2_049_000, 2048),
    "vit-small16": (21_665_664, 384),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_published_number_of_weights(name):
    with torch.device("meta"):
        encoder, features = models.encoder(name)
    assert (weights(encoder), features) == COUNTS[name]


@torch.no_grad()
@pytest.mark.parametrize("name", ["conv4", "resnet32", "resnet18", "resnet18-imagenet", "vit-small16"])
@pytest.mark.parametrize("channels", [1, 2])
def test_encoders_of_other_channels_give_the_features_they_promise(name, channels):
    encoder, features = models.encoder(name, channels)
    found = encoder(torch.rand(2, channels, 32, 32))
    assert found.shape == (2, features) and found.isfinite().all()


@torch.no_grad()
@pytest.mark.parametrize("name", ["conv4", "resnet32", "resnet18", "resnet18-imagenet", "resnet50"])
def test_channels_last_changes_nothing_but_the_layout(name):
    x = torch.rand(2, 3, 32, 32)
    expected = fresh(name)(x)
    last = copy.deepcopy(fresh(name)).to(memory_format=torch.channels_last)
    found = last(x.to(memory_format=torch.channels_last))
    assert found.shape == (2, COUNTS[name][1])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_the_imagenet_stem_is_torchvisions():
    encoder = fresh("resnet18-imagenet")
    with torch.device("meta"):
        oracle = torchvision.models.resnet18()
    missing = oracle.load_state_dict(encoder.state_dict(), strict=False, assign=True)
    assert missing.missing_keys == ["fc.weight", "fc.bias"] and not missing.unexpected_keys
    oracle.fc = nn.Identity()
    x = torch.rand(2, 3, 64, 64)
    assert torch.equal(encoder(x), oracle.eval()(x))


def test_the_small_stem_keeps_the_resolution():
    encoder = copy.deepcopy(fresh("resnet18"))
    maps = []
    encoder.layer1.register_forward_hook(lambda module, x, y: maps.append(y.shape))
    encoder(torch.rand(2, 3, 32, 32))
    assert maps == [(2, 64, 32, 32)]


def test_resnet32_is_the_literal_formula():
    """Three stages of five blocks x ← relu(bn(conv(relu(bn(conv(x))))) + x), averaged, then linear."""
    encoder = copy.deepcopy(fresh("resnet32")).double()
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight), nn.init.normal_(module.running_mean)
    s = encoder.state_dict()

    def step(x, conv, bn, stride=1):
        x = F.conv2d(x, s[f"{conv}.weight"], stride=stride, padding=s[f"{conv}.weight"].shape[-1] // 2)
        mean, variance = s[f"{bn}.running_mean"], s[f"{bn}.running_var"]
        return F.batch_norm(x, mean, variance, s[f"{bn}.weight"], s[f"{bn}.bias"])

    images = torch.rand(3, 3, 16, 16, dtype=torch.float64)
    x = step(images, "conv1", "bn1").relu()
    assert x.shape[1:] == (16, 16, 16)
    for stage in (1, 2, 3):
        for block in range(5):
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = step(step(x, f"{at}.conv1", f"{at}.bn1", stride).relu(), f"{at}.conv2", f"{at}.bn2")
            x = step(x, f"{at}.downsample.0", f"{at}.downsample.1", 2) if stride == 2 else x
            x = (x + y).relu()
    assert x.shape[1:] == (64, 4, 4)
    torch.testing.assert_close(encoder(images), x.mean((2, 3)) @ s["fc.weight"].T + s["fc.bias"])


def test_resnet32_begins_with_hes_variance():
    weight = fresh("resnet32").layer3[4].conv2.weight
    assert float(weight.detach().std()) == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.03)


@pytest.fixture
def vit() -> nn.Module:
    return fresh("vit-small16")


def torchvisions_vit(side: int, state: dict) -> nn.Module:
    with torch.device("meta"):
        oracle = torchvision.models.VisionTransformer(side, 16, 12, 6, 384, 1536)
    missing = oracle.load_state_dict(state, strict=False, assign=True)
    assert missing.missing_keys == ["heads.head.weight", "heads.head.bias"] and not missing.unexpected_keys
    oracle.heads = nn.Identity()
    return oracle.eval()


@torch.no_grad()
def test_the_vit_is_torchvisions_at_its_own_size(vit):
    x = torch.rand(1, 3, 224, 224)
    torch.testing.assert_close(vit(x), torchvisions_vit(224, vit.state_dict())(x))


@torch.no_grad()
def test_the_vit_at_another_size_is_torchvisions_with_the_interpolated_embedding(vit):
    state = vit.state_dict()
    grid = state["encoder.pos_embedding"][:, 1:].unflatten(1, (14, 14)).permute(0, 3, 1, 2)
    small = F.interpolate(grid, (6, 6), mode="bicubic", antialias=True).flatten(2).mT
    state["encoder.pos_embedding"] = torch.cat([state["encoder.pos_embedding"][:, :1], small], 1)
    x = torch.rand(2, 3, 96, 96)
    torch.testing.assert_close(vit(x), torchvisions_vit(96, state)(x), rtol=1e-4, atol=1e-5)


def test_every_place_of_the_vit_learns_from_small_images(vit):
    (gradient,) = torch.autograd.grad(vit(torch.rand(1, 3, 64, 48)).sum(), vit.encoder.pos_embedding)
    assert gradient.isfinite().all() and (gradient.abs().sum(2) > 0).all()


def test_places_follow_rows_and_columns(vit):
    """An embedding that is linear across the grid stays so: rows and columns are not mixed up."""
    other, place = copy.deepcopy(vit), torch.arange(14.0)
    grid = other.encoder.pos_embedding.data[0, 1:].view(14, 14, -1)
    grid[..., 0], grid[..., 1] = place[:, None], place
    found = other.places(4, 7)[0, 1:].unflatten(0, (4, 7))
    assert (found[1:, :, 0] > found[:-1, :, 0] + 2).all() and (found[:, 1:, 1] > found[:, :-1, 1] + 1).all()
    torch.testing.assert_close(found[:, :1, 0].expand(4, 7), found[:, :, 0])


def test_sides_that_patches_do_not_fill_are_refused(vit):
    with pytest.raises(ValueError, match="multiples of 16 px .* got 100x96"):
        vit(torch.rand(1, 3, 100, 96))


@pytest.mark.parametrize(
    "name, message", [("resnet34", "did you mean 'resnet32'"), ("vit", "encoder must be one of")]
)
def test_unknown_encoders_are_named(name, message):
    with pytest.raises(ValueError, match=message):
        models.encoder(name)
    with pytest.raises(ValueError, match="channels must be an integer >= 1, got 0"):
        models.encoder("conv4", 0)


def kinds(module: nn.Module) -> list[str]:
    return [type(part).__name__ for part in module]


def test_grocos_head():
    head = models.head(64, 32, 32, last_norm=True, layers=3, activation="relu")
    assert kinds(head) == ["Linear", "BatchNorm1d", "ReLU"] * 2 + ["Linear", "BatchNorm1d"]
    assert [part.out_features for part in head if isinstance(part, nn.Linear)] == [32, 32, 32]
    assert head[-1].weight is None and head[1].weight is not None
    z = head(torch.randn(64, 64))
    torch.testing.assert_close(z.mean(0), torch.zeros(32), rtol=0, atol=1e-5)
    torch.testing.assert_close(z.std(0, correction=0), torch.ones(32), rtol=0, atol=1e-2)


def test_heads_of_two_layers_and_of_one():
    mmcl = models.head(2048, 512, 128, activation="relu")
    assert kinds(mmcl) == ["Linear", "BatchNorm1d", "ReLU", "Linear"]
    assert [tuple(w.shape) for w in (mmcl[0].weight, mmcl[3].weight)] == [(512, 2048), (128, 512)]
    assert mmcl[0].bias is None and mmcl[3].bias is not None
    assert kinds(models.head(64, 16, 8)) == ["Linear", "BatchNorm1d", "LeakyReLU", "Linear"]
    (single,) = models.head(64, 16, 8, layers=1)
    assert single.weight.shape == (8, 64)


@pytest.mark.parametrize("name", sorted(path.name for path in CHECKPOINTS.iterdir()))
def test_stored_checkpoints_load(name):
    run = load_run(CHECKPOINTS / name)
    z = run.head(run.encoder(torch.rand(4, 3, 32, 32)))
    assert z.shape == (4, 64) and z.isfinite().all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"layers": 0}, "layers must be an integer >= 1, got 0"),
        ({"hidden": 1.5}, "hidden must be an integer >= 1, got 1.5"),
        ({"activation": "rely"}, "activation must be one of .*did you mean 'relu'"),
        ({"last_norm": 1}, "last_norm must be True or False, got 1"),
    ],
)
def test_bad_heads_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        models.head(**{"features": 8, "hidden": 8, "out": 4} | change)


def test_every_encoder_is_tested():
    assert set(ENCODERS) == set(COUNTS)


def test_the_vit_takes_two_sizes_in_half_precision(vit):
    """As multi-crop does: two sizes through the same weights, one backward pass."""
    encoder = copy.deepcopy(vit).train()
    with torch.autocast("cpu", torch.bfloat16):
        features = [encoder(torch.rand(1, 3, side, side)) for side in (64, 32)]
    sum(x.float().square().sum() for x in features).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())
