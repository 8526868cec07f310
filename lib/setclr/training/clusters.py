"""DeepCluster's targets (Caron et al. 2018): every epoch, k-means finds E clusters of the encoder's features,
whitened and on the unit sphere. Their order is arbitrary, so the last layer starts from new weights."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.data.sources import Images
from setclr.training.distributed import from_first
from setclr.training.seeding import seeded

COMPONENTS = 256  # as in that paper
BEGINNINGS, ROUNDS = 5, 30  # of k-means, as in QARe's program
BATCH = 500
DISTANCES = 2**24  # held in one go


@torch.no_grad()
def clusters(encoder: nn.Module, images: Images, count: int, seed: int) -> Tensor:
    """The cluster (N,) of each image, on the CPU; the same on every process. The images (N, C, H, W) uint8,
    N ≥ count, are not augmented; the encoder keeps its mode; the seed is that of k-means. Cost: a forward
    pass for each image, and O(N · count · D) for each round of k-means, on the encoder's device."""

    def found() -> Tensor:
        return k_means(F.normalize(whitened(_features(encoder, images))), count, seed).cpu()

    return from_first(found)


def whitened(x: Tensor) -> Tensor:
    """The principal components of x (N, D), 256 at most, each with variance 1; none that is only rounding."""
    x = x.double() - x.double().mean(0)
    variances, directions = torch.linalg.eigh(x.T @ x / (len(x) - 1))
    variances, directions = variances[-COMPONENTS:], directions[:, -COMPONENTS:]
    real = variances > torch.finfo(torch.float32).eps * variances[-1]
    return (x @ (directions[:, real] / variances[real].sqrt())).float()


def k_means(x: Tensor, count: int, seed: int) -> Tensor:
    """The cluster (N,) of each point (N, D): the best of five beginnings, each drawn by k-means++.

    As scikit-learn's `KMeans(count, n_init=5, max_iter=30)`, on any device: a centre without points goes to
    the point farthest from its own, and rounds end when the centres move by less than 1e-4 of the variance.
    """
    found = [lloyd(x, first_centres(x, count, seeded(seed, start))) for start in range(BEGINNINGS)]
    return min(found, key=lambda one: float(one[0].sum()))[1]


def lloyd(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """What `nearest` gives after Lloyd's rounds from these centres."""
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
    """Centres (count, D) by greedy k-means++ (Arthur and Vassilvitskii 2007): each the best of a few points,
    drawn in proportion to their squared distance from the centres there are."""
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
    """The squared distance to the nearest centre, and which that is, (N,) each."""
    found = []
    for part in x.split(max(1, DISTANCES // len(centres))):
        less = torch.addmm(centres.square().sum(1), part, centres.T, alpha=-2).min(1)
        found.append((less.values + part.square().sum(1), less.indices))
    distances, indices = zip(*found)
    return torch.cat(distances), torch.cat(indices)


@torch.no_grad()
def reinitialise(layer: nn.Linear, *key: int) -> None:
    """Give a layer new weights, normal with deviation 0.01, a function of the key, and no bias."""
    layer.weight.copy_(0.01 * torch.randn(layer.weight.shape, generator=seeded(*key)))
    layer.bias.zero_()


def _features(encoder: nn.Module, images: Images) -> Tensor:
    device, training = next(encoder.parameters()), encoder.training
    encoder.eval()
    try:
        return torch.cat([encoder(part.to(device) / 255) for part in images.split(BATCH)]).float()
    finally:
        encoder.train(training)
