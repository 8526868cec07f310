"""Data sets that torchvision downloads, each as one uint8 tensor.

An error names a damaged file; the file is never replaced.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from http.client import HTTPException
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch
from torch import Tensor

DOWNLOADED = {name.lower(): name for name in ("MNIST", "CIFAR10", "CIFAR100", "SVHN", "STL10")}
UNLABELLED = "unlabelled"
NETWORK = (URLError, HTTPException, ConnectionError, TimeoutError, RuntimeError)  # torchvision raises these


@contextmanager
def downloading(missing: str, remedy: str, errors: tuple[type[Exception], ...] = NETWORK) -> Iterator[None]:
    """Silence torchvision's downloads inside, and turn `errors` into a ConnectionError with the remedy."""
    try:
        with redirect_stdout(StringIO()):
            yield
    except errors as error:
        words = " ".join(str(error).split())
        raise ConnectionError(f"{missing} and could not be downloaded ({words}); {remedy}") from error


def downloaded(name: str, folder: Path, split: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Images, labels and classes of a torchvision data set, downloaded into `folder` if it is missing."""
    from torchvision import datasets

    kind = getattr(datasets, DOWNLOADED[name])
    part = "train+unlabeled" if split == UNLABELLED else split
    which: dict[str, Any] = {"split": part} if name in ("svhn", "stl10") else {"train": split == "train"}
    try:
        found = kind(folder, **which)  # verifies checksums, if the files have any
    except Exception:  # missing or damaged; a damaged file can raise any error
        found = _fetched(name, kind, folder, split, which)
    images = torch.as_tensor(found.data)
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[3] == 3:
        images = images.permute(0, 3, 1, 2)
    labels, classes = _labelled(name, found, folder)
    return images.contiguous(), labels, classes


def _fetched(name: str, kind: type, folder: Path, split: str, which: dict[str, Any]) -> Any:
    """torchvision's data set, downloaded or unpacked first.

    Raises ValueError for a damaged file, which torchvision would replace.
    """
    archives, sums = _files(kind, folder, split)
    _refuse_damaged(kind, archives, sums)
    names, where = ", ".join(path.name for path in archives), archives[0].parent
    remedy = f"put {names} into {where}, or load 'photo-patches', which needs no download"
    with downloading(f"{name} is not under {folder}", remedy):
        return kind(folder, **which, download=True)


def _labelled(name: str, found: Any, folder: Path) -> tuple[Tensor, tuple[str, ...]]:
    """Labels and classes; the images that STL-10 does not label keep its -1."""
    labels = torch.as_tensor(found.labels if name in ("svhn", "stl10") else found.targets).long()
    if name == "svhn":
        return labels, tuple("0123456789")
    classes = tuple(getattr(found, "classes", ()))
    if not classes:
        raise ValueError(f"{folder} lacks the file of class names; delete it and load again")
    return labels, classes


def _files(kind: Any, folder: Path, split: str) -> tuple[list[Path], dict[Path, str]]:
    """The archives of torchvision's data set `kind`, and the checksums of archives and unpacked files."""
    if hasattr(kind, "resources"):  # MNIST
        sums = {folder / kind.__name__ / "raw" / name: md5 for name, md5 in kind.resources}
        return list(sums), sums
    if hasattr(kind, "split_list"):  # SVHN: one file for each split
        _, name, md5 = kind.split_list[split]
        return [folder / name], {folder / name: md5}
    parts = [*kind.train_list, *kind.test_list]
    if hasattr(kind, "meta"):
        parts.append((kind.meta["filename"], kind.meta["md5"]))
    archive = folder / kind.filename
    return [archive], {archive: kind.tgz_md5} | {folder / kind.base_folder / name: md5 for name, md5 in parts}


def _refuse_damaged(kind: type, archives: list[Path], sums: dict[Path, str]) -> None:
    """Raises ValueError if a file exists but does not match its checksum or, for MNIST, its format."""
    from torchvision.datasets.utils import check_integrity

    damaged = [path for path, md5 in sums.items() if path.exists() and not check_integrity(path, md5)]
    if kind.__name__ == "MNIST":  # its unpacked files have no checksums
        unpacked = [path.with_suffix("") for path in archives]
        damaged += [path for path in unpacked if path.exists() and not _whole_idx(path)]
    if damaged:
        raise ValueError(f"{damaged[0]} is truncated or not {kind.__name__}'s file; delete it and load again")


def _whole_idx(path: Path) -> bool:
    """Whether a file in MNIST's format has the dimensions of its name and the size that its header gives."""
    dims = 3 if "idx3" in path.name else 1
    with path.open("rb") as file:
        magic, shape = file.read(4), np.frombuffer(file.read(4 * dims), dtype=">u4")
    return magic == bytes([0, 0, 8, dims]) and path.stat().st_size == 4 + 4 * dims + math.prod(shape.tolist())
