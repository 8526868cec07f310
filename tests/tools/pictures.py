"""Pictures for tests, and the one table of files that are none and of names that files may have."""

import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from conftest import numpy_shifted, shifted
from PIL import Image
from torch import Tensor

from setclr.data import ImageSet


def smooth(n: int, H: int = 64, W: int = 64, seed: int = 0) -> Tensor:
    """Smooth colour pictures (n, 3, H, W) uint8."""
    coarse = torch.rand(n, 3, 5, 6, generator=shifted(seed)) * 1.2 - 0.1
    large = torch.nn.functional.interpolate(coarse, (H, W), mode="bicubic")
    return (255 * large.clamp(0, 1)).round().byte()


def saved(folder: Path, images: Iterable[Tensor], name: str = "png", **options) -> list[Path]:
    """The files of these images, 000.png and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i, image in enumerate(images):
        paths.append(folder / f"{i:03d}.{name}")
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(paths[-1], **options)
    return paths


def grey_level(path: Path, level: int, size: tuple[int, int] = (8, 6), mode: str = "RGB") -> None:
    """Save a picture of one colour, whose red is the level."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (level, 0, 200)).convert(mode).save(path)


def cut(path: Path, kind: str = "png") -> None:
    """A picture whose header is whole and whose last third is missing."""
    with path.open("wb") as file:
        Image.fromarray(numpy_shifted(0).integers(0, 256, (64, 64, 3), np.uint8)).save(file, kind)
    os.truncate(path, path.stat().st_size * 2 // 3)


def png(path: Path, side: int, bits: int, kind: int, rows: bytes) -> None:
    """A PNG that says it has side × side pixels; kind 0 is grey, 2 RGB, 4 and 6 the same with alpha."""
    head = struct.pack(">IIBBBBB", side, side, bits, kind, 0, 0, 0)
    whole = b"\x89PNG\r\n\x1a\n"
    for name, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        checksum = struct.pack(">I", zlib.crc32(name + content))
        whole += struct.pack(">I", len(content)) + name + content + checksum
    path.write_bytes(whole)


NO_FILES: dict[str, Callable[[Path], object]] = {  # to open one may wait for ever
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "up": lambda path: path.symlink_to(".."),
}
BROKEN: dict[str, Callable[[Path], object]] = {
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nowhere"),
}
DAMAGED: dict[str, Callable[[Path], object]] = {
    "empty": Path.touch,
    "text": lambda path: path.write_text("a letter"),
    "cut png": cut,
    "cut jpeg": partial(cut, kind="jpeg"),
    "16 bits": lambda path: Image.fromarray(np.full((6, 8), 3000, np.uint16)).save(path),
    "100,000,000 pixels": partial(png, side=10_000, bits=8, kind=0, rows=b""),  # of which Pillow warns
    "900000000 pixels": partial(png, side=30_000, bits=8, kind=0, rows=b""),  # which Pillow refuses
}
NO_PHOTOGRAPHS = NO_FILES | BROKEN | DAMAGED
NAMES = [b"new\nline.png", b"\x1b[2Jclear.png", b"caf\xe9.png", b"-rf.png", b"--help.png",
         b"x" * 251 + b".png", b" .png", b"'.png", b"%s{0}.png", "\u202etxt.png".encode()]  # fmt: skip


def striped(n: int, classes: Sequence[str] = "abc", channels: int = 3, side: int = 16) -> ImageSet:
    """Noisy stripes, as many across as the class's number."""
    labels = torch.arange(n) % len(classes)
    stripes = 40 * torch.sin(torch.arange(side) * (1 + labels[:, None]) / 3)
    noise = 60 * torch.rand(n, channels, side, side, generator=shifted(n))
    return ImageSet((100 + noise + stripes[:, None, None]).byte(), labels, tuple(classes))
