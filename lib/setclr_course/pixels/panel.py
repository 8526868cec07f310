"""The Panel: controls beside one picture, live where a kernel runs and a PNG with a sentence where none does.

A panel's file says what stands still and what moves: its `build` draws the still part on a figure once and
returns the artists that move, with a function that moves them. The panel keeps the still part as pixels and
draws only the moving artists over it, so that an event costs a few milliseconds and never makes a new figure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.artist import Artist

from setclr.checks import choice
from setclr_course.kit.png import Picture, drawn, encoded
from setclr_course.pixels.atlas import Atlas, atlas_of
from setclr_course.pixels.controls import nearest_stop, rows_of_controls, same_stop, to_first_slider, within
from setclr_course.pixels.front import Front
from setclr_course.pixels.handles import Handle, Link


class Drawing(NamedTuple):
    """What `build` returns."""

    artists: Sequence[Artist]  # those that move, in drawing order
    update: Callable[[dict], str]  # moves them to these values; returns the picture's sentence
    handles: Mapping[str, Handle] = {}  # what can be dragged, by name
    links: Callable[[], list[Link]] = list  # what lights up together, as it is after `update`


class Panel:
    """Controls and a picture that follows them, with points in it that can be dragged.

    Args:
        build: build(figure, compact) draws the still part on a (sub)figure and returns a `Drawing`; compact
            asks for a form that fits a third of a row.
        controls: ipywidgets by name; `values` are handed to the drawing's update.
        size: width and height of the picture in inches.
        initial: values that differ from the controls' own.
        row_height: height in inches of the row that `row` makes; a third more than the picture's by default.
        in_sight: this many controls, the first, are shown; the others are folded under "more knobs". None: up
            to the first slider.
        play: the slider that a button plays, step by step.

    Raises:
        ValueError: `initial` names a control that does not exist, or a value that the control cannot take.

    Attributes:
        controls: dict of ipywidgets by name.
        handles: dict of the points that can be dragged, by name.
        figure: the one matplotlib Figure.
        alt: the sentence that describes the picture now.
    """

    def __init__(
        self,
        build: Callable[..., Drawing],
        controls: dict[str, widgets.ValueWidget],
        size: tuple[float, float] = (9, 3.6),
        initial: dict | None = None,
        row_height: float | None = None,
        in_sight: int | None = None,
        play: str = "",
    ):
        self.build, self.controls, self.play = build, controls, play
        self.row_height = row_height or 1.35 * size[1]
        self.start = {name: control.value for name, control in controls.items()}
        for name, value in (initial or {}).items():
            choice("control", name, controls)
            controls[name].value = within(name, controls[name], value)

        self.figure, self._drawing = drawn(size, lambda figure: build(figure, compact=False))
        self.artists, self.handles = self._drawing.artists, dict(self._drawing.handles)
        for artist in self.artists:
            artist.set_animated(True)
        self.alt = self._drawing.update(self.values)
        self.figure.canvas.draw()
        self._still = self.figure.canvas.copy_from_bbox(self.figure.bbox)

        self.front = Front(
            size=[round(96 * side) for side in size],
            handles={name: handle.told(name) for name, handle in self.handles.items()},
            play=controls[play].description if play else "",
        )
        self._held = False
        self.update()
        self.front.observe(lambda change: self.on_event(change["new"]), names="moved")
        for control in controls.values():
            control.observe(self._on_change, names="value")
        self.in_sight = to_first_slider(controls) if in_sight is None else in_sight
        rows = rows_of_controls(controls, self.in_sight)
        self.widget = widgets.VBox([self.front, rows, self._reset_button()])
        self.widget.add_class("setclr-panel")

    @property
    def values(self) -> dict:
        return {name: control.value for name, control in self.controls.items()}

    def update(self, event: str = "") -> None:
        """Draw the picture for the present values, as the answer to an event of the front end."""
        values, failed = self.values, True
        try:
            self.alt = self._drawing.update(values)
            picture, sentence, failed = self.png(small=False), self.alt, False
        except Exception as error:
            picture, sentence = self.front.shown.get("picture", b""), repr(error)
            raise
        finally:
            self.front.shown = {
                "picture": picture,
                "event": event,
                "sentence": sentence,
                "failed": failed,
                "links": [] if failed else self._links(),
                **self._where(values),
            }

    def on_event(self, event: dict) -> None:
        """Move the controls as a reader did in the picture (`Front.moved`), and draw once."""
        with self._one_picture(event["event"]):
            if "play" in event:
                control = self.controls[self.play]
                ended = self._played(self.values) >= 1
                moves = {self.play: control.min if ended else nearest_stop(control, control.value, 1)}
            elif "right" in event:
                moves = self.handles[event["handle"]].nudged(self.controls, event["right"], event["up"])
            else:
                place = event["x"], event["y"]
                moves = self.handles[event["handle"]].values(self.controls, place)
            for name, value in moves.items():
                self.controls[name].value = value

    def reset(self, *_) -> None:
        """Every control back to where the panel's file has it: the paper's values where it has any."""
        with self._one_picture(""):
            for name, value in self.start.items():
                self.controls[name].value = value

    def png(self, small: bool = True) -> bytes:
        """The picture as it is now, drawn over the still part; small for keeping, else quick."""
        self._draw()
        return encoded(self.figure.canvas, small)

    def atlas(self) -> Atlas:
        """Pictures of some of its states, for a page without a kernel; see `atlas.py` for which."""
        try:
            controls, states, files = atlas_of(self.controls, self.handles, self._state)
        finally:
            self.update()
        names = list(self.controls)
        moves = {name: [names.index(c) for c in handle.controls] for name, handle in self.handles.items()}
        told = {
            "size": self.front.size,
            "handles": {name: way | {"moves": moves[name]} for name, way in self.front.handles.items()},
            "play": self.front.play,
            "plays": names.index(self.play) if self.play else None,
            "in_sight": self.in_sight,
            "controls": controls,
            "states": states,
        }
        return Atlas(told, files)

    def _state(self, values: dict) -> tuple[np.ndarray, dict[str, Any], list[dict]]:
        """The pixels at these values, what is told of them, and the links; the controls stay as they are."""
        sentence = self._drawing.update(values)
        self._draw()
        pixels = np.asarray(self.figure.canvas.buffer_rgba())
        return pixels, {"sentence": sentence, **self._where(values)}, self._links()

    def _where(self, values: dict) -> dict[str, Any]:
        """The places of the handles at these values, and how far the slider that plays has come."""
        places = {name: handle.place(values) for name, handle in self.handles.items()}
        return {"places": places, "played": self._played(values)}

    def _links(self) -> list[dict]:
        return [link.told() for link in self._drawing.links()]

    def _draw(self) -> None:
        self.figure.canvas.restore_region(self._still)
        for artist in self.artists:
            self.figure.draw_artist(artist)

    def row(self, name: str, values: Iterable) -> Picture:
        """The panel at several values of one control, side by side in one still picture.

        Raises:
            ValueError: there is no control of that name, or it cannot take one of the values.
        """
        control = self.controls[choice("name", name, self.controls)]
        values = [within(name, control, value) for value in values]
        sentences = []

        def columns(figure):
            for part, value in zip(figure.subfigures(1, len(values), squeeze=False)[0], values):
                part.suptitle(
                    f"{control.description} = {value if isinstance(value, str) else f'{value:g}'}",
                    fontsize=11,
                    weight="bold",
                )
                sentences.append(self.build(part, compact=True).update({**self.values, name: value}))

        figure, _ = drawn((3.3 * len(values), self.row_height), columns)
        figure.canvas.draw()
        return Picture(encoded(figure.canvas, small=True), *sentences)

    @contextmanager
    def _one_picture(self, event: str) -> Iterator[None]:
        """Controls that are set within draw nothing; one picture follows, which answers the event."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.update(event)

    def _on_change(self, change: dict) -> None:
        if not self._held and not same_stop(change["old"], change["new"]):
            self.update()

    def _played(self, values: dict) -> float:
        """How far the slider that plays has come, from 0 to 1."""
        if not self.play:
            return 0.0
        control = self.controls[self.play]
        return (values[self.play] - control.min) / (control.max - control.min)

    def _reset_button(self) -> widgets.Button:
        layout = widgets.Layout(width="auto", align_self="flex-start")
        button = widgets.Button(description="reset", icon="undo", layout=layout)
        button.tooltip = "back to the starting values, which are the paper's where it states any"
        button.on_click(self.reset)
        return button

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        still, metadata = Picture(self.png(), self.alt)._repr_mimebundle_()
        return {**self.widget._repr_mimebundle_(), **still}, metadata
