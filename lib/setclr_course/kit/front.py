"""The front end of a panel in the browser, and what kernel and browser tell each other."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

import anywidget
import numpy as np
import traitlets
from PIL import Image

FOLDER = Path(__file__).parent
CODE = ("paint.js", "panel.js")


def joined() -> str:
    """The front end as one module."""
    texts = [(FOLDER / name).read_text() for name in CODE]
    return "\n".join(line for text in texts for line in text.splitlines() if not line.startswith("import "))


class Front(anywidget.AnyWidget):
    """One panel on the screen. A change of `shown` is one message with one scene."""

    _esm = joined()
    _css = (FOLDER / "panel.css").read_text()

    told: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """What stays: `size` of the picture, `boxes` of its plots, `knobs`, how many are `in_sight`, which slider
    `play`s, `buttons`."""
    pictures: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """PNG files by name."""
    shown: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """`scene`, `sentence`, `failed` (it is an error), the `event` that it answers ("" for none), and for each
    knob at which of its `stops` it stands and what it reads, in `words`."""
    moved: traitlets.Dict = traitlets.Dict().tag(sync=True, echo_update=False)
    """The number of an `event`, and what the reader did: a `handle` put to `x`, `y` in data units, or moved
    so many steps to the `right` and `up`; knobs `set` to stops; a `button` pressed; `reset`."""


def pngs(pictures: Mapping[str, np.ndarray], known: Mapping[str, bytes]) -> dict[str, bytes]:
    """The pictures as PNG files; the same dict where all are known."""
    if pictures.keys() <= known.keys():
        return dict(known)
    return {name: known.get(name) or png(pixels) for name, pixels in pictures.items()}


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png", compress_level=4)
    return stream.getvalue()


shown_in: dict[str, tuple[int, WeakSet]] = {}  # by cell: the run of it that is the latest, and its panels


def let_go(panel: Any) -> None:
    """Close the panels that the same cell showed when it ran before: they are gone from the page."""
    try:
        from IPython import get_ipython

        shell = get_ipython()
        cell, run = shell.get_parent()["metadata"]["cellId"], shell.execution_count
    except (ImportError, AttributeError, KeyError):
        return
    before, panels = shown_in.get(cell, (run, WeakSet()))
    if before != run:
        for old in panels - {panel}:
            old.close()
        panels = WeakSet()
    shown_in[cell] = run, panels | {panel}
