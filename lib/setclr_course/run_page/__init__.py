"""What the course adds to the commands (entry point group "setclr.pages").

`evaluate_all` and `page` make the HTML page of `setclr evaluate RUN --all`. `campaign`, `search`,
`results` and `neighbours` are commands. Each is imported when it is first used.
"""

from importlib import import_module
from typing import Any

from setclr.extras import extra

MODULES = {"campaign": "commands", "evaluate_all": "measured", "neighbours": "commands", "page": "html_page",
           "results": "commands", "search": "commands"}  # fmt: skip
__all__ = list(MODULES)


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("lab"):
        if MODULES[name] != "commands":  # both parts of a page fail here, and not after hours of measuring
            import_module(f"{__name__}.html_page")
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
