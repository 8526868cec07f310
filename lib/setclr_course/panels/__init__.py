"""Panels, a class in a file of its name: `panels.beads(temperature=0.1)`. `__all__` names them all.

A panel's file is imported when the panel is first asked for: all of them take as long as torch does.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

_FILES = {
    path.stem: f"{__name__}.{path.parent.name}.{path.stem}"
    for path in sorted(Path(__file__).parent.glob("*/*.py"), key=lambda path: path.stem)
    if f"\nclass {path.stem}(Panel):\n" in path.read_text(encoding="utf-8")
}
__all__ = list(_FILES)


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no panel {name!r}")
    return globals().setdefault(name, getattr(import_module(_FILES[name]), name))


def __dir__() -> list[str]:
    return __all__
