"""The front end of a panel in the browser, and what kernel and browser tell each other."""

import io
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any
from weakref import WeakSet

import anywidget
import IPython
import numpy as np
import traitlets
from PIL import Image

FOLDER = Path(__file__).parent


def needed(file: Path) -> list[str]:
    """The text of a file of JavaScript, and before it of those that it imports: beside it or in the kit."""
    names = re.findall(r'(?m)^import .* from "./(.+)"', text := file.read_text())
    found = [path for name in names for path in (FOLDER / name, file.with_name(name)) if path.exists()]
    return [*(one for path in dict.fromkeys(found) for one in needed(path)), text]


def joined(file: Path = FOLDER / "panel.js") -> str:
    """A file of JavaScript and what it imports as one module."""
    return re.sub(r"(?m)^import .*\n", "", "\n".join(dict.fromkeys(needed(file))))


class Front(anywidget.AnyWidget):
    """One panel on the screen. A change of `shown` is one message with one scene."""

    _esm = joined()
    _css = (FOLDER / "panel.css").read_text()

    told: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """What stays: `size` of the picture, `boxes` of its plots, how small it can be at `least` and how `flat`,
    `knobs`, how many are `in_sight`, what the `more` are called, which slider `play`s, `buttons`, and what
    `atlas.told_of_twin` tells. Of a still picture only the first two, and its `columns`."""
    pictures: traitlets.Dict = traitlets.Dict().tag(sync=True)
    """PNG files by name, as addresses that hold them."""
    # As text, since ipywidgets would walk through every number of a scene, twice.
    shown: traitlets.Dict = traitlets.Dict().tag(sync=True, to_json=lambda shown, front: json.dumps(shown))
    """`scene`, `sentence`, `failed` (it is an error), the `event` that it answers ("" for none), and of the
    knobs the `values`, the `stops` nearest to them, and `words`, what they read."""
    moved: traitlets.Dict = traitlets.Dict().tag(sync=True, echo_update=False)
    """The number of an `event`, and what the reader did: a `handle` put to `x`, `y` in data units; knobs
    `set` to stops or to `values`; a `button` pressed; `reset`."""

    def close(self) -> None:
        self.layout.close()
        super().close()


def png(image: Image.Image, **how: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "png", **how)
    return stream.getvalue()


def address(pixels: np.ndarray) -> str:
    return f"data:image/png;base64,{b64encode(png(Image.fromarray(pixels), compress_level=4)).decode()}"


shown_in: dict[str, dict[int, WeakSet]] = {}  # by cell and by the number of its run: what it showed


def both(front: Front, still: tuple[dict, dict]) -> tuple[dict, dict]:
    """What a cell shows: live in the browser, and `still` on a page that is saved."""
    let_go(front)
    live, about = front._repr_mimebundle_() or ({}, {})
    return {**live, **still[0]}, {**about, **still[1]}


def let_go(front: Front) -> None:
    """Close what the same cell showed when it ran before: it is gone from the page."""
    shell = IPython.get_ipython()
    try:
        runs = shown_in.setdefault(shell.get_parent()["metadata"]["cellId"], {})
    except (AttributeError, KeyError):
        return  # no notebook
    now = runs.setdefault(shell.execution_count, WeakSet())
    now.add(front)
    for before in [run for run in runs if run != shell.execution_count]:
        for old in runs.pop(before) - now:
            old.close()
