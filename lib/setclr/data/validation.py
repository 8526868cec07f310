"""Training images held out for validation, so that no setting is chosen on test images."""

from pkgutil import resolve_name

import torch
from torch import Tensor

from setclr.checks import integer
from setclr.data.sets import ImageSet
from setclr.data_sets import known


def validation_split(name: str, train: ImageSet) -> tuple[ImageSet, ImageSet]:
    """A data set's training images in two parts: those to train on, and at least a fifth for validation.

    The split is always the same. For "photo-patches" whole blocks of each photograph are held out, as for
    its test images, because patches of one block overlap. For other data sets, any folder of photographs
    included, it is `held_out`, and raises as that does.
    """
    if choose := known(name).validation:
        mask = torch.from_numpy(resolve_name(f"setclr.data.{choose}")())
        return train.subset(~mask), train.subset(mask)
    return held_out(train)


def held_out(train: ImageSet, seed: int = 0) -> tuple[ImageSet, ImageSet]:
    """Four fifths of each class to train on, and a fifth for validation, drawn by the seed.

    Both parts keep the order of the images. A class of one image stays in the first part, and images
    without a label (-1) count as one class more. Raises ValueError if there are fewer than 5 images, or if
    none is left for validation.
    """
    mask = held_out_mask(train.labels, seed)
    return train.subset(~mask), train.subset(mask)


def held_out_mask(labels: Tensor, seed: int = 0) -> Tensor:
    """Which of N things, whose classes are `labels` (N,), are held out by `held_out`: (N,) bool."""
    integer("len(train)", len(labels), least=5, hint="a fifth of them is held out")
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    grouped = shuffled[labels[shuffled].argsort(stable=True)]
    mask = torch.zeros(len(labels), dtype=torch.bool)
    mask[grouped[4::5]] = True
    mask &= (labels + 1).bincount()[labels + 1] > 1
    if not mask.any():
        raise ValueError("train must have a class of two or more, got one of each; add some")
    return mask
