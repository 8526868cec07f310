"""The Panel: sliders beside one picture, live where a kernel runs and a PNG with a sentence where none does.

An explorer says what stands still and what moves: its `build` draws the still part on a figure once and
returns the artists that move, with a function that moves them. The panel keeps the still part as pixels and
draws only the moving artists over it, so that an event costs a few milliseconds and never makes a new figure.
"""

import base64
import html
import io
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from math import log10
from typing import Any, NamedTuple

import ipywidgets as widgets
import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from setclr.checks import choice, number
from setclr.palette import VERMILION

DPI = 120
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "lines.linewidth": 2,
    "image.cmap": "cividis",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


class Drawing(NamedTuple):
    """What `build` returns."""

    artists: Sequence[Artist]  # those that move, in drawing order
    update: Callable[[dict], str]  # moves them to these values; returns the picture's sentence


class Picture:
    """A still image with its sentence: shown as a PNG, read as text."""

    def __init__(self, png: bytes, alt: str):
        self.png, self.alt = png, alt

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        width = Image.open(io.BytesIO(self.png)).width * 96 // DPI
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": width}}


class Panel:
    """Controls and a picture that follows them.

    Args:
        build: build(figure, compact) draws the still part on a (sub)figure and returns a `Drawing`; compact
            asks for a form that fits a third of a row.
        controls: ipywidgets by name; `values` are handed to the drawing's update.
        size: width and height of the picture in inches.
        initial: values that differ from the controls' own.
        row_height: height in inches of the row that `row` makes; a third more than the picture's by default.

    Raises:
        ValueError: `initial` names a control that does not exist, or a value that the control cannot take.

    Attributes:
        controls: dict of ipywidgets by name.
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
    ):
        self.build, self.controls = build, controls
        self.row_height = row_height or 1.35 * size[1]
        self.start = {name: control.value for name, control in controls.items()}
        for name, value in (initial or {}).items():
            choice("control", name, controls)
            controls[name].value = _within(name, controls[name], value)

        self.figure, drawing = _figure(size, lambda figure: build(figure, compact=False))
        self.artists, self._move = drawing
        for artist in self.artists:
            artist.set_animated(True)
        self.alt = self._move(self.values)
        self.figure.canvas.draw()
        self._still = self.figure.canvas.copy_from_bbox(self.figure.bbox)

        self._image = widgets.Image(
            format="png", layout=widgets.Layout(width="100%", max_width=f"{size[0]}in")
        )
        self._caption = widgets.HTML()
        self.update()
        for control in controls.values():
            control.observe(self._on_change, names="value")
        self.widget = widgets.VBox(
            [_control_rows(controls), self._reset_button(), self._image, self._caption]
        )
        self.widget.add_class("setclr-panel")

    @property
    def values(self) -> dict:
        return {name: control.value for name, control in self.controls.items()}

    def update(self) -> None:
        """Draw the picture for the present values."""
        self.alt = self._move(self.values)
        self._image.value = self.png(small=False)
        self._caption.value = (
            f'<p style="margin:0; opacity:.8" aria-live="polite">{html.escape(self.alt)}</p>'
        )

    def reset(self, *_) -> None:
        """Every control back to where the explorer has it: the paper's values where it has any."""
        for name, value in self.start.items():
            self.controls[name].value = value

    def png(self, small: bool = True) -> bytes:
        """The picture as it is now, drawn over the still part; small for keeping, else quick."""
        canvas = self.figure.canvas
        canvas.restore_region(self._still)
        for artist in self.artists:
            self.figure.draw_artist(artist)
        return _encode(canvas, small)

    def row(self, name: str, values: Iterable) -> Picture:
        """The panel at several values of one control, side by side in one still picture.

        Raises:
            ValueError: there is no control of that name, or it cannot take one of the values.
        """
        control = self.controls[choice("name", name, self.controls)]
        values = [_within(name, control, value) for value in values]
        sentences = []

        def columns(figure):
            for part, value in zip(figure.subfigures(1, len(values), squeeze=False)[0], values):
                part.suptitle(
                    f"{control.description} = {value if isinstance(value, str) else f'{value:g}'}",
                    fontsize=11,
                    weight="bold",
                )
                sentences.append(self.build(part, compact=True).update({**self.values, name: value}))

        figure, _ = _figure((3.3 * len(values), self.row_height), columns)
        figure.canvas.draw()
        return Picture(_encode(figure.canvas, small=True), " ".join(sentences))

    def _on_change(self, _) -> None:
        try:
            self.update()
        except Exception as error:
            self._caption.value = f'<p style="color:{VERMILION}">{html.escape(repr(error))}</p>'
            raise

    def _reset_button(self) -> widgets.Button:
        layout = widgets.Layout(width="auto", align_self="flex-start")
        button = widgets.Button(description="reset", icon="undo", layout=layout)
        button.tooltip = "back to the starting values, which are the paper's where it states any"
        button.on_click(self.reset)
        return button

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        still, metadata = Picture(self.png(), self.alt)._repr_mimebundle_()
        return {**self.widget._repr_mimebundle_(), **still}, metadata


