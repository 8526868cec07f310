"""An atlas of a panel: pictures of some of its states, made beforehand, for pages on which no kernel runs.

Which states: every control alone at STOPS values (an angle at TURNS) with the others where they start, and,
SIDE by SIDE, the first two controls together and the controls of each handle that moves in a plane.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from PIL import Image

from setclr_course.pixels.controls import nearest_stop
from setclr_course.pixels.handles import Circle, Handle

STOPS, TURNS, SIDE = 13, 25, 9
TOLD = "atlas.json"
QUALITY = 70  # of a WebP: letters stay clean, and a picture has some 25 KB

Key = tuple[tuple[int, int], ...]  # which controls are not where they start, and at which of their stops


@dataclass(frozen=True)
class Atlas:
    """What the page gets: `told` is the manifest, atlas.json, with the folder of its files.

    `told` has the `size`; the `handles` with the numbers of the controls that each moves; the label of what
    is played and the number of its control; how many controls are `in_sight`; the `controls`: name, label,
    stops as the reader sees them, which of them it starts at, whether it slides; and the `states`, by
    "control:stop,…" of what is not where it starts: picture, sentence, places of the handles (of those that
    are elsewhere than at the start), how far it has been played, and a file with the links.
    """

    told: dict[str, Any]
    files: dict[str, bytes]

    def write(self, folder: Path, files: Path | None = None) -> None:
        """Into `folder`; the pictures and links into `files`, which several atlases may share, or beside."""
        files = files or folder
        for place in (folder, files):
            place.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (files / name).write_bytes(content)
        told = self.told | {"files": f"{os.path.relpath(files, folder)}/"}
        (folder / TOLD).write_text(json.dumps(told, ensure_ascii=False, separators=(",", ":")))


def stops_of(control: widgets.ValueWidget, most: int) -> list[Any]:
    """At most so many values of a control, in order, ends and present value among them, evenly apart."""
    if not hasattr(control, "min"):
        return list(control.options)
    low, high = control.min, control.max
    count = round((high - low) / control.step)
    first = control.base**low if isinstance(control, widgets.FloatLogSlider) else low
    every = [nearest_stop(control, first, step) for step in range(count + 1)]
    start = min(range(count + 1), key=lambda place: abs(every[place] - control.value))
    every[start] = control.value  # which need not be a stop
    return [every[place] for place in evenly(count + 1, most, start)]


def evenly(count: int, most: int, start: int) -> list[int]:
    """At most so many of the numbers below `count`: both ends, `start`, and the rest as evenly as can be."""
    if count <= most:
        return list(range(count))
    wanted = [round(k * (count - 1) / (most - 1)) for k in range(most)]
    nearest = min(range(1, most - 1), key=lambda k: abs(wanted[k] - start))
    if start not in (0, count - 1):
        wanted[nearest] = start
    return wanted


def keys(starts: Sequence[int], counts: Sequence[int], planes: Sequence[tuple[int, int]]) -> Iterator[Key]:
    """The states of an atlas, each once: the start first, then single controls, then planes."""
    seen: set[Key] = set()
    for axes in [(), *((c,) for c in range(len(counts))), *planes]:
        sides = [evenly(counts[c], SIDE, starts[c]) if len(axes) == 2 else range(counts[c]) for c in axes]
        for places in product(*sides):
            key = tuple((c, stop) for c, stop in sorted(zip(axes, places)) if stop != starts[c])
            if key not in seen:
                seen.add(key)
                yield key


def planes_of(handles: dict[str, Handle], names: list[str]) -> list[tuple[int, int]]:
    """The pairs of controls that are pictured together."""
    pairs = [(0, 1)] if len(names) > 1 else []
    for handle in handles.values():
        if handle.along == "plane" and len(handle.controls) == 2:
            one, two = map(names.index, handle.controls)
            pairs.append((one, two))
    return list(dict.fromkeys(pairs))


def turning(handles: dict[str, Handle]) -> set[str]:
    """The controls that are angles: a handle moves them on a circle."""
    return {handle.controls[0] for handle in handles.values() if isinstance(handle.along, Circle)}


def readout(control: widgets.ValueWidget, value: Any) -> str:
    """A stop as the control shows it."""
    return str(value) if not hasattr(control, "min") else format(value, control.readout_format)


def webp(pixels: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels[..., :3]).save(stream, "webp", quality=QUALITY, method=4)
    return stream.getvalue()


class Files(dict[str, bytes]):
    """Contents by names made of them: what is twice the same lies there once."""

    def keep(self, content: bytes, ending: str) -> str:
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.{ending}"
        self[name] = content
        return name


def atlas_of(
    controls: dict[str, widgets.ValueWidget],
    handles: dict[str, Handle],
    state: Callable[[dict[str, Any]], tuple[Any, dict[str, Any], list[dict]]],
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], Files]:
    """The controls, the states and the files of an atlas; state(values) gives the pixels of a picture, what
    is told of it, and its links."""
    names, turns = list(controls), turning(handles)
    stops = [stops_of(c, TURNS if name in turns else STOPS) for name, c in controls.items()]
    starts = [row.index(c.value) for row, c in zip(stops, controls.values())]
    files, states = Files(), {}
    first: dict[str, Any] = {}  # where the handles are at the start
    for key in keys(starts, [len(row) for row in stops], planes_of(handles, names)):
        places = dict(enumerate(starts)) | dict(key)
        pixels, told, links = state({name: stops[c][places[c]] for c, name in enumerate(names)})
        kept = json.dumps(links, ensure_ascii=False, separators=(",", ":")).encode()
        told["places"] = {name: at for name, at in told["places"].items() if at != first.get(name)}
        first = first or told["places"]
        told |= {"picture": files.keep(webp(pixels), "webp"), "links": files.keep(kept, "json")}
        states[",".join(f"{c}:{place}" for c, place in key)] = told
    return [
        {"name": name, "label": control.description, "stops": [readout(control, stop) for stop in row],
         "start": start, "slides": hasattr(control, "min")}
        for (name, control), row, start in zip(controls.items(), stops, starts)
    ], states, files  # fmt: skip
