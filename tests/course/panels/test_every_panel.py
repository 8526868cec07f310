"""All panels, each swept once: what moves its picture, what a scene holds, one output, live and still."""

import ast
import base64
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweep import TOUCHABLE, opened

from setclr_course import panels
from setclr_course.kit import layout, palette
from setclr_course.kit.panel import Panel, Seen

HUES = {hue for hue in vars(palette).values() if isinstance(hue, str)} | set(palette.FIELD)


def grey(hue: str) -> bool:
    return hue[1:3] == hue[3:5] == hue[5:7]


def stops(panel: Panel, name: str) -> list:
    """Ends and middle of a control in sight; of one that is folded away the farther end."""
    knob, ends = panel.knobs[name], panel.controls[name].ends()
    if list(panel.knobs).index(name) < panel.to_json()["in_sight"]:
        return ends
    return [max(ends, key=lambda value: abs(knob.number(value) - knob.number(panel.start[name])))]


@cache
def made(name: str) -> Panel:
    return getattr(panels, name)()


def refuse(panel: Panel, seen: Seen, within: bool = True) -> str:
    """The scene as JSON, if it is plain data and all that it holds is known and, `within`, on its plot."""
    text, plots = json.dumps(seen.scene, allow_nan=False), seen.scene["plots"]
    assert seen.sentence.endswith(".") and not re.search(r"\bnan\b", seen.sentence)
    ways = panel.to_json().get("layouts", [panel.to_json()])
    boxes = next(way["boxes"] for way in ways if {plot["name"] for plot in plots} == set(way["boxes"]))
    for said in [seen.sentence, *re.findall(r'"([^"]*)"', text)]:
        assert not re.search(r"(^|[ (=])-\.?\d", said), f"a hyphen for a minus: {said}"
        assert not re.search(r"\de[+-]\d", said), f"a number as computers write it: {said}"
    for hue in re.findall(r'"(#[0-9a-fA-F]{6})"', text):
        assert hue in HUES or grey(hue), f"{hue} is not of the palette"
    for _, over, lit, _ in seen.scene["links"]:
        for plot, mark, *numbers in (*over, *lit):
            there = plots[plot]["marks"][mark]
            assert all(number < len(there.get("shades") or there.get("x") or [0]) for number in numbers)
    for plot in plots:
        frame = layout.Frame(plot, *boxes[plot["name"]][2:])
        for mark in plot["marks"]:
            assert mark["kind"] != "text" or mark["size"] in layout.SIZES
            if within:
                beyond(frame, mark, plot["name"])
    return text


def beyond(frame: layout.Frame, mark: dict[str, Any], where: str) -> None:
    """Dots, boxes and photographs lie within the limits, or at most as far beyond as they are large."""
    if mark["kind"] in ("dots", "photographs"):
        x, y = frame.x(mark["x"]), frame.y(mark["y"])
        room = 14 if mark["kind"] == "dots" else abs(mark["size"] * frame.sx)
        out = (x < frame.left - room) | (x > frame.right + room)
        out |= (y < frame.top - room) | (y > frame.bottom + room)  # what is nowhere is not out
        assert not out.any(), f"{mark['kind']} beyond {where}"
    if mark["kind"] == "boxes" and mark.get("colour"):
        last = frame.x(mark["u"]).max(initial=frame.left), frame.y(mark["v"]).min(initial=frame.bottom)
        assert last[0] <= frame.right + 1 and last[1] >= frame.top - 1, f"a bar leaves {where}"


@pytest.mark.parametrize("name", panels.__all__)
def test_all_controls_handles_and_clicks_move_a_plain_scene_that_is_a_function_of_the_values(name):
    panel = made(name)
    begin = panel.seen(panel.start)
    start = refuse(panel, begin), begin.sentence
    assert bool(panel.handles) == (name in TOUCHABLE) and len(begin.sentence) > 40
    for handle in panel.handles.values():
        moved = handle.values(panel.knobs, *handle.point)
        assert {**panel.start, **moved} == pytest.approx(panel.start), f"{handle.label} put where it is"
    for control, knob in panel.knobs.items():
        assert knob.stop(knob.number(panel.start[control])) == pytest.approx(panel.start[control])
        told = {start} if len(stops(panel, control)) == 1 else set()
        for value in stops(panel, control):
            seen = panel.seen({**panel.start, control: value})
            told.add((refuse(panel, seen), seen.sentence))
            for of, handle in panel.handles.items():
                if control in handle.moves and of in seen.handles:
                    follows(panel, of, seen, {**panel.start, control: value})
        assert len(told) > 1 or knob.stops == 1 or name == "playground", f"{control} moves nothing"
    for link in [link for link in begin.scene["links"] if link[3]][:: max(1, len(begin.scene["links"]) - 1)]:
        clicked(panel, begin, *link)

    last = {control: stops(panel, control)[-1] for control in panel.knobs}
    panel.on_event({"event": "", "values": last})
    assert panel.values == last
    refuse(panel, panel.seen(last), within=False)
    panel.reset()
    assert panel.values == panel.start and (json.dumps(panel.scene), panel.alt) == start


