"""The folder of a run: its lock, its checkpoint and its history.

A checkpoint is written to a temporary file, which is then renamed. So a reader finds the old file or the
new one, even if the run is killed. Its checksum proves that what is read is what was written.
"""

import copy
import os
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pandas as pd
import torch
from filelock import FileLock, Timeout
from torch import Tensor
from torch.utils._pytree import tree_leaves_with_path, tree_map_only

from setclr.data.writing import replacing, writable

LOCK, CHECKPOINT, HISTORY = "lock", "checkpoint.pt", "history.csv"
CHECKSUM = "checksum"  # absent from checkpoints of the first versions
MODULES = ("encoder", "head", "loss", "predictor")  # the parts of a Trainer that have weights
LEARNT = {"encoder", "head", "history"}  # in every checkpoint
WITHOUT_CHECKSUM = LEARNT | {"recipe", "channels", "best"}  # what is read of one without
REMEDY = "put back a copy that is whole, or delete it to train again"
OTHER_RUN = "take the checkpoint as it was written, or train again in another folder"


def loaded(out: Path) -> tuple[Path, dict]:
    """The checkpoint of the folder `out`, or that file of torch's, and what is in it, on the CPU, unchecked.

    Raises FileNotFoundError if there is none; ValueError if it is no dict that torch saved.
    """
    path = out if out.is_file() else out / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no checkpoint there; give the folder of a run that pretrain wrote")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        kind = type(error).__name__
        remedy = "delete it to train again" if path.name == CHECKPOINT else "give the folder of a run"
        raise ValueError(f"{path}: not a readable checkpoint ({kind}); {remedy}") from error
    return path, state if isinstance(state, dict) else {}


def read(out: Path) -> dict:
    """The contents of the checkpoint in the folder `out`, or of that file, on the CPU.

    Of a checkpoint without a checksum only the weights and what describes them are read: no training goes on
    from it. Raises as `loaded` does; ValueError also if the file is damaged or not a checkpoint of setclr.
    """
    path, state = loaded(out)
    if not set(state) >= LEARNT:
        raise ValueError(f"{path}: a torch file, but not a setclr checkpoint; choose another folder")
    stated = state.pop(CHECKSUM, None)
    if stated is None:
        state = {name: value for name, value in state.items() if name in WITHOUT_CHECKSUM}
    elif not (isinstance(stated, int) and stated == checksum(state)):
        raise ValueError(f"{path}: is damaged, its checksum is another; {REMEDY}")
    for name in not_finite(state):
        if name.removeprefix("best: ") not in state.get("not_finite", ()):
            raise ValueError(f"{path}: {name} holds NaN or inf; {REMEDY}")
    return state


def stored(out: Path) -> dict | None:
    """The contents of the checkpoint in `out`, as `read` gives them, or None if there is none."""
    return read(out) if (out / CHECKPOINT).exists() else None


def write(out: Path, state: dict, *copies: str) -> None:
    """Replace the checkpoint in one step, and the files of those names, which get the same contents.

    Raises OSError if that fails; the old checkpoint then stays.
    """
    state = {**state, CHECKSUM: checksum(state)}
    for name in (*copies, CHECKPOINT):  # a run that dies in between writes the copies again
        _replace(out / name, lambda file: torch.save(state, file))


def write_history(out: Path, rows: list[dict]) -> None:
    """Replace history.csv in one step, a line for each epoch. Raises OSError as `write` does."""
    _replace(out / HISTORY, lambda file: file.write(pd.DataFrame(rows).to_csv(index=False).encode()))


def _replace(path: Path, save: Callable[[IO], object]) -> None:
    try:
        with replacing(path) as file:
            save(file)
    except (OSError, RuntimeError) as error:  # torch.save raises RuntimeError when the disk is full
        remedy = "make room there, or allow writing, and repeat the call to go on"
        failure = f"{path.parent} could not be written to ({error})"
        raise OSError(f"{failure}; what was written before is kept: {remedy}") from error


