"""What is written in Python and again in JavaScript: the painters, and the panels that have a twin.

SVG and PNG show the same marks at the same places, letters are read at every width, and a twin's scenes are
its panel's at 2,000 random states.
"""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from in_browser import IMPORT, OPEN, crowded, differences, opened, state
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from playwright.sync_api import expect

from setclr_course import panels
from setclr_course.kit.atlas import told_of_twin
from setclr_course.kit.controls import slider
from setclr_course.kit.front import FOLDER, joined
from setclr_course.kit.layout import Frame
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Painter

pytestmark = pytest.mark.browser
MARGIN = 16  # of the page
SIZES = {"phone": (390, 844), "controls just beside": (536, 900), "JupyterLab at 900 px": (580, 900),
         "tablet": (800, 900), "wide": (1400, 900)}  # fmt: skip
MARKS = """
() => [...document.querySelectorAll(".setclr-plot")].map((plot) => {
  const [left, top] = [parseFloat(plot.style.left), parseFloat(plot.style.top)];
  return [...plot.querySelectorAll("g[data-kind]")].map((group) => {
    const box = group.getBBox();
    return [group.dataset.kind, left + box.x, top + box.y, box.width, box.height, group.children.length];
  });
})
"""


class every_mark(Panel):
    """All kinds of marks, on plots of all kinds."""

    size, mosaic, widths = (9, 5), "a b; a c", (1, 1.3)
    knobs = {"x": slider("x", 0.3, 0.0, 1.0, 0.1)}

    def draw(self, page: Page, values: dict, now: None) -> None:
        x = values["x"]
        a = page.plane("a", (-1, 1), (1, -2), "a plane that points downwards")
        a.dots([(x, 0), (0, 0.5), (np.nan, 0)], sign="★", size=18)
        a.photographs([(x, -0.5), (-0.5, x)], np.zeros((2, 4, 4, 3), np.uint8), 0.3, "bottom", up=6)
        a.picture(np.zeros((2, 3, 3), np.uint8), (-0.9, -1.9), (-0.3, -1.5))
        a.area([[(0, 0), (1, 0), (1, 1)], [(0.5, 0.2), (0.8, 0.2), (0.8, 0.5)]], "#cccccc")
        b = page.plot("b", (0.1, 10), (0, 5), "logarithmic", "x", "y", (0.1, 1, 10), (0, 5), log="x")
        b.line([0.1, 1, np.nan, 3, 10], [0, 5 * x, 2, 1, 4], dash="dash")
        b.segments([(0.2, 1), (1, 2)], [(2, 4), (5, 1)], width=[1, 4])
        b.arrows([(0.2, 4), (1, 4)], [(0.5, 3), (1, 4)])
        b.boxes([(0.3, 0.5)], [(3, 2)], edge="#222222")
        c = page.table("c", 2, 3, beside=("one", "two"), below="abc", turn=50)
        c.cells(np.arange(6).reshape(2, 3) / 6, words=".1f")
        c.frames([(0, 1), (1, 2)])
        a.text(-0.9, 0, "word\nin two lines", anchor="start", right=3, up=4)

    def say(self, values: dict, now: None) -> str:
        return f"x is {values['x']:g}."


def painted(panel: Panel) -> list[list[np.ndarray]]:
    """What the PNG shows, as MARKS tells it of the SVG: plot by plot the extent of each mark."""
    width, height = panel.to_json()["size"]
    canvas = FigureCanvasAgg(Figure((width / 96, height / 96), dpi=120))
    axis = canvas.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    renderer = canvas.get_renderer()
    found = []
    for plot in panel.scene["plots"]:
        x, y, *size = panel.to_json()["boxes"][plot["name"]]
        painter = Painter(axis, Frame(plot, *size, (x, y)), panel.pictures)
        marks = []
        for mark in plot["marks"]:
            made = [artist for artist in painter.pieces(mark) if not hasattr(artist, "get_text")]
            painter.put(made)
            boxes = [box for artist in made if np.isfinite(box := artist.get_window_extent(renderer)).all()]
            one = Bbox.union(boxes) if boxes else Bbox.null()
            marks.append(np.array([one.x0, 1.25 * height - one.y1, one.width, one.height]) / 1.25)
        found.append(marks)
    return found


