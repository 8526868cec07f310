"""Features of images: those of a frozen encoder (`features`), or raw pixels (`pixels`)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn

from setclr.checks import choice, integer
from setclr.data.sets import Images, select
from setclr.evaluation.neighbours import in_parts
from setclr.training.devices import has_bf16
from setclr.training.distributed import from_first, rank, world
from setclr.training.grad_cache import dtype_of, flat

VALUES = 2**25  # sent by each call of all_gather, over all processes


@torch.no_grad()
def features(
    encoder: nn.Module, images: Images, batch: int = 500, shared: bool = True, precision: str = "auto"
) -> Tensor:
    """Features (N, D) float32 of images (N, C, H, W) uint8, without augmentation, on the images' device.

    The encoder runs in eval mode on its own device. None of its parameters, buffers and modes changes. It
    computes in the `precision` "float32" or "bf16". "auto" follows a surrounding torch.autocast; without
    one it is bf16 on a GPU that has it in hardware, and float32 elsewhere. A GPU does not wait while
    features are copied back.

    With several processes (setclr.training.distributed.joined) each embeds its part of the images, in the
    batches that a single process would make, and returns the features of all. All processes must call it,
    with the same images. Pass shared=False where one process calls it alone, as in `pretrain`'s on_epoch.

    >>> import torch
    >>> from torch import nn
    >>> from setclr.evaluation import features
    >>> features(nn.Flatten(), torch.zeros(5, 3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([5, 192])

    Raises ValueError where the encoder gives no (N, D), or NaN or inf.

    Cost: the result, 4 · N · D bytes, and two batches of images are held at once.
    """
    many = shared and world() > 1
    integer("batch", batch, least=1)
    choice("precision", precision, ("auto", "float32", "bf16"))
    share = batch * -(-len(images) // (batch * world())) if many else len(images)
    start, found = rank() * share if many else 0, torch.empty(0)
    device = next(encoder.parameters(), torch.empty(0)).device
    to_cpu = device.type == "cuda" and images.device.type == "cpu"
    mine = select(images, slice(start, start + share)) if start < len(images) else None
    with evaluating(encoder), computing_in(precision, device):
        for part in () if mine is None else mine.split(batch):
            x = part.to(device).float() / 255
            embedded = flat(encoder(x.to(dtype_of(encoder, x))), len(x)).float()
            if not len(found):
                shape = len(images), *embedded.shape[1:]
                found = embedded.new_empty(shape, device=images.device, pin_memory=to_cpu)
            found[start : start + len(part)].copy_(embedded, non_blocking=to_cpu)
            start += len(part)
    if to_cpu:
        torch.cuda.synchronize(device)
    if many:
        shape = from_first(lambda: found.shape)
        found = found if len(found) else torch.empty(shape, dtype=torch.float32, device=images.device)
        gather(found, share, device)
    if not all(part.isfinite().all() for part in in_parts(found)):
        raise ValueError("features must be finite, got NaN or inf: the encoder has diverged")
    return found


def computing_in(precision: str, device: torch.device) -> AbstractContextManager:
    """The autocast context for a `precision` of `features`."""
    if precision == "auto":
        if device.type != "cuda" or torch.is_autocast_enabled(device.type) or not has_bf16(device):
            return nullcontext()
        precision = "bf16"
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def gather(found: Tensor, share: int, device: torch.device) -> None:
    """Fill the rows of `found` that other processes computed, `share` each. `device` is the one that
    communicates."""
    rows = max(1, VALUES // max(1, world() * found[0].numel()))
    for first in range(0, share, rows):
        length = min(rows, share - first)
        places = [found[first + process * share :][:length] for process in range(world())]
        mine = places[rank()]
        sent = found.new_zeros(length, *found.shape[1:], device=device)
        sent[: len(mine)] = mine
        received = [torch.empty_like(sent) for _ in places]
        dist.all_gather(received, sent)
        for place, there in zip(places, received):
            place.copy_(there[: len(place)])


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model in eval mode inside. Afterwards every module is back in its own mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def pixels(images: Tensor) -> Tensor:
    """Raw pixels, the baseline without learning: (N, C·H·W), each channel of each image minus its mean.

    >>> import torch
    >>> from setclr.evaluation import pixels
    >>> pixels(torch.zeros(5, 3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([5, 192])
    """
    x = images.to(torch.float32, copy=True)
    return x.sub_(x.mean((2, 3), keepdim=True)).flatten(1)
