"""Encoders, by name, and the projection heads that stand on them while they train.

An encoder takes images (N, C, H, W), float in [0, 1], to features (N, D); a head takes features to the
embeddings (N, E) that a loss sees. Features are what is kept and evaluated, the head is thrown away (Chen et
al. 2020).
"""

import math
from collections import OrderedDict
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import boolean, choice, integer


def conv4(channels: int = 3) -> tuple[nn.Module, int]:
    """Four 3×3 convolutions with 8, 16, 32 and 64 maps, each halved but the last, which is averaged: 64
    features.

    The small encoder of the QARe paper's table 2. 24,600 weights for three channels.
    """
    layers, width = [], channels
    for maps in (8, 16, 32, 64):
        pool = nn.AvgPool2d(2) if maps < 64 else nn.AdaptiveAvgPool2d(1)
        layers += [nn.Conv2d(width, maps, 3, padding=1, bias=False), nn.BatchNorm2d(maps), nn.ReLU(), pool]
        width = maps
    return nn.Sequential(*layers, nn.Flatten()), width


def resnet32(channels: int = 3) -> tuple[nn.Module, int]:
    """The ResNet of He et al. 2016 for small images, 5 blocks each of 16, 32 and 64 maps: 64 features.

    The large encoder of the QARe paper's table 2. As in its authors' program, shortcuts that change the shape
    are 1×1 convolutions with batch norm, convolutions begin normal with He's variance (the supplement says
    Xavier), and a linear layer 64 → 64 follows the pooling. 470,000 weights.
    """
    from torchvision.models.resnet import BasicBlock

    parts = OrderedDict(conv1=nn.Conv2d(channels, 16, 3, padding=1, bias=False))
    parts |= {"bn1": nn.BatchNorm2d(16), "relu": nn.ReLU()}
    width = 16
    for stage, maps in enumerate((16, 32, 64), start=1):
        stride, shortcut = 1, None
        if maps != width:
            stride = 2
            shortcut = nn.Sequential(nn.Conv2d(width, maps, 1, 2, bias=False), nn.BatchNorm2d(maps))
        blocks = [BasicBlock(width, maps, stride, shortcut), *(BasicBlock(maps, maps) for _ in range(4))]
        parts[f"layer{stage}"] = nn.Sequential(*blocks)
        width = maps
    parts |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "fc": nn.Linear(64, 64)}
    model = nn.Sequential(parts)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model, 64


def resnet(name: str, small: bool, channels: int = 3) -> tuple[nn.Module, int]:
    """torchvision's ResNet of that name without its classifier: 512 features ("resnet18") or 2048
    ("resnet50").

    Args:
        small: the stem for small images, a 3×3 convolution with stride 1 and no pooling. Otherwise the stem
            stays as it is: 7×7, stride 2, max pooling.
    """
    from torchvision import models

    model = getattr(models, name)(weights=None)
    features = model.fc.in_features
    if small:
        model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        model.maxpool = nn.Identity()
    elif channels != 3:
        model.conv1 = nn.Conv2d(channels, 64, 7, 2, padding=3, bias=False)
    model.fc = nn.Identity()
    return model, features


def vit_small16(channels: int = 3) -> tuple[nn.Module, int]:
    """ViT-Small/16, 384 wide, 12 blocks, 6 heads, patches of 16 px: 384 features, those of the class token.

    torchvision's transformer with its own first weights, learned position embedding included. 21.7 million
    weights. GroCo's table 6 has it in MoCo v3, whose position embedding is fixed.
    """
    from torchvision.models import VisionTransformer

    model = VisionTransformer(224, 16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=4 * 384)
    if channels != 3:
        model.conv_proj = nn.Conv2d(channels, 384, 16, 16)
    return ClassToken(model), 384


class ClassToken(nn.Module):
    """A vision transformer of torchvision's without its classifier, for images of several sizes.

    Its state dict has torchvision's names. Where an image has another grid of patches than the one the
    position embedding was made for (14×14), the embedding is interpolated, so views of 224 and crops of 96 px
    go through the same weights.
    """

    def __init__(self, whole: nn.Module):
        super().__init__()
        self.conv_proj, self.class_token, self.encoder = whole.conv_proj, whole.class_token, whole.encoder

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) → (N, D). Raises ValueError unless H and W are multiples of the patch."""
        patch = self.conv_proj.stride[0]
        if x.shape[2] % patch or x.shape[3] % patch:
            raise ValueError(
                f"images must have sides that are multiples of {patch} px for a ViT with such patches, got "
                f"{x.shape[2]}x{x.shape[3]}; choose size, view_size and local_size accordingly"
            )
        x = self.conv_proj(x)
        places = self.places(*x.shape[2:])
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x.flatten(2).mT], dim=1) + places
        return self.encoder.ln(self.encoder.layers(self.encoder.dropout(x)))[:, 0]

    def places(self, rows: int, columns: int) -> Tensor:
        """The position embedding (1, 1 + rows · columns, D), the class token's first."""
        own = self.encoder.pos_embedding
        side = math.isqrt(own.shape[1] - 1)
        if (rows, columns) == (side, side):
            return own
        # As a matrix product, since the gradient of interpolate itself differs from call to call on a GPU.
        grid = torch.eye(side * side, device=own.device, dtype=own.dtype).view(-1, 1, side, side)
        weights = F.interpolate(grid, (rows, columns), mode="bicubic", antialias=True).flatten(1)
        return torch.cat([own[:, :1], weights.mT @ own[:, 1:]], dim=1)


