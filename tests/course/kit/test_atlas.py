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
    start, counts = (2, 0, 5), (5, 3, 13)
    found = atlas.states_of(start, counts, [(0, 1, 9), (0, 2, 9), (0, 1, 9)])
    assert found[0] == start and len(set(found)) == len(found)
    moved = [[c for c in range(3) if state[c] != start[c]] for state in found]
    assert sum(len(one) == 1 for one in moved) == sum(counts) - 3
    # Of the third, 9 stops and the start:
    assert [moved.count(pair) for pair in ([0, 1], [0, 2], [1, 2])] == [4 * 2, 4 * 9, 0]


def test_handles_are_pictured_together():
    ways = {("x", "y"): "plane", ("a",): Circle(), ("b",): "x"}
    handles = {moves[0]: Handle(0, (0, 0), moves, along) for moves, along in ways.items()}
    assert atlas.planes_of(handles, ["t", "x", "y", "a", "b"]) == [(0, 1, 9), (1, 2, 9), (3, 4, 5)]


ASKED = {"cat": 45, "coffee": -35, "rocket": 5}  # what a text asks for


@pytest.fixture(scope="module")
def made():
    panel = panels.spectra(turn=20)
    panel.also, before = [ASKED], panel.values
    found = panel.atlas()
    assert panel.values == before
    return found


def test_a_state_is_the_panels_scene_at_these_values_and_what_a_text_asks_for_is_in_it(made):
    told = json.loads(json.dumps(made.told, allow_nan=False))
    pool, knobs = told["pool"], told["knobs"]
    stops = {name: knob["words"] for name, knob in knobs.items()}
    asked = {[*knobs].index(name): knobs[name]["values"].index(value) for name, value in ASKED.items()}
    for moved in ({}, {0: 3}, {4: 12}, {0: 0, 1: 0}, asked):
        state = [moved.get(c, at) for c, at in enumerate(told["start"])]
        words = {name: stops[name][at].replace("−", "-") for name, at in zip(stops, state)}
        fresh = panels.spectra(**{name: int(word) for name, word in words.items()})
        plots, handles, links, sentence = told["states"][",".join(map(str, state))]
        scene = {  # as panels.js reads it
            "plots": [{**pool[about], "marks": [pool[mark] for mark in marks]} for about, *marks in plots],
            "handles": {name: pool[number] for name, number in handles.items()},
            "links": [pool[number] for number in links],
        }
        assert sentence == fresh.alt and scene == json.loads(json.dumps(fresh.scene))
    assert stops["turn"][told["start"][0]] == "20"


def test_an_atlas_is_written_with_every_file_it_names_and_shares_them(made, tmp_path):
    for name in ("one", "two"):
        made.write(tmp_path / name, tmp_path / "pictures")
    told = json.loads((tmp_path / "one" / atlas.TOLD).read_text())
    assert told == json.loads(json.dumps(made.told))
    files = {path.stem for path in (tmp_path / "pictures").iterdir()}
    assert [path.name for path in (tmp_path / "two").iterdir()] == [atlas.TOLD]
    shown = {face for thing in told["pool"] if isinstance(thing, dict) for face in thing.get("faces", [])}
    assert shown == files
