"""A ball before a wall, and its normals as if they had been read off."""

import torch
from torch import Tensor

from setclr_course.papers.normals import NormalMaps


def ball(side: int = 64) -> tuple[NormalMaps, dict[str, Tensor]]:
    """The true normals, and those with a little noise and with much."""
    y, x = torch.meshgrid(*[torch.linspace(-1.3, 1.3, side)] * 2, indexing="ij")
    z = (1 - x * x - y * y).clamp(min=0).sqrt()
    on = x * x + y * y < 1
    normals = torch.where(on, torch.stack([x, y, -z]), torch.tensor([0.0, 0, -1])[:, None, None])[None]
    shade = (128 - 100 * (normals[:, :1] + normals[:, 1:2]) / 2).round().byte().expand(-1, 3, -1, -1)
    noise = torch.randn(normals.shape, generator=torch.Generator().manual_seed(1))
    read = {
        name: torch.nn.functional.normalize(normals + much * noise, dim=1)
        for name, much in (("little noise", 0.2), ("much noise", 1.0))
    }
    return NormalMaps(shade, normals, torch.ones(1, side, side, dtype=torch.bool)), read
