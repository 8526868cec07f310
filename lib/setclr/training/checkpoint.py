"""A run on disk: `checkpoint.pt`, all that is needed to go on, and `history.csv`, a line for each epoch."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pandas as pd
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from setclr.data.writing import replacing
from setclr.training import contents

CHECKPOINT, HISTORY = "checkpoint.pt", "history.csv"
LEARNT = {"encoder", "head", "history"}
CHECKSUM = "checksum"  # checkpoints of earlier versions have none
REMEDY = "put back a copy that is whole, or delete it to train again"


def read(out: Path) -> dict:
    """The contents of a folder's checkpoint. Raises FileNotFoundError if there is none, and ValueError if the
    file is damaged or of another kind: it says in which field (`contents.check`)."""
    path = out / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no checkpoint there; pretrain(recipe, out={str(out)!r}) makes one")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{path}: not a readable checkpoint ({kind}); delete it to train again") from error
    if not isinstance(state, dict) or not set(state) >= LEARNT:
        raise ValueError(f"{path}: a torch file, but not a setclr checkpoint; choose another folder")
    stated = state.pop(CHECKSUM, None)
    try:
        contents.check(state)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from error
    if stated is not None and not (isinstance(stated, int) and stated == contents.checksum(state)):
        raise ValueError(f"{path}: is damaged, it is not what its checksum was taken of; {REMEDY}")
    return state


def tidy(out: Path) -> None:
    """Make the folder and remove what a killed run left unfinished. Raises OSError where that fails."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for unfinished in [*out.glob(f".{CHECKPOINT}.*"), *out.glob(f".{HISTORY}.*")]:
            unfinished.unlink()
    except OSError as error:
        raise OSError(f"out must be a folder that can be written, got {out}: {error.strerror}") from error


def write(out: Path, state: dict) -> None:
    """Replace the run's checkpoint in one step: a reader, or a killed run, finds the old or the new one, and
    where it cannot be written, the old one stays and an OSError is raised."""
    state = {**state, CHECKSUM: contents.checksum(state)}
    _replace(out / CHECKPOINT, lambda file: torch.save(state, file))


def write_history(out: Path, rows: list[dict]) -> None:
    """Replace the run's history.csv in the same way."""
    _replace(out / HISTORY, lambda file: file.write(pd.DataFrame(rows).to_csv(index=False).encode()))


class Writer:
    """Writes checkpoints of the folder `out` beside the training, in a thread, one after the other."""

    def __init__(self, out: Path):
        self.out, self.thread = out, ThreadPoolExecutor(1)
        self.under_way: Future | None = None
        self.begun = time.monotonic()  # when the last one was

    def write(self, state: dict) -> None:
        """Take a copy of the state and begin to write it, after the one before is written."""
        self.wait()
        self.begun = time.monotonic()
        self.under_way = self.thread.submit(write, self.out, _copied(state))

    def check(self) -> None:
        """Raises OSError if a checkpoint could not be written; does not wait for one that is under way."""
        if self.under_way and self.under_way.done():
            self.wait()

    def wait(self) -> None:
        """Until all is written. Raises OSError if it could not be."""
        under_way, self.under_way = self.under_way, None
        if under_way:
            under_way.result()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *error: object) -> None:
        self.thread.shutdown()


def _copied(state: Any) -> Any:
    """The state with tensors of its own, on the CPU, which training does not change."""
    return tree_map(lambda x: x.detach().to("cpu", copy=True) if isinstance(x, Tensor) else x, state)


def _replace(path: Path, save: Callable[[IO], object]) -> None:
    """Raises OSError, with what to do, where `save` fails."""
    try:
        with replacing(path) as file:
            save(file)
    except (OSError, RuntimeError) as error:  # torch.save raises RuntimeError when the disk is full
        remedy = "make room there, or allow writing, and repeat the call to go on"
        said = f"{path.parent} could not be written to ({error}); what was written before is kept: {remedy}"
        raise OSError(said) from error
