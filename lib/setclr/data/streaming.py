"""Batches read by worker processes, ahead of the training loop.

The result depends only on what is read. The number of workers changes only the speed.
"""

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from setclr import checks

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
        try:
            ForkingPickler.dumps(read)
        except Exception as error:
            raise ValueError(f"workers must be 0 for a Dataset that cannot be pickled ({error})") from error
    device = torch.device(device)
    loader: DataLoader = DataLoader(
        _Reads(read),
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),  # the default draws from the global one, which training may use
        worker_init_fn=_leave_signals_to_the_parent,
    )
    try:
        for result in loader:
            if isinstance(result, Exception):
                raise result
            yield _moved(result, device)
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        hint = "memory, or shared memory (/dev/shm), may have run out: take fewer workers or a smaller batch"
        if multiprocessing.get_start_method() != "fork":
            hint += "; a script must start its work below `if __name__ == '__main__':`, and a Dataset whose "
            hint += "class stands in a notebook's cell needs workers=0"
        raise MemoryError(f"a worker process was killed ({str(error).splitlines()[0]}); {hint}") from error


def _moved(result: Any, device: torch.device) -> Any:
    """The nested result with each tensor on the device; from pinned memory the copy does not wait."""
    if isinstance(result, list | tuple):
        return [_moved(part, device) for part in result]
    return result.to(device, non_blocking=True) if isinstance(result, Tensor) else result


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
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error that its arguments cannot make again
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In the worker process:\n{text}")
    return error


def _leave_signals_to_the_parent(_: int) -> None:
    """A worker ignores Ctrl-C and lives on for PATIENCE after SIGTERM.

    The parent writes its checkpoint in this time.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(PATIENCE))