@pytest.mark.parametrize("name", ["every mark", *panels.__all__])
def test_both_painters_agree_and_letters_are_read_at_every_width(browser, name):
    panel = every_mark() if name == "every mark" else getattr(panels, name)()
    page = opened(browser, panel, 1400, height=1500)  # no picture is higher
    shown = page.evaluate(MARKS)
    for plot, one, other in zip(panel.scene["plots"], shown, painted(panel), strict=True):
        for mark, (kind, *svg, pieces), png in zip(plot["marks"], one, other, strict=True):
            assert kind == mark["kind"]
            if kind != "text" and pieces and np.isfinite(png).all():
                beyond = 3 * (kind == "cells")  # numbers may reach beyond a cell
                near = 1 + np.max(mark.get("width", 1)) / 2 + beyond
                alike = np.abs(svg - png) <= near * np.array([1, 1, 2, 2])
                assert alike.all(), f"{plot['name']}, {kind}: {svg}, {png}"
    least = round(1.01 * panel.least * panel.to_json()["size"][0]) + MARGIN
    for where, (width, height) in (SIZES | {"plots nearly below one another": (least, 900)}).items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")
        assert not crowded(page), where
        parts = (page.locator(f".setclr-{part}").bounding_box() for part in ("scene", "stage", "side"))
        whole, stage, side = parts  # sentence, picture and controls; picture; controls
        assert stage["height"] <= 0.7 * height + 1 or panel.flat > 0.7, where  # 18 names need more, or wires
        assert whole["height"] <= 0.77 * height or panel.flat > 0.7 or width < 800, where
        assert side["y"] + side["height"] <= height, f"{where}: the controls are not in sight"
    page.evaluate(OPEN, [joined(), {"told": panel.widget.told, **state(panel)}])  # a second one beside it
    names = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert not page.errors and len(set(names)) == len(names)
    page.close()


class long_titles(Panel):
    """A flat plane beside a plot, and titles that need two lines on a phone."""

    size, mosaic = (9, 3), "plane plot"

    def draw(self, page: Page, values: dict, now: None) -> None:
        page.plane("plane", (-2, 2), (-1, 1), 6 * "a title ")
        page.plot("plot", (0, 1), (0, 1), 6 * "a title ")

    def say(self, values: dict, now: None) -> str:
        return "Two plots."


@pytest.mark.parametrize("width", [390, 1000])
def test_plots_have_the_height_that_they_need_and_titles_end_where_they_do(browser, width):
    """A plane has no room above and below; a second line of a title is no loss to its plot."""
    page = opened(browser, long_titles(), width)
    found = page.evaluate("""() => [...document.querySelectorAll(".setclr-plot")].map((plot) => [
        plot.clientHeight, plot.querySelector("clipPath rect").height.baseVal.value,
        plot.getBoundingClientRect().right - plot.querySelector("text").getBoundingClientRect().right])""")
    (high, plane, _), (_, plot, _) = found
    made = Frame(long_titles().scene["plots"][1], 424, 288)
    assert (width == 1000 or high - plane < 60) and abs(plot - (made.bottom - made.top)) < 1
    assert min(right for *_, right in found) > -1
    page.close()


def test_a_number_of_the_sentence_has_its_colour_in_the_picture(browser):
    page = opened(browser, panels.water())
    said = page.locator(".setclr-sentence b", has_text="0.60")
    assert said.get_attribute("style") == "--ink: var(--setclr-0072b2, #0072b2);"
    page.close()


# The scenes painted over one another, against each painted alone: those that differ.
OVER = """(scenes) => {
  const { Frame, paint, svg } = window.module;
  const root = () => Object.assign(svg("svg", {}), { clip: "the same" });
  const over = root();
  return scenes.flatMap((scene) => scene.plots).filter((plot) => {
    const alone = root();
    for (const each of [over, alone]) paint(each, plot, new Frame(plot, 400, 300), (name) => name);
    return !over.isEqualNode(alone);
  });
}"""


