"""Atlases: which states of a panel are pictured, and that each picture is the panel's own."""

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setclr_course import panels
from setclr_course.kit import atlas
from setclr_course.pixels.controls import log_slider, options, slider


@given(st.integers(1, 400), st.integers(3, 30), st.data())
def test_stops_are_evenly_apart_with_both_ends_and_the_start(count, most, data):
    start = data.draw(st.integers(0, count - 1))
    found = atlas.evenly(count, most, start)
    assert len(found) == min(count, most) and found == sorted(set(found))
    assert {0, start, count - 1} <= set(found)
    gaps = np.diff([x for x in found if x != start])
    assert not len(gaps) or gaps.max() <= 2 * count / (most - 1) + 2


def test_the_stops_of_a_control_are_values_that_it_can_take():
    temperature = log_slider("τ", 0.5, 0.05, 5, 0.05)
    stops = atlas.stops_of(temperature, 13)
    assert len(stops) == 13 and stops[0] == pytest.approx(0.05) and stops[-1] == pytest.approx(5)
    assert temperature.value in stops
    whole = slider("step", 7, 0, 200, 5)
    assert atlas.stops_of(whole, 13).count(7) == 1 and all(type(x) is int for x in atlas.stops_of(whole, 13))
    assert atlas.stops_of(options("measure", ["kNN", "linear"]), 13) == ["kNN", "linear"]
    assert atlas.stops_of(slider("few", 1, 0, 3, 1), 13) == [0, 1, 2, 3]


def test_every_state_comes_once_and_the_start_first():
    found = list(atlas.keys([2, 0, 5], [5, 3, 13], [(0, 1), (0, 2), (0, 1)]))
    assert found[0] == () and len(set(found)) == len(found)
    alone = {key for key in found if len(key) == 1}
    assert alone == {((c, k),) for c, n in enumerate((5, 3, 13)) for k in range(n) if k != (2, 0, 5)[c]}
    both = [key for key in found if len(key) == 2]
    assert len(both) == 4 * 2 + 4 * 8


def test_a_point_on_a_circle_is_pictured_at_its_angles_alone():
    """On the first panel a drag sets the angle, and the step back to 0."""
    panel = panels.one_idea()
    names = list(panel.controls)
    assert atlas.planes_of(panel.handles, names) == [(0, 1)]
    plane = panels.share_triangle()
    names = list(plane.controls)
    pair = tuple(map(names.index, ("first", "second")))
    assert pair in atlas.planes_of(plane.handles, names)


@pytest.fixture(scope="module")
def made():
    panel = panels.water(total=1.0)
    before = panel.values
    return panel, before, panel.atlas()


def test_a_picture_and_its_sentence_are_the_panels_at_these_values(made):
    panel, before, found = made
    assert panel.values == before and panel.front.shown["sentence"] == panel.alt
    told = found.told
    names = [control["name"] for control in told["controls"]]
    assert names == list(panel.controls) and told["handles"]["level"]["moves"] == [names.index("total")]
    stops = [atlas.stops_of(control, 13) for control in panel.controls.values()]
    for key in ("", "0:3", "4:12", "0:2,1:4"):
        state = told["states"][key]
        moved = dict(tuple(map(int, pair.split(":"))) for pair in key.split(",") if pair)
        fresh = panels.water(**{names[c]: stops[c][k] for c, k in moved.items()} | (
            {} if 0 in moved else {"total": 1.0}))  # fmt: skip
        assert state["sentence"] == fresh.alt
        for name, place in fresh.front.shown["places"].items():
            places = found.told["states"][""]["places"] | state["places"]
            np.testing.assert_allclose(places[name], place)
        kept = np.asarray(Image.open(io.BytesIO(found.files[state["picture"]])).convert("RGB"), float)
        drawn = np.asarray(Image.open(io.BytesIO(fresh.png(small=False))).convert("RGB"), float)
        assert kept.shape == drawn.shape and abs(kept - drawn).mean() < 3 < abs(255 - drawn).mean()
        assert json.loads(found.files[state["links"]]) == json.loads(json.dumps(fresh.front.shown["links"]))


def test_an_atlas_is_written_with_every_file_it_names(made, tmp_path):
    found = made[2]
    found.write(tmp_path / "atlas" / "1")
    told = json.loads((tmp_path / "atlas" / "1" / atlas.TOLD).read_text())
    assert told == json.loads(json.dumps(found.told)) | {"files": "./"}
    named = {state[file] for state in told["states"].values() for file in ("picture", "links")}
    assert named == {path.name for path in (tmp_path / "atlas" / "1").iterdir()} - {atlas.TOLD}
    assert "step" not in told["controls"][0]["label"] and told["plays"] is None


def test_what_plays_is_told_and_how_far_it_is():
    panel = panels.sinkhorn_rounds()
    names = list(panel.controls)
    told = panel.atlas().told
    plays = told["plays"]
    assert names[plays] == panel.play == "rounds" and told["play"] == panel.controls["rounds"].description
    last = len(told["controls"][plays]["stops"]) - 1
    assert told["states"][f"{plays}:{last}"]["played"] == 1
    assert told["states"][""]["played"] == pytest.approx(panel.controls["rounds"].value / 30)


def test_an_atlas_written_twice_shares_its_files(made, tmp_path):
    for name in ("one", "two"):
        made[2].write(tmp_path / name, tmp_path / "pictures")
    told = json.loads((tmp_path / "one" / atlas.TOLD).read_text())
    assert [path.name for path in (tmp_path / "two").iterdir()] == [atlas.TOLD]
    for state in told["states"].values():
        for name in (state["picture"], state["links"]):
            assert (tmp_path / "one" / told["files"] / name).exists()
