"""From a matplotlib figure to a PNG, with the sentence that says what it shows."""

import base64
import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
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
    return Picture(encoded(figure.canvas, small=True), alt)


def drawn(size: tuple[float, float], draw: Callable):
    """A figure of that size in inches, without pyplot, and what `draw(figure)` returned."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=DPI)
        FigureCanvasAgg(figure)
        return figure, draw(figure)


def encoded(canvas: FigureCanvasAgg, small: bool) -> bytes:
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
