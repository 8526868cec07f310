"""What strikes a run: a signal at a moment, at a step or in the middle of a write, or a disk that is full."""

import errno
import math
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from setclr import cli
from setclr.data import writing
from setclr.training import trainer as engine
from setclr.training.trainer import Trainer

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Blow:
    """`kind` "time": after `at` seconds; "step": before training step `at`; "write": when `at` bytes of the
    file number `nth` are written; "rename" and "renamed": before or after that file is put in its place;
    "no room": the disk is full at that byte. Checkpoints are written after every step if `often`."""

    kind: str
    at: float
    nth: int
    signal: signal.Signals
    often: bool
    processes: bool = False
    again: float | None = None  # seconds after which the same signal comes once more

    @classmethod
    def drawn(cls, by: random.Random, seconds: float, by_time: bool) -> "Blow":
        """A blow to a run that takes so long; to torchrun's processes only after a time."""
        kinds = ["time", "time", "step", "write", "write", "rename", "renamed", "no room"]
        kind = "time" if by_time else by.choice(kinds)
        at = {"time": by.uniform(0, seconds), "step": by.randint(1, 9)}.get(kind, int(10 ** by.uniform(0, 6)))
        chosen = signal.SIGKILL if by_time else by.choice(SIGNALS)
        again = by.choice([None, None, by.uniform(0, 0.3)]) if kind == "time" else None
        return cls(kind, at, by.randint(0, 9), chosen, by.random() < 0.7, by_time, again)


class Cut:
    """An open file that does `then` when `left` bytes are written, or at the end if it has fewer."""

    def __init__(self, file: IO, left: float, then: Callable[[], None]):
        self.file, self.left, self.then, self.done = file, left, then, False

    def write(self, content: Any) -> int:
        content = memoryview(content).cast("B")
        if len(content) < self.left:
            self.left -= len(content)
            return self.file.write(content)
        self.file.write(content[: self.left])
        self.flush()
        self.file.write(content[self.left :])
        self.left = math.inf
        return len(content)

    def flush(self) -> None:
        self.file.flush()
        if not self.done:
            self.done = True
            self.then()

    def __enter__(self) -> "Cut":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def run_command(words: list[str], said: Path, blow: Blow | None) -> int:
    """The number of a new process that does what `setclr WORDS` does, and is about to begin; it has its own
    session. The packages are loaded already, so that the blow falls on our work."""
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        status = 70
        try:
            os.setsid()
            os.close(ready)
            status = _command(words, said, blow, tell)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(tell)
    os.read(ready, 1)
    os.close(ready)
    return pid


def _command(words: list[str], said: Path, blow: Blow | None, tell: int) -> int:
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.argv = ["setclr", *words]
    if blow:
        armed(blow)
    begin = cli.main

    def main(given: list[str]) -> None:
        os.write(tell, b".")  # from now on signals are heard
        os.close(tell)
        begin(given)

    cli.main = main
    try:
        cli.run()
    except SystemExit as ended:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return 1 if isinstance(ended.code, str) else ended.code or 0
    return 0


def armed(blow: Blow) -> None:
    """Let the blow fall in this process when its moment comes."""
    engine.CHECKPOINT_SECONDS = 0.0 if blow.often else 600.0
    seen = {"step": 0, "file": 0, "renamed": 0}

    def strike() -> None:
        os.kill(os.getpid(), blow.signal)

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def update(trainer: Trainer, x: Any, update: Any = Trainer.update) -> Any:
        seen["step"] += 1
        if seen["step"] == blow.at:
            strike()
        return update(trainer, x)

    def temporary(path: Path, temporary: Any = writing.temporary) -> Any:
        seen["file"] += 1
        if seen["file"] - 1 == blow.nth:
            return Cut(temporary(path), blow.at, full if blow.kind == "no room" else strike)
        return temporary(path)

    def replace(old: Any, new: Any, replace: Any = os.replace) -> None:
        seen["renamed"] += 1
        now = seen["renamed"] - 1 == blow.nth
        if now and blow.kind == "rename":
            strike()
        replace(old, new)
        if now and blow.kind == "renamed":
            strike()

    if blow.kind == "step":
        Trainer.update = update  # type: ignore[method-assign]
    elif blow.kind in ("write", "no room"):
        writing.temporary = temporary
    elif blow.kind in ("rename", "renamed"):
        os.replace = replace  # type: ignore[assignment]
