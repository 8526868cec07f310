"""Encoders, by name, and the projection heads that stand on them while they train.

An encoder takes images (N, C, H, W), float in [0, 1], to features (N, D); a head takes features to the
embeddings (N, E) that a loss sees. Features are what is kept and evaluated, the head is thrown away (Chen et
al. 2020).
"""

from torch import nn

from setclr.checks import choice, integer


def conv4(channels: int = 3) -> tuple[nn.Module, int]:
    """Four 3×3 convolutions with 8, 16, 32 and 64 maps, each halved but the last, which is averaged: 64
    features.

    The small encoder of the QARe paper's table 2. 24,000 weights for three channels.
    """
    layers, width = [], channels
    for maps in (8, 16, 32, 64):
        pool = nn.AvgPool2d(2) if maps < 64 else nn.AdaptiveAvgPool2d(1)
        layers += [nn.Conv2d(width, maps, 3, padding=1, bias=False), nn.BatchNorm2d(maps), nn.ReLU(), pool]
        width = maps
    return nn.Sequential(*layers, nn.Flatten()), width


def resnet18(channels: int = 3) -> tuple[nn.Module, int]:
    """torchvision's ResNet-18 with the stem for small images, a 3×3 convolution and no pooling: 512
    features."""
    from torchvision.models import resnet18

    model = resnet18(weights=None)
    model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    model.fc = nn.Identity()
    return model, 512


ENCODERS = {"conv4": conv4, "resnet18": resnet18}


def encoder(name: str, channels: int = 3) -> tuple[nn.Module, int]:
    """The encoder of that name with fresh weights, and its number of features D.

    Raises:
        ValueError: unknown name (the nearest is named) or channels < 1.
    """
    choice("encoder", name, ENCODERS)
    return ENCODERS[name](integer("channels", channels, least=1))


def head(features: int, hidden: int, out: int, last_norm: bool = False) -> nn.Module:
    """Projection head: features → hidden → out, batch norm and LeakyReLU between (the QARe paper's).

    Args:
        last_norm: end with a batch norm without scale and shift, as GroCo's authors do. GroCo needs it: with
            a plain linear output all embeddings become equal within an epoch.
    """
    layers = [
        nn.Linear(features, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.LeakyReLU(),
        nn.Linear(hidden, out),
    ]
    return nn.Sequential(*layers, *([nn.BatchNorm1d(out, affine=False)] if last_norm else []))
