"""Batches read by worker processes, ahead of the training loop.

The result depends only on what is read. The number of workers changes only the speed.
"""

import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import tee
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from setclr import checks
from setclr.data.photographs import Photographs
from setclr.views import View

Batch = tuple[Tensor, Tensor]  # indices (n,), draws (n, V, 36)
AHEAD = 2  # batches that every worker prepares in advance
PATIENCE = 30  # seconds that a worker lives on after SIGTERM


def streamed(
    read: Callable[[Any], Any], batches: Iterable[Any], workers: int, device: torch.device | str
) -> Iterator[Any]:
    """What `read` gives for each batch in turn, read ahead by `workers` processes and copied to the device.

    A GPU gets tensors from pinned memory, without waiting. Starting workers takes seconds, so one call
    should serve all epochs. Results wait in shared memory; each worker holds two.

    Args:
        read: a function of one batch. Gives a tensor, or nested lists or tuples of them; tuples arrive as
            lists. It runs in the workers, so it must be picklable where those are not forked.
        batches: what `read` takes, one after the other. Each must be picklable; read a few ahead.
        workers: number of processes. 0 reads in this process, and not ahead.

    Raises:
        ValueError: an argument is not as it must be, or `read` cannot be pickled.
        MemoryError: a worker was killed; the message says what to change.
        Any error of `read`, with its own type if that is picklable, and the worker's traceback as a note.
    """
    checks.integer("workers", workers, least=0, hint="it is the number of processes")
    if workers and multiprocessing.get_start_method() != "fork":
        _refuse_unpicklable(read)
    device = torch.device(device)
    side = torch.cuda.Stream(device) if device.type == "cuda" else None
    loader: DataLoader = DataLoader(
        _Reads(read),
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),  # the default draws from the global one, which training may use
        prefetch_factor=AHEAD if workers else None,
        worker_init_fn=_leave_signals_to_the_parent,
    )
    for result in _received(loader):
        if isinstance(result, Exception):
            raise result
        yield _copied(result, device, side)


def stream_batches(
    images: Photographs, views: Sequence[View], batches: Iterable[Batch], workers: int,
    device: torch.device | str,
) -> Iterator[tuple[list[Tensor], Tensor]]:  # fmt: skip
    """The crops of each batch in turn, decoded ahead by `workers` processes, and its draws.

    Both are for `views.finish(crops, views, draws)`. Crops are as `Photographs.crops` gives them, on the
    device; draws stay on the CPU. A batch takes n · Σ_v 3 S_v² bytes of shared memory.

    Args:
        batches: indices (n,) of images and draws (n, V, 36) of `views.draw`; read a few batches ahead.
        workers: number of processes. Each decodes in several threads if there are processors left. 0
            decodes in this process, and not ahead.

    Raises:
        ValueError: an argument is not as it must be, or a file is damaged: the same error for any `workers`.
        As `streamed` does.
    """
    checks.integer("workers", workers, least=0, hint="it is the number of processes")
    threads = min(images.threads, max(1, (os.cpu_count() or 1) // max(1, workers)))
    asked, again = tee(batches)
    crops = streamed(partial(_crops, images, views, threads), asked, workers, device)
    yield from zip(crops, (draws for _, draws in again))


def _crops(images: Photographs, views: Sequence[View], threads: int, batch: Batch) -> list[Tensor]:
    return images.crops(batch[0], views, batch[1], threads)


def _copied(result: Any, device: torch.device, side: torch.cuda.Stream | None) -> Any:
    """The result on the device; a GPU copies it in the stream `side`, while earlier steps still run."""
    if side is None:
        return _moved(result, lambda x: x.to(device))
    step = torch.cuda.current_stream(device)
    with torch.cuda.stream(side):
        there = _moved(result, lambda x: x.to(device, non_blocking=True))
    step.wait_stream(side)
    _moved(there, lambda x: x.record_stream(step))  # else its space is reused while the step still reads it
    return there


def _moved(result: Any, move: Callable[[Tensor], Any]) -> Any:
    """The nested result with each tensor replaced by what `move` gives for it."""
    if isinstance(result, list | tuple):
        return [_moved(part, move) for part in result]
    return move(result) if isinstance(result, Tensor) else result


def _received(loader: DataLoader) -> Iterator:
    try:
        yield from loader
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        hint = "memory, or shared memory (/dev/shm), may have run out: take fewer workers or a smaller batch"
        if multiprocessing.get_start_method() != "fork":
            hint += "; a script must start its work below `if __name__ == '__main__':`, and a Dataset whose "
            hint += "class stands in a notebook's cell needs workers=0"
        raise MemoryError(f"a worker process was killed ({str(error).splitlines()[0]}); {hint}") from error


def _refuse_unpicklable(read: Callable[[Any], Any]) -> None:
    try:
        ForkingPickler.dumps(read)
    except Exception as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"workers must be 0 for a Dataset that cannot be pickled ({problem})") from error


class _Reads(Dataset):
    """A data set whose indices are whole batches.

    A worker returns an error of `read`, and does not raise it: DataLoader would bury its message.
    """

    def __init__(self, read: Callable[[Any], Any]):
        self.read = read

    def __getitem__(self, batch: Any) -> Any:
        try:
            return self.read(batch)
        except Exception as error:  # users' code can raise anything
            if get_worker_info() is None:
                raise
            return _sendable(error)


def _sendable(error: Exception) -> Exception:
    """The error, or a RuntimeError if it cannot be sent to another process, with its traceback as a note."""
    text = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
        same = type(copy) is type(error) and str(copy) == str(error)
    except Exception:  # an error that its arguments cannot make again
        same = False
    sent = error if same else RuntimeError(f"{type(error).__name__}: {error}")
    sent.add_note(f"In the worker process:\n{text}")
    return sent


def _leave_signals_to_the_parent(_: int) -> None:
    """A worker ignores Ctrl-C and lives on for PATIENCE after SIGTERM.

    The parent writes its checkpoint in this time.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(PATIENCE))
