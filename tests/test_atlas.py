"""Atlases: which states of a panel are kept, and that each is the panel's own scene."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setclr_course import panels
from setclr_course.kit import atlas
from setclr_course.kit.handles import Circle, Handle


@given(st.integers(1, 400), st.integers(3, 30), st.data())
def test_stops_are_evenly_apart_with_both_ends_and_what_is_wanted(count, most, data):
    wanted = data.draw(st.lists(st.integers(0, count - 1), max_size=3))
    found = atlas.evenly(count, most, wanted)
    assert found == sorted(set(found)) and len(found) <= max(min(count, most), most + len(set(wanted)))
    assert {0, count - 1, *wanted} <= set(found)
    gaps = [b - a for a, b in zip(found, found[1:])]
    assert not gaps or max(gaps) <= count / (most - 1) + 1


def test_every_state_comes_once_and_the_start_first():
    found = list(atlas.keys([2, 0, 5], [5, 3, 13], [(0, 1, 9), (0, 2, 9), (0, 1, 9)]))
    assert found[0] == () and len(set(found)) == len(found)
    alone = {key for key in found if len(key) == 1}
    assert alone == {((c, k),) for c, n in enumerate((5, 3, 13)) for k in range(n) if k != (2, 0, 5)[c]}
    both = [key for key in found if len(key) == 2]
    assert len(both) == 4 * 2 + 4 * 9  # of the third, 9 stops and the start


def test_handles_are_pictured_together():
    def one(*moves: str, along="x") -> Handle:
        return Handle(0, (0, 0), moves, along)

    handles = {"p": one("x", "y", along="plane"), "a": one("a", along=Circle()), "b": one("b")}
    assert atlas.planes_of(handles, ["t", "x", "y", "a", "b"]) == [(0, 1, 9), (1, 2, 9), (3, 4, 5)]


@pytest.fixture(scope="module")
def made():
    panel = panels.spectra(turn=20)
    before = panel.values
    found = panel.atlas()
    assert panel.values == before
    return found


def scene_of(told: dict, key: str) -> tuple[dict, str]:
    """As panels.js reads it."""
    plots, handles, links, sentence = told["states"][key]
    pool = told["pool"]
    scene = {
        "plots": [{**pool[about], "marks": [pool[mark] for mark in marks]} for about, *marks in plots],
        "handles": {name: pool[number] for name, number in handles.items()},
        "links": [pool[number] for number in links],
    }
    return scene, sentence


def test_a_state_is_the_panels_scene_at_these_values(made):
    told = json.loads(json.dumps(made.told, allow_nan=False))
    names = list(told["knobs"])
    stops = {name: told["knobs"][name]["words"] for name in names}
    for key in ("", "0:3", "4:12", "0:0,1:0"):
        moved = dict(tuple(map(int, pair.split(":"))) for pair in key.split(",") if pair)
        values = {names[c]: int(stops[names[c]][at]) for c, at in moved.items()}
        fresh = panels.spectra(**{"turn": 20, **values})
        scene, sentence = scene_of(told, key)
        assert sentence == fresh.alt and scene == json.loads(json.dumps(fresh.scene))
    assert stops["turn"][told["start"][0]] == "20"


def test_what_a_text_asks_for_is_in_it(monkeypatch):
    monkeypatch.setattr(panels.spectra, "also", [{"cat": 45, "coffee": -35, "rocket": 5}])
    told = panels.spectra().atlas().told
    words = {name: knob["words"] for name, knob in told["knobs"].items()}
    names = list(words)
    wanted = sorted((names.index(n), words[n].index(str(v))) for n, v in panels.spectra.also[0].items())
    assert ",".join(f"{c}:{at}" for c, at in wanted) in told["states"]


def test_an_atlas_is_written_with_every_file_it_names_and_shares_them(made, tmp_path):
    for name in ("one", "two"):
        made.write(tmp_path / name, tmp_path / "pictures")
    told = json.loads((tmp_path / "one" / atlas.TOLD).read_text())
    assert told == json.loads(json.dumps(made.told))
    assert set(told["pictures"].values()) == {path.name for path in (tmp_path / "pictures").iterdir()}
    assert [path.name for path in (tmp_path / "two").iterdir()] == [atlas.TOLD]
    shown = {face for thing in told["pool"] if isinstance(thing, dict) for face in thing.get("faces", [])}
    assert shown == set(told["pictures"])
