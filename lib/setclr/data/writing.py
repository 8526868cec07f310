"""Files that are replaced in one step, though several processes may write them and one may be killed."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import lock_descriptor

ENDING = ".unfinished"


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
    with temporary(path) as file:
        unfinished = Path(file.name)
        try:
            yield file
            file.flush()
            if os.name == "nt":
                file.close()  # Windows cannot rename an open file
            os.replace(unfinished, path)
        except OSError as error:
            if error.errno and not error.filename:  # a full disk names no file
                error.filename = os.fspath(path)
            raise
        finally:
            unfinished.unlink(missing_ok=True)


def writable(folder: Path) -> None:
    """Make the folder and try to write in it. Raises OSError, which names the folder, if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        wanted = f"{folder} must be a folder that can be written"
        raise OSError(f"{wanted} ({error.strerror}); allow writing there, or choose another") from error


def temporary(path: Path) -> IO:
    """A new open file beside `path`, locked until it is closed or this process ends."""
    while True:
        file = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ENDING}").open("wb")
        locked = True
        with suppress(OSError):  # there are no locks in the folder
            locked = lock_descriptor(file.fileno(), blocking=False)
        if locked and os.path.exists(file.name):
            return file
        file.close()  # another process took it for a dead one's


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that `replacing` left in a folder when its process died."""
    for path in folder.glob(f".*{ENDING}"):
        with suppress(OSError), path.open("r+b") as file:  # another process has removed it
            if lock_descriptor(file.fileno(), blocking=False):
                path.unlink()
