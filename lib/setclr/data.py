"""Data sets by name, each as one uint8 tensor: patches of photographs, downloads, folders of images."""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from http.client import HTTPException
from io import StringIO
from pathlib import Path
from urllib.error import URLError
from zipfile import BadZipFile

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from setclr import checks, patches

MADE = {"photo-patches": patches.photo_patches, "stereo-patches": patches.stereo_patches}
DOWNLOADED = {"mnist": "MNIST", "cifar10": "CIFAR10", "cifar100": "CIFAR100"}
FOLDER = "folder:"

FORMAT = 1  # of the kept patches; raise it whenever `patches` makes other ones
MOST_BYTES = 8e9
WORTH_THREADS = 128 * 128  # pixels; smaller images spend their time in Python, where threads only queue


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """Images with their classes.

    Args:
        images: (N, C, H, W) uint8.
        labels: (N,) int64, indices into `classes`.
        classes: the names of the classes.

    Raises:
        ValueError: types, shapes or labels do not fit together.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def __post_init__(self):
        for name, dims, dtype in (("images", 4, torch.uint8), ("labels", 1, torch.int64)):
            value = getattr(self, name)
            if not isinstance(value, Tensor) or value.ndim != dims or value.dtype != dtype or not len(value):
                wanted = "(N, C, H, W)" if dims == 4 else "(N,)"
                got = type(value).__name__
                got += f" {tuple(value.shape)} of {value.dtype}" if isinstance(value, Tensor) else ""
                raise ValueError(f"{name} must be a {wanted} tensor of {dtype} with N >= 1, got {got}")
        if len(self.images) != len(self.labels):
            raise ValueError(
                f"labels must be as many as images, got {len(self.labels)} labels for "
                f"{len(self.images)} images"
            )
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < 0 or high >= len(self.classes):
            raise ValueError(f"labels must be indices of the {len(self.classes)} classes, got {low}..{high}")

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"<ImageSet: {len(self)} images {tuple(self.images.shape[1:])}, {len(self.classes)} classes>"

    def sample(self, n: int, seed: int = 0) -> "ImageSet":
        """n different images, as evenly over the classes as possible, in random order fixed by the seed.

        Pairs do not stay together: of "stereo-patches" take slices of `images.view(2, -1, 3, 32, 32)`.

        Raises:
            ValueError: there are fewer than n images.
        """
        checks.integer("n", n, least=1, most=len(self), hint=f"the set has {len(self)} images")
        shuffled = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        labels = self.labels[shuffled]

        # Deal the shuffled images out class by class: an image's round is its place within its class.
        grouped, counts = labels.argsort(stable=True), labels.bincount(minlength=len(self.classes))
        first = counts.cumsum(0) - counts
        rounds = torch.empty_like(labels)
        rounds[grouped] = torch.arange(len(self)) - first[labels[grouped]]
        chosen = shuffled[rounds.argsort(stable=True)[:n].sort().values]
        return ImageSet(self.images[chosen], self.labels[chosen], self.classes)


def load(name: str, root: str | Path = "data", split: str = "train", size: int | None = None) -> ImageSet:
    """A data set by name.

    - "photo-patches": 7,200 + 1,800 grey patches of 18 photographs, (3, 32, 32), under random casts and
      contrasts; the class is the photograph. Made in a few seconds and kept under `root`; needs no download.
    - "stereo-patches": 1,141 + 1,343 pairs of colour patches, (3, 32, 32), of what two cameras see. The left
      views come first, then the right ones: `images.view(2, -1, 3, 32, 32)`; the label is the pair. Made and
      kept likewise.
    - "mnist" (1, 28, 28), "cifar10", "cifar100" (3, 32, 32): downloaded by torchvision into root/NAME.
    - "folder:PATH": a tree PATH/train/CLASS/IMAGE; the test split is PATH/val, or PATH/test where there is no
      val. Any format Pillow reads, as RGB; files whose names begin with a dot are ignored.

    Args:
        root: the folder of kept and downloaded sets; not used by "folder:PATH".
        split: "train" or "test".
        size: pixels, for "folder:PATH" only: the shorter side is resized to it, the centre cropped square.

    Raises:
        ValueError: an argument, a file or a folder is not as it must be. Files are never repaired or replaced
            silently: the message names the file to delete.
        FileNotFoundError: PATH or the split's folder is missing.
        ConnectionError: a set is neither there nor to be downloaded; the message says what to put where.
    """
    checks.choice("split", split, patches.SPLITS)
    if isinstance(name, str) and name.startswith(FOLDER):
        return _folder(Path(name.removeprefix(FOLDER)).expanduser(), split, size)
    checks.choice("name", name, [*MADE, *DOWNLOADED, f"{FOLDER}PATH"])
    if size is not None:
        raise ValueError(f"size applies to {FOLDER}PATH, got size={size!r} with name={name!r}; leave it out")
    if name in MADE:
        return _kept(Path(root, name, "patches.npz"), MADE[name], split)
    return _downloaded(name, Path(root, name), split)


def _kept(path: Path, make: Callable, split: str) -> ImageSet:
    """What `make` gives for a split, read from `path`; made and written there first if it is missing."""
    if not path.exists():
        arrays = {
            f"{key}_{part}": value
            for part in patches.SPLITS
            for key, value in zip(("images", "labels", "classes"), make(part))
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with unfinished.open("wb") as file:
                np.savez(file, format=FORMAT, **arrays)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    try:
        with np.load(path, allow_pickle=False) as kept:
            if kept["format"] != FORMAT:
                raise ValueError(f"its format is {kept['format']}, not {FORMAT}")
            images, labels, classes = (kept[f"{key}_{split}"] for key in ("images", "labels", "classes"))
            return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), tuple(classes.tolist()))
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is truncated or not of this version of setclr ({error}); delete it and "
            f"load again: it is made anew in seconds"
        ) from error


def _downloaded(name: str, folder: Path, split: str) -> ImageSet:
    """A set of torchvision's, downloaded into `folder` if it is not there."""
    from torchvision import datasets

    kind = getattr(datasets, DOWNLOADED[name])
    archives = _refuse_damaged(kind, folder)
    try:
        with redirect_stdout(StringIO()):
            found = kind(folder, train=split == "train", download=True)
    except (URLError, HTTPException, ConnectionError, TimeoutError, RuntimeError) as error:
        _refuse_damaged(kind, folder)
        raise ConnectionError(
            f"{name} is not under {folder} and could not be downloaded ({' '.join(str(error).split())}); put "
            f"{', '.join(path.name for path in archives)} into {archives[0].parent}, or load "
            f"'photo-patches', which needs no download"
        ) from error
    images = torch.as_tensor(found.data)
    images = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    return ImageSet(images, torch.as_tensor(found.targets), tuple(found.classes))


