"""Imports of optional packages, with an error that names the extra to install.

setclr itself requires the packages that the losses need; its extras add the others.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

RECIPES = "setclr.recipes"  # group of what other packages add (`recipes.registry.Collection`)


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


@cache
def loaded(group: str) -> tuple[Any, ...]:
    """The objects that installed packages register in a group of entry points. The library's metadata also
    declares the course's; where that is not installed, it is skipped."""
    entries = entry_points(group=group)
    return tuple(entry.load() for entry in entries if find_spec(entry.module.split(".")[0]))


def at_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names stand in these modules of it, imported at first use."""

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extra("train"):
            return getattr(import_module(f"{package}.{modules[name]}"), name)

    return attribute
