"""Encoders by name: images (N, C, H, W), float in [0, 1] → features (N, D); heads: features → embeddings.

The features are kept and evaluated. The head that makes embeddings of them is discarded (Chen et al. 2020).
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from setclr.checks import boolean, choice, integer
from setclr.data_sets import DATA_SETS
from setclr.extras import extra


def conv4(channels: int = 3) -> tuple[nn.Module, int]:
    """Four 3×3 convolutions with 8, 16, 32 and 64 maps: 64 features.

    Pooling halves the first three outputs and averages the last. This is the small encoder of the QARe
    paper's table 2. 24,600 weights for three channels.
    """
    layers, width = [], channels
    for maps in (8, 16, 32, 64):
        pool = nn.AvgPool2d(2) if maps < 64 else nn.AdaptiveAvgPool2d(1)
        layers += [nn.Conv2d(width, maps, 3, padding=1, bias=False), nn.BatchNorm2d(maps), nn.ReLU(), pool]
        width = maps
    return nn.Sequential(*layers, nn.Flatten()), width


def resnet32(channels: int = 3) -> tuple[nn.Module, int]:
    """The ResNet of He et al. 2016 for small images, 5 blocks each of 16, 32 and 64 maps: 64 features.

    This is the large encoder of the QARe paper's table 2. Three details follow its authors' program:
    shortcuts that change the shape are 1×1 convolutions with batch norm; initial weights of convolutions
    are normal with He's variance (the supplement says Xavier); a linear layer 64 → 64 follows the pooling.
    470,000 weights.
    """
    from torchvision.models.resnet import BasicBlock

    parts: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(channels, 16, 3, padding=1, bias=False), bn1=nn.BatchNorm2d(16), relu=nn.ReLU()
    )
    first = BasicBlock(16, 16)
    for stage, maps in enumerate((16, 32, 64), start=1):
        if maps > 16:
            shortcut = nn.Sequential(nn.Conv2d(maps // 2, maps, 1, 2, bias=False), nn.BatchNorm2d(maps))
            first = BasicBlock(maps // 2, maps, 2, shortcut)
        parts[f"layer{stage}"] = nn.Sequential(first, *(BasicBlock(maps, maps) for _ in range(4)))
    parts |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "fc": nn.Linear(64, 64)}
    model = nn.Sequential(parts)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model, 64


def resnet(name: str, small: bool, channels: int = 3) -> tuple[nn.Module, int]:
    """torchvision's "resnet18" or "resnet50" without its classifier: 512 or 2048 features.

    With `small`, for small images, the stem is a 3×3 convolution with stride 1 and no pooling. Otherwise it
    is torchvision's.
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


def vit_small16_moco(channels: int = 3) -> tuple[nn.Module, int]:
    """MoCo v3's ViT-Small/16: 384 features, those of the class token. 21.6 million weights.

    Images may have any sides that are multiples of 16 px; others raise a ValueError. Needs timm.
    """
    from setclr.models.vit import MoCoViT

    return MoCoViT(channels), 384


ACTIVATIONS = {"leaky_relu": nn.LeakyReLU, "relu": nn.ReLU}
TIMM = "timm:"
ENCODERS: dict[str, Callable[..., tuple[nn.Module, int]]] = {
    "conv4": conv4, "resnet32": resnet32, "resnet18": partial(resnet, "resnet18", small=True),
    "resnet50": partial(resnet, "resnet50", small=True),
    "resnet18-imagenet": partial(resnet, "resnet18", small=False),
    "resnet50-imagenet": partial(resnet, "resnet50", small=False), "vit-small16-moco": vit_small16_moco,
}  # fmt: skip


INITIAL: dict[str, Callable[[Tensor], object] | None] = {  # initial weights of convolutions
    "torch": None,
    "he": partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu"),
    "xavier": nn.init.xavier_uniform_,
    "zero-residual": None,
}
NORMALISED = {  # mean and deviation of each channel
    "none": None,
    "image": None,  # each image's own
    "tiny-imagenet": ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
    "cifar10-mmcl": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),  # deviations within an image
    **{name: one.colours for name, one in DATA_SETS.items() if one.colours},
}