@pytest.mark.parametrize("name", ["every mark", *panels.__all__])
def test_a_plot_painted_over_another_is_as_one_painted_alone(browser, name):
    panel = every_mark() if name == "every mark" else getattr(panels, name)()
    scenes = [panel.scene]
    for knob, about in panel.knobs.items():
        for stop in (0, about.stops - 1):
            panel.on_event({"event": "", "set": {knob: stop}})
            scenes.append(panel.scene)
    page = browser.new_page()
    page.evaluate(IMPORT, joined())
    assert not page.evaluate(OVER, scenes)
    page.close()


# Twins


TWINS = sorted({path.stem for path in Path(panels.__file__).parent.glob("*/*.js")} & set(dir(panels)))
STATES = 2000
# As text, which leaves the browser sooner than objects. In JSON a number that is not finite would be null.
ANSWERED = """([told, events]) => {
  window.twin ??= new window.module.Twin({ ...JSON.parse(told), twin: window.module });
  const plain = (_, value) => (typeof value == "number" && !isFinite(value) ? `${value}` : value);
  return JSON.parse(events).map((event) => JSON.stringify(window.twin.answered(event), plain));
}"""


def some_event(panel: Panel, by: random.Random, kind: str) -> dict:
    """All controls set, a button pressed, or a handle dragged, also out of its plot."""
    if kind == "set":
        return {"set": {name: by.randrange(knob.stops) for name, knob in panel.knobs.items()}}
    if kind == "press" and panel.buttons:
        return {"button": by.choice([*panel.buttons])}
    name, handle = by.choice([*panel.handles.items()])
    x, y = (at + by.uniform(-2, 2) for at in handle.point)
    return {"handle": name, "x": x, "y": y}


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_answers_whatever_the_reader_does_as_the_panel_does(browser, name):
    """The controls stand where the panel has them, and the scene is the panel's there."""
    panel, by, page = getattr(panels, name)(), random.Random(0), browser.new_page()
    told, known = panel.atlas().told, panel.pictures.keys()
    page.evaluate(IMPORT, told_of_twin(panel)["twin"] + (FOLDER / "twin.js").read_text())
    for _ in range(2 if name == "playground" else STATES // 100):  # its losses have a test of their own
        events, mine = [], []
        for kind in ["set", "drag", "set", "press"] * 25:
            events.append(some_event(panel, by, kind))
            panel.on_event({"event": "", **events[-1]})
            assert panel.pictures.keys() <= known  # the browser has those of its first scene
            mine.append((panel.values, panel.alt, panel.scene))
        found = page.evaluate(ANSWERED, [json.dumps(told), json.dumps(events)])
        for event, (values, sentence, scene), twin in zip(events, mine, map(json.loads, found), strict=True):
            assert twin["stops"] == [panel.knobs[one].number(value) for one, value in values.items()], event
            assert twin["sentence"] == sentence, values
            assert not (bad := differences(scene, twin["scene"])), (values, bad[:5])
    page.close()


@pytest.mark.parametrize("name", TWINS)
def test_a_handle_goes_with_the_pointer(browser, name):
    panel = getattr(panels, name)()
    page = opened(browser, panel, 1400, height=1500)  # where a pixel is a pixel of the scene
    *_, (of, handle) = panel.handles.items()
    plot, grip = panel.scene["plots"][handle.plot], page.locator(f'[data-name="{of}"]')
    frame = Frame(plot, *panel.to_json()["boxes"][plot["name"]][2:])
    to = handle.point[0] - 70 / frame.sx, handle.point[1] + 50 / frame.sy
    values = panel.values | handle.values(panel.knobs, *to)
    grip.hover()
    page.mouse.down()
    box = grip.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 - 70, box["y"] + box["height"] / 2 - 50)
    read = [panel.knobs[one].read(value) for one, value in values.items() if not isinstance(value, str)]
    expect(page.locator("output")).to_have_text(read)
    assert values != panel.start and not page.errors
    page.close()
