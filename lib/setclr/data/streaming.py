"""Photographs decoded and cropped by worker processes, ahead of the training loop.

The result depends on the files, the views and the batches alone; the number of workers changes the speed.
"""

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from setclr import checks
from setclr.data.photographs import Photographs
from setclr.views import View

Batch = tuple[Tensor, Tensor]  # indices (n,), draws (n, V, 36)
AHEAD = 2  # batches that every worker prepares in advance
PATIENCE = 30  # seconds


def stream_batches(
    images: Photographs,
    views: Sequence[View],
    batches: Iterable[Batch],
    workers: int,
    device: torch.device | str,
) -> Iterator[tuple[list[Tensor], Tensor]]:
    """The crops of each batch in turn, decoded ahead by `workers` processes, and its draws.

    For `views.finish(crops, views, draws)`: crops as `Photographs.crops` gives them, on the device, by pinned
    memory and without waiting where it is a GPU; draws on the CPU. Starting workers takes seconds: one call
    should serve all epochs. A batch takes n · Σ_v 3 S_v² bytes of shared memory; each worker holds two.

    Args:
        batches: indices (n,) of images and draws (n, V, 36) of `views.draw`; read a few batches ahead.
        workers: processes, in threads where processors are left; 0 decodes in this one and not ahead.

    Raises:
        ValueError: an argument is not as it must be, or a file is damaged: the same error for any `workers`.
        MemoryError: a worker was killed; says what to change.
    """
    checks.integer("workers", workers, least=0, hint="it is the number of processes")
    if not isinstance(images, Photographs):
        raise ValueError(f"images must be Photographs, got {type(images).__name__}; load with stream=True")
    device, sent = torch.device(device), deque[Tensor]()
    side = torch.cuda.Stream(device) if device.type == "cuda" else None
    threads = min(images.threads, max(1, (os.cpu_count() or 1) // workers)) if workers else None

    def asked() -> Iterator[Batch]:
        for index, draws in batches:
            sent.append(draws)
            yield index, draws

    loader: DataLoader = DataLoader(
        _Crops(images, views, threads),
        batch_size=None,
        sampler=asked(),
        num_workers=workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),  # or it would draw from the global one, which the training may use
        prefetch_factor=AHEAD if workers else None,
        worker_init_fn=_leave_signals_to_the_parent,
    )
    for crops in _received(loader):
        if isinstance(crops, _Failure):
            raise crops.error
        yield _copied(crops, device, side), sent.popleft()


def _copied(crops: list[Tensor], device: torch.device, side: torch.cuda.Stream | None) -> list[Tensor]:
    """On the device; on a GPU copied by a stream of their own, while the steps before are still at work."""
    if side is None:
        return [x.to(device) for x in crops]
    with torch.cuda.stream(side):
        there = [x.to(device, non_blocking=True) for x in crops]
    step = torch.cuda.current_stream(device)
    step.wait_stream(side)
    for x in there:
        x.record_stream(step)  # or its memory would be given away while the step still reads it
    return there


def _received(loader: DataLoader) -> Iterator:
    try:
        yield from loader
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        hint = "memory, or shared memory (/dev/shm), may have run out: take fewer workers or a smaller batch"
        raise MemoryError(f"a worker process was killed ({str(error).splitlines()[0]}); {hint}") from error


class _Failure:
    """An error on its way from a worker, whose message DataLoader would bury under a traceback."""

    def __init__(self, error: Exception):
        self.error = error


class _Crops(Dataset):
    """A data set whose indices are whole batches."""

    def __init__(self, images: Photographs, views: Sequence[View], threads: int | None):
        self.images, self.views, self.threads = images, views, threads

    def __getitem__(self, batch: Batch) -> list[Tensor] | _Failure:
        try:
            return self.images.crops(batch[0], self.views, batch[1], self.threads)
        except (ValueError, IndexError, OSError) as error:
            return _Failure(error)


def _leave_signals_to_the_parent(_: int) -> None:
    """A worker ignores Ctrl-C and outlives SIGTERM by PATIENCE, in which the parent writes its checkpoint."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(PATIENCE))
