"""Which images make which batch: a function of the seed and the epoch alone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from setclr.checks import integer
from setclr.training.seeding import seeded


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of every epoch: images with `labels` (N,), shuffled; an incomplete batch is left out.

    With `same_class` = g > 1 they consist of random groups of g images of one class, as in table 8d of the
    GroCo paper (g = 4): every image then has g − 1 false negatives. Raises ValueError unless 2 ≤ batch ≤ N
    and g divides it.
    """

    labels: Tensor
    batch: int
    seed: int = 0
    same_class: int = 1

    def __post_init__(self) -> None:
        n = len(self.labels)
        integer("batch", self.batch, least=2, most=n, hint=f"there are {n} images")
        integer("seed", self.seed, least=0)
        integer("same_class", self.same_class, least=1)
        if self.batch % self.same_class:
            raise ValueError(f"batch must be a multiple of same_class={self.same_class}, got {self.batch}")

    def __len__(self) -> int:
        """The number of batches in every epoch."""
        group = self.same_class
        return int((self.labels.bincount() // group).sum()) * group // self.batch

    def of(self, epoch: int) -> Tensor:
        """Indices of images, (steps, batch)."""
        generator = seeded(self.seed, epoch)
        order = torch.randperm(len(self.labels), generator=generator)
        if self.same_class > 1:
            order = self._groups(order, generator)
        return order[: len(self) * self.batch].view(len(self), self.batch)

    def _groups(self, order: Tensor, generator: torch.Generator) -> Tensor:
        """The shuffled images, dealt into groups of one class, in random order of the groups."""
        size, of_class = self.same_class, order[self.labels[order].argsort(stable=True)]
        classes = of_class.split(self.labels.bincount().tolist())
        groups = torch.cat([images[: len(images) // size * size].view(-1, size) for images in classes])
        return groups[torch.randperm(len(groups), generator=generator)].flatten()
