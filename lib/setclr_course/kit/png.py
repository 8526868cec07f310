"""From a matplotlib figure to a PNG, with the sentence that says what it shows."""

import base64
import io
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

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


class Picture:
    """A still image with its sentence, or with one for each of its columns: shown as a PNG, read as text."""

    def __init__(self, png: bytes, *sentences: str):
        self.png, self.sentences, self.alt = png, sentences, " ".join(sentences)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        width = Image.open(io.BytesIO(self.png)).width * 96 // DPI
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": width}}


def still(draw: Callable[[Figure], str], size: tuple[float, float] = (9, 3.6)) -> Picture:
    """A picture without controls; `draw(figure)` draws it and returns the sentence that describes it."""
    figure, alt = drawn(size, draw)
    figure.canvas.draw()
    return Picture(encoded(figure.canvas), alt)


def drawn(size: tuple[float, float], draw: Callable):
    """A figure of that size in inches, without pyplot, and what `draw(figure)` returned."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=DPI)
        FigureCanvasAgg(figure)
        return figure, draw(figure)


def encoded(canvas: FigureCanvasAgg) -> bytes:
    """The canvas as a PNG of 256 colours."""
    pixels = np.asarray(canvas.buffer_rgba())
    stream = io.BytesIO()
    image = Image.fromarray(pixels[..., :3]).quantize(256, dither=Image.Dither.NONE)
    image.save(stream, "png", optimize=True)
    return stream.getvalue()


def bare(axis: Axes) -> None:
    """An axes without frame and ticks."""
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
