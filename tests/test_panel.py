"""The kit: controls, handles and events move values; a scene is a function of the values; panels let go."""

import gc
import io
import json
import math
import subprocess
import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from cast_again import drawn
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sweep import ends

from setclr_course.kit import cast, front, inner, layout
from setclr_course.kit.controls import log_slider, options, slider
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
        right.dots([[values["scale"], 0.5]]).handle(
            "scale", (values["scale"], 0.5), along="x", label="the scale τ"
        )
        turn = 1.5 * np.array([np.cos(np.deg2rad(values["angle"])), np.sin(np.deg2rad(values["angle"]))])
        left.dots([turn]).handle("turn", turn, "angle", along=Circle((0, 0), 1.5))
        way = 2 * values["share"] - 1, 1.0
        left.dots([way]).handle("way", way, "share", along=Segment((-1, 1), (1, 1)), snap=[(0, 1)])
        left.dots([(0, 0)]).handle("kind", (0, 0), to=lambda x, y: ["left" if x < 0 else "right"])
        table = left.cells([[0.0, 1.0], [0.5, np.nan]], words=".1f")
        page.link("the first row", table[0], point, lit=[table[:, 1]], kind="right")

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


@pytest.mark.parametrize(
    "handle, point, moved",
    [
        ("point", (1.23, -0.68), {"x": 1.2, "y": -0.7}),
        ("height", (-1.0, 0.31), {"y": 0.3}),
        ("scale", (3.0, 0.9), {"scale": 10**0.5}),
        ("turn", (-1.0, -1.0), {"angle": -135}),
        ("turn", (-1.5, 0.01), {"angle": 175}),
        ("way", (0.42, -2.0), {"share": 0.7}),
        ("kind", (1.0, 1.0), {"kind": "right"}),
        ("point", (1.9, 2.4), {"x": 1.9, "y": 2.0}),
    ],
)
def test_a_handle_moves_its_controls_and_nothing_else(panel, handle, point, moved):
    expected = {**panel.values, **moved}
    panel.widget.moved = {"event": "a:1", "handle": handle, "x": point[0], "y": point[1]}
    assert panel.values == pytest.approx(expected)


def test_an_event_is_answered_by_one_scene_that_says_so(panel, shown):
    panel.widget.moved = {"event": "a:7", "handle": "point", "x": 1.0, "y": 1.0}
    (answer,) = shown
    assert (
        answer["event"] == "a:7" and answer["sentence"] == "The point is at (1, 1)." and not answer["failed"]
    )
    assert answer["scene"]["handles"]["point"]["at"] == [1.0, 1.0]
    assert answer["stops"][0] == 30 and answer["words"][0] == "1"
    panel.controls["x"].value = 0.5
    assert len(shown) == 2 and shown[1]["event"] == ""
    panel.widget.moved = {"event": "a:8", "handle": "point", "x": 0.5, "y": 1.0}  # moves nothing
    assert [answer["event"] for answer in shown] == ["a:7", "", "a:8"]


@pytest.mark.parametrize(
    "event, moved",
    [
        ({"set": {"x": -1, "y": 99}}, {"x": -2.0, "y": 2.0}),
        ({"set": {"scale": 20}}, {"scale": 10.0}),
        ({"set": {"x": 39}}, {"x": 2.0 - 0.1}),
        ({"set": {"kind": 1, "step": 2}}, {"kind": "right", "step": 2}),
    ],
)
def test_keys_knobs_and_links_go_by_stops(panel, event, moved):
    panel.on_event({"event": "", **event})
    assert panel.values == pytest.approx({**panel.start, **moved})


def test_reset_goes_to_where_the_page_opened_the_panel(shown):
    panel = some(x=0.5)
    panel.controls["y"].value = 1.0
    assert panel.widget.shown["sentence"] == "The point is at (0.5, 1)."  # it is opened here
    panel.on_event({"event": "", "button": "home"})
    panel.controls["kind"].value = "right"
    panel.reset()
    assert panel.values == {**some(x=0.5).values, "y": 1.0}


