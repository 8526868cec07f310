"""The kernel's side of the front end: handles move controls, one event draws one picture."""

import numpy as np
import pytest
from matplotlib.axes import Axes

from setclr_course.kit.png import drawn
from setclr_course.pixels.controls import log_slider, nearest_stop, options, rows_of_controls, slider
from setclr_course.pixels.handles import (
    Circle,
    Handle,
    Link,
    Segment,
    box,
    cell,
    dot,
    line,
    place_of,
    point_at,
)
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.riders import riders

AXES: list[Axes] = []


def build(figure, compact):
    """A point of each kind, on two axes, one of them logarithmic."""
    left, right = figure.subplots(1, 2)
    left.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")
    right.set(xlim=(0.1, 10), ylim=(0, 1), xscale="log")
    point = left.plot([], [], "o")[0]
    AXES[:] = [left, right]

    def update(values):
        point.set_data([values["x"]], [values["y"]])
        return f"The point is at ({values['x']:g}, {values['y']:g})."

    handles = {
        "point": Handle(left, ("x", "y"), lambda v: (v["x"], v["y"])),
        "height": Handle(left, ("y",), lambda v: (0.5, v["y"]), along="y"),
        "scale": Handle(right, ("scale",), lambda v: (v["scale"], 0.5), along="x", label="the scale τ"),
        "turn": Handle(left, ("angle",), lambda v: on_circle(v["angle"]), along=Circle((0, 0), 1.5)),
        "way": Handle(left, ("share",), lambda v: (2 * v["share"] - 1, 1.0), along=Segment((-1, 1), (1, 1))),
        "kind": Handle(left, ("kind",), lambda v: (0, 0), to=lambda x, y: ["left" if x < 0 else "right"]),
    }
    links = [Link([dot(left, (1, 1)), cell(left, 0, 1)], [line(left, (0, 0), (1, 1))], "1 and 1")]
    return Drawing([point], update, handles, lambda: links)


def on_circle(angle: float) -> tuple[float, float]:
    return 1.5 * np.cos(np.deg2rad(angle)), 1.5 * np.sin(np.deg2rad(angle))


@pytest.fixture
def panel() -> Panel:
    controls = {
        "x": slider("x", 0.0, -2.0, 2.0, 0.1),
        "y": slider("y", 0.0, -2.0, 2.0, 0.1),
        "scale": log_slider("τ", 1, 0.1, 10, 0.1),
        "angle": slider("angle", 90, -180, 175, 5),
        "share": slider("share", 0.5, 0.0, 1.0, 0.05),
        "kind": options("kind", ["left", "right"]),
        "step": slider("step", 0, 0, 2, 1),
    }
    return Panel(build, controls, play="step")


def drag(panel: Panel, handle: str, axis: Axes, point: tuple[float, float], event: str = "a:1") -> None:
    """What the front end sends when a handle is put to a point of the axes."""
    x, y = place_of(axis, point)
    panel.front.moved = {"event": event, "handle": handle, "x": x, "y": y}


@pytest.fixture
def pictures(panel, monkeypatch):
    """The pictures that are sent, one after the other."""
    sent: list[dict] = []
    panel.front.observe(lambda change: sent.append(change["new"]), names="shown")
    return sent


def test_places_are_those_of_the_axes(panel):
    left, right = AXES
    for axis, point in ((left, (1.2, -0.7)), (right, (3.0, 0.25)), (right, (0.1, 1.0))):
        np.testing.assert_allclose(point_at(axis, place_of(axis, point)), point, rtol=1e-3, atol=1e-3)
    corner = left.bbox.x0 / left.figure.bbox.width, 1 - left.bbox.y1 / left.figure.bbox.height
    np.testing.assert_allclose(place_of(left, (-2, 2)), corner, atol=1e-5)


