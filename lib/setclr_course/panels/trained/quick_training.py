"""Trainings of a few seconds, for panels that are handed no run."""

from collections.abc import Callable

import torch

from setclr.data import ImageSet, patches
from setclr.experiments.run import Run, new_run
from setclr_course.panels.trained.film import Film


def quick_sets(n: int) -> tuple[ImageSet, ImageSet]:
    """n patches to train on and n to test with, made in memory."""
    pictures, numbers, classes = patches.photo_patches("test")
    images, labels = torch.from_numpy(pictures), torch.from_numpy(numbers)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, test = order[:n], order[n : 2 * n]
    return ImageSet(images[train], labels[train], classes), ImageSet(images[test], labels[test], classes)


def train(
    run: Run, images: ImageSet, epochs: int, after_epoch: Callable[[Run], object] = lambda run: None
) -> None:
    """Train the first epochs of a run on these images; `after_epoch` is called with the run after each."""
    trainer = run.trainer(images, torch.device("cpu"))
    for _ in range(epochs):
        for _ in trainer.epoch():
            pass
        run.rows.append(trainer.close_epoch())
        after_epoch(run)


def quick_film(epochs: int = 2, n: int = 360) -> Film:
    """A Conv-4 learns InfoNCE on a few hundred patches."""
    from setclr.recipes import RECIPES  # built when asked for

    images, test = quick_sets(n)
    film, run = Film(images, test), new_run(RECIPES["photo-infonce"], channels=3)
    film(run)
    train(run, images, epochs, film)
    return film
