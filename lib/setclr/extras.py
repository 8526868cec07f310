"""Packages that may be missing: setclr itself brings what the losses need, its extras bring the rest."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Imports that need the extra of that name.

    Raises ModuleNotFoundError: a package is missing. It says which, and how to install the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in ("", "setclr") or str(error).startswith("setclr"):
            raise
        message = f"setclr needs {package} for this, which is not installed: pip install 'setclr[{name}]'"
        raise ModuleNotFoundError(message, name=error.name) from None
