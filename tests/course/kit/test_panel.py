"""The kit: controls, handles and events move values; a scene is a function of the values; panels let go.

And atlases: which states of a panel are kept, and that each is the panel's own scene.
"""

import gc
import json
import math
import weakref
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipywidgets.widgets import widget
from sweep import opened

from setclr_course import panels
from setclr_course.kit import atlas, front, layout
from setclr_course.kit.controls import log_slider, minus, options, slider
from setclr_course.kit.handles import Circle, Segment
from setclr_course.kit.palette import LINES
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.kit.still import pictured


class some(Panel):
    """A point of each kind, on two plots, one of them logarithmic."""

    mosaic, play = "left right", "step"
    knobs = {
        "x": slider("x", 0.0, -2.0, 2.0, 0.1),
        "y": slider("y", 0.0, -2.0, 2.0, 0.1),
        "scale": log_slider("τ", 1, 0.1, 10, 0.1),
        "angle": slider("angle", 90, -180, 175, 5),
        "share": slider("share", 0.5, 0.0, 1.0, 0.05),
        "kind": options("kind", ["left", "right"]),
        "step": slider("step", 0, 0, 2, 1),
    }
    buttons = {"home": "to the middle"}

    def draw(self, page: Page, values: dict, now: None) -> None:
        left, right = page.plane("left", (-2, 2)), page.plot("right", (0.1, 10), (0, 1), log="x")
        point = left.dots([[values["x"], values["y"]]])
        point.handle("point", (values["x"], values["y"]), "x", "y")
        point.handle("height", (0.5, values["y"]), "y", along="y")
        scale, angle = (values["scale"], 0.5), np.deg2rad(values["angle"])
        right.dots([scale]).handle("scale", scale, along="x", label="the scale τ")
        turn = 1.5 * np.array([np.cos(angle), np.sin(angle)])
        left.dots([turn]).handle("turn", turn, "angle", along=Circle((0, 0), 1.5))
        way = 2 * values["share"] - 1, 1.0
        left.dots([way]).handle("way", way, "share", along=Segment((-1, 1), (1, 1)), snap=[(0, 1)])
        left.dots([(0, 0)]).handle("kind", (0, 0), to=lambda x, y: ["left" if x < 0 else "right"])
        table = left.cells([[0.0, 1.0], [0.5, np.nan]], words=".1f")
        page.link("the first row", table[0], point, lit=[table[:, 1]], kind="right")
        left.line([values["x"], np.nan], 0)

    def say(self, values: dict, now: None) -> str:
        if values["x"] > 1.95:
            raise ZeroDivisionError("x is too large")
        return f"The point is at ({values['x']:g}, {values['y']:g})."

    def pressed(self, button: str, values: dict) -> dict:
        return {"x": 0.0, "y": 0.0}


@pytest.fixture
def panel() -> Panel:
    return some()


@pytest.fixture
def shown(panel) -> list[dict]:
    """What is sent to the browser, one after the other."""
    sent: list[dict] = []
    panel.widget.observe(lambda change: sent.append(change["new"]), "shown")
    return sent


@pytest.mark.parametrize("event, moved", [
    ({"handle": "point", "x": 1.23, "y": -0.68}, {"x": 1.2, "y": -0.7}),
    ({"handle": "point", "x": 1.9, "y": 2.4}, {"x": 1.9, "y": 2.0}),
    ({"handle": "turn", "x": -1.0, "y": -1.0}, {"angle": -135}),
    ({"handle": "turn", "x": -1.5, "y": 0.01}, {"angle": 175}),
    ({"handle": "height", "x": -1.0, "y": 0.31}, {"y": 0.3}),
    ({"handle": "scale", "x": 3.0, "y": 0.9}, {"scale": 10**0.5}),
    ({"handle": "way", "x": 0.42, "y": -2.0}, {"share": 0.7}),
    ({"handle": "kind", "x": 1.0, "y": 1.0}, {"kind": "right"}),
    ({"set": {"x": -1, "y": 99}}, {"x": -2.0, "y": 2.0}), ({"set": {"scale": 20}}, {"scale": 10.0}),
    ({"set": {"x": 39}}, {"x": 2.0 - 0.1}), ({"set": {"kind": 1, "step": 2}}, {"kind": "right", "step": 2}),
])  # fmt: skip
def test_handles_move_their_controls_and_keys_knobs_and_links_go_by_stops(panel, event, moved):
    panel.widget.moved = {"event": "a:1", **event}
    assert panel.values == pytest.approx({**panel.start, **moved})


