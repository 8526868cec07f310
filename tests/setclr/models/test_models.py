"""Encoders against torchvision, timm and the published numbers of weights; heads against the papers."""

import copy
import functools
import itertools
import math
import subprocess
import sys

import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from setclr import models
from setclr.recipes import ImageRecipe


def seeded_encoder(name: str, **more) -> nn.Module:
    torch.manual_seed(0)
    return models.encoder(name, **more)[0]


@functools.cache
def fresh(name: str) -> nn.Module:
    """An encoder for three channels in eval mode, made once; tests that change it take a copy."""
    return seeded_encoder(name).eval()


# resnet32: 464,154 with its classifier of 650 (He et al., 0.46 M), 2,752 of shortcuts, and 64 → 64.
# resnet18 and 50 with ten classes and a 3×3 stem: 11,173,962 and 23,520,842. timm's ViT-S/16: 21,665,664.
VIT = "vit-small16-moco"
COUNTS = {
    "conv4": (24_408 + 240, 64),
    "resnet32": (464_154 - 650 + 2_752 + 65 * 64, 64),
    "resnet18": (11_173_962 - 5_130, 512),
    "resnet50": (23_520_842 - 20_490, 2048),
    "resnet18-imagenet": (11_689_512 - 513_000, 512),
    "resnet50-imagenet": (25_557_032 - 2_049_000, 2048),
    VIT: (21_665_664 - 197 * 384, 384),  # its positions are no weights
}


@pytest.mark.parametrize("name", models.ENCODERS)
def test_the_published_number_of_weights(name):
    with torch.device("meta"):
        encoder, features = models.encoder(name)
    assert (sum(p.numel() for p in encoder.parameters()), features) == COUNTS[name]


@torch.no_grad()
@pytest.mark.parametrize("name", ["conv4", "resnet32", "resnet18", "resnet18-imagenet", VIT])
def test_encoders_of_one_channel_give_the_features_they_promise(name):
    encoder, features = models.encoder(name, 1)
    found = encoder(torch.rand(2, 1, 32, 32))
    assert found.shape == (2, features) and found.isfinite().all()


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


def test_first_weights_are_those_of_torchs_initialisers():
    """Conv-4's first layer as the QARe paper's program has it: normal, deviation √(2 / (9 · 8)) = 0.167."""
    he = functools.partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")
    for initial, draw in {"he": he, "xavier": nn.init.xavier_uniform_}.items():
        plain = seeded_encoder("conv4")
        for module in plain.modules():
            if isinstance(module, nn.Conv2d):
                draw(module.weight.data)
        begun = seeded_encoder("conv4", initial=initial)
        assert all(map(torch.equal, begun.state_dict().values(), plain.state_dict().values()))


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_zero_residual_is_torchvisions(name):
    torch.manual_seed(0)
    theirs = getattr(torchvision.models, name)(zero_init_residual=True)
    theirs.fc = nn.Identity()
    ours = seeded_encoder(f"{name}-imagenet", initial="zero-residual")
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=0, atol=0)


@torch.no_grad()
def test_a_normalised_encoder_is_torchvisions_normalize_before_it():
    for name, values in models.NORMALISED.items():
        plain, encoder = seeded_encoder("conv4"), seeded_encoder("conv4", normalised=name)
        assert encoder.state_dict().keys() == plain.state_dict().keys()
        x = torch.rand(4, 3, 32, 32)
        shown = F.instance_norm(x) if name == "image" else x
        expected = plain(shown if values is None else torchvision.transforms.functional.normalize(x, *values))
        torch.testing.assert_close(copy.deepcopy(encoder)(x), expected)


def literal_positions(rows: int, columns: int) -> torch.Tensor:
    """build_2d_sincos_position_embedding of facebookresearch/moco-v3, vits.py, a number at a time."""
    found = torch.zeros(1 + rows * columns, 384, dtype=torch.float64)  # the class token's is 0
    for row, column, k in itertools.product(range(rows), range(columns), range(96)):
        omega, token = 1 / 10_000 ** (k / 96), 1 + row * columns + column
        found[token, k], found[token, 96 + k] = math.sin(row * omega), math.cos(row * omega)
        found[token, 192 + k], found[token, 288 + k] = math.sin(column * omega), math.cos(column * omega)
    return found[None]


