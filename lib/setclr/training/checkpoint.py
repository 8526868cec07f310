"""The folder of a run (lock, checkpoint, history), and the validation of a checkpoint before resuming.

A checkpoint is written to a temporary file, which is then renamed. So a reader finds the old file or the
new one, even if the run is killed. A checkpoint carries a checksum, and each of its fields is checked
before it is used.
"""

import copy
import math
import os
import re
import shutil
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from typing import IO, Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from setclr.data.writing import opened_alone, replacing
from setclr.training.devices import PRECISIONS

LOCK, CHECKPOINT, HISTORY = "lock", "checkpoint.pt", "history.csv"
CHECKSUM = "checksum"  # absent from checkpoints of the first versions
MODULES = ("encoder", "head", "loss", "predictor")  # the parts of a Trainer that have weights
LEARNT = {"encoder", "head", "history"}  # in every checkpoint
RESUMED = {"step", "images", "loss", "optimiser"}  # in every checkpoint that can be resumed
REMEDY = "put back a copy that is whole, or delete it to train again"
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by size in bytes
HELD: dict[Path, tuple[int, int]] = {}  # the process and thread that hold each lock


def loaded(out: Path) -> dict:
    """What is in the checkpoint of the folder `out`, or in that file of torch's, on the CPU, unchecked.

    Raises FileNotFoundError if there is none; ValueError if it is no dict that torch saved.
    """
    path = out if out.is_file() else out / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no checkpoint there; pretrain(recipe, out={str(out)!r}) makes one")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        kind = type(error).__name__
        remedy = "delete it to train again" if path.name == CHECKPOINT else "give the folder of a run"
        raise ValueError(f"{path}: not a readable checkpoint ({kind}); {remedy}") from error
    return state if isinstance(state, dict) else {}


def read(out: Path) -> dict:
    """The contents of the checkpoint in the folder `out`, or of that file, on the CPU.

    Raises as `loaded` does; ValueError, naming the field, also if the file is damaged or not a checkpoint of
    setclr.
    """
    path, state = out if out.is_file() else out / CHECKPOINT, loaded(out)
    if not set(state) >= LEARNT:
        raise ValueError(f"{path}: a torch file, but not a setclr checkpoint; choose another folder")
    stated = state.pop(CHECKSUM, None)
    try:
        check(state)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from error
    if stated is not None and not (isinstance(stated, int) and stated == checksum(state)):
        raise ValueError(f"{path}: is damaged, its checksum is another; {REMEDY}")
    return state


def stored(out: Path) -> dict | None:
    """The contents of the checkpoint in `out`, as `read` gives them, or None if there is none."""
    return read(out) if (out / CHECKPOINT).exists() else None


def write(out: Path, state: dict, name: str = CHECKPOINT) -> None:
    """Replace the checkpoint in one step. Raises OSError if that fails; the old checkpoint then stays."""
    state = {**state, CHECKSUM: checksum(state)}
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
        said = f"{path.parent} could not be written to ({error}); what was written before is kept: {remedy}"
        raise OSError(said) from error