def _within(name: str, control: widgets.ValueWidget, value):
    """The value if the control can take it; ValueError where ipywidgets would move it to the nearest end."""
    if not hasattr(control, "min"):
        return choice(name, value, control.options)
    low, high = control.min, control.max
    if isinstance(control, widgets.FloatLogSlider):
        low, high = control.base**low * (1 - 1e-9), control.base**high * (1 + 1e-9)
    number(name, value, least=low, most=high, hint="the slider ends there")
    return value


def still(draw: Callable[[Figure], str], size: tuple[float, float] = (9, 3.6)) -> Picture:
    """A picture without controls; `draw(figure)` draws it and returns the sentence that describes it."""
    figure, alt = _figure(size, draw)
    figure.canvas.draw()
    return Picture(_encode(figure.canvas, small=True), alt)


def log_slider(
    label: str,
    value: float,
    low: float,
    high: float,
    step: float = 0.05,
    marks: dict[float, str] | None = None,
) -> widgets.FloatLogSlider:
    """A slider for a temperature-like quantity, `low` to `high` in steps of `step` decades."""
    slider = widgets.FloatLogSlider(
        value=value, min=log10(low), max=log10(high), step=step, description=label, readout_format=".3g"
    )
    return _dress(
        slider,
        {(log10(at) - log10(low)) / (log10(high) - log10(low)): text for at, text in (marks or {}).items()},
    )


def slider(
    label: str, value: float, low: float, high: float, step: float, marks: dict[float, str] | None = None
) -> widgets.ValueWidget:
    """A slider for a quantity on a linear scale; whole numbers where all four are."""
    whole = all(isinstance(x, int) for x in (value, low, high, step))
    kind = widgets.IntSlider if whole else widgets.FloatSlider
    made = kind(
        value=value, min=low, max=high, step=step, description=label, readout_format="d" if whole else ".3g"
    )
    return _dress(made, {(at - low) / (high - low): text for at, text in (marks or {}).items()})


def options(label: str, names: Iterable[str], value: str | None = None) -> widgets.ToggleButtons:
    """A choice between a few names, all of them visible."""
    names = list(names)
    return widgets.ToggleButtons(
        options=names,
        value=value or names[0],
        description=label,
        style={"description_width": LABEL, "button_width": "auto"},
    )


LABEL, WIDTH = "12em", "35em"
BEFORE_TRACK, AFTER_TRACK = "calc(12em + 14px)", "82px"  # what JupyterLab leaves to either side of a track


def _dress(made: widgets.ValueWidget, marks: dict[float, str]) -> widgets.ValueWidget:
    made.style.description_width = LABEL
    made.layout.width = WIDTH
    made.marks = marks
    return made


def _control_rows(controls: dict) -> widgets.Widget:
    """The controls, wrapping beside each other, with a slider's marks as words under its track."""
    boxes = []
    for control in controls.values():
        marks = getattr(control, "marks", None)
        words = "".join(
            f'<span style="position:absolute; left:{100 * at:.1f}%; transform:translateX(-50%); '
            f'white-space:nowrap">▴ {html.escape(text)}</span>'
            for at, text in (marks or {}).items()
        )
        below = widgets.HTML(
            f'<div style="margin:0 {AFTER_TRACK} 0 {BEFORE_TRACK}; opacity:.75; line-height:1">'
            f'<div style="position:relative; height:1.1em; font-size:80%">{words}</div></div>',
            layout=widgets.Layout(width=WIDTH, margin="-6px 0 0 2px"),
        )
        boxes.append(widgets.VBox([control, below] if words else [control]))
    return widgets.Box(boxes, layout=widgets.Layout(flex_flow="row wrap"))


def _figure(size: tuple[float, float], draw: Callable):
    """A figure of that size in inches, without pyplot, and what `draw(figure)` returned."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=DPI)
        FigureCanvasAgg(figure)
        return figure, draw(figure)


def _encode(canvas: FigureCanvasAgg, small: bool) -> bytes:
    """The canvas as a PNG: small, in 256 colours, or quick, without Pillow's search for the best filter of
    every row, which takes three times as long."""
    pixels = np.asarray(canvas.buffer_rgba())
    if small:
        stream = io.BytesIO()
        image = Image.fromarray(pixels[..., :3]).quantize(256, dither=Image.Dither.NONE)
        image.save(stream, "png", optimize=True)
        return stream.getvalue()
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 4 * width), np.uint8)  # each begins with the number of its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits of red, green, blue and alpha
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
