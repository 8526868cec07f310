"""Imports of optional packages, with an error that names the extra to install.

setclr itself requires the packages that the losses need; its extras add the others.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A context for imports that need the extra `name`.

    Raises ModuleNotFoundError if a package is missing. The message names the package and says how to
    install the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in ("", "setclr") or str(error).startswith("setclr"):
            raise
        message = f"setclr needs {package} for this, which is not installed: pip install 'setclr[{name}]'"
        raise ModuleNotFoundError(message, name=error.name) from None