def test_an_event_is_answered_by_one_scene_that_says_so(panel, shown):
    panel.widget.moved = {"event": "a:7", "handle": "point", "x": 1.0, "y": 1.0}
    (answer,) = shown
    assert answer["sentence"] == "The point is at (1, 1)." and not answer["failed"]
    assert answer["scene"]["handles"]["point"]["at"] == [1.0, 1.0]
    assert answer["stops"][0] == 30 and answer["words"][0] == "1"
    panel.controls["x"].value = 0.5
    panel.widget.moved = {"event": "a:8", "handle": "point", "x": 0.5, "y": 1.0}  # moves nothing
    assert [answer["event"] for answer in shown] == ["a:7", "", "a:8"]


def test_reset_goes_to_where_the_page_opened_the_panel(shown):
    panel = some(x=0.5)
    panel.controls["y"].value = 1.0
    assert panel.widget.shown["sentence"] == "The point is at (0.5, 1)."  # it is opened here
    panel.on_event({"event": "", "button": "home"})
    panel.controls["kind"].value = "right"
    panel.reset()
    assert panel.values == {**some(x=0.5).values, "y": 1.0}


def test_a_failed_event_is_answered_with_its_error_and_reaches_the_cell(panel, shown, monkeypatch):
    with pytest.raises(ZeroDivisionError, match="x is too large"):
        panel.on_event({"event": "d:1", "set": {"x": 40}})
    assert shown[-1]["event"] == "d:1" and shown[-1]["failed"] and "x is too large" in shown[-1]["sentence"]
    panel.controls["x"].value = 1.0
    assert not shown[-1]["failed"] and shown[-1]["sentence"] == "The point is at (1, 0)."
    monkeypatch.setattr(some, "draw", Mock(side_effect=KeyboardInterrupt))  # which stays one
    with pytest.raises(KeyboardInterrupt):
        panel.controls["x"].value = 1.5


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "angle", "scale"]), st.integers(0, 38)), max_size=6))
def test_a_scene_is_a_function_of_the_values_by_whatever_path(moves):
    """Any state, by any path, the same scene: nothing is remembered."""
    panel = some()
    for knob, stop in moves:
        panel.on_event({"event": "", "set": {knob: stop}})
    fresh = some(**panel.values)
    assert panel.scene == fresh.scene and panel.alt == fresh.alt
    json.loads(json.dumps(panel.scene, allow_nan=False))


def test_what_the_front_end_is_told(panel):
    told, scene = panel.to_json(), panel.scene
    assert told["size"] == (864, 346) and list(told["boxes"]) == ["left", "right"] and told["in_sight"] == 1
    assert told["knobs"]["x"] == {"label": "x", "stops": 41, "marks": []}
    assert told["knobs"]["kind"] == {
        "label": "kind",
        "stops": 2,
        "names": ["left", "right"],
        "colours": ["", ""],
    }
    handles = scene["handles"]
    assert handles["scale"]["label"] == "the scale τ" and handles["scale"]["ends"] == (0.1, 10)
    assert handles["turn"]["way"] == ["circle", 0.0, 0.0, 1.5] and "ends" not in handles["turn"]
    assert handles["way"]["way"] == ["segment", -1, 1, 1, 1] and handles["way"]["snap"] == ((0.0, 1.0),)
    table = [mark["kind"] for mark in scene["plots"][0]["marks"]].index("cells")
    over, lit = [[0, table, 0, 1], [0, 0]], [[0, table, 1, 3]]
    assert scene["links"] == [["the first row", over, lit, {"kind": 1}]]
    assert scene["plots"][0]["marks"][-1]["x"] == [0.0, None]  # nowhere, not at 0
    cells = scene["plots"][0]["marks"][table]  # nothing at low, all at high
    assert cells["shades"] == [0, 39, 20, 0] and cells["words"] == ["0.0", "1.0", "0.5", "nan"]


