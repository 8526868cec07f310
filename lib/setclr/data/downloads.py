"""Data sets that torchvision downloads and verifies, each as one uint8 tensor."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import torch

from setclr.data.sets import ImageSet

NETWORK = (URLError, HTTPException, ConnectionError, TimeoutError, RuntimeError)  # torchvision raises these


@contextmanager
def downloading(missing: str, remedy: str, errors: tuple[type[Exception], ...] = NETWORK) -> Iterator[None]:
    """Turn `errors` of a download inside into a ConnectionError with the remedy."""
    try:
        yield
    except errors as error:
        words = " ".join(str(error).split())
        raise ConnectionError(f"{missing} and could not be downloaded ({words}); {remedy}") from error


def of_torchvision(name: str, folder: Path, split: str) -> ImageSet:
    """The images of a class of torchvision.datasets, downloaded into `folder` if they are missing or damaged.

    Raises ConnectionError if that fails, and ValueError if a file of MNIST is damaged.
    """
    from torchvision import datasets

    # MNIST's processed/*.pt of old versions of torchvision have no checksums: they are not read.
    kind = type(name, (getattr(datasets, name),), {"_check_legacy_exist": lambda _: False})
    part: dict[str, Any] = {"train": split == "train"}
    if "split" in signature(kind).parameters:
        part = {"split": "train+unlabeled" if split == "unlabelled" else split}
    for path in folder.glob("MNIST/raw/*-ubyte"):  # they have no checksums, only a header with their sides
        dims = 3 if "idx3" in path.name else 1
        header = np.fromfile(path, ">u4", 1 + dims).tolist()
        if header[:1] != [0x800 + dims] or path.stat().st_size != 4 + 4 * dims + math.prod(header[1:]):
            raise ValueError(f"{path} is truncated or not MNIST's file; delete it and load again")
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
    labels, classes = vars(dataset).get("labels"), getattr(dataset, "classes", range(10))
    return ImageSet(images.contiguous(), vars(dataset).get("targets", labels), tuple(map(str, classes)))