@pytest.mark.parametrize(
    "handle, axis, point, moved",
    [
        ("point", 0, (1.23, -0.68), {"x": 1.2, "y": -0.7}),
        ("height", 0, (-1.0, 0.31), {"y": 0.3}),
        ("scale", 1, (3.0, 0.9), {"scale": 10**0.5}),
        ("turn", 0, (-1.0, -1.0), {"angle": -135}),
        ("turn", 0, (-1.5, 0.01), {"angle": 175}),
        ("way", 0, (0.42, -2.0), {"share": 0.7}),
        ("kind", 0, (1.0, 1.0), {"kind": "right"}),
        ("point", 0, (2.4, 2.4), {"x": 2.0, "y": 2.0}),
    ],
)
def test_a_handle_moves_its_controls_and_nothing_else(panel, handle, axis, point, moved):
    expected = {**panel.values, **moved}
    drag(panel, handle, AXES[axis], point)
    assert panel.values == pytest.approx(expected)


def test_an_event_is_answered_by_one_picture_that_says_so(panel, pictures, monkeypatch):
    drawn = []
    draw = panel.figure.canvas.restore_region
    monkeypatch.setattr(panel.figure.canvas, "restore_region", lambda *a: (drawn.append(1), draw(*a))[1])
    drag(panel, "point", AXES[0], (1.0, 1.0), "a:7")
    assert len(drawn) == len(pictures) == 1
    (shown,) = pictures
    assert shown["event"] == "a:7" and shown["sentence"] == "The point is at (1, 1)." and not shown["failed"]
    np.testing.assert_allclose(shown["places"]["point"], place_of(AXES[0], (1, 1)), atol=1e-9)
    panel.controls["x"].value = 0.5
    assert len(pictures) == 2 and pictures[1]["event"] == ""


def test_an_event_that_moves_no_control_is_answered_too(panel, pictures):
    drag(panel, "point", AXES[0], (0.0, 0.0), "a:1")
    assert [shown["event"] for shown in pictures] == ["a:1"]


def test_arrow_keys_go_by_the_steps_of_the_sliders(panel):
    for handle, right, up, moved in (
        ("point", 1, -2, {"x": 0.1, "y": -0.2}),
        ("turn", 0, 1, {"angle": 95}),
        ("scale", 5, 0, {"scale": 10**0.5}),
        ("kind", 1, 0, {"kind": "right"}),
        ("kind", 9, 0, {"kind": "right"}),
    ):
        expected = {**panel.values, **moved}
        panel.front.moved = {"event": f"b:{handle}{right}", "handle": handle, "right": right, "up": up}
        assert panel.values == pytest.approx(expected)


def test_it_plays_to_the_end_and_then_from_the_start(panel, pictures):
    assert panel.front.play == "step"
    for number in range(4):
        panel.front.moved = {"event": f"c:{number}", "play": True}
    assert [shown["played"] for shown in pictures] == [0.5, 1.0, 0.0, 0.5]


def test_reset_draws_one_picture(panel, pictures):
    drag(panel, "point", AXES[0], (1.0, 1.0))
    panel.reset()
    assert len(pictures) == 2 and pictures[1]["sentence"] == "The point is at (0, 0)."


