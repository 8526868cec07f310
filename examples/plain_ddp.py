"""A SetCLR loss in one's own DistributedDataParallel loop: embed a part, gather all, compute the same loss.

torchrun --nproc-per-node 2 examples/plain_ddp.py
"""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from setclr.losses import InfoNCE, learnable
from setclr.training.distributed import gather, joined, rank, world

BATCH, STEPS = 64, 40  # images of all processes together


def train() -> tuple[float, float, float]:
    """The mean loss of the first and of the last five steps, and the learnt temperature."""
    torch.manual_seed(0)  # the same weights and images everywhere; each process takes its part
    images = torch.randn(512, 20)
    encoder = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
    temperature = learnable(0.5)
    loss = InfoNCE(temperature)
    model = DistributedDataParallel(encoder)
    optimiser = torch.optim.Adam([*model.parameters(), *loss.parameters()], lr=3e-3)
    values = []
    for _ in range(STEPS):
        batch = images[torch.randperm(len(images))[:BATCH]].chunk(world())[rank()]
        views = batch + 0.3 * torch.randn(2, *batch.shape)  # (V, n, D): two views of this process's images
        z = model(views.flatten(0, 1)).unflatten(0, views.shape[:2])  # (V, n, E)
        value = loss(gather(z))  # (V, n·world, E): every process sees the whole batch and the same loss
        optimiser.zero_grad()
        value.backward()  # gather's backward sums over processes, DDP divides by their number: as one process
        optimiser.step()  # the temperature, outside the model, has the same gradient in every process
        values.append(value.item())
    return sum(values[:5]) / 5, sum(values[-5:]) / 5, temperature.value


with joined("cpu"):  # torch.distributed's process group, left only after the model is gone
    first, last, temperature = train()
    assert last < first, (first, last)
    if rank() == 0:
        print(f"{world()} processes, loss {first:.3f} -> {last:.3f}, temperature {temperature:.3f}")
