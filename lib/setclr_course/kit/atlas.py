"""An atlas of a panel: scenes of some of its states, made beforehand, for pages on which no kernel runs.

Which states: every control alone at STOPS values, or at all where a click chooses one, with the others where
they start; the first two controls together, and the two that a handle moves, SIDE by SIDE; those of two
handles, FEW by FEW; and those that the panel names in `also`, because a text asks for them.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from setclr_course.kit.cast import kept
from setclr_course.kit.controls import Options
from setclr_course.kit.front import png
from setclr_course.kit.handles import Handle
from setclr_course.kit.scene import Page

STOPS, SIDE, FEW, MOST = 31, 9, 5, 1200
TOLD = "atlas.json"

State = tuple[int, ...]  # at which of its stops each control stands
Plane = tuple[int, int, int]  # two controls, and how many stops of each


@dataclass(frozen=True)
class Atlas:
    """What a page gets: `told`, written as atlas.json, and pictures by name, as PNG files.

    `told` is what `Panel.told` tells, its knobs with the stops that are in the atlas, their `values` and the
    `words` they read, and besides: `start`, at which of its stops each knob begins; the `pool`: every mark,
    plot, handle and link that there is, once; the `states` by "stop,stop,…", one of each knob:
    [plots, handles, links, sentence], in numbers of the pool.
    """

    told: dict[str, Any]
    pictures: Mapping[str, np.ndarray]

    def write(self, folder: Path, pictures: Path) -> None:
        """Into `folder`; the pictures into one that several atlases share."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TOLD).write_text(json.dumps(self.told, ensure_ascii=False, separators=(",", ":")))
        save(self.pictures, pictures)


def save(pictures: Mapping[str, np.ndarray], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, pixels in pictures.items():
        (folder / f"{name}.png").write_bytes(png(Image.fromarray(pixels), compress_level=4))


class Pool(dict[str, int]):
    """Things as JSON, each once, with its number."""

    def keep(self, thing: Any) -> int:
        return self.setdefault(json.dumps(thing, ensure_ascii=False), len(self))

    def state(self, scene: dict[str, Any], sentence: str) -> list[Any]:
        plots = [[self.keep({**one, "marks": []}), *map(self.keep, one["marks"])] for one in scene["plots"]]
        handles = {name: self.keep(handle) for name, handle in scene["handles"].items()}
        return [plots, handles, list(map(self.keep, scene["links"])), sentence]


def evenly(count: int, most: int, always: Iterable[int]) -> list[int]:
    """About so many of the numbers below `count`: both ends, those that are wanted `always`, and the rest as
    evenly as can be."""
    return sorted({*np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist(), *always})


def states_of(start: State, counts: Sequence[int], planes: Iterable[Plane]) -> list[State]:
    """The states of an atlas, each once: the start first, then single controls, then planes."""
    found = [start]
    for *axes, most in [*enumerate(counts), *planes]:
        for stops in product(*(evenly(counts[c], most, [start[c]]) for c in axes)):
            moved = dict(zip(axes, stops))
            found.append(tuple(moved.get(c, stop) for c, stop in enumerate(start)))
    return list(dict.fromkeys(found))


def planes_of(handles: Mapping[str, Handle], names: Sequence[str]) -> list[Plane]:
    """The pairs of controls that are pictured together."""
    moved = [[names.index(name) for name in handle.moves] for handle in handles.values()]
    pairs = [(0, 1, SIDE)] if len(names) > 1 else []
    pairs += [(moves[0], moves[1], SIDE) for moves in moved if len(moves) == 2]
    single = dict.fromkeys(moves[0] for moves in moved if len(moves) == 1)
    return list(dict.fromkeys(pairs + [(one, two, FEW) for one, two in combinations(single, 2)]))


def atlas_of(panel: Any) -> Atlas:
    """The atlas of a panel, which starts where its controls are now; they stay there.

    One that has a twin needs no states: it has every stop of its knobs, the `twin`'s name, and the `cast`.
    """
    told, twin = panel.told(), twin_of(type(panel))
    wanted = [panel.values, *({**panel.values, **state} for state in panel.also)]
    asked = [{name: knob.number(state[name]) for name, knob in panel.knobs.items()} for state in wanted]
    stops: dict[str, list[int]] = {}
    clicked = {name for *_, sets in panel.scene["links"] for name in sets}
    for name, knob in panel.knobs.items():
        most = knob.stops if twin or name in clicked or isinstance(knob, Options) else STOPS
        stops[name] = evenly(knob.stops, most, [state[name] for state in asked])
        there = [panel.values[name] if stop == asked[0][name] else knob.stop(stop) for stop in stops[name]]
        words = [knob.read(value) for value in there]
        told["knobs"][name] |= {"stops": len(there), "values": there, "words": words}
    start, *others = (tuple(stops[name].index(number) for name, number in state.items()) for state in asked)
    told |= {"start": start, "states": {}}
    if twin:
        page = Page([])
        told |= {"twin": twin.stem, "cast": [[page.picture(face) for face in row] for row in kept()]}
        return Atlas(told, page.pictures)
    pool = Pool()
    pictures: dict[str, np.ndarray] = {}
    planes = planes_of(panel.handles, list(panel.knobs))
    found = states_of(start, [len(some) for some in stops.values()], planes)[:MOST]
    for state in dict.fromkeys(found + others):
        values = {name: told["knobs"][name]["values"][stop] for name, stop in zip(stops, state)}
        seen = panel.seen(values)
        told["states"][",".join(map(str, state))] = pool.state(seen.scene, seen.sentence)
        pictures |= seen.pictures
    return Atlas(told | {"pool": [json.loads(thing) for thing in pool]}, pictures)


def twin_of(panel: type) -> Path | None:
    """The file beside the panel's own in which it is written a second time in JavaScript."""
    path = Path(str(sys.modules[panel.__module__].__file__)).with_suffix(".js")
    return path if path.exists() else None
