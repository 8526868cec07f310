"""One interface for both kinds of images: a tensor in RAM, and photographs in files."""

from collections.abc import Generator, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from setclr import views as views_of
from setclr.data.photographs import Photographs
from setclr.data.streaming import Batch, stream_batches
from setclr.views import View
from setclr.views.numbers import sent

Images = Tensor | Photographs
Views = Generator[list[Tensor], None, None]  # for each batch a list of (V, n, C, S, S), one for each size


class InRAM:
    """A tensor (N, C, H, W) uint8 on any device."""

    in_ram = True

    def __init__(self, images: Tensor):
        self.images = images

    def subset(self, index: slice | Tensor) -> Tensor:
        return self.images[index]

    def split(self, batch: int) -> Iterable[Tensor]:
        return self.images.split(batch)

    def verify(self, decode: bool = False) -> None:
        """Does nothing: decoded images have no files to check."""

    def to(self, device: torch.device) -> "InRAM":
        return InRAM(self.images.to(device))

    def view_batches(
        self, views: Sequence[View], batches: Iterable[Batch], workers: int, device: torch.device,
        compiled: bool = False,
    ) -> Views:  # fmt: skip
        """The views of each batch (indices (n,), draws (n, V, 36)), on the device; `workers` is not used."""
        for index, draws in batches:
            images = self.images[sent(index, self.images.device)]
            yield views_of.apply_all(images.to(device), views, draws, compiled)


class InFiles:
    """Photographs, decoded on demand."""

    in_ram = False

    def __init__(self, images: Photographs):
        self.images = images

    def subset(self, index: slice | Tensor) -> Photographs:
        return self.images.subset(index)

    def split(self, batch: int) -> Iterator[Tensor]:
        return self.images.split(batch)

    def verify(self, decode: bool = False) -> None:
        """Raises ValueError if a file is no image (`Photographs.verify`)."""
        self.images.verify(decode=decode)

    def to(self, device: torch.device) -> "InFiles":
        """Returns itself: files stay where they are, and views are made on the device."""
        return self

    def view_batches(
        self, views: Sequence[View], batches: Iterable[Batch], workers: int, device: torch.device,
        compiled: bool = False,
    ) -> Views:  # fmt: skip
        """The views of each batch (indices (n,), draws (n, V, 36)), on the device.

        `workers` processes decode the photographs.
        """
        for crops, draws in stream_batches(self.images, views, batches, workers, device):
            yield views_of.finish(crops, views, draws, compiled)


def source_of(images: Images) -> InRAM | InFiles:
    """The images as an `InRAM` or `InFiles`, which have the same methods."""
    return InFiles(images) if isinstance(images, Photographs) else InRAM(images)
