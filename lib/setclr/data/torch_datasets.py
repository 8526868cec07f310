"""Any torch Dataset: its images in RAM, its labels, and errors that name the item."""

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, Subset

from setclr.data.labels import checked_labels
from setclr.data.photographs import eight_bit, in_rgb
from setclr.data.sets import MOST_BYTES, ImageSet

INSTEAD = "setclr.training.LoaderViews"


def image_set(images: ImageSet | Dataset) -> ImageSet:
    """The given ImageSet, or the images of a Dataset, which are read once into RAM.

    An item is an image or a tuple that begins with one. An image is a PIL image, or a tensor (C, H, W),
    C = 1 or 3, uint8 or floating in [0, 1]. They are converted to RGB. Labels are the Dataset's `targets` or
    `labels`, and classes its `classes`, as torchvision names them; a Subset has those of its Dataset. Without
    labels they are -1. Without names, classes are numbers.

    Raises ValueError for anything else, an empty Dataset, several views, images of several sizes or of more
    than 8 GB, labels that are no whole numbers from 0 (or -1), or fewer names than classes. Errors of the
    Dataset keep their type (`item_of`).
    """
    if isinstance(images, ImageSet):
        return images
    labels, names = labels_of(images, "images")
    if not len(labels):
        raise ValueError(f"images must be at least one, got an empty {type(images).__name__}")
    first = _image(images, 0)
    if (size := first.numel() * len(labels)) > MOST_BYTES:
        what = f"images must take at most {MOST_BYTES / 1e9:g} GB, got {size / 1e9:.1f}"
        raise ValueError(f"{what}; load files with data.load('folder:PATH'), or take {INSTEAD}")
    pixels = torch.empty(len(labels), *first.shape, dtype=torch.uint8)
    for i in range(len(labels)):
        image = _image(images, i) if i else first
        if image.shape != first.shape:
            got = f"{tuple(first.shape)} for item 0 and {tuple(image.shape)} for item {i}"
            remedy = "end its transform with Resize((S, S)), load files with data.load('folder:PATH')"
            raise ValueError(f"images must be of one size, got {got}; {remedy}, or take {INSTEAD}")
        pixels[i] = image
    return ImageSet(pixels, labels, names)


def item_of(dataset: Any, index: int) -> Any:
    """`dataset[index]`. An error of the Dataset gets a note that names the item."""
    try:
        return dataset[index]
    except Exception as error:
        error.add_note(f"item {index} of {type(dataset).__name__} raised it")
        raise


def _image(dataset: Any, index: int) -> Tensor:
    """The image that an item is or begins with, (3, H, W) uint8.

    Raises ValueError, naming the item, if it is none or holds several views.
    """
    item = item_of(dataset, index)
    try:
        image, *rest = item if isinstance(item, tuple | list) else (item,)
        if isinstance(image, tuple | list) or (rest and _is_view(rest[0], image)):
            raise ValueError(f"it holds several views; wrap the Dataset in {INSTEAD}, or let it give one")
        return _pixels(image)
    except Exception as error:
        raise ValueError(f"item {index} of {type(dataset).__name__} is no image: {error}") from error


def _is_view(other: Any, image: Any) -> bool:
    """Whether what follows an image is a second one, of any size, with the channels of the first."""
    if not isinstance(other, Tensor) or not isinstance(image, Tensor):
        return isinstance(other, Image.Image)
    same = other.ndim == image.ndim == 3 and other.shape[0] == image.shape[0]
    return same and (other.is_floating_point() or other.dtype == torch.uint8)


def _pixels(image: Any) -> Tensor:
    """An image as (3, H, W) uint8."""
    if isinstance(image, Image.Image):
        return torch.from_numpy(np.array(in_rgb(eight_bit(image)))).permute(2, 0, 1)
    if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] not in (1, 3):
        got = tuple(image.shape) if isinstance(image, Tensor) else type(image).__name__
        raise ValueError(f"it must be a PIL image or a tensor (1 or 3, H, W), got {got}")
    if image.is_floating_point():
        if not (image.min() >= 0 and image.max() <= 1):  # NaN fails both
            raise ValueError("floating pixels must be in [0, 1]: leave Normalize out of its transform")
        image = (255 * image).round().byte()
    if image.dtype != torch.uint8:
        raise ValueError(f"pixels must be uint8, or floating in [0, 1], got {image.dtype}")
    return image.expand(3, -1, -1)


def labels_of(dataset: Any, name: str) -> tuple[Tensor, tuple[str, ...]]:
    """The labels (N,) of a Dataset, and the names of its classes; without names, their numbers.

    Raises ValueError, with the `name` of the argument, if it is no Dataset with a length, or if it names
    fewer classes than it has.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or isinstance(dataset, Tensor):
        wanted = "an ImageSet, or a Dataset with a length and numbered items"
        raise ValueError(f"{name} must be {wanted}, got {type(dataset).__name__}")
    if isinstance(dataset, Subset):
        labels, names = labels_of(dataset.dataset, name)
        return labels[torch.as_tensor(dataset.indices, dtype=torch.int64)], names
    attribute = "labels" if getattr(dataset, "targets", None) is None else "targets"
    given = getattr(dataset, attribute, None)
    if given is None:
        given = torch.full((len(dataset),), -1)
    labels = checked_labels(attribute, given, len(dataset))
    count = int(labels.max()) + 1 if len(labels) else 0
    names = tuple(map(str, getattr(dataset, "classes", ()))) or tuple(map(str, range(count)))
    if len(names) < count:
        raise ValueError(f"classes must name all labels, got {len(names)} names and the label {count - 1}")
    return labels, names
