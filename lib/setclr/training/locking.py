"""A run is written by one process at a time."""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from setclr.data.writing import opened_alone

LOCK = "lock"
HELD: dict[Path, tuple[int, int]] = {}  # by which process and thread


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Hold the run in the folder `out`, which is made; the thread that holds it may do so again inside.

    Raises BlockingIOError, which says who holds it, if another process or thread does. A folder that cannot
    be written is not held, nor is one on a system without such locks (`data.writing.opened_alone`).
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
        with suppress(OSError):  # a full disk, of which the first checkpoint says more
            file.truncate(0)
            os.write(file.fileno(), f"process {me[0]} since {time.strftime('%Y-%m-%d %H:%M:%S')}".encode())
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file
            path.unlink()
        file.close()
        del HELD[path]


def _holder(path: Path) -> str:
    with suppress(OSError):
        said = path.read_text(errors="replace")
        if re.fullmatch(r"process \d+ since [-\d]+ [:\d]+", said):
            return said
    return "another process"
