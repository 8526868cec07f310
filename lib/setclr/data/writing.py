"""Files that are replaced in one step, though several processes may write them and one may be killed."""

import errno
import glob
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

    A reader finds the old file or the new one, also after this process is killed or the power is cut. Of a
    symbolic link the target is written. What dead processes left unfinished of `path` is removed first.

    Raises OSError before the block begins if the file cannot be written, for example if `path` is a folder,
    a device or a pipe.
    """
    given, path = path, Path(os.path.realpath(path))
    if not given.is_file() and (given.exists() or path.is_symlink()):
        other = "a device, a pipe, a socket or a loop of links; name a regular file"
        raise OSError(f"{given} is {'a folder; name a file in it' if given.is_dir() else other}")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished(path)
    with temporary(path) as file:
        unfinished = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # Windows cannot rename an open file
            os.replace(unfinished, path)
        except OSError as error:
            if error.errno and not error.filename:  # a full disk names no file
                error.filename = os.fspath(path)
            raise
        except RuntimeError as error:
            if "inline_container" not in str(error):  # what torch.save says of a full disk
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path)) from error
        finally:
            unfinished.unlink(missing_ok=True)
            with suppress(OSError):  # what is left in memory does not fit either
                file.close()
    with suppress(OSError):  # Windows opens no folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # of the new name
        finally:
            os.close(folder)


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


def remove_unfinished(path: Path) -> None:
    """Remove the unfinished files that `replacing` left of this file when its process died."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}{ENDING}"):
        with suppress(OSError), left.open("r+b") as file:  # another process has removed it
            if lock_descriptor(file.fileno(), blocking=False):
                left.unlink()