def test_a_failed_event_is_answered_with_its_error_and_reaches_the_cell(panel, shown):
    with pytest.raises(ZeroDivisionError, match="x is too large"):
        panel.on_event({"event": "d:1", "set": {"x": 40}})
    assert shown[-1]["event"] == "d:1" and shown[-1]["failed"] and "x is too large" in shown[-1]["sentence"]
    panel.controls["x"].value = 1.0
    assert not shown[-1]["failed"] and shown[-1]["sentence"] == "The point is at (1, 0)."


def test_an_interruption_stays_an_interruption(panel, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(some, "draw", interrupted)
    with pytest.raises(KeyboardInterrupt):
        panel.controls["x"].value = 1.0


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
    told = panel.told()
    assert told["size"] == (864, 346) and list(told["boxes"]) == ["left", "right"] and told["in_sight"] == 1
    assert told["knobs"]["x"] == {"label": "x", "stops": 41, "marks": []}
    assert told["knobs"]["kind"] == {"label": "kind", "stops": 2, "names": ["left", "right"]}
    handles = panel.scene["handles"]
    assert handles["scale"]["label"] == "the scale τ" and handles["scale"]["ends"] == (0.1, 10)
    assert handles["turn"]["way"] == ["circle", 0.0, 0.0, 1.5] and "ends" not in handles["turn"]
    assert handles["way"]["way"] == ["segment", -1, 1, 1, 1] and handles["way"]["snap"] == ((0.0, 1.0),)
    ((said, over, lit, sets),) = panel.scene["links"]
    table = [mark["kind"] for mark in panel.scene["plots"][0]["marks"]].index("cells")
    assert said == "the first row" and over == [[0, table, 0, 1], [0, 0]] and lit == [[0, table, 1, 3]]
    assert sets == {"kind": 1}


def test_a_table_is_dark_at_low_and_bright_at_high(panel):
    (cells,) = (mark for mark in panel.scene["plots"][0]["marks"] if mark["kind"] == "cells")
    assert cells["shades"] == [0, 39, 20, 0] and cells["words"] == ["0.0", "1.0", "0.5", "nan"]


def test_values_beyond_a_control_are_refused_not_clipped():
    with pytest.raises(ValueError, match="control must be one of 'x', .*got 'xx'"):
        some(xx=1)
    with pytest.raises(ValueError, match="x must be -2 to 2, got 2.5; the slider ends there"):
        some(x=2.5)
    with pytest.raises(
        ValueError, match="kind must be one of 'left', 'right', got 'lef'; did you mean 'left'"
    ):
        some(kind="lef")
    panel = some()
    with pytest.raises(ValueError, match="step must be a whole number, got 0.5"):
        panel.controls["step"].value = 0.5
    with pytest.raises(ValueError, match="step must be 0 to 2, got nan"):
        panel.controls["step"].value = math.nan
    with pytest.raises(ValueError, match="name must be one of"):
        panel.row("colour", [1])
    assert panel.values == some().values


KNOBS = [slider("n", 0, 0, 10, 2), slider("x", 0.0, -1.0, 1.0, 0.1), log_slider("τ", 1, 0.1, 10, 0.5)]


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.label)
def test_a_stop_stays_a_stop_and_the_ends_are_stops(knob):
    stops = [knob.stop(k) for k in range(knob.stops)]
    assert (stops[0], stops[-1]) == pytest.approx((knob.low, knob.high))
    assert [knob.number(stop) for stop in stops] == list(range(knob.stops))
    assert knob.stop(-5) == stops[0] and knob.stop(knob.stops + 5) == stops[-1]
    assert ends(knob)[0] == stops[0]
    assert type(stops[1]) is (int if knob.label == "n" else float)


def test_where_the_plots_lie():
    found = layout.boxes("a b; a c", 200, 100, widths=(3, 1))
    assert found["a"] == (0, 0, 138, 100) and found["c"][:2] == (154, 58)
    left, top, width, height = found["b"]
    assert left + width == 200 and top + height == 42


def test_words_are_wrapped_to_the_width():
    assert layout.wrapped("one two three", 1000, 14) == ["one two three"]
    assert layout.wrapped("one two three", 60, 14) == ["one two", "three"]
    assert layout.wrapped("a\nb", 60, 14) == ["a", "b"] and layout.wrapped("", 60, 14) == []