class Writer:
    """Writes the result of `state()` to the checkpoint in `out`, in a thread, while training goes on."""

    def __init__(self, out: Path, state: Callable[[], dict]):
        self.out, self.state, self.thread = out, state, ThreadPoolExecutor(1)
        self.pending: Future | None = None
        self.begun = time.monotonic()  # when the last write was begun

    def prepare(self, nbytes: int, rows: list[dict]) -> None:
        """Make the folder and write the first checkpoint, so that write errors appear before training.

        Unfinished files of a killed run are removed. Raises OSError if anything fails, or if the disk
        has too little room for a model of `nbytes`.
        """
        out = self.out
        try:
            out.mkdir(parents=True, exist_ok=True)
            for unfinished in [*out.glob(f".{CHECKPOINT}.*"), *out.glob(f".{HISTORY}.*")]:
                unfinished.unlink()
        except OSError as error:
            said = f"out must be a folder that can be written, got {out}: {error.strerror}"
            raise OSError(said) from error
        needed = 6 * nbytes + 10_000_000  # weights and Adam's two moments, in the old file and the new
        free = shutil.disk_usage(out).free
        if free < needed:
            raise OSError(
                f"{out}: {free / 1e6:.0f} MB are free and a run needs {needed / 1e6:.0f}; make room"
            )
        write_history(out, rows)
        write(out, self.state())

    def write(self, kept: str | None = None) -> None:
        """Copy the state and begin to write the copy; wait first until the write before it has ended.

        `kept`: the name of a second file with the same contents, which later writes leave as it is.
        """
        self.wait()
        self.begun = time.monotonic()
        copied = tree_map(
            lambda x: x.detach().to("cpu", copy=True) if isinstance(x, Tensor) else x, self.state()
        )
        names = (CHECKPOINT, *([kept] if kept else []))
        self.pending = self.thread.submit(self._write, copied, names)

    def _write(self, state: dict, names: tuple[str, ...]) -> None:
        for name in names:
            write(self.out, state, name)

    def check(self) -> None:
        """Raises OSError if the last write has failed. Does not wait for a write that is still going on."""
        if self.pending and self.pending.done():
            self.wait()

    def wait(self) -> None:
        """Wait until all is written. Raises OSError if a write failed."""
        pending, self.pending = self.pending, None
        if pending:
            pending.result()

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *error: object) -> None:
        self.thread.shutdown()


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Lock the folder `out`, so that only one thread of one process trains there at a time.

    The folder is made if it is missing. The thread that holds the lock may take it again inside. Raises
    BlockingIOError, which names the holder, if another process or thread holds the lock. Nothing is
    locked if the folder cannot be written, or if the system has no such locks
    (`data.writing.opened_alone`).
    """
    path, me = out.resolve() / LOCK, (os.getpid(), threading.get_ident())
    holder = HELD.get(path)
    if holder == me:
        yield
        return
    if holder and holder[0] == me[0]:
        raise BlockingIOError(f"{out}: another thread of this process trains there; wait for it")
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = opened_alone(path, "a+b")
    except BlockingIOError as error:
        hint = "wait for it, or choose another folder"
        raise BlockingIOError(f"{out}: {_holder(path)} trains there; {hint}") from error
    except OSError:
        yield
        return
    HELD[path] = me
    try:
        with suppress(OSError):  # a full disk; the first checkpoint reports it
            file.truncate(0)
            os.write(file.fileno(), f"process {me[0]} since {time.strftime('%Y-%m-%d %H:%M:%S')}".encode())
        yield
    finally:
        with suppress(OSError):  # Windows cannot remove an open file
            path.unlink()
        file.close()
        del HELD[path]


def _holder(path: Path) -> str:
    with suppress(OSError):
        said = path.read_text(errors="replace")
        if re.fullmatch(r"process \d+ since [-\d]+ [:\d]+", said):
            return said
    return "another process"


def checksum(x: Any, start: int = 0) -> int:
    """The CRC-32 of nested plain data and tensors (types, shapes, numbers, in order), continued from `start`.

    It is the same on every machine: numbers count as little-endian bytes, in the order of the tensor's
    indices. Cost: everything is read once, on the CPU.
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
    numbers = x.detach().cpu().contiguous().flatten().view(INTEGERS[x.itemsize]).numpy()
    start = zlib.crc32(f"{x.dtype} {tuple(x.shape)};".encode(), start)
    return zlib.crc32(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).data, start)


def check(state: dict) -> None:
    """Validate a checkpoint before resuming or loading it.

    Raises ValueError, naming the field, if a field is missing or has the wrong type, or a weight is NaN
    or inf.
    """
    for name, (kind, fits) in FIELDS.items():
        if name in state and not fits(state[name]):
            raise ValueError(f"{name} must be {kind}, got {describe(state[name])}")
    for path in (*not_finite(state), *_bad("optimiser", state.get("optimiser"), lambda x: ~x.isnan())):
        if path.removeprefix("best: ") not in state.get("not_finite", ()):
            raise ValueError(f"{path} holds NaN or inf")
    if "recipe" in state and "channels" not in state:
        raise ValueError("channels must be there, and is missing")
    lacking = sorted(RESUMED - set(state)) or ([] if {"random", "rng"} & set(state) else ["random"])
    if "optimiser" in state and lacking:
        raise ValueError(f"{lacking[0]} must be there, and is missing")


