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

from setclr_course.kit.controls import Options
from setclr_course.kit.front import joined
from setclr_course.kit.handles import Handle

STOPS, SIDE, FEW, MOST = 31, 9, 5, 1200

State = tuple[int, ...]  # at which of its stops each control stands
Plane = tuple[int, int, int]  # two controls, and how many stops of each


@dataclass(frozen=True)
class Atlas:
    """What a page gets: `told`, and pictures by name.

    `told` is what `Panel.to_json` tells, its knobs with the stops that are in the atlas, their `values` and
    the `words` they read, and besides: `start`, at which of its stops each knob begins; the `pool`: every
    mark, plot, handle and link that there is, once; the `states` by "stop,stop,…", one of each knob:
    [plots, handles, links, sentence], in numbers of the pool.
    """

    told: dict[str, Any]
    pictures: Mapping[str, np.ndarray]


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

    One that has a twin needs no states: it has what `told_of_twin` tells, and the twin's name for its code.
    """
    wanted = [panel.values, *({**panel.values, **state} for state in panel.also)]
    asked = [{name: knob.number(state[name]) for name, knob in panel.knobs.items()} for state in wanted]
    if twin := told_of_twin(panel):
        twin |= {"twin": type(panel).__name__, "start": list(asked[0].values())}
        return Atlas(panel.to_json() | twin, panel.pictures)
    stops: dict[str, list[int]] = {}
    clicked = {name for *_, sets in panel.scene["links"] for name in sets}
    for name, knob in panel.knobs.items():
        most = knob.stops if name in clicked or isinstance(knob, Options) else STOPS
        stops[name] = evenly(knob.stops, most, [state[name] for state in asked])
    knobs = {name: at_stops(panel, name, numbers) for name, numbers in stops.items()}
    first, *others = (tuple(stops[name].index(number) for name, number in state.items()) for state in asked)
    pool = Pool()
    pictures: dict[str, np.ndarray] = {}
    planes = planes_of(panel.handles, list(panel.knobs))
    found = states_of(first, [len(some) for some in stops.values()], planes)[:MOST]
    states: dict[str, list[Any]] = {}
    for state in dict.fromkeys(found + others):
        seen = panel.seen({name: knob["values"][stop] for (name, knob), stop in zip(knobs.items(), state)})
        states[",".join(map(str, state))] = pool.state(seen.scene, seen.sentence)
        pictures |= seen.pictures
    more = {"knobs": knobs, "start": first, "states": states, "pool": [*map(json.loads, pool)]}
    return Atlas(panel.to_json() | more, pictures)


def at_stops(panel: Any, name: str, numbers: Iterable[int]) -> dict[str, Any]:
    """What the front end knows of a knob at these of its stops; at the one nearest to it the control's value
    stands."""
    knob, now = panel.knobs[name], panel.values[name]
    values = [now if number == knob.number(now) else knob.stop(number) for number in numbers]
    return {**knob.to_json(), "stops": len(values), "values": values, "words": [knob.read(x) for x in values]}


def told_of_twin(panel: Any) -> dict[str, Any]:
    """What the front end needs to answer by the panel's `twin`: its code as one module, all stops of the
    knobs, and plots and handles as they are now, of which the twin says what changes. The twin is the file
    beside the panel's own in which that is written a second time in JavaScript; a panel without one, such as
    one of a notebook, gets nothing."""
    kind = type(panel)
    file = Path(getattr(sys.modules[kind.__module__], "__file__", __file__)).with_name(f"{kind.__name__}.js")
    if not file.exists():
        return {}
    knobs = {name: at_stops(panel, name, range(knob.stops)) for name, knob in panel.knobs.items()}
    about = {"plots": panel.scene["plots"], "handles": panel.scene["handles"], "words": panel.words}
    return {"twin": joined(file), "knobs": knobs, **about}
