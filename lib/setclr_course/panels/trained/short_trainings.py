"""Short trainings at several temperatures τ of InfoNCE and several β of GroCo, and what they come to."""

import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from setclr import views
from setclr.data import ImageSet
from setclr.evaluation import features
from setclr.experiments.run import Run
from setclr.seeding import seeded
from setclr_course.panels.trained.film import vote

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
UNTRAINED = ("untrained", 0.0)  # the first weights, in the grid that is stored


def stored(path: str | Path) -> Grid:
    """The trainings at all TEMPERATURES and BETAS, and UNTRAINED, as data/README.md says how to make them."""
    kept = torch.load(path).items()
    return {key: Outcome(loss, knn, *(x.double().numpy() for x in two)) for key, (loss, knn, *two) in kept}


def outcome(run: Run, train: ImageSet, test: ImageSet) -> Outcome:
    """What a run came to: kNN on the test images with the training images as neighbours, and similarities.

    The similarities are those that the loss sees: of two views of BATCH training images, with batch norms
    that take the statistics of the batch.
    """
    bank, queries = (features(run.encoder, part.images) for part in (train, test))
    images = train.sample(min(BATCH, len(train))).images[:]
    x = views.augment(images, views.preset(run.recipe.views), seeded(1234))
    model = copy.deepcopy(nn.Sequential(run.encoder, run.head)).cpu().train()
    with torch.no_grad():
        a, b = F.normalize(torch.stack([model(view) for view in x]), dim=-1)
    cosines = (a @ b.T).numpy()
    knn = vote(bank, queries, train, test)
    other = ~np.eye(len(images), dtype=bool)
    return Outcome([row["loss"] for row in run.rows], knn, cosines.diagonal().copy(), cosines[other])


def made_up() -> Grid:
    """Outcomes that nobody has trained for: with a large τ or a small β two images are far apart."""
    noise, grid = np.random.default_rng(3), Grid()
    for name, values in (("InfoNCE", TEMPERATURES), ("GroCo", BETAS[::-1])):
        for k, value in enumerate(values):
            near, far = noise.normal(0.9, 0.05, BATCH), noise.normal(0.6 - 0.2 * k, 0.2, 9 * BATCH)
            grid[name, value] = Outcome([3.0, 2.0 + 0.1 * k], 0.3 - 0.02 * (k - 2) ** 2, near, far)
    return grid
