"""Photographs decoded and cropped by worker processes, ahead of the training loop.

The result depends only on the files, the views and the batches. The number of workers changes only the speed.
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
PATIENCE = 30  # seconds that a worker lives on after SIGTERM


def stream_batches(
    images: Photographs,
    views: Sequence[View],
    batches: Iterable[Batch],
    workers: int,
    device: torch.device | str,
) -> Iterator[tuple[list[Tensor], Tensor]]:
    """The crops of each batch in turn, decoded ahead by `workers` processes, and its draws.

    Both are for `views.finish(crops, views, draws)`. Crops are as `Photographs.crops` gives them, on the
    device. A GPU gets them from pinned memory, without waiting. Draws stay on the CPU. Starting workers
    takes seconds, so one call should serve all epochs. A batch takes n · Σ_v 3 S_v² bytes of shared memory;
    each worker holds two batches.

    Args:
        batches: indices (n,) of images and draws (n, V, 36) of `views.draw`; read a few batches ahead.
        workers: number of processes. Each decodes in several threads if there are processors left. 0
            decodes in this process, and not ahead.

    Raises:
        ValueError: an argument is not as it must be, or a file is damaged: the same error for any `workers`.
        MemoryError: a worker was killed; the message says what to change.
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
        generator=torch.Generator(),  # the default draws from the global one, which training may use
        prefetch_factor=AHEAD if workers else None,
        worker_init_fn=_leave_signals_to_the_parent,
    )
    for crops in _received(loader):
        if isinstance(crops, _Failure):
            raise crops.error
        yield _copied(crops, device, side), sent.popleft()


def _copied(crops: list[Tensor], device: torch.device, side: torch.cuda.Stream | None) -> list[Tensor]:
    """The crops on the device; a GPU copies them in the stream `side`, while earlier steps still run."""
    if side is None:
        return [x.to(device) for x in crops]
    with torch.cuda.stream(side):
        there = [x.to(device, non_blocking=True) for x in crops]
    step = torch.cuda.current_stream(device)
    step.wait_stream(side)
    for x in there:
        x.record_stream(step)  # otherwise its space could be reused while the step still reads it
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
    """A worker's error, returned and not raised: DataLoader would bury its message under a traceback."""

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
    """A worker ignores Ctrl-C and lives on for PATIENCE after SIGTERM.

    The parent writes its checkpoint in this time.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(PATIENCE))