@torch.no_grad()
@pytest.mark.parametrize("rows, columns", [(14, 14), (4, 7)])
def test_moco_v3s_vit_is_timms_with_12_heads_and_fixed_positions(rows, columns):
    """For every grid timm's ViT for images of that size, with the positions of that grid."""
    sides = 16 * rows, 16 * columns
    oracle = timm.create_model("vit_small_patch16_224", num_heads=12, num_classes=0, img_size=sides).eval()
    oracle.load_state_dict(fresh(VIT).state_dict() | {"pos_embed": literal_positions(rows, columns)})
    x = torch.rand(2, 3, *sides)
    torch.testing.assert_close(fresh(VIT)(x), oracle(x), rtol=1e-4, atol=1e-5)
    if rows == columns:
        kept = fresh(VIT).pos_embed.double()
        torch.testing.assert_close(kept, literal_positions(rows, columns), rtol=0, atol=1e-5)


def test_all_of_moco_v3s_vit_learns_but_positions_and_projection():
    """From two sizes through the same weights, as in multi-crop, by a random projection of the features."""
    encoder, names = copy.deepcopy(fresh(VIT)).double().train(), dict(fresh(VIT).named_parameters())
    features = [encoder(torch.rand(2, 3, *sides, dtype=torch.float64)) for sides in ((32, 48), (16, 32))]
    (torch.cat(features) @ torch.randn(384, dtype=torch.float64)).sum().backward()
    torch.optim.AdamW(encoder.parameters(), lr=0.01, weight_decay=0.1).step()
    same = {name for name, p in encoder.named_parameters() if torch.equal(p, names[name].double())}
    assert same == {"patch_embed.proj.weight", "patch_embed.proj.bias"}
    assert "pos_embed" not in names and torch.equal(encoder.pos_embed, fresh(VIT).pos_embed.double())


def test_timm_is_asked_for_by_those_who_need_it_alone(monkeypatch):
    loaded = "import sys; from setclr.recipes import RECIPES; sys.exit('timm' in sys.modules)"
    subprocess.run([sys.executable, "-c", loaded], check=True)
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.delitem(sys.modules, "setclr.models.vit")
    monkeypatch.delattr(models, "vit")
    for name in (VIT, "timm:resnet18"):
        with pytest.raises(ModuleNotFoundError, match=r"setclr needs timm .* 'setclr\[encoders\]'"):
            models.encoder(name)
    with pytest.raises(ModuleNotFoundError, match="setclr needs timm"):
        ImageRecipe("InfoNCE()", encoder="timm:resnet18")


def test_heads_of_three_two_and_one_layers():
    kinds = lambda module: [type(part).__name__ for part in module]  # noqa: E731
    head = models.head(64, 32, 32, last_norm=True, layers=3, activation="relu")
    assert kinds(head) == ["Linear", "BatchNorm1d", "ReLU"] * 2 + ["Linear", "BatchNorm1d"]
    assert [part.out_features for part in head if isinstance(part, nn.Linear)] == [32, 32, 32]
    assert head[-1].weight is None and head[1].weight is not None
    mmcl = models.head(2048, 512, 128, activation="relu")
    assert kinds(mmcl) == ["Linear", "BatchNorm1d", "ReLU", "Linear"]
    assert [tuple(w.shape) for w in (mmcl[0].weight, mmcl[3].weight)] == [(512, 2048), (128, 512)]
    assert mmcl[0].bias is None and mmcl[3].bias is not None
    assert kinds(models.head(64, 16, 8)) == ["Linear", "BatchNorm1d", "LeakyReLU", "Linear"]
    plain = models.head(512, 1024, 128, activation="relu", norm=False)  # dkobak/simclr-cifar10
    assert kinds(plain) == ["Linear", "ReLU", "Linear"] and plain[0].bias is not None
    (single,) = models.head(64, 16, 8, layers=1)
    assert single.weight.shape == (8, 64)


@pytest.mark.parametrize("make, message", [
    (lambda: models.encoder("conv4", 1, normalised="cifar10"), "channels must be .* got 1; normalised="),
    (lambda: models.encoder("vit"), "encoder must be one of .*timm:NAME takes any model of timm"),
    (lambda: fresh(VIT)(torch.rand(1, 3, 100, 96)), r"multiples of \(16, 16\) px, got \(100, 96\)"),
    (lambda: fresh("timm:convit_tiny")(torch.rand(1, 3, 96, 96)), r"sides \(224, 224\) px, got"),
])  # fmt: skip
def test_heads_encoders_and_sides_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