class Places(nn.Module):
    """An encoder that also gives the map half-way through it, whose places see a part of the image alone.

    Images → (N, D + L·C): the D features, then the C channels of each of L places. The map is that after the
    second pooling of "conv4" or the second stage of a ResNet.

    Raises ValueError for another encoder.
    """

    def __init__(self, encoder: nn.Module):
        super().__init__()
        pools = [module for module in encoder.modules() if isinstance(module, nn.AvgPool2d)]
        self.encoder = encoder
        self.middle = getattr(encoder, "layer2", pools[1] if len(pools) > 1 else None)
        if self.middle is None:
            raise ValueError(
                "encoder must have a map half-way for DeepInfoMax (conv4, resnet32, resnet18, resnet50), got "
                f"{type(encoder).__name__}"
            )

    def forward(self, x: Tensor) -> Tensor:
        whole, places = self.parts(x)
        return torch.cat([whole, places.flatten(1)], dim=1)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, D) and places (N, L, C)."""
        maps = []
        hook = self.middle.register_forward_hook(lambda module, inputs, output: maps.append(output))
        try:
            whole = self.encoder(x)
        finally:
            hook.remove()
        return whole, maps[0].flatten(2).mT


class PlacesHead(nn.Module):
    """A head for the whole image and one for its places, as in Hjelm et al. 2019.

    Features (N, D + L·C) as `Places` gives them → embeddings ((1 + L)·N, E), place after place; (N, D) →
    (N, E) by the first head.

    Args:
        whole: D → E.
        place: C → E.
        features, channels: D and C.
    """

    def __init__(self, whole: nn.Module, place: nn.Module, features: int, channels: int):
        super().__init__()
        self.whole, self.place, self.features, self.channels = whole, place, features, channels

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == self.features:
            return self.whole(x)
        whole, places = x[:, : self.features], x[:, self.features :].unflatten(1, (-1, self.channels))
        places = self.place(places.flatten(0, 1)).unflatten(0, (len(x), -1))
        return torch.cat([self.whole(whole), places.transpose(0, 1).flatten(0, 1)])


ENCODERS = {
    "conv4": conv4,
    "resnet32": resnet32,
    "resnet18": partial(resnet, "resnet18", True),
    "resnet50": partial(resnet, "resnet50", True),
    "resnet18-imagenet": partial(resnet, "resnet18", False),
    "resnet50-imagenet": partial(resnet, "resnet50", False),
    "vit-small16": vit_small16,
}
ACTIVATIONS = {"leaky_relu": nn.LeakyReLU, "relu": nn.ReLU}


def encoder(name: str, channels: int = 3) -> tuple[nn.Module, int]:
    """The encoder of that name with fresh weights, and its number of features D.

    Raises:
        ValueError: unknown name (the nearest is named) or channels < 1.
    """
    choice("encoder", name, ENCODERS)
    return ENCODERS[name](channels=integer("channels", channels, least=1))


def head(
    features: int,
    hidden: int,
    out: int,
    last_norm: bool = False,
    layers: int = 2,
    activation: str = "leaky_relu",
) -> nn.Module:
    """Projection head: features → hidden → … → out, batch norm and an activation between linear layers.

    The defaults are the QARe paper's. GroCo's is head(2048, 2048, 2048, last_norm=True, layers=3,
    activation="relu"), MMCL's head(2048, 512, 128, activation="relu").

    Args:
        last_norm: end with a batch norm without scale and shift, as GroCo's authors do. GroCo needs it: with
            a plain linear output all embeddings become equal within an epoch.
        layers: linear layers in all; 1 is a single one, features → out, and leaves `hidden` unused.
        activation: "leaky_relu" or "relu".

    Raises:
        ValueError: an argument is not as above; the message names it.
    """
    for name, value in (("features", features), ("hidden", hidden), ("out", out), ("layers", layers)):
        integer(name, value, least=1)
    boolean("last_norm", last_norm)
    between = ACTIVATIONS[choice("activation", activation, ACTIVATIONS)]
    parts, width = [], features
    for _ in range(layers - 1):
        parts += [nn.Linear(width, hidden, bias=False), nn.BatchNorm1d(hidden), between()]
        width = hidden
    parts.append(nn.Linear(width, out))
    return nn.Sequential(*parts, *([nn.BatchNorm1d(out, affine=False)] if last_norm else []))
