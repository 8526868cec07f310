"""Any torch Dataset of images, wrapped to stand in for photographs in files."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, Subset

from setclr.data.items import item_of
from setclr.data.labels import checked_labels
from setclr.data.photographs import Photographs, eight_bit
from setclr.data.sets import ImageSet
from setclr.views import View


class WrappedImages(Photographs):
    """The images of a Dataset, read on demand, by worker processes during training.

    An item is an image or a tuple that begins with one. An image is a PIL image, or a tensor (C, H, W),
    C = 1 or 3, uint8 or floating in [0, 1]. Images may have any sides if the views have a size. They are
    converted to RGB. Raises ValueError for an item that is no such image, or of several views, and names it.
    Errors of the Dataset keep their type (`items.item_of`).
    """

    def __init__(self, dataset: Dataset, index: Sequence[int] | None = None, size: int | None = None):
        self.dataset, self.held = dataset, dict[int, Image.Image]()
        self.index = range(len(cast(Any, dataset))) if index is None else index
        super().__init__([f"image {i} of {type(dataset).__name__}" for i in self.index], size)

    def subset(self, index: Any) -> "WrappedImages":
        return WrappedImages(self.dataset, [self.index[i] for i in self._chosen(index).tolist()], self.size)

    def crops(
        self, index: Any, views: Sequence[View], draws: Tensor, threads: int | None = None
    ) -> list[Tensor]:
        """As `Photographs.crops`. Each item is read once: a random transform gives another."""
        once = copy.copy(self)
        once.held = {}
        for i in self._chosen(index).tolist():
            with self.opened(i) as image:
                once.held[i] = image
        return super(WrappedImages, once).crops(index, views, draws, threads)

    @contextmanager
    def opened(self, i: int) -> Iterator[Image.Image]:
        if i in self.held:
            yield self.held[i]
            return
        item = item_of(self.dataset, self.index[i])
        try:
            yield eight_bit(_first_image(item))
        except Exception as error:
            raise ValueError(f"{self.path(i)} cannot be used: {error}") from error

    def verify(self, most: int | None = 5, decode: bool = False) -> None:
        """Does nothing: items are not read in advance."""


def _first_image(item: Any) -> Image.Image:
    """The image that an item is or begins with. Raises ValueError if it holds several views."""
    image, *rest = item if isinstance(item, tuple | list) else (item,)
    if isinstance(image, tuple | list) or (rest and _is_view(rest[0], image)):
        remedy = "wrap it in setclr.training.LoaderViews, or let it give (image, label)"
        raise ValueError(f"this Dataset gives several views; {remedy}")
    return image.copy() if isinstance(image, Image.Image) else Image.fromarray(pixels(image))


def _is_view(other: Any, image: Any) -> bool:
    """Whether what follows an image is a second one, of any size, with the channels of the first."""
    if not isinstance(other, Tensor) or not isinstance(image, Tensor):
        return isinstance(other, Image.Image)
    same = other.ndim == image.ndim == 3 and other.shape[0] == image.shape[0]
    return same and (other.is_floating_point() or other.dtype == torch.uint8)


def pixels(image: Tensor) -> np.ndarray:
    """A tensor (C, H, W) as (H, W, 3) uint8."""
    if not isinstance(image, Tensor) or image.ndim != 3 or image.shape[0] not in (1, 3):
        got = tuple(image.shape) if isinstance(image, Tensor) else type(image).__name__
        raise ValueError(f"it must be a PIL image or a tensor (1 or 3, H, W), got {got}")
    if image.is_floating_point():
        if not (image.min() >= 0 and image.max() <= 1):  # NaN fails both
            raise ValueError("floating pixels must be in [0, 1]: leave Normalize out of its transform")
        image = (255 * image).round().byte()
    if image.dtype != torch.uint8:
        raise ValueError(f"pixels must be uint8, or floating in [0, 1], got {image.dtype}")
    return image.expand(3, -1, -1).permute(1, 2, 0).numpy()


def image_set(images: ImageSet | Dataset) -> ImageSet:
    """The given ImageSet, or an ImageSet of a Dataset's images (`WrappedImages`).

    Labels are the Dataset's `targets` or `labels`, and classes its `classes`, as torchvision names them; a
    Subset has those of its Dataset. Without labels they are -1. Without names, classes are numbers.

    Raises ValueError for anything else, an empty Dataset, several views, labels that are no whole numbers
    from 0 (or -1), or fewer names than classes. Cost: the first item is read.
    """
    if isinstance(images, ImageSet):
        return images
    labels, names = labels_of(images, "images")
    count = int(labels.max()) + 1 if len(labels) else 0
    if names and len(names) < count:
        raise ValueError(f"classes must name all labels, got {len(names)} names and the label {count - 1}")
    return ImageSet(WrappedImages(images), labels, names or tuple(map(str, range(count))))


def labels_of(dataset: Any, name: str) -> tuple[Tensor, tuple[str, ...]]:
    """The labels (N,) of a Dataset, and the names of its classes if it has any.

    Raises ValueError, with the `name` of the argument, if it is no Dataset with a length.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or isinstance(dataset, Tensor):
        wanted = "an ImageSet, or a Dataset with a length and numbered items"
        raise ValueError(f"{name} must be {wanted}, got {type(dataset).__name__}")
    if isinstance(dataset, Subset):
        labels, names = labels_of(dataset.dataset, name)
        return labels[torch.as_tensor(dataset.indices, dtype=torch.int64)], names
    given = next((name for name in ("targets", "labels") if getattr(dataset, name, None) is not None), None)
    names = tuple(map(str, getattr(dataset, "classes", ())))
    if given is None:
        return torch.full((len(dataset),), -1), names
    return checked_labels(given, getattr(dataset, given), len(dataset)), names
