"""Encoders of clips: (N, C, T, H, W) float → features (N, D)."""

from collections.abc import Callable

from torch import nn

from setclr.checks import choice, integer
from setclr.extras import extra


def conv4_clips(channels: int = 3) -> tuple[nn.Module, int]:
    """Conv-4 for clips: four 3×3×3 convolutions with 8, 16, 32 and 64 channels; 64 features.

    It is the Conv-4 of setclr.models with a third dimension. The first convolution has a stride of two
    pixels, so that two cores train it in a minute. The next two are followed by pooling that halves time
    and space, the last by an average over both. 73,000 weights for three channels.
    """
    layers, width = [], channels
    for maps in (8, 16, 32, 64):
        first = nn.Conv3d(width, maps, 3, stride=(1, 2, 2) if maps == 8 else 1, padding=1, bias=False)
        pool = {8: nn.Identity(), 64: nn.AdaptiveAvgPool3d(1)}.get(maps, nn.AvgPool3d(2, ceil_mode=True))
        layers += [first, nn.BatchNorm3d(maps), nn.ReLU(), pool]
        width = maps
    return nn.Sequential(*layers, nn.Flatten()), width


def s3d(channels: int = 3) -> tuple[nn.Module, int]:
    """torchvision's S3D (Xie et al. 2018) without classifier, averaged over time and space: 1024
    features.

    Clips must have at least 5 frames of at least 32 pixels. Training takes 8 frames: with 5 to 7 torch 2.15
    crashes or gets the gradients of the first convolution over time wrong, by 26 to 36 %, where there is
    AVX-512 (they are right with ONEDNN_MAX_CPU_ISA=AVX2). 7.9 million weights.
    """
    from torchvision.models.video import s3d as whole

    model = whole(weights=None)
    if channels != 3:
        model.features[0][0][0] = nn.Conv3d(channels, 64, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False)
    return nn.Sequential(model.features, nn.AdaptiveAvgPool3d(1), nn.Flatten()), 1024


VIDEO_ENCODERS: dict[str, Callable[[int], tuple[nn.Module, int]]] = {"conv4-clips": conv4_clips, "s3d": s3d}


def video_encoder(name: str, channels: int = 3) -> tuple[nn.Module, int]:
    """An encoder of that name, a key of VIDEO_ENCODERS, with initial weights, and its number of features
    D. `channels`: 3 for colours, 2 for flow. Raises ValueError for another name or channels < 1;
    ModuleNotFoundError where torchvision is missing."""
    integer("channels", channels, least=1)
    with extra("train"):
        return VIDEO_ENCODERS[choice("encoder", name, VIDEO_ENCODERS)](channels)
