"""Things in a plane, each seen twice."""

import torch
from torch import Tensor

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
