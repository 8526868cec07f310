"""DeepCluster (Caron et al. 2018): the target of an image is its cluster.

k-means finds E clusters of the encoder's features in every epoch. The features are whitened and scaled to
length 1. The order of the clusters is arbitrary, so the last layer starts from new weights each time.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setclr.checks import integer
from setclr.data.sets import Images
from setclr.seeding import seeded
from setclr.training.distributed import from_first
from setclr.training.momentum import outputs
from setclr.training.source import ImageViews
from setclr.training.task import Task
from setclr.training.trainer import Trainer
from setclr.views.numbers import sent
from setclr_course.papers.supervised import Supervised

COMPONENTS = 256  # principal components, as in DeepCluster's paper
BATCH = 500  # images in one forward pass


class DeepCluster(Supervised):
    """Cross-entropy of E clusters of the encoder's own features (Caron et al. 2018).

    Every epoch begins with new clusters and a new last layer. An image's weight is 1 minus its cluster's
    share of all images, as in QARe's program. Caron et al. draw clusters uniformly instead.
    """

    takes = frozenset()
    classifies = False

    def task(self, trainer: Trainer) -> Task:
        return Clusters(trainer)


class Clusters(Task):
    """Finds the clusters, and gives the loss each image's.

    Raises ValueError if the images are not in RAM, or fewer than the head's outputs.
    """

    def __init__(self, trainer: Trainer):
        super().__init__(trainer)
        source, self.count = trainer.source, outputs(trainer.head)
        if not isinstance(source, ImageViews) or not isinstance(source.images.images, Tensor):
            got = source.images if isinstance(source, ImageViews) else trainer.things
            raise ValueError(f"data must be images in RAM for {trainer.loss}, got {got}")
        integer("embedding", self.count, least=2, most=len(source), hint="it is the number of clusters")
        self.images: Images = source.images.images
        self.of_image = torch.empty(0)
        self.weight = torch.empty(0)

    def begin(self, epoch: int, fresh: bool) -> None:
        """If the epoch is `fresh`, find its clusters, and give the last layer new weights."""
        if fresh:
            head, seed = self.trainer.head, self.trainer.batches.seed
            self.restore(clusters(self.trainer.encoder, self.images, self.count, seed + epoch))
            last = [layer for layer in head.modules() if isinstance(layer, nn.Linear)][-1]
            reinitialise(last, seed, epoch, 0, 0)

    def arguments_at(self, indices: Tensor) -> dict[str, Tensor]:
        device = self.trainer.device
        return {"labels": sent(self.of_image[indices], device), "weight": sent(self.weight, device)}

    def state(self) -> Tensor:
        return self.of_image

    def restore(self, state: Tensor | None) -> None:
        x = torch.empty(0) if state is None else state
        fits = x.dtype == torch.int64 and x.shape == self.trainer.source.labels.shape
        if not fits or x.min() < 0 or x.max() >= self.count:
            raise ValueError(f"targets must be clusters 0 to {self.count - 1}, one an image")
        self.of_image, self.weight = x, 1 - x.bincount(minlength=self.count) / len(x)


@torch.no_grad()
def clusters(encoder: nn.Module, images: Images, count: int, seed: int) -> Tensor:
    """The cluster (N,) of each image, on the CPU; the same on every process.

    The images (N, C, H, W) uint8, N ≥ count, are not augmented. The encoder keeps its mode. The seed is
    that of k-means. Cost: a forward pass for each image, and O(N · count · D) for each round of k-means.
    """
    return from_first(lambda: k_means(F.normalize(whitened(_features(encoder, images))), count, seed))


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
    """The cluster (N,) of each point (N, D): the best of five runs of 30 rounds, as in QARe's program.

    On one thread, since several add numbers in a varying order.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if x.shape[1] == 0:  # all features are alike
        return torch.zeros(len(x), dtype=torch.int64)
    with threadpool_limits(1):
        best = KMeans(count, n_init=5, max_iter=30, random_state=seed % 2**32).fit(x.cpu().numpy())
    return torch.from_numpy(best.labels_).long()


@torch.no_grad()
def reinitialise(layer: nn.Linear, *key: int) -> None:
    """Give a layer new weights, normal with standard deviation 0.01 and seeded by `key`, and no bias."""
    layer.weight.copy_(0.01 * torch.randn(layer.weight.shape, generator=seeded(*key)))
    layer.bias.zero_()


def _features(encoder: nn.Module, images: Images) -> Tensor:
    weight, training = next(encoder.parameters()), encoder.training
    encoder.eval()
    try:
        return torch.cat([encoder(part.to(weight) / 255) for part in images.split(BATCH)]).float()
    finally:
        encoder.train(training)