def test_photographs_are_those_that_augment_makes():
    assert np.abs(cast.kept().astype(int) - drawn()).max() <= 1
    assert cast.photographs().shape == (6, 64, 64, 3) and cast.two_views().shape == (2, 6, 64, 64, 3)


def test_the_kit_needs_no_torch():
    code = "import sys; import setclr_course.kit.panel, setclr_course.kit.cast; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def registry() -> dict:
    from ipywidgets.widgets import widget

    return widget._instances


def test_a_panel_that_is_closed_is_forgotten():
    before, alive = len(registry()), []
    for _ in range(5):
        panel = some()
        panel._repr_mimebundle_()
        alive += [weakref.ref(panel), weakref.ref(panel.widget)]
        panel.close()
        del panel
    gc.collect()
    assert [one() for one in alive] == [None] * 10 and len(registry()) == before


def test_a_cell_that_runs_again_lets_its_panels_go(monkeypatch):
    """As ipykernel has it: the cell's id in the message that runs it, and the number of the run."""
    shell = SimpleNamespace(execution_count=1, get_parent=lambda: {"metadata": {"cellId": "one"}})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    kept, before = some(), len(registry())
    kept._repr_mimebundle_()
    some()._repr_mimebundle_()  # two in one cell
    each = len(registry()) - before
    for run in range(2, 6):
        shell.execution_count = run
        kept._repr_mimebundle_()  # the same panel, shown anew, stays
        some()._repr_mimebundle_()
        gc.collect()
        assert len(registry()) - before == each
    assert kept.widget.comm is not None
    front.shown_in.clear()


@pytest.mark.parametrize("n", [2, 5, 6, 9])
def test_the_kits_inner_problems_are_the_librarys(n):
    import torch

    from setclr import inner as library

    numbers = np.random.default_rng(n)
    x, points, cost = numbers.normal(size=(4, n)), numbers.normal(size=(n + 1, 2)), numbers.random((n, n))
    t = torch.from_numpy
    close = {"atol": 1e-9, "rtol": 1e-9}
    np.testing.assert_allclose(inner.softmax(x, 0.3), (t(x) / 0.3).softmax(-1), **close)
    np.testing.assert_allclose(inner.sparsemax(x), library.sparsemax(t(x)), **close)
    np.testing.assert_allclose((x - inner.level(x, 0.4)[:, None]).clip(0).sum(1), 0.4, **close)
    for mine, theirs in zip(inner.sort_softly(x, 3.0), library.sorting_network(t(x), 3.0)):
        np.testing.assert_allclose(mine, theirs, **close)
    np.testing.assert_allclose(
        inner.top_probability(x, 1, 3.0), library.top_probability(t(x), 1, 3.0), **close
    )
    for rounds in (1, 7):
        coupling = library.sinkhorn(t(cost), 0.3, rounds).P
        np.testing.assert_allclose(inner.scaled(cost, 0.3, 2 * rounds), n * coupling, **close)
    K = library.kernel(t(points), t(points), "rbf", 1.5)
    np.testing.assert_allclose(inner.rbf(points, points, 1.5), K, **close)
    for C in (0.3, 100.0, np.inf):
        alpha = library.svm_dual(K, C=C, ridge=0.01).alpha[1:]
        np.testing.assert_allclose(inner.dual(K.numpy(), C, 0.01), alpha, **close)
    if n < 8:
        np.testing.assert_array_equal(
            inner.assignment(cost), library.linear_assignment(t(cost)).matrix.argmax(1)
        )


def test_a_saved_picture_keeps_the_colours_of_its_signs():
    """Beside a photograph of a thousand colours, a dot of a few pixels."""

    def draw(page):
        plot = page.plot("plot", (0, 8), (0, 8))
        many = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        plot.picture(many, (1, 1), (8, 8))
        for k, colour in enumerate(LINES):
            plot.dots([(k + 0.5, 0.5)], colour, size=6)
        return "dots below a photograph"

    picture = pictured(draw, "plot", (4, 4))
    kept = np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB")).reshape(-1, 3)
    for colour in LINES:
        assert (kept == list(bytes.fromhex(colour[1:]))).all(1).sum() > 5
