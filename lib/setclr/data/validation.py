"""Training images held out for validation, so that no setting is chosen on test images."""

import torch
from torch import Tensor

from setclr.checks import integer
from setclr.data import patches
from setclr.data.sets import ImageSet


def validation_split(name: str, train: ImageSet) -> tuple[ImageSet, ImageSet]:
    """A data set's training images in two parts: those to train on, and at least a fifth for validation.

    The split is always the same. For "photo-patches" whole blocks of each photograph are held out, as for
    its test images, because patches of one block overlap. For other data sets it is `held_out`. Raises
    ValueError if there are fewer than 5 images.
    """
    if name == "photo-patches":
        return parted(train, torch.from_numpy(patches.photo_validation()))
    return held_out(train)


def held_out(train: ImageSet, seed: int = 0) -> tuple[ImageSet, ImageSet]:
    """Four fifths of each class to train on, and a fifth for validation, drawn by the seed.

    Both parts keep the order of the images. Raises ValueError if there are fewer than 5 images.
    """
    integer("len(train)", len(train), least=5, hint="a fifth of them is held out")
    shuffled = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    grouped = shuffled[train.labels[shuffled].argsort(stable=True)]
    held = torch.zeros(len(train), dtype=torch.bool)
    held[grouped[4::5]] = True
    return parted(train, held)


def parted(train: ImageSet, held: Tensor) -> tuple[ImageSet, ImageSet]:
    """The images where `held` (N,) bool is False, and those where it is True."""
    first, second = (
        ImageSet(train.source.subset(index), train.labels[index], train.classes) for index in (~held, held)
    )
    return first, second
