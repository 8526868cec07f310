"""Data sets that torchvision downloads and verifies, each as one uint8 tensor."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from http.client import HTTPException
from inspect import signature
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch

from setclr.data.sets import ImageSet
from setclr.data.torch_datasets import labels_of

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


def of_torchvision(name: str, folder: Path, split: str) -> ImageSet:
    """The images of a class of torchvision.datasets, downloaded into `folder` if they are missing or damaged.

    Raises ConnectionError if that fails, and ValueError if a file of MNIST is damaged.
    """
    from torchvision import datasets

    kind = getattr(datasets, name)
    part: dict[str, Any] = {"train": split == "train"}
    if "split" in signature(kind).parameters:
        part = {"split": "train+unlabeled" if split == "unlabelled" else split}
    if name == "MNIST":
        _refuse_damaged_mnist(folder / name / "raw")
    try:
        dataset = kind(folder, **part)  # verifies checksums
    except RuntimeError:  # missing or damaged
        remedy = f"put there what torchvision.datasets.{name} reads"
        remedy += ", or load 'photo-patches', which needs no download"
        with downloading(f"{name} is not under {folder}, or damaged,", remedy):
            dataset = kind(folder, **part, download=True)
    images = torch.as_tensor(dataset.data)
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[3] == 3:
        images = images.permute(0, 3, 1, 2)
    return ImageSet(images.contiguous(), *labels_of(dataset, name))


def _refuse_damaged_mnist(folder: Path) -> None:
    """Raises ValueError unless each unpacked file has the dimensions of its name and its header's size.

    The files have no checksums.
    """
    for path in folder.glob("*-ubyte"):
        dims = 3 if "idx3" in path.name else 1
        header = np.fromfile(path, ">u4", 1 + dims).tolist()
        if header[:1] != [0x800 + dims] or path.stat().st_size != 4 + 4 * dims + math.prod(header[1:]):
            raise ValueError(f"{path} is truncated or not MNIST's file; delete it and load again")
