"""Files that several processes may write: replaced in one step, or locked by one process.

The operating system holds a lock, and frees it when the process ends. Windows has no locks of this kind.
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
OPEN_HERE: set[Path] = set()  # files that this process writes; a lock cannot tell its threads apart


@contextmanager
def replacing(path: Path) -> Iterator[IO]:
    """An open file that becomes `path` if the block ends without an error; otherwise nothing changes.

    A reader finds the old file or the new one, also after this process is killed. Unfinished files of dead
    processes in that folder are removed first.

    Raises OSError before the block begins if the file cannot be written, for example if `path` is a folder.
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
                file.close()  # Windows cannot rename an open file
            os.replace(unfinished, path)
        except OSError as error:
            if error.errno and not error.filename:  # a full disk names no file
                error.filename = os.fspath(path)
            raise
        finally:
            unfinished.unlink(missing_ok=True)
            OPEN_HERE.discard(unfinished)


def writable(folder: Path) -> None:
    """Make the folder and try to write in it. Raises OSError, which names the folder, if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with begun(folder / "try") as file:
            unfinished = Path(file.name)
        unfinished.unlink(missing_ok=True)
        OPEN_HERE.discard(unfinished)
    except OSError as error:
        said = f"{folder} must be a folder that can be written ({error.strerror})"
        raise OSError(f"{said}; allow writing there, or choose another") from error


def begun(path: Path) -> IO:
    """A new open file beside `path`, locked for this process alone."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ENDING}")
        OPEN_HERE.add(unfinished)
        with suppress(BlockingIOError):  # another process takes it for a dead one's and removes it
            return opened_alone(unfinished, "wb")


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that `replacing` left in a folder when its process died."""
    for path in folder.glob(f".*{ENDING}"):
        with suppress(OSError):  # another process writes it, or has removed it
            if path not in OPEN_HERE and fcntl:
                with path.open("r+b") as file:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def opened_alone(path: Path, mode: str) -> IO:
    """The open file, locked: no other process can open it in this way until it is closed.

    `mode` must allow writing, and it creates a missing file. The lock belongs to this process. A killed
    process leaves no lock behind, even if its child processes live on. This process also loses the lock if
    it opens the file a second time and closes that copy. Without locks (on Windows and some file systems)
    the file is only opened.

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
        file.close()  # its holder has removed it meanwhile
