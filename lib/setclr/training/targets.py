"""Targets of the baselines: the label of each image, or its cluster (DeepCluster, Caron et al. 2018).

For DeepCluster, k-means finds E clusters of the encoder's features in every epoch. The features are
whitened and scaled to length 1. The order of the clusters is arbitrary, so the last layer starts from
new weights each time.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import integer
from setclr.data.sets import Images
from setclr.losses import Objective
from setclr.seeding import seeded
from setclr.training.batches import Batches
from setclr.training.distributed import from_first
from setclr.training.momentum import outputs
from setclr.training.source import ImageViews, Source, things_of
from setclr.views.numbers import sent

COMPONENTS = 256  # principal components, as in DeepCluster's paper
BEGINNINGS, ROUNDS = 5, 30  # runs of k-means, and rounds of each, as in QARe's program
BATCH = 500  # images in one forward pass
DISTANCES = 2**24  # between points and centres, held at once


class Targets:
    """The target of every image in an epoch: the index of one of the head's E outputs.

    Raises ValueError if E is less than the number of classes, or if images that are not in RAM are to be
    clustered.
    """

    def __init__(
        self, loss: Objective, source: Source, batches: Batches, encoder: nn.Module, head: nn.Module
    ):
        self.source: Any = source
        self.batches, self.encoder, self.head = batches, encoder, head
        self.of_image = source.labels
        self.weight: Tensor | None = None
        self.clustered = loss.targets == "clusters"
        self.count = outputs(head)
        if not self.clustered:
            classes = int(source.labels.max()) + 1
            integer(
                "embedding", self.count, least=classes, hint=f"each of the {classes} classes needs an output"
            )
        elif isinstance(source, ImageViews) and source.images.in_ram:
            integer("embedding", self.count, least=2, most=len(source), hint="it is the number of clusters")
        else:
            got = source.images if isinstance(source, ImageViews) else things_of(source)
            raise ValueError(f"data must be images in RAM for {loss}, got {got}")

    def begin(self, epoch: int, fresh: bool) -> None:
        """Begin an epoch; for clusters, if it is `fresh`, find them and give the last layer new weights.

        An epoch is not `fresh` if training resumes within it.
        """
        self.order, seed = self.batches.of(epoch), self.batches.seed
        if self.clustered and fresh:
            self.restore(clusters(self.encoder, self.source.images.images, self.count, seed + epoch))
            last = [layer for layer in self.head.modules() if isinstance(layer, nn.Linear)][-1]
            reinitialise(last, seed, epoch, 0, 0)

    def of(self, position: int, device: torch.device) -> dict[str, Tensor]:
        """The loss's arguments beside z at a step of the epoch: `targets`, and `weight` for clusters."""
        arguments = {"targets": sent(self.of_image[self.order[position]], device)}
        return arguments if self.weight is None else {**arguments, "weight": sent(self.weight, device)}

    def state(self) -> Tensor | None:
        """The state to resume from within an epoch: the cluster of each image (N,), or None for labels."""
        return self.of_image if self.clustered else None

    def restore(self, clusters: Tensor | None) -> None:
        if clusters is not None:
            self.of_image = clusters
            self.weight = 1 - clusters.bincount(minlength=self.count) / len(clusters)


@torch.no_grad()
def clusters(encoder: nn.Module, images: Images, count: int, seed: int) -> Tensor:
    """The cluster (N,) of each image, on the CPU; the same on every process.

    The images (N, C, H, W) uint8, N ≥ count, are not augmented. The encoder keeps its mode. The seed is
    that of k-means. Cost: a forward pass for each image, and O(N · count · D) for each round of k-means,
    on the encoder's device.
    """

    def found() -> Tensor:
        return k_means(F.normalize(whitened(_features(encoder, images))), count, seed).cpu()

    return from_first(found)


def whitened(x: Tensor) -> Tensor:
    """The principal components of x (N, D), 256 at most, each scaled to variance 1.

    Components whose variance is only a rounding error are left out.
    """
    x = x.double() - x.double().mean(0)
    variances, directions = torch.linalg.eigh(x.T @ x / (len(x) - 1))
    variances, directions = variances[-COMPONENTS:], directions[:, -COMPONENTS:]
    real = variances > torch.finfo(torch.float32).eps * variances[-1]
    return (x @ (directions[:, real] / variances[real].sqrt())).float()


def k_means(x: Tensor, count: int, seed: int) -> Tensor:
    """The cluster (N,) of each point (N, D): the best of five runs, each started by k-means++.

    It works as scikit-learn's `KMeans(count, n_init=5, max_iter=30)`, on any device: a centre without
    points moves to the point farthest from its own centre, and rounds end when the centres move
    by less than 1e-4 of the variance.
    """
    found = [lloyd(x, first_centres(x, count, seeded(seed, start))) for start in range(BEGINNINGS)]
    return min(found, key=lambda one: float(one[0].sum()))[1]


def lloyd(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The squared distance and cluster of each point after Lloyd's rounds from these centres (`nearest`)."""
    count, still = len(centres), 1e-4 * x.var(0, correction=0).mean()
    for _ in range(ROUNDS):
        distance, cluster = nearest(x, centres)
        without = (cluster.bincount(minlength=count) == 0).nonzero().squeeze(1)
        cluster[distance.topk(len(without)).indices] = without
        sizes = cluster.bincount(minlength=count).clamp(min=1).unsqueeze(1)
        before, centres = centres, torch.zeros_like(centres).index_add_(0, cluster, x) / sizes
        if not (centres - before).square().sum() > still:
            break
    return nearest(x, centres)


def first_centres(x: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Centres (count, D) by greedy k-means++ (Arthur and Vassilvitskii 2007).

    Each is the best of a few points, drawn in proportion to their squared distance from the centres so
    far.
    """
    draws = torch.rand(count, 2 + int(math.log(count)), generator=generator, dtype=torch.float64).to(x.device)
    norms, chosen = x.square().sum(1), [(len(x) * draws[0, 0]).long()]
    distance = (x - x[chosen[0]]).square().sum(1)
    for draw in draws[1:]:
        total = distance.double().cumsum(0)
        some = torch.searchsorted(total, draw * total[-1]).clamp(max=len(x) - 1)
        after = (norms + norms[some].unsqueeze(1) - 2 * x[some] @ x.T).clamp(min=0).minimum(distance)
        best = after.sum(1).argmin()
        distance, chosen = after[best], [*chosen, some[best]]
    return x[torch.stack(chosen)]


def nearest(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """The squared distance from each point to its nearest centre, and the index of that centre, (N,) each."""
    found = []
    for part in x.split(max(1, DISTANCES // len(centres))):
        less = torch.addmm(centres.square().sum(1), part, centres.T, alpha=-2).min(1)
        found.append((less.values + part.square().sum(1), less.indices))
    distances, indices = zip(*found)
    return torch.cat(distances), torch.cat(indices)


@torch.no_grad()
def reinitialise(layer: nn.Linear, *key: int) -> None:
    """Give a layer new weights, normal with standard deviation 0.01 and seeded by `key`, and no bias."""
    layer.weight.copy_(0.01 * torch.randn(layer.weight.shape, generator=seeded(*key)))
    layer.bias.zero_()


def _features(encoder: nn.Module, images: Images) -> Tensor:
    device, training = next(encoder.parameters()), encoder.training
    encoder.eval()
    try:
        return torch.cat([encoder(part.to(device) / 255) for part in images.split(BATCH)]).float()
    finally:
        encoder.train(training)
