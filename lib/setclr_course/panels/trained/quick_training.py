"""Trainings of a few seconds, for panels that are handed no run."""

import torch

from setclr.data import ImageSet, patches
from setclr.training.trainer import Trainer


def quick_sets(n: int) -> tuple[ImageSet, ImageSet]:
    """n patches to train on and n to test with, made in memory."""
    pictures, numbers, classes = patches.photo_patches("test")
    images, labels = torch.from_numpy(pictures), torch.from_numpy(numbers)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, test = order[:n], order[n : 2 * n]
    return ImageSet(images[train], labels[train], classes), ImageSet(images[test], labels[test], classes)


def train_epoch(trainer: Trainer) -> None:
    """One epoch, added to the history."""
    for _ in trainer.epoch():
        pass
    trainer.close_epoch()
