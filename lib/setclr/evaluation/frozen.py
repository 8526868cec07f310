"""Features of images: those of a frozen encoder (`features`), or raw pixels (`pixels`)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from tqdm.auto import tqdm

from setclr.checks import choice, default_device, integer
from setclr.data.sets import Images, select
from setclr.evaluation.neighbours import in_parts
from setclr.training.devices import has_bf16
from setclr.training.distributed import from_first, rank, world
from setclr.training.grad_cache import dtype_of, flat


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
    with the same images; pass shared=False where one calls it alone. In `pretrain`'s on_epoch one does.

    >>> import torch
    >>> from torch import nn
    >>> from setclr.evaluation import features
    >>> features(nn.Flatten(), torch.zeros(5, 3, 8, 8, dtype=torch.uint8)).shape
    torch.Size([5, 192])

    Raises ValueError where images are not as above, or the encoder gives no (N, D), or NaN or inf.

    Cost: the result, 4 · N · D bytes, and two batches of images are held at once.
    """
    default_device()
    check_images(images)
    many = shared and world() > 1
    integer("batch", batch, least=1)
    choice("precision", precision, ("auto", "float32", "bf16"))
    share = batch * -(-len(images) // (batch * world())) if many else len(images)
    start, rows = rank() * share if many else 0, torch.empty(0)
    device = next(encoder.parameters(), torch.empty(0)).device
    to_cpu = device.type == "cuda" and images.device.type == "cpu"
    mine = select(images, slice(start, start + share)) if start < len(images) else None
    with evaluating(encoder), computing_in(precision, device):
        parts = () if mine is None else mine.split(batch)
        for part in tqdm(parts, "features", -(-share // batch), unit="batch", leave=False, delay=2):
            x = part.to(device).float() / 255
            embedded = flat(encoder(x.to(dtype_of(encoder, x))), len(x)).float()
            if not len(rows):
                shape = len(images), *embedded.shape[1:]
                rows = embedded.new_empty(shape, device=images.device, pin_memory=to_cpu)
            rows[start : start + len(part)].copy_(embedded, non_blocking=to_cpu)
            start += len(part)
    if to_cpu:
        torch.cuda.synchronize(device)
    if many:
        shape = from_first(lambda: rows.shape)
        rows = rows if len(rows) else torch.empty(shape, dtype=torch.float32, device=images.device)
        gather(rows, share, device)
    if not all(part.isfinite().all() for part in in_parts(rows)):
        raise ValueError("features must be finite, got NaN or inf: the encoder has diverged")
    return rows


def check_images(images: object) -> None:
    """Raises ValueError unless images are (N, C, H, W) uint8, not empty."""
    shape, dtype = tuple(getattr(images, "shape", ())), getattr(images, "dtype", type(images).__name__)
    if not isinstance(images, Images) or len(shape) != 4 or 0 in shape or dtype != torch.uint8:
        hint = "floats in [0, 1]: (255 * images).round().byte(); of an ImageSet take its .images"
        raise ValueError(f"images must be (N, C, H, W) uint8, not empty, got {shape} {dtype}; {hint}")


def computing_in(precision: str, device: torch.device) -> AbstractContextManager:
    """The autocast context for a `precision` of `features`."""
    in_hardware = device.type == "cuda" and not torch.is_autocast_enabled("cuda") and has_bf16(device)
    if precision == "auto" and not in_hardware:
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16, enabled=precision != "float32")


def gather(rows: Tensor, share: int, device: torch.device) -> None:
    """Fill the rows that other processes computed, `share` each. `device` is the one that communicates."""
    for process, part in enumerate(rows.split(share)):
        for some_rows in in_parts(part):
            sent = some_rows.to(device)
            dist.broadcast(sent, process)
            some_rows.copy_(sent)


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