def encoder(
    name: str, channels: int = 3, initial: str = "torch", normalised: str = "none"
) -> tuple[nn.Module, int]:
    """An encoder with fresh weights, and its number of features D. Names: ENCODERS, timm:NAME.

    Args:
        initial: the initial weights of convolutions. "torch": the encoder's own. "he": normal with variance
            2 / (maps out · area of the kernel). "xavier": uniform with variance 2 / ((maps in + maps out) ·
            area), Glorot and Bengio 2010. "zero-residual": the encoder's own, but the last batch norm of
            each residual block starts with scales of 0, so that the block starts as its shortcut.
        normalised: a key of NORMALISED. For a data set, the encoder first subtracts its mean colour and
            divides by its deviation, both of three channels; they are not in the state dict. "image" takes
            each image's own mean and deviation, which removes its tint and contrast.

    Raises:
        ValueError: unknown name (the message gives the nearest), channels < 1, or channels other than 3
            with `normalised` for a data set.
        ModuleNotFoundError: the encoder needs torchvision or timm, which is not installed.
    """
    check_encoder(name)
    integer("channels", channels, least=1)
    begin = INITIAL[choice("initial", initial, INITIAL)]
    colours = NORMALISED[choice("normalised", normalised, NORMALISED)]
    if name in ENCODERS:
        with extra("train"):
            model, features = ENCODERS[name](channels=channels)
    else:
        from setclr.models.vit import timm_encoder

        model, features = timm_encoder(name.removeprefix(TIMM), channels)
    if begin:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                begin(module.weight)
    if initial == "zero-residual":
        for block in model.modules():
            if norm := getattr(block, "bn3", getattr(block, "bn2", None)):
                nn.init.zeros_(norm.weight)
    if colours:
        integer("channels", channels, least=3, most=3, hint=f"normalised={normalised!r} has three")
        for key, values in zip(("mean", "deviation"), colours):
            model.register_buffer(key, torch.tensor(values).view(3, 1, 1), persistent=False)
    if normalised != "none":
        cast(Any, model).by_image = normalised == "image"
        model.register_forward_pre_hook(normalise)
    return model, features


def normalise(encoder: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
    """Images (N, C, H, W) for the first layer, normalised if the encoder was built with `normalised`."""
    if getattr(encoder, "by_image", False):
        return (nn.functional.instance_norm(inputs[0]),)
    if not hasattr(encoder, "deviation"):
        return inputs
    return ((inputs[0] - cast(Tensor, encoder.mean)) / cast(Tensor, encoder.deviation),)


def check_encoder(name: str) -> str:
    """`name` if `encoder` knows it. Otherwise raises as `encoder` does. Imports timm only for timm:NAME."""
    if not str(name).startswith(TIMM):
        return choice("encoder", name, ENCODERS, hint=f"{TIMM}NAME takes any model of timm")
    from setclr.models.vit import timm

    names = [TIMM + model for model in timm.list_models()]
    return choice("encoder", name, names, hint="timm.list_models() lists them")


def head(
    features: int, hidden: int, out: int, last_norm: bool = False, layers: int = 2,
    activation: str = "leaky_relu", norm: bool = True,
) -> nn.Module:  # fmt: skip
    """Projection head: features → hidden → … → out, batch norm and an activation between linear layers.

    The defaults are the QARe paper's. GroCo's is head(2048, 2048, 2048, last_norm=True, layers=3,
    activation="relu"), MMCL's head(2048, 512, 128, activation="relu"). Raises ValueError for bad arguments.

    Args:
        last_norm: end with a batch norm without scale and shift, as GroCo's authors do. GroCo needs it:
            with a plain linear output all embeddings become equal within an epoch.
        layers: number of linear layers; a single one is features → out, and `hidden` is not used.
        activation: a key of ACTIVATIONS.
        norm: batch norms between the layers. Without them the hidden layers have a bias.
    """
    for name, value in (("features", features), ("hidden", hidden), ("out", out), ("layers", layers)):
        integer(name, value, least=1)
    boolean("last_norm", last_norm)
    boolean("norm", norm)
    between = ACTIVATIONS[choice("activation", activation, ACTIVATIONS)]
    parts, width = [], features
    for _ in range(layers - 1):
        middle = [nn.BatchNorm1d(hidden)] if norm else []
        parts += [nn.Linear(width, hidden, bias=not norm), *middle, between()]
        width = hidden
    parts.append(nn.Linear(width, out))
    return nn.Sequential(*parts, *([nn.BatchNorm1d(out, affine=False)] if last_norm else []))
