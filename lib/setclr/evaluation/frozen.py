"""Images to features, by a frozen encoder or by none."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from setclr.checks import integer
from setclr.data.sources import Images, source_of
from setclr.training.distributed import from_first, rank, world

VALUES = 2**25  # summed in one go


@torch.no_grad()
def features(encoder: nn.Module, images: Images, batch: int = 500, shared: bool = True) -> Tensor:
    """Features (N, D) float32 of images (N, C, H, W) uint8, without augmentation, on the images' device.

    The encoder runs in eval mode on its own device; no parameter, buffer or mode of it changes.

    With many processes (setclr.training.distributed.joined) each embeds its part, in the batches that one
    process would make, and gets the features of all. All of them must call it, with the same images;
    shared=False is for one of them alone, as in `pretrain`'s on_epoch.

    Cost: memory for the result, 4 · N · D bytes, and for two batches of images.
    """
    many = shared and world() > 1
    integer("batch", batch, least=1)
    share = batch * -(-len(images) // (batch * world())) if many else len(images)
    start, found = rank() * share if many else 0, torch.empty(0)
    device = next(encoder.parameters()).device
    mine = source_of(images).subset(slice(start, start + share)) if start < len(images) else None
    with evaluating(encoder):
        for part in () if mine is None else source_of(mine).split(batch):
            embedded = encoder(part.to(device).float() / 255).float()
            if not len(found):
                found = torch.zeros(len(images), *embedded.shape[1:], device=images.device)
            found[start : start + len(part)] = embedded
            start += len(part)
    if many:
        shape = from_first(lambda: found.shape[1:])
        found = found if len(found) else torch.zeros(len(images), *shape, device=images.device)
        add_up(found, device)
    return found


def add_up(found: Tensor, device: torch.device) -> None:
    """Replace `found` by its sum over all processes, part after part, on the device that communicates."""
    for part in found.split(max(1, VALUES // max(1, found[0].numel()))):
        total = part.to(device)
        dist.all_reduce(total)
        part.copy_(total)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in eval mode; afterwards every part is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def pixels(images: Tensor) -> Tensor:
    """The baseline that has learned nothing: (N, C·H·W), each channel of each image minus its mean."""
    x = images.to(torch.float32, copy=True)
    return x.sub_(x.mean((2, 3), keepdim=True)).flatten(1)
