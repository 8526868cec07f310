"""An atlas of a panel: scenes of some of its states, made beforehand, for pages on which no kernel runs.

Which states: every control alone at STOPS values (an angle at TURNS) with the others where they start; the
first two controls together, and the two that a handle moves, SIDE by SIDE; those of two handles, FEW by FEW;
and those that the panel names in `also`, because a text asks for them.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from setclr_course.kit.cast import kept
from setclr_course.kit.controls import Options
from setclr_course.kit.front import png
from setclr_course.kit.handles import Circle, Handle
from setclr_course.kit.scene import Page

STOPS, TURNS, SIDE, FEW, MOST = 25, 37, 9, 5, 1200
TOLD = "atlas.json"

Key = tuple[tuple[int, int], ...]  # which controls are not where they start, and at which of their stops
Plane = tuple[int, int, int]  # two controls, and how many stops of each


@dataclass(frozen=True)
class Atlas:
    """What a page gets: `told`, written as atlas.json, and PNG files by name.

    `told` is what `Panel.told` tells, its knobs with the stops that are in the atlas, their `values` and the
    `words` they read, and besides: `start`, at which of its stops each knob begins; the `pool`: every mark,
    plot, handle and link that there is, once; the `states` by "knob:stop,…" of what is not where it starts:
    [plots, handles, links, sentence], in numbers of the pool; the `pictures` by name.
    """

    told: dict[str, Any]
    files: dict[str, bytes]

    def write(self, folder: Path, files: Path | None = None) -> None:
        """Into `folder`; the PNG files into `files`, which several atlases may share, or beside."""
        for place in (folder, files or folder):
            place.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (files or folder).joinpath(f"{name}.png").write_bytes(content)
        text = json.dumps(self.told, ensure_ascii=False, separators=(",", ":"))
        (folder / TOLD).write_text(text)


class Pool(dict[str, int]):
    """Things as JSON, each once, with its number."""

    def keep(self, thing: Any) -> int:
        return self.setdefault(json.dumps(thing, ensure_ascii=False), len(self))

    def state(self, scene: dict[str, Any], sentence: str) -> list[Any]:
        plots = [
            [self.keep({k: v for k, v in plot.items() if k != "marks"}), *map(self.keep, plot["marks"])]
            for plot in scene["plots"]
        ]
        handles = {name: self.keep(handle) for name, handle in scene["handles"].items()}
        return [plots, handles, list(map(self.keep, scene["links"])), sentence]


def evenly(count: int, most: int, always: Iterable[int]) -> list[int]:
    """About so many of the numbers below `count`: both ends, those that are wanted `always`, and the rest as
    evenly as can be."""
    return sorted({*np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist(), *always})


def keys(starts: Sequence[int], counts: Sequence[int], planes: Sequence[Plane]) -> list[Key]:
    """The states of an atlas, each once: the start first, then single controls, then planes."""
    found: list[Key] = [()]
    for *axes, most in [*((c, count) for c, count in enumerate(counts)), *planes]:
        sides = [[(c, stop) for stop in evenly(counts[c], most, [starts[c]])] for c in axes]
        found += [key_of(places, starts) for places in product(*sides)]
    return list(dict.fromkeys(found))


def key_of(places: Iterable[tuple[int, int]], starts: Sequence[int]) -> Key:
    return tuple((c, stop) for c, stop in sorted(places) if stop != starts[c])


def planes_of(handles: Mapping[str, Handle], names: Sequence[str]) -> list[Plane]:
    """The pairs of controls that are pictured together."""
    moved = [[names.index(name) for name in handle.moves] for handle in handles.values()]
    pairs = [(0, 1, SIDE)] if len(names) > 1 else []
    pairs += [(moves[0], moves[1], SIDE) for moves in moved if len(moves) == 2]
    single = dict.fromkeys(moves[0] for moves in moved if len(moves) == 1)
    pairs += [(one, two, FEW) for one, two in combinations(single, 2)]
    return list(dict.fromkeys(pairs))


def atlas_of(panel: Any) -> Atlas:
    """The atlas of a panel, which starts where its controls are now; they stay there.

    One that has a twin needs no states: it has every stop of its knobs, the `twin`'s name, and the `cast`.
    """
    told, values, twin = panel.told(), panel.values, twin_of(type(panel))
    turning = [handle.moves[0] for handle in panel.handles.values() if isinstance(handle.along, Circle)]
    asked = [{name: panel.knobs[name].number(at) for name, at in state.items()} for state in panel.also]
    stops, starts = [], []
    for name, knob in panel.knobs.items():
        start, some = knob.number(values[name]), TURNS if name in turning else STOPS
        most = knob.stops if twin or isinstance(knob, Options) else some
        chosen = evenly(knob.stops, most, [start, *(state[name] for state in asked if name in state)])
        there = [values[name] if at == start else knob.stop(at) for at in chosen]
        told["knobs"][name] |= {
            "stops": len(there),
            "values": there,
            "words": [knob.read(at) for at in there],
        }
        stops.append(chosen)
        starts.append(chosen.index(start))
    if twin:
        page = Page([])
        told |= {"twin": twin.stem, "cast": [[page.picture(face) for face in row] for row in kept()]}
        return Atlas(told | {"start": starts, "states": {}} | named(page.pictures), files_of(page.pictures))
    names, pool, states = list(panel.knobs), Pool(), {}
    found = keys(starts, [len(row) for row in stops], planes_of(panel.handles, names))[:MOST]
    for state in asked:
        places = ((c, stops[c].index(state[name])) for c, name in enumerate(names) if name in state)
        found.append(key_of(places, starts))
    for key in dict.fromkeys(found):
        moved = {names[c]: told["knobs"][names[c]]["values"][at] for c, at in key}
        seen = panel.seen({**values, **moved})
        states[",".join(f"{c}:{at}" for c, at in key)] = pool.state(seen.scene, seen.sentence)
    told |= {"start": starts, "pool": [json.loads(thing) for thing in pool], "states": states}
    return Atlas(told | named(panel.pictures), files_of(panel.pictures))


def named(pictures: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {"pictures": {name: f"{name}.png" for name in pictures}}


def files_of(pictures: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {name: png(pixels) for name, pixels in pictures.items()}


def twin_of(panel: type) -> Path | None:
    """The file beside the panel's own in which it is written a second time in JavaScript."""
    path = Path(str(sys.modules[panel.__module__].__file__)).with_suffix(".js")
    return path if path.exists() else None