def refuse_other_weights(part: nn.Module, weights: dict, complaint: str) -> None:
    """Raises ValueError, with the first difference, if the weights do not fit the module."""
    wanted, found = ({key: _form(x) for key, x in d.items()} for d in (part.state_dict(), weights))
    for key in [*wanted, *found]:
        if wanted.get(key) != found.get(key):
            said = f"{key!r} is {found.get(key, 'missing')}, and must be {wanted.get(key, 'absent')}"
            remedy = "take the checkpoint as it was written, or train again in another folder"
            raise ValueError(f"{complaint} ({said}): they come from different runs; {remedy}")


def refuse_other_optimiser(optimiser: torch.optim.Optimizer, kept: dict, complaint: str) -> None:
    """Raises ValueError if a state_dict's settings, or its state of a parameter, do not fit the optimiser.

    Settings that an earlier version of torch lacked are added to the state_dict.
    """
    mine, theirs = optimiser.state_dict()["param_groups"], kept["param_groups"]
    if [group["params"] for group in mine] != [group["params"] for group in theirs]:
        raise ValueError(f"{complaint}: it has other parameters; {REMEDY}")
    for own, group in zip(mine, theirs):
        for name, value in own.items():
            if not _alike(value, group.setdefault(name, value)):
                got = describe(group[name])
                raise ValueError(f"{complaint}: {name} is {got}, and here {value!r}; {REMEDY}")
    weights = [(group, w) for group in optimiser.param_groups for w in group["params"]]
    for i, state in kept["state"].items():
        if i not in range(len(weights)):
            raise ValueError(f"{complaint}: it has the state of parameter {i!r}, of {len(weights)}; {REMEDY}")
        wanted = _state_shapes(optimiser, *weights[i])
        if (found := {name: _shape(x) for name, x in state.items()}) != wanted:
            raise ValueError(f"{complaint}: parameter {i} has {found}, and must have {wanted}; {REMEDY}")


def _state_shapes(optimiser: torch.optim.Optimizer, group: dict, weight: Tensor) -> dict:
    """Names and shapes of the optimiser's state of a weight, from one step on a tensor of the same shape."""
    probe, copied = copy.copy(optimiser), torch.zeros_like(weight).requires_grad_()
    copied.grad = torch.zeros_like(copied)
    probe.state, probe.param_groups = defaultdict(dict), [{**group, "params": [copied]}]
    probe.step()
    return {name: _shape(x) for name, x in probe.state[copied].items()}


def _shape(x: object) -> tuple[int, ...]:
    return tuple(x.shape) if isinstance(x, Tensor) else ()


def _alike(mine: Any, other: Any) -> bool:
    """Whether two settings are of one kind: numbers, bools or None, sequences of these, or another type."""
    if isinstance(mine, tuple | list):
        same = isinstance(other, tuple | list) and len(mine) == len(other)
        return same and all(map(_alike, mine, other))
    if isinstance(mine, int | float) and not isinstance(mine, bool):
        return isinstance(other, int | float) and not isinstance(other, bool) and math.isfinite(other)
    if isinstance(mine, bool | None):
        return isinstance(other, bool | None)
    return type(mine) is type(other)


def refuse_bad_generators(states: dict[str, Tensor], device: str, where: str) -> None:
    """Raises ValueError if the state of the CPU's generator, or of this type of device's, is not valid."""
    for kind, state in states.items():
        try:
            if kind in ("cpu", device):
                torch.Generator(kind).set_state(state)
        except RuntimeError as error:
            raise ValueError(
                f"{where}: random is not the state of a generator ({error}); {REMEDY}"
            ) from error


def is_tensor(x: Any) -> bool:
    """Whether x is a dense tensor on the CPU whose storage holds all its numbers."""
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.device.type != "cpu":
        return False
    return x.itemsize in INTEGERS and x.numel() * x.itemsize <= x.untyped_storage().nbytes()


