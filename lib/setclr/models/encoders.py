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

from setclr.checks import choice, integer


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


ENCODERS = {
    "conv4": conv4,
    "resnet32": resnet32,
    "resnet18": partial(resnet, "resnet18", True),
    "resnet50": partial(resnet, "resnet50", True),
    "resnet18-imagenet": partial(resnet, "resnet18", False),
    "resnet50-imagenet": partial(resnet, "resnet50", False),
    "vit-small16": vit_small16,
}


def encoder(name: str, channels: int = 3) -> tuple[nn.Module, int]:
    """The encoder of that name with fresh weights, and its number of features D.

    Raises:
        ValueError: unknown name (the nearest is named) or channels < 1.
    """
    choice("encoder", name, ENCODERS)
    return ENCODERS[name](channels=integer("channels", channels, least=1))
