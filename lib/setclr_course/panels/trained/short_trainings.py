"""Short trainings at several temperatures τ of InfoNCE and several β of GroCo, and what they come to."""

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from setclr import views
from setclr.data import ImageSet
from setclr.evaluation import features, knn
from setclr.experiments.run import Run, new_run
from setclr.recipes import ImageRecipe
from setclr.seeding import seeded
from setclr_course.kit.tiles import decoded
from setclr_course.panels.trained import quick_training

TEMPERATURES = (0.004, 0.02, 0.1, 0.5, 2.5)  # equal steps on a logarithmic slider
BETAS = (0.0625, 0.25, 1.0, 4.0, 16.0)
LOSSES = {"InfoNCE": "InfoNCE(temperature={})", "GroCo": "GroCo(beta={}, negatives=10)"}
BATCH = 256  # images whose similarities are shown


class Outcome(NamedTuple):
    """What a short training came to."""

    losses: list[float]  # of the epochs
    knn: float  # accuracy in 0..1, k=10, T=0.1
    positives: np.ndarray  # (BATCH,) cosines of the two views of an image
    negatives: np.ndarray  # (BATCH · (BATCH - 1),) cosines of views of two images


Grid = dict[tuple[str, float], Outcome]  # by loss and by its τ or β


def outcome(run: Run, train: ImageSet, test: ImageSet) -> Outcome:
    """What a run came to: kNN on the test images with the training images as neighbours, and similarities.

    The similarities are those that the loss sees: of two views of BATCH training images, with batch norms
    that take the statistics of the batch.
    """
    bank, queries = (features(run.encoder, part.images) for part in (train, test))
    predicted = knn(bank, train.labels, queries, k=min(10, len(bank)), temperature=0.1)
    images = decoded(train.sample(min(BATCH, len(train))))
    x = views.augment(images, views.preset(run.recipe.views), seeded(1234))
    model = copy.deepcopy(nn.Sequential(run.encoder, run.head)).cpu().train()
    with torch.no_grad():
        a, b = F.normalize(torch.stack([model(view) for view in x]), dim=-1)
    cosines = (a @ b.T).numpy()
    other = ~np.eye(len(images), dtype=bool)
    accuracy = float((predicted == test.labels).float().mean())
    return Outcome([row["loss"] for row in run.rows], accuracy, cosines.diagonal().copy(), cosines[other])


def quick_grid(epochs: int = 2, n: int = 128) -> tuple[Grid, Outcome]:
    """On some patches, in seconds; and what comes of no training."""
    train, test = quick_training.quick_sets(n)
    grid = {}
    for name, values in (("InfoNCE", TEMPERATURES), ("GroCo", BETAS)):
        for value in values:
            recipe = ImageRecipe(
                LOSSES[name].format(value), views="photo", epochs=epochs, lr=3e-3, last_norm=True
            )
            run = new_run(recipe, channels=3)
            quick_training.train(run, train, epochs)
            grid[name, value] = outcome(run, train, test)
    return grid, outcome(new_run(recipe, channels=3), train, test)
