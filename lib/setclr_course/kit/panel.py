"""The Panel: a picture and the controls that it follows. It is a class of three methods, its picture a scene.

class shares(Panel):
    knobs = {"temperature": log_slider("temperature τ", 0.5, 0.05, 5)}

    def solve(self, values): ...            # what the picture shows, in numpy
    def draw(self, page, values, now): ...  # the whole picture, from nothing
    def say(self, values, now): ...         # the sentence below it
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from setclr.checks import choice
from setclr_course.kit import layout
from setclr_course.kit.atlas import Atlas, atlas_of, told_of_twin
from setclr_course.kit.cast import NAMES
from setclr_course.kit.controls import Control, Knob, Slider, log_slider, minus, options, slider
from setclr_course.kit.front import Front, address, both
from setclr_course.kit.handles import Handle
from setclr_course.kit.scene import Mark, Page, Piece, Plot
from setclr_course.kit.still import HEADING, Column, Picture

# What panels are made of: their files have it from here.
__all__ = ["Mark", "Page", "Panel", "Piece", "Plot", "Slider", "log_slider", "options", "slider"]

COLUMN = 317  # pixels across of each picture in a row


def whole_names(knobs: Iterable[Knob]) -> str:
    """What these are called; those of several photographs have one name together."""
    labels = [knob.label for knob in knobs]
    named = [re.sub(rf"\b({'|'.join(NAMES)})\b( [ab12])?", "each photograph", label) for label in labels]
    return " · ".join(dict.fromkeys(b if named.count(b) > 1 else a for a, b in zip(labels, named)))


class Seen(NamedTuple):
    """A panel at some values."""

    scene: dict[str, Any]
    handles: dict[str, Handle]
    sentence: str
    pictures: dict[str, np.ndarray]


class Panel:
    """Controls and a picture that follows them, with points in it that can be dragged.

    Args:
        initial: values that differ from the knobs' own. *Reset* goes back to where the controls stand when
            the panel is first shown.

    Raises:
        ValueError: `initial` names a control that does not exist, or a value that the control cannot take.

    Attributes:
        controls: dict of `Control` by name.
        values: their values.
        scene: the picture as it is now, as data.
        handles: dict of the points that can be dragged, by name.
        alt: the sentence that describes the picture now.
        still: the picture as it is now, drawn by matplotlib.
    """

    size: tuple[float, float] = (9, 3.6)
    """Width and height of the picture in inches of 96 pixels."""
    least: float = 0.65
    """Of this size. Narrower, letters would meet: plots stand below one another; nor is it flatter."""
    flat: float = 0.5
    """How much of their height these keep, so that they can be seen at once."""
    mosaic: str = "plot"
    """The plots' names as they stand: "ring lists; ring fits" is one beside two."""
    widths: Sequence[float] = ()
    heights: Sequence[float] = ()
    """Of the mosaic's columns and rows, in shares; all the same where nothing is said."""
    row_mosaic: str = ""
    """Which plots a picture in a `row` has; "" for all."""
    row_height: float = 3.6
    knobs: Mapping[str, Knob] = {}
    in_sight: int | None = None
    """This many controls, the first, are shown; the others are folded under "more knobs". None: up to the
    first slider."""
    play: str = ""
    """The slider that a button plays, step by step."""
    buttons: Mapping[str, str] = {}
    """Buttons by label, each with what it does in words; `pressed` says what they move."""
    words: Mapping[str, str] = {}
    """What its twin says of it besides, by name."""
    also: Sequence[Mapping[str, Any]] = ()
    """States that a text or an exercise asks for, for the site's atlas: what differs from the start."""

    def __init__(self, **initial: Any):
        for name, value in initial.items():
            initial[name] = self.knobs[choice("control", name, self.knobs)].taken(name, value)
        self.controls = {name: Control(self, name, knob) for name, knob in self.knobs.items()}
        self.start = self.values = {name: knob.start for name, knob in self.knobs.items()} | initial
        self._front: Front | None = None
        self.scene, self.handles, self.alt, self.pictures = self.seen(self.values)

    def solve(self, values: dict[str, Any]) -> Any:
        """Everything that the picture shows, computed in numpy."""

    def draw(self, page: Page, values: dict[str, Any], now: Any) -> None:
        """The whole picture at these values, onto an empty page."""

    def say(self, values: dict[str, Any], now: Any) -> str:
        """The sentence below the picture, which is its alt text."""
        raise NotImplementedError

    def pressed(self, button: str, values: dict[str, Any]) -> dict[str, Any]:
        """What the controls become when that button is pressed."""
        raise NotImplementedError

    def seen(self, values: dict[str, Any], row: bool = False) -> Seen:
        """The panel at these values; its controls stay where they are."""
        now = self.solve(values)
        mosaic = (row and self.row_mosaic) or self.mosaic
        page = Page(mosaic.replace(";", " ").split(), row)
        self.draw(page, values, now)
        return Seen(page.to_json(self.knobs), page.handles, minus(self.say(values, now)), page.pictures)

    @property
    def still(self) -> Picture:
        """The panel as it is now, without controls."""
        told = self.to_json()
        return Picture([Column(self.scene, self.alt)], told["size"], told["boxes"], self.pictures)

    @property
    def widget(self) -> Front:
        """The panel in the browser; made when it is first asked for, and anew when it has been closed."""
        if self._front is None or self._front.comm is None:
            self.start = self.values
            self._front = Front(told=self.to_json() | told_of_twin(self), _dom_classes=["setclr-panel"])
            self._front.observe(lambda change: self.on_event(change["new"]), "moved")
            self._show()
        return self._front

    def close(self) -> None:
        """Let go of what the panel has in the browser."""
        if self._front is not None:
            self._front.close()

    def to_json(self) -> dict[str, Any]:
        """What the front end knows of the panel, at whatever values."""
        size = round(96 * self.size[0]), round(96 * self.size[1])
        sliders = [place for place, knob in enumerate(self.knobs.values()) if isinstance(knob, Slider)]
        in_sight = 1 + (sliders or [0])[0] if self.in_sight is None else self.in_sight
        return {
            "size": size, "boxes": layout.boxes(self.mosaic, *size, self.widths, self.heights),
            "least": self.least, "flat": self.flat,
            "knobs": {name: knob.to_json() for name, knob in self.knobs.items()},
            "in_sight": in_sight, "more": whole_names([*self.knobs.values()][in_sight:]),
            "play": self.play, "buttons": dict(self.buttons),
        }  # fmt: skip

    def on_event(self, event: dict[str, Any]) -> None:
        """Move the controls as a reader did in the browser (`Front.moved`), and show what is seen then."""
        try:
            self.values = {**self.values, **self.moves(event, self.values)}
            self.scene, self.handles, self.alt, self.pictures = self.seen(self.values)
        except Exception as error:
            self._show(event["event"], repr(error))
            raise
        self._show(event["event"])

    def moves(self, event: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """What the controls become by an event."""
        if "set" in event:
            return {name: self.knobs[name].stop(stop) for name, stop in event["set"].items()}
        if "handle" in event:
            return self.handles[event["handle"]].values(self.knobs, event["x"], event["y"])
        if "button" in event:
            return self.pressed(event["button"], values)
        if "values" in event:
            return {name: self.knobs[name].taken(name, value) for name, value in event["values"].items()}
        return self.start

    def _show(self, event: str = "", failure: str = "") -> None:
        if self._front is None:
            return
        known = self._front.pictures
        self._front.pictures = {name: known.get(name) or address(one) for name, one in self.pictures.items()}
        self._front.shown = {
            "scene": self.scene, "sentence": failure or self.alt, "failed": bool(failure), "event": event,
            "values": list(self.values.values()),
            "stops": [self.knobs[name].number(value) for name, value in self.values.items()],
            "words": [self.knobs[name].read(value) for name, value in self.values.items()],
        }  # fmt: skip

    def reset(self) -> None:
        """Every control back to where the panel was opened."""
        self.on_event({"event": "", "reset": True})

    def row(self, name: str, values: Iterable[Any]) -> Picture:
        """The panel at several values of one control, still and side by side.

        Raises:
            ValueError: there is no control of that name, or it cannot take one of the values.
        """
        knob = self.knobs[choice("name", name, self.knobs)]
        columns: list[Column] = []
        pictures: dict[str, np.ndarray] = {}
        for value in [knob.taken(name, value) for value in values]:
            seen = self.seen({**self.values, name: value}, row=True)
            columns.append(Column(seen.scene, seen.sentence, f"{knob.label} = {knob.read(value)}"))
            pictures |= seen.pictures
        size = COLUMN, 96 * self.row_height - HEADING
        shares = ((), ()) if self.row_mosaic else (self.widths, self.heights)
        places = layout.boxes(self.row_mosaic or self.mosaic, *size, *shares)
        return Picture(columns, size, places, pictures, HEADING)

    def atlas(self) -> Atlas:
        """Scenes of some of its states, for a page without a kernel; see `atlas.py` for which."""
        return atlas_of(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return both(self.widget, self.still.saved)
