"""Training images that are held out to choose settings by, so that test images have no say."""

import torch
from torch import Tensor

from setclr.checks import integer
from setclr.data import patches
from setclr.data.sets import ImageSet


def validation_split(name: str, train: ImageSet) -> tuple[ImageSet, ImageSet]:
    """What is left of a data set's training images to train on, and at least a fifth to validate on; always
    the same.

    Of "photo-patches" whole blocks of each photograph are held out, as for its test images: patches of one
    block overlap. Of other sets it is `held_out`. Raises ValueError where there are fewer than 5 images.
    """
    if name == "photo-patches":
        return parted(train, torch.from_numpy(patches.photo_validation()))
    return held_out(train)


def held_out(train: ImageSet, seed: int = 0) -> tuple[ImageSet, ImageSet]:
    """Four fifths of each class, and a fifth to validate on, drawn by the seed; both in their old order.
    Raises ValueError where there are fewer than 5 images."""
    integer("len(train)", len(train), least=5, hint="a fifth of them is held out")
    shuffled = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    grouped = shuffled[train.labels[shuffled].argsort(stable=True)]
    held = torch.zeros(len(train), dtype=torch.bool)
    held[grouped[4::5]] = True
    return parted(train, held)


def parted(train: ImageSet, held: Tensor) -> tuple[ImageSet, ImageSet]:
    """The images that are not held (N,) bool, and those that are."""
    first, second = (
        ImageSet(train.source.subset(index), train.labels[index], train.classes) for index in (~held, held)
    )
    return first, second
