"""Which images make which batch: a function of the recipe's seed and the epoch alone."""

import torch
from torch import Tensor

from setclr.recipes import Recipe
from setclr.training.seeding import seeded


def batches(recipe: Recipe, labels: Tensor, epoch: int) -> Tensor:
    """The epoch's batches (steps, batch), indices of images; an incomplete batch is left out. With
    `same_class` = g > 1 they consist of random groups of g images of one class, as in table 8d of the GroCo
    paper (g = 4): every image then has g − 1 false negatives."""
    generator = seeded(recipe.seed, epoch)
    order = torch.randperm(len(labels), generator=generator)
    if recipe.same_class > 1:
        order = _groups(order, labels, recipe.same_class, generator)
    steps = len(order) // recipe.batch
    return order[: steps * recipe.batch].view(steps, recipe.batch)


def steps_of(recipe: Recipe, labels: Tensor) -> int:
    """The number of batches in every epoch."""
    group = recipe.same_class
    return int((labels.bincount() // group).sum()) * group // recipe.batch


def _groups(order: Tensor, labels: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """The shuffled images, dealt into groups of `size` of one class, in random order of the groups."""
    of_class = order[labels[order].argsort(stable=True)]
    classes = of_class.split(labels.bincount().tolist())
    groups = torch.cat([images[: len(images) // size * size].view(-1, size) for images in classes])
    return groups[torch.randperm(len(groups), generator=generator)].flatten()