def is_number(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


def is_recipe(x: Any) -> bool:
    plain = str | int | float | None
    return isinstance(x, dict) and all(isinstance(k, str) and isinstance(v, plain) for k, v in x.items())


def is_weights(x: Any) -> bool:
    """Whether x has the form of a module's state_dict; `_extra_state` in it may be anything."""
    named = isinstance(x, dict) and all(isinstance(key, str) for key in x)
    return named and all(is_tensor(w) or key.endswith("_extra_state") for key, w in x.items())


def is_history(x: Any) -> bool:
    if not isinstance(x, list) or not all(isinstance(row, dict) for row in x):
        return False
    return all(isinstance(key, str) and is_number(value) for row in x for key, value in row.items())


def is_optimiser(x: Any) -> bool:
    """Whether x has the form of an optimiser's state_dict; `refuse_other_optimiser` compares the rest."""
    if not isinstance(x, dict) or not isinstance(x.get("state"), dict):
        return False
    groups, states = x.get("param_groups"), x["state"].values()
    values = (y for state in states if isinstance(state, dict) for y in state.values())
    return (
        isinstance(groups, list)
        and all(isinstance(group, dict) and isinstance(group.get("params"), list) for group in groups)
        and all(isinstance(state, dict) for state in states)
        and all(is_tensor(y) or is_number(y) or y is None for y in values)
    )


def is_keys(x: Any) -> bool:
    if x is None:
        return True
    if not isinstance(x, dict) or not is_weights(x.get("model")):
        return False
    return x.get("queue") is None or is_tensor(x["queue"])


def is_generator(x: Any) -> bool:
    return isinstance(x, Tensor) and is_tensor(x) and x.dtype == torch.uint8


def is_best(x: Any) -> bool:
    """Whether x is None, or the best weights of encoder and head."""
    return x is None or (
        isinstance(x, dict) and set(x) == {"encoder", "head"} and all(map(is_weights, x.values()))
    )


def _whole(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


WEIGHTS: tuple[str, Callable[[Any], bool]] = ("a dict of names and tensors", is_weights)
WHOLE: tuple[str, Callable[[Any], bool]] = ("an integer >= 0", _whole)
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "recipe": ("a dict of names and plain values", is_recipe),
    "channels": ("an integer 1 to 10000", lambda x: _whole(x) and 1 <= x <= 10_000),
    "data": ("a text", lambda x: isinstance(x, str)),
    "history": ("a list of dicts of numbers", is_history),
    **dict.fromkeys(MODULES, WEIGHTS),
    "not_finite": ("a list of names", lambda x: isinstance(x, list) and all(isinstance(y, str) for y in x)),
    "best": ("None, or the weights of encoder and head", is_best),
    "precision": (f"one of {', '.join(PRECISIONS)}, or None", lambda x: x is None or x in PRECISIONS),
    "compiled": ("True, False or None", lambda x: x is None or isinstance(x, bool)),
    **dict.fromkeys(("step", "images", "draws"), WHOLE),
    "values": (
        "a tensor of losses",
        lambda x: is_tensor(x) and x.ndim == 1 and x.is_floating_point() and x.isfinite().all(),
    ),
    "seconds": ("a finite number", lambda x: is_number(x) and math.isfinite(x)),
    "optimiser": ("an optimiser's state_dict", is_optimiser),
    "scaler": ("a dict of numbers", lambda x: isinstance(x, dict) and all(map(is_number, x.values()))),
    "keys": ("None, or a dict of the momentum encoder's weights and queue", is_keys),
    "targets": ("None or a tensor", lambda x: x is None or is_tensor(x)),
    "random": (
        "a dict of states of torch's generators",
        lambda x: isinstance(x, dict) and "cpu" in x and all(map(is_generator, x.values())),
    ),
    "rng": ("the state of a torch generator", is_generator),
}


def not_finite(state: dict) -> Iterator[str]:
    """Where the modules' weights in a state hold NaN or inf, as "encoder: 0.weight"."""
    for name in (*MODULES, "best", "keys"):
        yield from _bad(name, state.get(name), Tensor.isfinite)


def _bad(name: str, part: Any, good: Callable[[Tensor], Tensor]) -> Iterator[str]:
    """The names of the tensors in `part` whose numbers are not all good."""
    if isinstance(part, dict | list):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _bad(f"{name}: {key}", inner, good)
    elif isinstance(part, Tensor) and not good(part).all():
        yield name


def describe(x: object) -> str:
    """A value as an error message shows it: its type, and for a plain value the value too."""
    return f"{type(x).__name__} {x!r:.60}" if isinstance(x, str | int | float | None) else type(x).__name__


def _form(x: object) -> str:
    if not isinstance(x, Tensor):
        return type(x).__name__
    return f"{tuple(x.shape)}" + ("" if x.is_floating_point() else f" {x.dtype}")
