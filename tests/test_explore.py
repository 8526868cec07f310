"""All panels: what moves a picture, what a scene holds, one output that is live and still."""

import ast
import base64
import io
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sweep import arrow, ends
from touchable import TOUCHABLE

from setclr_course import panels
from setclr_course.kit import layout, palette
from setclr_course.kit.panel import Panel
from setclr_course.kit.still import pictured

KINDS = {"line", "area", "dots", "segments", "arrows", "boxes", "cells", "photographs", "picture", "text"}


@cache
def made(name: str) -> Panel:
    return getattr(panels, name)()


@pytest.fixture(params=panels.__all__)
def panel(request) -> Panel:
    panel = made(request.param)
    panel.reset()
    return panel


def opened(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def stops(panel: Panel, name: str) -> list:
    """Ends and middle of a control in sight; of one that is folded away the farther end."""
    control = panel.controls[name]
    if list(panel.controls).index(name) < panel.told()["in_sight"]:
        return ends(control.knob)
    share = control.knob.number
    return [max(ends(control.knob), key=lambda value: abs(share(value) - share(control.value)))]


def test_every_control_moves_the_picture_or_its_sentence(panel):
    for name in (name for name, knob in panel.knobs.items() if knob.stops > 1):
        values = stops(panel, name)
        seen = [panel.seen({**panel.start, name: value}) for value in values]
        told = {(json.dumps(one.scene), one.sentence) for one in seen}
        if len(values) == 1:
            told.add((json.dumps(panel.scene), panel.alt))
        assert len(told) > 1, f"{name} moves nothing"


def test_a_scene_is_a_function_of_the_values(panel):
    """Every control to one of its ends, one after the other, and at once: the same scene."""
    for name in panel.controls:
        panel.controls[name].value = stops(panel, name)[-1]
    scene, sentence = panel.scene, panel.alt
    again = panel.seen(panel.values)
    assert again.scene == scene and again.sentence == sentence
    panel.reset()
    assert panel.values == panel.start


def test_a_scene_is_plain_data_of_marks_within_their_limits(panel):
    """JSON without nan; every link and handle points at what is there; every colour is of the palette."""
    for values in (panel.start, {name: stops(panel, name)[-1] for name in panel.controls}):
        scene = panel.seen(values).scene
        json.dumps(scene, allow_nan=False)
        plots = scene["plots"]
        assert {plot["name"] for plot in plots} == set(panel.told()["boxes"])
        assert {mark["kind"] for plot in plots for mark in plot["marks"]} <= KINDS
        for _, over, lit, _ in scene["links"]:
            for plot, mark, *numbers in (*over, *lit):
                marks = plots[plot]["marks"][mark]
                pieces = marks.get("shades") or marks.get("x") or [0]
                assert all(number < len(pieces) for number in numbers)
        for handle in scene["handles"].values():
            assert 0 <= handle["plot"] < len(plots) and set(handle["moves"]) <= set(panel.controls)
        hues = {hue for hue in vars(palette).values() if isinstance(hue, str)} | set(palette.FIELD)
        for hue in re.findall(r'"(#[0-9a-fA-F]{6})"', json.dumps(scene)):
            assert hue in hues or hue[1:3] == hue[3:5] == hue[5:7], f"{hue} is not of the palette"


def test_what_is_drawn_lies_on_its_plot(panel):
    """Dots, boxes and photographs lie within the limits, or at most as far beyond as they are large."""
    for name in panel.controls:
        for value in stops(panel, name):
            scene = panel.seen({**panel.start, name: value}).scene
            for plot in scene["plots"]:
                frame = layout.Frame(plot, *panel.told()["boxes"][plot["name"]][2:])
                for mark in plot["marks"]:
                    if mark["kind"] in ("dots", "photographs"):
                        points = zip(frame.x(mark["x"]), frame.y(mark["y"]))
                        room = 14 if mark["kind"] == "dots" else abs(mark["size"] * frame.sx)
                        for x, y in points:
                            inside = frame.left - room <= x <= frame.right + room
                            inside &= frame.top - room <= y <= frame.bottom + room
                            assert inside or np.isnan(x + y), f"{name} {value}: {plot['name']} {mark['kind']}"
                    if mark["kind"] == "boxes" and mark.get("colour"):
                        ends = np.array([frame.x(mark["u"]), frame.y(mark["v"])])
                        assert (ends[0] <= frame.right + 1).all() and (ends[1] >= frame.top - 1).all(), (
                            f"{name} {value}: a bar of {plot['name']} leaves it"
                        )


def test_a_handle_put_where_it_is_moves_nothing(panel):
    """Its way from the controls to the picture and back are the same way."""
    for name, handle in panel.handles.items():
        moved = handle.values(panel.knobs, *handle.point)
        assert {**panel.values, **moved} == pytest.approx(panel.values), name


def test_a_second_pull_keeps_what_the_first_one_did(panel):
    """A handle moves the controls that it names, and no other panel state is lost."""
    for name, handle in panel.handles.items():
        before = panel.values
        arrow(panel, name, 1, 1)
        moved = {control for control in before if panel.values[control] != before[control]}
        assert moved <= set(handle.moves), name
    panel.reset()


def test_the_browser_test_knows_which_panels_can_be_touched(panel, request):
    assert bool(panel.handles) == (request.node.callspec.params["panel"] in TOUCHABLE)


def test_it_is_live_and_still_in_one_output(panel):
    bundle, metadata = panel._repr_mimebundle_()
    assert "model_id" in bundle["application/vnd.jupyter.widget-view+json"]
    png = base64.b64decode(bundle["image/png"])
    width, height = panel.told()["size"]
    shape = pytest.approx((1.25 * height, 1.25 * width, 3), abs=1)
    assert opened(png).shape == shape and opened(png).std() > 10
    assert metadata["image/png"]["width"] == pytest.approx(width, abs=1) and len(png) < 300_000
    assert bundle["text/plain"] == panel.alt and panel.alt.endswith(".") and len(panel.alt) > 40
    panel.close()


def test_sliders_start_on_a_stop(panel):
    for name, knob in panel.knobs.items():
        assert knob.stop(knob.number(panel.start[name])) == pytest.approx(panel.start[name]), name


def test_row_shows_three_values(panel):
    name = next((name for name, knob in panel.knobs.items() if hasattr(knob, "low")), next(iter(panel.knobs)))
    picture = panel.row(name, ends(panel.knobs[name]))
    columns = np.array_split(opened(picture.png), len(picture.columns), axis=1)
    assert columns[0].shape[0] == columns[-1].shape[0] and picture.alt.count(".") >= len(columns) > 1
    assert not np.array_equal(columns[0], columns[-1][:, : columns[0].shape[1]])


def test_colours_are_of_the_palette_that_everybody_can_tell_apart():
    """Hues have names in palette.py; elsewhere stand only greys, and cividis for what is measured."""
    words = {
        (path.name, node.value)
        for path in Path(panels.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(words) > 500
    for name, word in words:
        for hue in re.findall(r"#[0-9a-fA-F]{6}\b", word):
            assert hue[1:3] == hue[3:5] == hue[5:7], f"{name}: {hue} is no grey"
        assert not re.fullmatch(r"tab:\w+|C\d|red|green|blue|orange|jet|rainbow|RdBu\w*|viridis", word), name


def test_every_colour_has_its_dark_one():
    css = (Path(layout.__file__).parent / "panel.css").read_text()
    known = set(re.findall(r"--setclr-([0-9a-f]{6}):", css))
    hues = {hue for hue in vars(palette).values() if isinstance(hue, str) and hue.startswith("#")}
    assert {hue[1:] for hue in hues | set(palette.FIELD)} - known <= {"56b4e9"}, "SKY is seen on both"


def test_still_pictures():
    def draw(page) -> str:
        page.plane("plot", (0, 1)).line([0, 1], [0, 1])
        return "A line."

    picture = pictured(draw, "plot", (3, 2))
    assert opened(picture.png).shape == (240, 360, 3)
    assert picture._repr_mimebundle_()[0]["text/plain"] == "A line."
