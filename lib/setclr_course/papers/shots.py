"""Few-shot classification on frozen features (MMCL, table 1)."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setclr.checks import integer
from setclr.evaluation.neighbours import check_features


class Accuracy(NamedTuple):
    """Accuracy over episodes, in per cent: the mean, and half the width of its 95 % confidence interval."""

    mean: float
    half_width: float


@torch.no_grad()
def few_shot(
    features: Tensor, labels: Tensor,
    ways: int = 5, shots: int = 20, queries: int = 15, episodes: int = 600, seed: int = 0,
) -> Accuracy:  # fmt: skip
    """Accuracy of classifying images by a few labelled images of each class.

    The classes are new to the encoder, which has seen no labels of them. Each episode draws classes, and
    of each class images to learn from (shots) and images to classify (queries). A query gets the class of
    the nearest prototype by Euclidean distance (Snell et al. 2017). The prototype of a class is the mean
    of its shots. The program of Ericsson et al. 2021, which made the MMCL paper's table, does the same.
    It has no logistic regression, and does not normalise features.

    Args:
        features: (N, D), with labels (N,), integers.
        ways: classes of an episode; shots, queries: images of each. The table has 5, 20 and 15.
        episodes: how many, drawn by the seed; 600 in the table.

    Returns the mean accuracy and 1.96 standard deviations of this mean, 1.96 s / √episodes. Raises
    ValueError where an argument is not as above, there are too few classes, or a class has too few
    images. Cost: O(episodes · ways · (shots + ways · queries) · D).
    """
    check_features("labels", labels, features=features)
    x, right = features.float(), []
    for support, query in draw_episodes(labels, ways, shots, queries, episodes, seed):
        prototypes = x[support].mean(1)
        # Exact distances: cdist's matrix product would lose digits where features are close.
        nearest = torch.cdist(x[query], prototypes, compute_mode="donot_use_mm_for_euclid_dist").argmin(2)
        right.append((nearest == torch.arange(ways, device=x.device)[:, None]).float().mean())
    accuracy = 100 * torch.stack(right).double()
    return Accuracy(float(accuracy.mean()), float(1.96 * accuracy.std(correction=0) / len(right) ** 0.5))


def draw_episodes(
    labels: Tensor, ways: int, shots: int, queries: int, episodes: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Indices of the shots (ways, shots) and queries (ways, queries) of each episode. Raises ValueError
    as `few_shot` does."""
    for name, value in (("ways", ways), ("shots", shots), ("queries", queries), ("episodes", episodes)):
        integer(name, value, least=2 if name == "ways" else 1)
    rng = np.random.default_rng(integer("seed", seed, least=0))
    classes, counts = np.unique(labels.numpy(force=True), return_counts=True)
    if len(classes) < ways:
        raise ValueError(f"ways must be <= {len(classes)}, the number of classes in labels, got {ways}")
    if counts.min() < shots + queries:
        fewest = f"class {classes[counts.argmin()]} has {counts.min()} images"
        wanted = f"shots + queries need {shots} + {queries}; lower them or leave the class out"
        raise ValueError(f"{fewest}, and {wanted}")
    images = np.split(labels.numpy(force=True).argsort(kind="stable"), counts.cumsum()[:-1])

    def episode() -> tuple[Tensor, Tensor]:
        chosen = [images[c] for c in rng.choice(len(images), ways, replace=False)]
        index = np.stack([rng.choice(some, shots + queries, replace=False) for some in chosen])
        return torch.from_numpy(index[:, :shots]), torch.from_numpy(index[:, shots:])

    return (episode() for _ in range(episodes))