def _refuse_damaged(kind: type, folder: Path) -> list[Path]:
    """The archives of torchvision's set `kind`; ValueError if one, or what is in it, is there but damaged."""
    from torchvision.datasets.utils import check_integrity

    if hasattr(kind, "resources"):  # MNIST: compressed files with checksums, and those unpacked, without
        raw = folder / kind.__name__ / "raw"
        sums = {raw / name: md5 for name, md5 in kind.resources}
        archives = list(sums)
        damaged = [
            path
            for path in (archive.with_suffix("") for archive in archives)
            if path.exists() and not _whole_idx(path)
        ]
    else:
        archives, damaged = [folder / kind.filename], []
        parts = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
        sums = {archives[0]: kind.tgz_md5} | {folder / kind.base_folder / name: md5 for name, md5 in parts}
    damaged += [path for path, md5 in sums.items() if path.exists() and not check_integrity(path, md5)]
    if damaged:
        raise ValueError(
            f"{damaged[0]} is truncated or not {kind.__name__}'s file of that name; delete it and load again"
        )
    return archives


def _whole_idx(path: Path) -> bool:
    """Whether a file in MNIST's format has the dimensions its name says and the bytes its header says."""
    dims = 3 if "idx3" in path.name else 1
    with path.open("rb") as file:
        magic, shape = file.read(4), np.frombuffer(file.read(4 * dims), dtype=">u4")
    return magic == bytes([0, 0, 8, dims]) and path.stat().st_size == 4 + 4 * dims + math.prod(shape.tolist())