def follows(panel: Panel, of: str, seen: Seen, values: dict[str, Any]) -> None:
    """A handle that is dragged to where a control takes it moves that control there, or to a stop as good."""
    handle, point = panel.handles[of], seen.handles[of].point
    moved = handle.values(panel.knobs, *point)
    if any(panel.knobs[one].number(x) != panel.knobs[one].number(values[one]) for one, x in moved.items()):
        again = panel.seen({**panel.start, **moved}).handles[of].point
        np.testing.assert_allclose(again, point, rtol=1e-6, atol=1e-6, err_msg=f"{of}: {moved}, {values}")


def clicked(panel: Panel, begin: Seen, said: str, over: list, _: list, sets: dict[str, int]) -> None:
    """A click on a dot or a photograph takes there the handle of what it sets."""
    after = panel.seen({**panel.start, **{name: panel.knobs[name].stop(stop) for name, stop in sets.items()}})
    (plot, mark, *numbers), *_ = over
    for of, handle in after.handles.items():
        if numbers and set(handle.moves) == set(sets) and handle.plot == plot:
            there = begin.scene["plots"][plot]["marks"][mark]
            if there["kind"] in ("dots", "photographs") and handle.point != begin.handles[of].point:
                found = there["x"][numbers[0]], there["y"][numbers[0]]
                assert handle.point == pytest.approx(found, rel=1e-4, abs=1e-4), said


@pytest.mark.parametrize("name", panels.__all__)
def test_it_is_live_and_still_in_one_output_and_a_row_shows_each_value(name):
    panel = made(name)
    bundle, metadata = panel._repr_mimebundle_()
    panel.close()
    assert "model_id" in bundle["application/vnd.jupyter.widget-view+json"]
    png, (width, height) = base64.b64decode(bundle["image/png"]), panel.to_json()["size"]
    pixels = opened(png)
    assert pixels.shape == pytest.approx((1.25 * height, 1.25 * width, 3), abs=1) and pixels.std() > 10
    assert metadata["image/png"]["width"] == pytest.approx(width, abs=1) and len(png) < 300_000
    assert bundle["text/plain"] == panel.alt
    control = next((one for one, knob in panel.knobs.items() if hasattr(knob, "low")), [*panel.knobs][0])
    values = panel.controls[control].ends()
    row = panel.row(control, [values[0], values[-1]])
    one, two = ((json.dumps(column.scene), column.sentence) for column in row.columns)
    assert one != two and row.alt.count(".") >= 2
    if name == "beads":  # a row is one picture; the notebooks paint those of other panels
        left, right = np.array_split(opened(row.png), 2, axis=1)
        assert left.shape[0] == right.shape[0] and not np.array_equal(left, right[:, : left.shape[1]])


def test_colours_are_of_the_palette_that_everybody_can_tell_apart():
    """Hues have names in palette.py; elsewhere stand only greys, and one hue for shares."""
    words = {
        (path.name, node.value)
        for path in Path(panels.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(words) > 500
    for name, word in words:
        assert all(map(grey, re.findall(r"#[0-9a-fA-F]{6}\b", word))), f"{name}: {word} is no grey"
        assert not re.fullmatch(r"tab:\w+|C\d|red|green|blue|orange|jet|rainbow|RdBu\w*|viridis", word), name


def test_every_colour_has_its_dark_one():
    css, paint = ((Path(layout.__file__).parent / name).read_text() for name in ("panel.css", "paint.js"))
    assert f'"{palette.EMPTY}", "{palette.FULL}"' in paint, "shares are as blue in both painters"
    known = set(re.findall(r"--setclr-([0-9a-f]{6}):", css))
    assert {hue[1:] for hue in HUES if hue.startswith("#")} - known <= {"56b4e9"}, "SKY is seen on both"