def test_a_failed_event_is_answered_with_its_error(panel, pictures):
    panel._drawing = panel._drawing._replace(update=lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        panel.on_event({"event": "d:1", "handle": "point", "x": 0.2, "y": 0.2})
    assert pictures[-1]["event"] == "d:1" and pictures[-1]["failed"]
    assert "division by zero" in pictures[-1]["sentence"]


def test_the_front_end_is_told_ways_labels_and_links(panel):
    left, _ = AXES
    told = panel.front.handles
    assert told["point"] == {"label": "point", "kind": "plane"}
    assert told["scale"] == {"label": "the scale τ", "kind": "x"}
    np.testing.assert_allclose(told["turn"]["centre"], place_of(left, (0, 0)))
    np.testing.assert_allclose(told["turn"]["right"], place_of(left, (1.5, 0)))
    np.testing.assert_allclose(told["way"]["ends"], [place_of(left, (-1, 1)), place_of(left, (1, 1))])
    (link,) = panel.front.shown["links"]
    assert link["text"] == "1 and 1"
    assert link["over"] == [["dot", *place_of(left, (1, 1))], box(left, (0.5, -0.5), (1.5, 0.5)).told()]
    assert link["lit"] == [["line", *place_of(left, (0, 0)), *place_of(left, (1, 1))]]


def test_stops_are_those_of_the_control():
    assert nearest_stop(slider("n", 0, 0, 10, 2), 3.2) == 4
    assert isinstance(nearest_stop(slider("n", 0, 0, 10, 2), 3.2), int)
    assert nearest_stop(slider("x", 0.0, -1.0, 1.0, 0.1), 0.26) == pytest.approx(0.3)
    assert nearest_stop(log_slider("τ", 1, 0.1, 10, 0.5), 2.0) == pytest.approx(10**0.5)
    assert nearest_stop(log_slider("τ", 1, 0.1, 10, 0.5), -1.0) == pytest.approx(0.1)
    assert nearest_stop(options("side", ["left", "right"]), "left", 1) == "right"


@pytest.mark.parametrize(("low", "high", "step"), [(-1.0, 1.0, 0.1), (-2.0, 2.0, 0.05), (0.1, 3.0, 0.07)])
def test_a_stop_stays_a_stop_and_the_ends_are_stops(low, high, step):
    control = slider("x", low, low, high, step)
    stops = [nearest_stop(control, x) for x in np.linspace(low - 1, high + 1, 997)]
    assert [nearest_stop(control, stop) for stop in stops] == stops
    assert stops[0] == low and stops[-1] == pytest.approx(high, abs=step)
    assert np.abs(np.array(stops) - np.linspace(low - 1, high + 1, 997).clip(low, high)).max() <= step


def test_the_browsers_rounding_of_a_value_draws_nothing():
    drawn = []

    def moving(figure, compact):
        return Drawing([figure.subplots().plot([])[0]], lambda values: drawn.append(values) or "A line.")

    panel = Panel(moving, {"x": slider("x", 0.8, -2.0, 2.0, 0.05)})
    before = len(drawn)
    panel.controls["x"].value = -2 + 56 * 0.05  # 0.7999999999999998
    assert len(drawn) == before
    panel.controls["x"].value = 0.85
    assert len(drawn) == before + 1


def test_controls_are_in_sight_up_to_the_first_slider():
    controls = {"kind": options("kind", ["left", "right"]), "x": slider("x", 0.0, -2.0, 2.0, 0.1)}
    rows, more = rows_of_controls(controls | {"y": slider("y", 0.0, -2.0, 2.0, 0.1)}, 2).children
    assert len(rows.children) == 2 and more.titles == ("more knobs",)
    assert len(rows_of_controls(controls, 2).children) == 1

    def moving(figure, compact):
        return Drawing([figure.subplots().plot([])[0]], lambda values: "A line.")

    shown = Panel(moving, {**controls, "y": slider("y", 0.0, -2.0, 2.0, 0.1)}).widget.children[1]
    assert [len(part.children) for part in shown.children] == [2, 1]


@pytest.mark.parametrize("downwards", [False, True])
def test_photographs_ride_upright_at_their_points(downwards):
    face = np.zeros((8, 8, 3), np.uint8)
    face[:4] = 255  # its upper half is white

    def square(figure):
        figure.set_facecolor("red")
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set_axis_off()
        axis.set(xlim=(0, 10), ylim=(10, 0) if downwards else (0, 10))
        riders(axis, face[None], 4, -2).move(np.array([[5.0, 2.0]]))

    figure, _ = drawn((1, 1), square)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    seen = (pixels == pixels[..., :1]).all(-1)  # grey: the photograph
    rows, columns = seen.nonzero()
    side = figure.dpi / 10
    middle = (2 if downwards else 8) * side, 5 * side
    np.testing.assert_allclose((rows.mean() + 0.5, columns.mean() + 0.5), middle, atol=1.5)
    np.testing.assert_allclose((np.ptp(rows) + 1, np.ptp(columns) + 1), 4 * side, atol=2)
    inside = columns == round(middle[1])
    above = rows[inside] < middle[0]
    assert (
        pixels[rows, columns][inside][above].mean() > 220 > 35 > pixels[rows, columns][inside][~above].mean()
    )
