"""Images to features, by a frozen encoder or by none."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn

from setclr.checks import choice, integer
from setclr.data.sources import Images, source_of
from setclr.training.devices import has_bf16
from setclr.training.distributed import from_first, rank, world

VALUES = 2**25  # gathered in one go


@torch.no_grad()
def features(
    encoder: nn.Module, images: Images, batch: int = 500, shared: bool = True, precision: str = "auto"
) -> Tensor:
    """Features (N, D) float32 of images (N, C, H, W) uint8, without augmentation, on the images' device.

    The encoder runs in eval mode on its own device; no parameter, buffer or mode of it changes. It computes
    in the `precision` "float32" or "bf16"; "auto" is what torch.autocast says, or else bf16 on a GPU that has
    it in hardware and float32 elsewhere. A GPU does not wait while features are copied back.

    With many processes (setclr.training.distributed.joined) each embeds its part, in the batches that one
    process would make, and gets the features of all. All of them must call it, with the same images;
    shared=False is for one of them alone, as in `pretrain`'s on_epoch.

    Cost: memory for the result, 4 · N · D bytes, and for two batches of images.
    """
    many = shared and world() > 1
    integer("batch", batch, least=1)
    choice("precision", precision, ("auto", "float32", "bf16"))
    share = batch * -(-len(images) // (batch * world())) if many else len(images)
    start, found = rank() * share if many else 0, torch.empty(0)
    device = next(encoder.parameters()).device
    back = device.type == "cuda" and images.device.type == "cpu"
    mine = source_of(images).subset(slice(start, start + share)) if start < len(images) else None
    with evaluating(encoder), computing_in(precision, device):
        for part in () if mine is None else source_of(mine).split(batch):
            embedded = encoder(part.to(device).float() / 255).float()
            if not len(found):
                shape = len(images), *embedded.shape[1:]
                found = torch.empty(shape, device=images.device, pin_memory=back)
            found[start : start + len(part)].copy_(embedded, non_blocking=back)
            start += len(part)
    if back:
        torch.cuda.synchronize(device)
    if many:
        shape = from_first(lambda: found.shape)
        found = found if len(found) else torch.empty(shape, device=images.device)
        gather(found, share, device)
    return found


def computing_in(precision: str, device: torch.device) -> AbstractContextManager:
    """Autocast as `features` says."""
    if precision == "auto":
        if device.type != "cuda" or torch.is_autocast_enabled(device.type) or not has_bf16(device):
            return nullcontext()
        precision = "bf16"
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def gather(found: Tensor, share: int, device: torch.device) -> None:
    """Fill in the rows of the other processes, `share` each, by way of the device that communicates."""
    rows = max(1, VALUES // max(1, world() * found[0].numel()))
    for first in range(0, share, rows):
        length = min(rows, share - first)
        places = [found[first + process * share :][:length] for process in range(world())]
        mine = places[rank()]
        sent = torch.zeros(length, *found.shape[1:], device=device)
        sent[: len(mine)] = mine
        received = [torch.empty_like(sent) for _ in places]
        dist.all_gather(received, sent)
        for place, there in zip(places, received):
            place.copy_(there[: len(place)])


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