class Writer:
    """Writes the result of `state()` to the checkpoint in `out`, in a thread, while training goes on."""

    def __init__(self, out: Path, state: Callable[[], dict]):
        self.out, self.state, self.thread = out, state, ThreadPoolExecutor(1)
        self.pending: Future | None = None
        self.begun = time.monotonic()  # when the last write was begun

    def prepare(self, rows: list[dict]) -> None:
        """Make the folder and write the first checkpoint, so that write errors appear before training.

        Kept checkpoints of another run are removed if this one has no epochs yet. Raises OSError if anything
        fails.
        """
        writable(self.out)
        for old in () if rows else self.out.glob("epoch-[0-9]*.pt"):
            old.unlink()
        write_history(self.out, rows)
        write(self.out, self.state())

    def write(self, *copies: str) -> None:
        """Copy the state and begin to write the copy; wait first until the write before it has ended.

        `copies`: names of more files with the same contents, which later writes leave as they are.
        """
        self.wait()
        self.begun = time.monotonic()
        state = tree_map_only(Tensor, lambda x: x.detach().to("cpu", copy=True), self.state())
        self.pending = self.thread.submit(write, self.out, state, *copies)

    def wait(self) -> None:
        """Wait until all is written. Raises OSError if a write failed."""
        if self.pending:
            self.pending.result()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Lock the folder `out`, so that only one thread of one process trains there at a time.

    The folder is made if it is missing. The thread that holds the lock may take it again inside. A killed
    process leaves no lock behind. Raises ValueError if the lock is a link, and BlockingIOError, which names
    the holder, if another process or thread holds it. Nothing is locked if the folder cannot be written, or
    has no locks.
    """
    path = out.resolve() / LOCK
    if path.is_symlink():
        raise ValueError(f"{path} must be no link, since its target would be written; remove it")
    lock = FileLock(path, blocking=False, is_singleton=True, fallback_to_soft=False)
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock)
            path.write_text(f"process {os.getpid()} since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        except Timeout as error:
            holder = "another process"
            with suppress(OSError):  # on Windows a locked file cannot be read
                holder = path.read_text() or holder
            hint = "wait for it, or choose another folder"
            raise BlockingIOError(f"{out}: {holder} trains there; {hint}") from error
        except OSError:  # the first checkpoint reports it
            pass
        try:
            yield
        finally:
            if lock.lock_counter == 1:
                with suppress(OSError):  # Windows cannot remove an open file
                    path.unlink()


def checksum(x: Any, start: int = 0) -> int:
    """The CRC-32 of nested plain data and tensors (types, shapes, numbers, in order), continued from `start`.

    Numbers count as the bytes of the machine, in the order of the tensor's indices. Cost: everything is read
    once, on the CPU.
    """
    if isinstance(x, dict):
        x = [part for item in x.items() for part in item]
    elif isinstance(x, set):
        x = sorted(x, key=repr)
    if isinstance(x, list | tuple):
        start = zlib.crc32(b"%d parts" % len(x), start)
        for part in x:
            start = checksum(part, start)
        return start
    if not isinstance(x, Tensor):
        return zlib.crc32(f"{x!r};".encode(errors="surrogatepass"), start)
    start = zlib.crc32(f"{x.dtype} {tuple(x.shape)};".encode(), start)
    return zlib.crc32(x.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data, start)


def load(parts: dict[str, Any], state: dict, where: str, remedy: str = OTHER_RUN) -> None:
    """Load the state of each part (a module, an optimiser, ...), strictly.

    Raises ValueError, with torch's reason, if one does not fit; all parts are then as they were before.
    """
    before = copy.deepcopy({name: part.state_dict() for name, part in parts.items()})
    for name, part in parts.items():
        try:
            part.load_state_dict(state[name])
            if _settings(part.state_dict()) != _settings(before[name]):
                raise TypeError("it is an optimiser of another kind")
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            for other in parts:
                parts[other].load_state_dict(before[other])
            reason = f"{type(error).__name__}: {line_of(error)}"
            complaint = f"the state of its {name} does not fit ({reason})"
            raise ValueError(f"{where}: {complaint}; {remedy}") from error


def line_of(error: Exception) -> str:
    """The beginning of what an error says, in one line."""
    return " ".join(str(error).split())[:300]


def _settings(state: dict) -> list[set[str]]:
    """The names of the settings in each group of an optimiser's state; other states have none."""
    return [set(group) for group in state.get("param_groups", [])]


def not_finite(state: dict) -> Iterator[str]:
    """Where the modules' weights in a state hold NaN or inf, as "encoder: 0.weight"."""
    weights = {name: state.get(name) for name in (*MODULES, "best", "keys")}
    for path, x in tree_leaves_with_path(weights):
        if isinstance(x, Tensor) and not x.isfinite().all():
            yield ": ".join(str(getattr(step, "key", step)) for step in path)