@pytest.mark.parametrize("name, value, said", [
    ("xx", 1, "must be one of 'x', .*got 'xx'"),
    ("x", 2.5, "x must be -2 to 2, got 2.5; the slider ends there"), ("x", -2.5, "must be -2 to 2, got -2.5"),
    ("kind", "lef", "kind must be one of 'left', 'right', got 'lef'; did you mean 'left'"),
    ("step", 0.5, "step must be a whole number, got 0.5; round it"),
    ("step", math.nan, "step must be 0 to 2, got nan"), ("x", math.inf, "x must be -2 to 2, got inf"),
    ("x", "0.5", "x must be -2 to 2, got '0.5'; give a number"), ("x", [0.5], "give a number"),
    ("scale", "1", "scale must be 0.1 to 10, got '1'; give a number"), ("step", True, "give a number"),
    ("kind", None, "kind must be one of 'left', 'right', got None"), ("kind", True, "kind must be .*True"),
])  # fmt: skip
def test_values_beyond_a_control_are_refused_not_clipped(panel, name, value, said):
    ways = [lambda: some(**{name: value}), lambda: panel.row(name, [value])]
    if name in panel.controls:
        ways.append(lambda: setattr(panel.controls[name], "value", value))
    for way in ways:
        with pytest.raises(ValueError, match=said):
            way()
    assert panel.values == some().values


def test_a_panel_is_made_with_the_value_that_a_control_would_take():
    """A whole slider takes 2.0 as 2, whether it is made with it or moved to it."""
    panel = some(step=2.0, x=np.float32(1))
    assert [type(panel.values[name]) for name in ("step", "x")] == [int, float]
    assert panel.widget.shown["words"][-1] == "2"
    panel.close()


def test_a_stop_stays_a_stop_and_the_ends_are_stops():
    for knob in slider("n", 0, 0, 10, 2), slider("x", 0.0, -1.0, 1.0, 0.1), log_slider("τ", 1, 0.1, 10, 0.5):
        stops = [knob.stop(k) for k in range(knob.stops)]
        assert (stops[0], stops[-1]) == pytest.approx((knob.low, knob.high))
        assert [knob.number(stop) for stop in stops] == list(range(knob.stops))
        assert knob.stop(-5) == stops[0] and knob.stop(knob.stops + 5) == stops[-1]
        assert type(stops[1]) is (int if knob.label == "n" else float)


def test_a_minus_is_a_sign_of_its_own_before_numbers_alone():
    assert minus("-0.16, (-.5), x=-2, -inf, 1e-05") == "−0.16, (−.5), x=−2, −inf, 1e−05"
    assert minus(said := "Conv-4, 10-20, one-to-one - 3") == said


def test_where_the_plots_lie_and_words_are_wrapped():
    found = layout.boxes("a b; a c", 200, 100, widths=(3, 1))
    assert found["a"] == (0, 0, 138, 100) and found["c"][:2] == (154, 58)
    left, top, width, height = found["b"]
    assert left + width == 200 and top + height == 42
    assert layout.wrapped("one two three", 1000, 14) == ["one two three"]
    assert layout.wrapped("one two three", 60, 14) == ["one two", "three"]
    assert layout.wrapped("a\nb", 60, 14) == ["a", "b"] and layout.wrapped("", 60, 14) == []


def test_a_panel_that_is_closed_is_forgotten_and_a_cell_that_runs_again_lets_its_panels_go(monkeypatch):
    """As ipykernel has it: the cell's id in the message that runs it, and the number of the run."""
    registry = widget._instances
    before, panel = len(registry), some()
    panel._repr_mimebundle_()
    alive = [weakref.ref(panel), weakref.ref(panel.widget)]
    panel.close()
    del panel
    gc.collect()
    assert [one() for one in alive] == [None] * 2 and len(registry) == before
    shell = SimpleNamespace(execution_count=1, get_parent=lambda: {"metadata": {"cellId": "one"}})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    kept, each = some(), None
    for shell.execution_count in range(1, 4):
        kept._repr_mimebundle_()  # the same panel, shown anew, stays
        some()._repr_mimebundle_()  # two in one cell
        gc.collect()
        each = each or len(registry) - before
        assert len(registry) - before == each
    assert kept.widget.comm is not None
    front.shown_in.clear()


def test_a_saved_picture_keeps_the_colours_of_its_signs():
    """Beside a photograph of a thousand colours, a dot of a few pixels."""

    def draw(page):
        plot = page.plot("plot", (0, 8), (0, 8))
        many = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        plot.picture(many, (1, 1), (8, 8))
        for k, colour in enumerate(LINES):
            plot.dots([(k + 0.5, 0.5)], colour, size=6)
        return "dots below a photograph, from -1 to 8"

    picture = pictured(draw, "plot", (4, 4))
    kept = opened(picture.png).reshape(-1, 3)
    for colour in LINES:
        assert (kept == list(bytes.fromhex(colour[1:]))).all(1).sum() > 5
    bundle, _ = picture._repr_mimebundle_()
    assert bundle["text/plain"] == picture.alt == "dots below a photograph, from −1 to 8"


# Atlases


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
