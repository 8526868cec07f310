"""An atlas of a panel: scenes of some of its states, made beforehand, for pages on which no kernel runs.

Which states: every control alone at STOPS values (an angle at TURNS) with the others where they start; the
first two controls together, and the two that a handle moves, SIDE by SIDE; those of two handles, FEW by FEW;
and those that the panel names in `also`, because a text asks for them.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from setclr_course.kit.cast import kept
from setclr_course.kit.controls import Knob, Options
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

    `told` is what `Panel.told` tells, its knobs with the stops that are in the atlas and the `words` they
    read, and besides: `start`, at which of its stops each knob begins; `moves`, the knobs' numbers by handle;
    the `pool`: every mark, plot, handle and link that there is, once; the `states` by "knob:stop,…" of what
    is not where it starts: [plots, handles, links, sentence], in numbers of the pool; the `pictures` by name.
    """

    told: dict[str, Any]
    files: dict[str, bytes]

    def write(self, folder: Path, files: Path | None = None) -> None:
        """Into `folder`; the PNG files into `files`, which several atlases may share, or beside."""
        files = files or folder
        for place in (folder, files):
            place.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (files / f"{name}.png").write_bytes(content)
        text = json.dumps(self.told, ensure_ascii=False, separators=(",", ":"))
        (folder / TOLD).write_text(text)


class Pool:
    """Things as JSON, each once, by number."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self.numbers: dict[str, int] = {}

    def keep(self, thing: Any) -> int:
        text = json.dumps(thing, ensure_ascii=False)
        if text not in self.numbers:
            self.numbers[text] = len(self.things)
            self.things.append(thing)
        return self.numbers[text]

    def state(self, scene: dict[str, Any], sentence: str) -> list[Any]:
        plots = [
            [self.keep({k: v for k, v in plot.items() if k != "marks"}), *map(self.keep, plot["marks"])]
            for plot in scene["plots"]
        ]
        handles = {name: self.keep(handle) for name, handle in scene["handles"].items()}
        return [plots, handles, list(map(self.keep, scene["links"])), sentence]


def evenly(count: int, most: int, always: Sequence[int]) -> list[int]:
    """About so many of the numbers below `count`: both ends, those that are wanted `always`, and the rest as
    evenly as can be."""
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)} | set(always))


def keys(starts: Sequence[int], counts: Sequence[int], planes: Sequence[Plane]) -> Iterator[Key]:
    """The states of an atlas, each once: the start first, then single controls, then planes."""
    seen: set[Key] = set()
    for axes in [(), *((c,) for c in range(len(counts))), *planes]:
        names = axes[:2]
        most = axes[2] if len(axes) == 3 else max(counts)
        sides = [evenly(counts[c], most, [starts[c]]) for c in names]
        for places in product(*sides):
            key = tuple((c, stop) for c, stop in sorted(zip(names, places)) if stop != starts[c])
            if key not in seen:
                seen.add(key)
                yield key


def planes_of(handles: Mapping[str, Handle], names: Sequence[str]) -> list[Plane]:
    """The pairs of controls that are pictured together."""
    pairs = [(0, 1, SIDE)] if len(names) > 1 else []
    for handle in handles.values():
        if len(handle.moves) == 2:
            pairs.append((names.index(handle.moves[0]), names.index(handle.moves[1]), SIDE))
    single = [names.index(handle.moves[0]) for handle in handles.values() if len(handle.moves) == 1]
    pairs += [(one, two, FEW) for one, two in combinations(dict.fromkeys(single), 2)]
    return list(dict.fromkeys(pairs))


def atlas_of(panel: Any) -> Atlas:
    """The atlas of a panel, which starts where its controls are now; they stay there.

    One that has a twin needs no states: it has the `twin`, the `values` at which it starts, and the `cast`.
    """
    if twin := twin_of(type(panel)):
        empty = Page([])
        cast = [[empty.picture(face) for face in row] for row in kept()]
        more = {"twin": twin.stem, "values": panel.values, "cast": cast}
        return Atlas(panel.told() | more | named(empty.pictures), files_of(empty.pictures))
    knobs: Mapping[str, Knob] = panel.knobs
    names, handles = list(knobs), panel.seen(panel.values).handles
    turning = {handle.moves[0] for handle in handles.values() if isinstance(handle.along, Circle)}
    begin = {name: knob.number(panel.values[name]) for name, knob in knobs.items()}
    asked = [{name: knobs[name].number(value) for name, value in state.items()} for state in panel.also]
    stops = {}
    for name, knob in knobs.items():
        most = knob.stops if isinstance(knob, Options) else TURNS if name in turning else STOPS
        stops[name] = evenly(
            knob.stops, most, [begin[name], *(state[name] for state in asked if name in state)]
        )
    starts = [stops[name].index(begin[name]) for name in names]
    found = keys(starts, [len(row) for row in stops.values()], planes_of(handles, names))
    chosen = dict.fromkeys(key for _, key in zip(range(MOST), found))
    for state in asked:
        places = sorted((names.index(name), stops[name].index(at)) for name, at in state.items())
        chosen[tuple((c, at) for c, at in places if at != starts[c])] = None
    pool, states = Pool(), {}
    for key in chosen:
        moved = {names[c]: knobs[names[c]].stop(stops[names[c]][at]) for c, at in key}
        seen = panel.seen({**panel.values, **moved})
        states[",".join(f"{c}:{at}" for c, at in key)] = pool.state(seen.scene, seen.sentence)
    told = panel.told()
    for name, knob in knobs.items():
        words = [panel.values[name] if at == begin[name] else knob.stop(at) for at in stops[name]]
        told["knobs"][name] |= {"stops": len(words), "words": [knob.read(value) for value in words]}
    told |= {
        "start": starts,
        "moves": {name: [names.index(c) for c in handle.moves] for name, handle in handles.items()},
        "pool": pool.things,
        "states": states,
    }
    return Atlas(told | named(panel.pictures), files_of(panel.pictures))


def named(pictures: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {"pictures": {name: f"{name}.png" for name in pictures}}


def files_of(pictures: Mapping[str, np.ndarray]) -> dict[str, bytes]:
    return {name: png(pixels) for name, pixels in pictures.items()}


def twin_of(panel: type) -> Path | None:
    """The file beside the panel's own in which it is written a second time in JavaScript."""
    path = Path(str(sys.modules[panel.__module__].__file__)).with_suffix(".js")
    return path if path.exists() else None
