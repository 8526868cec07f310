"""Any torch Dataset of images, wrapped to stand in for photographs in files."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from setclr.data.labels import checked_labels
from setclr.data.photographs import Photographs
from setclr.data.sets import ImageSet


class WrappedImages(Photographs):
    """The images of a Dataset, read on demand, by worker processes during training.

    An item is an image or a tuple that begins with one. An image is a PIL image, or a tensor (C, H, W),
    C = 1 or 3, uint8 or floating in [0, 1]. Images may have any sides if the views have a size. They are
    converted to RGB. Raises ValueError for an item that is no such image, and names it.
    """

    def __init__(self, dataset: Dataset, index: Sequence[int] | None = None, size: int | None = None):
        self.dataset = dataset
        self.index = range(len(cast(Any, dataset))) if index is None else index
        super().__init__([f"image {i} of {type(dataset).__name__}" for i in self.index], size)

    def subset(self, index: Any) -> "WrappedImages":
        return WrappedImages(self.dataset, [self.index[i] for i in self._chosen(index).tolist()], self.size)

    def open(self, i: int) -> Image.Image:
        item = self.dataset[self.index[i]]
        image = item[0] if isinstance(item, tuple | list) else item
        return image.copy() if isinstance(image, Image.Image) else Image.fromarray(pixels(image))

    def verify(self, most: int = 5, decode: bool = False) -> None:
        """Does nothing: items are not read in advance."""


def pixels(image: Tensor) -> np.ndarray:
    """A tensor (C, H, W) as (H, W, 3) uint8."""
    if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] not in (1, 3):
        got = tuple(image.shape) if isinstance(image, Tensor) else type(image).__name__
        raise ValueError(f"it must be a PIL image or a tensor (1 or 3, H, W), got {got}")
    if image.is_floating_point():
        if image.min() < 0 or image.max() > 1:
            raise ValueError("floating pixels must be in [0, 1]: leave Normalize out of its transform")
        image = (255 * image).round().byte()
    if image.dtype != torch.uint8:
        raise ValueError(f"pixels must be uint8, or floating in [0, 1], got {image.dtype}")
    return image.expand(3, -1, -1).permute(1, 2, 0).numpy()


def image_set(images: ImageSet | Dataset) -> ImageSet:
    """The given ImageSet, or an ImageSet of a Dataset's images (`WrappedImages`).

    Labels and classes are the Dataset's `targets` and `classes`, as torchvision names them. Without
    `targets` all images are of one class. Raises ValueError for anything else, an empty Dataset, or targets
    that are no whole numbers.
    """
    if isinstance(images, ImageSet):
        return images
    if not hasattr(images, "__getitem__") or not hasattr(images, "__len__") or isinstance(images, Tensor):
        wanted = "an ImageSet, or a Dataset with a length and numbered items"
        raise ValueError(f"images must be {wanted}, got {type(images).__name__}")
    labels = checked_labels("targets", getattr(images, "targets", [0] * len(images)), len(images))
    names = [str(name) for name in getattr(images, "classes", [])]
    names += [str(number) for number in range(len(names), int(labels.max()) + 1 if len(labels) else 0)]
    return ImageSet(WrappedImages(images), labels, tuple(names))
