"""Descent on InfoNCE + β·QARe for points on a circle, for all weights at once (QARe, eq. 7 and 17)."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

N, STEPS, RATE, TEMPERATURE = 8, 80, 0.5, 0.5
BETAS = torch.arange(0, 4.01, 0.125, dtype=torch.float64)  # the paper's grid, which ends at 1.875, and on
SIMILARITIES = ("cosine", "euclidean")
NCE_OF_ONE_POINT = np.log(2 * N - 1)  # all 2N points equal: a blind choice among 2N − 1


def start(things: int = N) -> Tensor:
    """(2, N) radians: things crowded on one side of the circle, their two views mixed up."""
    generator = torch.Generator().manual_seed(0)
    thing = 2.6 * torch.rand(things, generator=generator, dtype=torch.float64) + 0.3
    return thing + 0.45 * torch.randn(2, things, generator=generator, dtype=torch.float64)


def points(angles: Tensor) -> Tensor:
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def info_nce(angles: Tensor) -> Tensor:
    """InfoNCE(0.5) of each batch: angles (..., 2, N) → (...)."""
    x, N = points(angles).flatten(-3, -2), angles.shape[-1]
    logits = x @ x.mT / TEMPERATURE
    thing = torch.arange(N).repeat(2)
    negatives = logits.masked_fill(thing[:, None] == thing, -torch.inf).logsumexp(-1)
    positives = logits.diagonal(N, -2, -1).repeat(*[1] * (angles.ndim - 2), 2)
    return F.softplus(negatives - positives).mean(-1)


def qare(angles: Tensor, similarity: str) -> Tensor:
    """QARe of each batch: angles (..., 2, N) → (...). Two points are 2·|sin(half their angle)| apart."""
    if similarity == "cosine":
        z = F.pad(points(angles), (0, 1), value=1.0)
        eigenvalues = torch.linalg.eigvalsh(z.mT @ z)
        return eigenvalues.prod(-2).sum(-1) / angles.shape[-1] ** 2
    distances = 2 * ((angles.unsqueeze(-1) - angles.unsqueeze(-2)) / 2).sin().abs()
    a, b = torch.linalg.eigvalsh(distances).unbind(-2)
    return -(a * b.flip(-1)).sum(-1) / angles.shape[-1] ** 2


@lru_cache
def paths(N: int = N) -> dict[str, dict[str, np.ndarray]]:
    """For each similarity the `angles` (STEPS + 1, β, 2, N) of all descents at once, and along them the
    values of `InfoNCE` and the mean cosine `within` a view, (STEPS + 1, β)."""
    found = {}
    for similarity in SIMILARITIES:
        path = [start(N).expand(len(BETAS), 2, N)]
        for _ in range(STEPS):
            angles = path[-1].clone().requires_grad_()
            loss = info_nce(angles) + BETAS * qare(angles, similarity)
            (slope,) = torch.autograd.grad(loss.sum(), angles)
            path.append(path[-1] - RATE * slope)
        angles = torch.stack(path)
        sums = points(angles).sum(-2).square().sum(-1)  # N + the sum of the cosines between different points
        within = ((sums - N) / (N * (N - 1))).mean(-1)
        found[similarity] = {"angles": angles, "within": within, "InfoNCE": info_nce(angles)}
    return {name: {k: x.numpy() for k, x in path.items()} for name, path in found.items()}
