"""DeepCluster's targets (Caron et al. 2018): every epoch, k-means finds E clusters of the encoder's features,
whitened and on the unit sphere. Their order is arbitrary, so the last layer starts from new weights."""

import numpy as np
import torch
from torch import Tensor, nn

from setclr.data.sources import Images
from setclr.training.distributed import from_first
from setclr.training.seeding import seeded

COMPONENTS = 256  # as in that paper
BATCH = 500


def clusters(encoder: nn.Module, images: Images, count: int, seed: int) -> Tensor:
    """The cluster (N,) of each image, on the CPU; the same on every process. The images (N, C, H, W) uint8,
    N ≥ count, are not augmented; the encoder keeps its mode; the seed is that of k-means. Cost: a forward
    pass for each image, and O(N · count · D) for each round of k-means."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    def found() -> np.ndarray:
        x = _features(encoder, images)
        x = PCA(min(COMPONENTS, *x.shape), whiten=True, random_state=seed).fit_transform(x)
        x /= np.linalg.norm(x, axis=1, keepdims=True).clip(min=1e-12)
        return KMeans(count, n_init=1, random_state=seed).fit(x).labels_

    return torch.from_numpy(from_first(found)).long()


def reinitialise(layer: nn.Linear, optimiser: torch.optim.Optimizer, *key: int) -> None:
    """Give a layer new weights, a function of the key, and clear what the optimiser remembers of it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seeded(*key).initial_seed())
        fresh = nn.Linear(layer.in_features, layer.out_features)
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), fresh.parameters()):
            parameter.copy_(value)
            optimiser.state.pop(parameter, None)


@torch.no_grad()
def _features(encoder: nn.Module, images: Images) -> np.ndarray:
    device, training = next(encoder.parameters()), encoder.training
    encoder.eval()
    try:
        parts = [encoder(part.to(device) / 255) for part in images.split(BATCH)]
        return torch.cat(parts).float().numpy(force=True)
    finally:
        encoder.train(training)
