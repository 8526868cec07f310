"""Things in a plane, each seen twice."""

import torch
from torch import Tensor
from torch.nn import functional as F

REACH, INNER = torch.tensor([[1.5, 0.9], [1.35, 0.8]], dtype=torch.float64)  # half widths and heights


def random_things(seed: int, n: int, spread: float = 0.3) -> Tensor:
    """(2, n, 2) float64: n points well apart from each other, and the same points displaced."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=REACH.dtype)

    points = INNER * (2 * uniform(1, 2) - 1)
    while len(points) < n:
        candidates = INNER * (2 * uniform(12, 2) - 1)
        farthest = torch.cdist(candidates, points).amin(1).argmax()
        points = torch.cat([points, candidates[farthest, None]])
    length, angle = spread * (0.5 + uniform(n)), 2 * torch.pi * uniform(n)
    displaced = points + torch.stack([length * angle.cos(), length * angle.sin()], 1)
    return torch.stack([points, displaced.clamp(-REACH, REACH)])


def drawn_example(n: int = 256) -> tuple[dict[str, tuple[Tensor, Tensor]], Tensor]:
    """Things of 12 numbers each, seen twice with noise: as patches of colour and by two encoders."""
    chance = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=chance)

    things = normal(n, 12)
    views = {"noisy encoder": 0.75, "better encoder": 0.5}
    features = {name: (things + s * normal(n, 12), things + s * normal(n, 12)) for name, s in views.items()}
    tint = 1 + 0.25 * normal(2, n, 3, 1, 1)
    blobs = F.interpolate(things.view(n, 3, 2, 2), (32, 32), mode="bicubic")
    return features, (128 + 50 * tint * blobs).clamp(0, 255).byte()
