"""A run's encoder as a file that torchvision or timm can load, without setclr."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from setclr.checks import choice
from setclr.training.checkpoint import Run

NAMES = ("torchvision", "timm")
RENAMED = (  # a vision transformer's parts: torchvision's names, timm's names
    ("class_token", "cls_token"),
    ("encoder.pos_embedding", "pos_embed"),
    ("conv_proj", "patch_embed.proj"),
    ("encoder.layers.encoder_layer_", "blocks."),
    ("encoder.ln.", "norm."),
    (".ln_1.", ".norm1."),
    (".ln_2.", ".norm2."),
    (".self_attention.in_proj_", ".attn.qkv."),
    (".self_attention.out_proj.", ".attn.proj."),
    (".mlp.0.", ".mlp.fc1."),
    (".mlp.3.", ".mlp.fc2."),
)


def export(run: Run, path: str | Path, names: str = "torchvision") -> None:
    """Write the encoder's weights and buffers, a state dict on the CPU, to a file for torch.load.

    What loads it, with strict=False since the classifier is missing (fc, heads or head) and nothing else:

    - resnet18-imagenet, resnet50-imagenet: torchvision.models.resnet18() or resnet50(); timm's of the same
      names, whose parts are called the same.
    - resnet18, resnet50: likewise, once the stem for small images is in its place,
      model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False) and model.maxpool = nn.Identity().
    - vit-small16: torchvision.models.VisionTransformer(224, 16, 12, 6, 384, 1536), or, written with
      names="timm", timm's vit_small_patch16_224.
    - conv4, resnet32: neither has them; setclr.models.encoder(name, channels)[0], nothing missing.

    The tests load into torchvision. Of timm only the names and what they are used for are tested, against a
    transformer written out with timm's names.

    Images go in as floats in [0, 1], without subtracting means: that is how the encoder was trained.

    Raises:
        ValueError: unknown names, or timm's for an encoder that timm does not have.
        OSError: the file cannot be written; what was there before stays.
    """
    choice("names", names, NAMES)
    encoder = run.recipe.encoder
    if names == "timm" and encoder in ("conv4", "resnet32"):
        raise ValueError(f"names must be 'torchvision' for {encoder}, got 'timm', which has no such encoder")
    state = {key: kept.detach().cpu().contiguous() for key, kept in run.encoder.state_dict().items()}
    if names == "timm":
        state = timm_names(state)
    with replacing(Path(path)) as file:
        torch.save(state, file)


def timm_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors under timm's names. Those of ResNets are the same in both libraries."""

    def renamed(key: str) -> str:
        for there, here in RENAMED:
            key = key.replace(there, here)
        return key

    return {renamed(key): kept for key, kept in state.items()}


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """An open file that takes the place of `path` once the block has ended well; otherwise nothing changes.

    A place that cannot be written to is found before the block begins.

    Raises:
        OSError: that is so; `path` is a folder, for example.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
