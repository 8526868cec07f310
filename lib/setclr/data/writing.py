"""Files that several processes may write: one is replaced in one step, or held by one process alone.

A lock is the operating system's, and gone with the process that holds it. Windows has none of this kind.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

ENDING = ".unfinished"
MINE: set[Path] = set()  # the lock of a file is a process's: a thread must know what the others write


@contextmanager
def replacing(path: Path) -> Iterator[IO]:
    """An open file that becomes `path` if the block ends without an error; otherwise nothing changes.

    A reader, or a process that is killed, finds the old file or the new one. What dead processes left
    unfinished in that folder is removed first.

    Raises OSError before the block begins, if the file cannot be written: `path` is a folder, for example.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(path.parent)
    with begun(path) as file:
        unfinished = Path(file.name)
        try:
            yield file
            file.flush()
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
            MINE.discard(unfinished)


def begun(path: Path) -> IO:
    """A new file beside `path`, for this process alone."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ENDING}")
        MINE.add(unfinished)
        with suppress(BlockingIOError):  # another process took it for a dead one's, and removes it
            return opened_alone(unfinished, "wb")


def remove_unfinished(folder: Path) -> None:
    """Remove the files in a folder that a process began to write with `replacing` and died."""
    for path in folder.glob(f".*{ENDING}"):
        with suppress(OSError):  # another process writes it, or has removed it
            if path not in MINE and fcntl:
                with path.open("r+b") as file:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def opened_alone(path: Path, mode: str) -> IO:
    """The open file, which no other process gets in this way until it is closed.

    `mode` writes and makes the file. The lock is the process's own: one that is killed leaves none behind,
    whatever becomes of processes that it started; and this process loses it by closing the file a second
    time opened. Where there are no locks, a file system's or Windows', it is just opened.

    Raises BlockingIOError if another process has it, OSError if it cannot be opened.
    """
    while True:
        file = path.open(mode)
        try:
            if fcntl:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            file.close()
            raise BlockingIOError(f"{path} is held by another process") from error
        except OSError:
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # who held it has removed it meanwhile
