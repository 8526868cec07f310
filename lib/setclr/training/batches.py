"""The images of each batch, as a function of the seed and the epoch alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from setclr.checks import integer
from setclr.seeding import seeded
from setclr.settings import flag, whole
from setclr.training.distributed import rank, world


class Step(NamedTuple):
    """What a source gives views of: this process's share of a batch.

    >>> import torch
    >>> from setclr.training import Step
    >>> whole = torch.tensor([3, 1, 2, 0])
    >>> Step(whole[2:], key=(0, 5, 17), first=2, batch=whole).indices  # of the second of two processes
    tensor([2, 0])
    """

    indices: Tensor  # (n,) of the things in this process's share
    key: tuple[int, int, int]  # seed, epoch, step within the epoch
    first: int  # the place in the batch of this process's first thing
    batch: Tensor  # (N,) the whole batch, over all processes


@dataclass(frozen=True)
class Batching:
    """How batches are made.

    `size`: images, graphs or the like in a batch, over all processes. `images_per_class`: how many of one
    class stand in it together. `drop_last`: leave out the last batch of an epoch if it is incomplete.

    >>> from setclr.training import Batching
    >>> Batching(256, images_per_class=4)
    Batching(size=256, images_per_class=4, drop_last=True)
    """

    size: int = 128
    images_per_class: int = whole(1, least=1)
    drop_last: bool = flag(True)


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of every epoch: shuffled indices of the `things` whose classes are `labels` (N,).

    With `images_per_class` = g > 1, batches consist of random groups of g images of one class, as in
    table 8d of the GroCo paper (g = 4): every image then has g − 1 false negatives. Images without a label
    (-1) are left out there.

    Raises ValueError unless 2 ≤ batch ≤ N and g divides it. Also raises it if `drop_last` is False and the
    last batch has a single image.
    """

    labels: Tensor
    how: Batching
    seed: int = 0
    things: str = "images"

    def __post_init__(self) -> None:
        n, size, group = len(self.labels), self.how.size, self.how.images_per_class
        if n < 2:
            raise ValueError(f"{self.things} must be at least 2, got {n}; add some")
        integer("batch", size, least=2, most=n, hint=f"there are {n} {self.things}")
        integer("seed", self.seed, least=0)
        if size % group:
            raise ValueError(f"batch must be a multiple of images_per_class={group}, got {size}")
        if self.images % size == 1:
            one = f"{self.things.removesuffix('s')}, of {n} in batches of {size}"
            raise ValueError(f"drop_last must be True: the last batch would hold 1 {one}; set drop_last=True")

    @property
    def images(self) -> int:
        """The number of images in an epoch."""
        size, group, known = self.how.size, self.how.images_per_class, self.labels[self.labels >= 0]
        complete = int((known.bincount() // group).sum()) * group if group > 1 else len(self.labels)
        return complete // size * size if self.how.drop_last else complete

    def __len__(self) -> int:
        """The number of batches in every epoch."""
        return -(-self.images // self.how.size)

    def of_epoch(self, epoch: int) -> tuple[Tensor, ...]:
        """The image indices of each batch of the epoch."""
        generator = seeded(self.seed, epoch)
        order = torch.randperm(len(self.labels), generator=generator)
        if self.how.images_per_class > 1:
            order = self._groups(order, generator)
        return order[: self.images].split(self.how.size)

    def steps(self, first: int, epochs: int) -> Iterator[Step]:
        """This process's share of each batch, from the step `first` to the end of so many epochs."""
        for step in range(first, epochs * len(self)):
            epoch, position = divmod(step, len(self))
            if step == first or not position:
                order = self.of_epoch(epoch)
            share = len(order[position]) // world()
            place = rank() * share
            mine = order[position][place : place + share]
            yield Step(mine, (self.seed, epoch, position), place, order[position])

    def _groups(self, order: Tensor, generator: torch.Generator) -> Tensor:
        """The shuffled image indices, dealt into groups of one class; the groups are in random order."""
        size, order = self.how.images_per_class, order[self.labels[order] >= 0]
        of_class, known = order[self.labels[order].argsort(stable=True)], self.labels[order]
        classes = of_class.split(known.bincount().tolist())
        groups = torch.cat([images[: len(images) // size * size].view(-1, size) for images in classes])
        return groups[torch.randperm(len(groups), generator=generator)].flatten()