def _folder(root: Path, split: str, size: int | None) -> ImageSet:
    """The images of a folder tree, sorted by class and file name."""
    if size is not None:
        checks.integer("size", size, least=1)
    train = _class_folders(root / "train")
    found = train
    if split == "test":
        test = root / ("val" if (root / "val").is_dir() or not (root / "test").is_dir() else "test")
        found = _class_folders(test)
        for name in sorted(train.keys() ^ found.keys()):
            there, missing = (test, root / "train") if name in found else (root / "train", test)
            raise ValueError(f"{there / name} has no counterpart in {missing}; both need the same classes")
    files = {name: _visible(path) for name, path in found.items()}
    for name, inside in files.items():
        if not inside:
            raise ValueError(f"{found[name]} has no images; fill it or remove it")
    labels = torch.tensor([label for label, inside in enumerate(files.values()) for _ in inside])
    images = _decode([path for inside in files.values() for path in inside], size)
    return ImageSet(images, labels, tuple(files))


def _class_folders(folder: Path) -> dict[str, Path]:
    """The class folders by name, sorted."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder} is no folder; {FOLDER}PATH needs PATH/train/CLASS/IMAGE, and "
            f"PATH/val or PATH/test for the test split"
        )
    found = {path.name: path for path in _visible(folder)}
    for path in found.values():
        if not path.is_dir():
            raise ValueError(f"{path} is a file among class folders; move it into one of them, or elsewhere")
    if not found:
        raise ValueError(f"{folder} has no class folders; put the images of each class into one of its own")
    return found


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _decode(files: list[Path], size: int | None) -> Tensor:
    """The images in these files, (N, 3, H, W) uint8."""
    first, source_pixels = _picture(files[0], size)
    height, width, channels = first.shape
    if (total := len(files) * first.size) > MOST_BYTES:
        raise ValueError(
            f"{len(files)} images of {width}x{height} pixels would take {total / 1e9:.1f} GB, "
            f"more than the {MOST_BYTES / 1e9:g} GB allowed; load them with a smaller size="
        )
    images = np.empty((len(files), channels, height, width), dtype=np.uint8)

    def fill(i: int):
        picture, _ = _picture(files[i], size)
        if picture.shape != first.shape:
            raise ValueError(
                f"images must be of one size, got {files[0]} of {width}x{height} pixels and "
                f"{files[i]} of {picture.shape[1]}x{picture.shape[0]}; load them with size="
            )
        images[i] = picture.transpose(2, 0, 1)

    if source_pixels < WORTH_THREADS:
        for i in range(len(files)):
            fill(i)
    else:
        with ThreadPoolExecutor(max_workers=4) as pool:
            for _ in pool.map(fill, range(len(files))):
                pass
    return torch.from_numpy(images)


def _picture(path: Path, size: int | None) -> tuple[np.ndarray, int]:
    """An image file as (H, W, 3) uint8, and how many pixels it had before it was resized."""
    try:
        with Image.open(path) as image:
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"its pixels, of Pillow's mode {image.mode}, are not of 8 bits")
            picture = image.convert("RGB")
    except Exception as error:  # Pillow's decoders raise whatever the damage leads them to
        raise ValueError(f"{path} is no image that can be read ({error}); remove or replace it") from error
    pixels = picture.width * picture.height
    if size is not None:
        side = min(picture.size)
        left, top = (picture.width - side) / 2, (picture.height - side) / 2
        centre = (left, top, left + side, top + side)
        picture = picture.resize((size, size), Image.Resampling.BILINEAR, centre)
    return np.asarray(picture), pixels
