"""Paints a scene with matplotlib as paint.js does with SVG: the PNG of a page, of a slide, of a row."""

import base64
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from PIL import Image

from setclr_course.kit.layout import GAP, LINE, SIZES, Frame, boxes
from setclr_course.kit.palette import DUSK, GREY, INK, LINES, MIST, PALE, WHITE
from setclr_course.kit.scene import SHADES, Page

DPI = 120
HEADING = 22  # pixels above a picture in a row
PER = 72 / 96  # points of a pixel of the page
CIVIDIS = matplotlib.colormaps["cividis"].resampled(SHADES)(range(SHADES))
DASHES = {"dash": (0, (4, 2)), "dot": (0, (1, 1.6))}
ANCHORS = {"start": "left", "middle": "center", "end": "right"}
RISES = {"top": "top", "middle": "center_baseline", "bottom": "bottom"}
ARM = np.array([0.36 + 0.36j, 0.36 + 1j, -0.36 + 1j])  # of a plus sign
PLUS = np.outer([1, 1j, -1, -1j], ARM).ravel()
TURNED = PLUS * np.sqrt(1j)
SIGNS = {
    "●": Path.unit_regular_polygon(48).vertices,
    "■": [(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
    "★": Path.unit_regular_star(5, 0.42).vertices,
    "✚": np.stack([PLUS.real, PLUS.imag], 1),
    "✕": np.stack([TURNED.real, TURNED.imag], 1),
    "▲": [(-0.95, -0.8), (0.95, -0.8), (0, 1)],
    "▼": [(-0.95, 0.8), (0.95, 0.8), (0, -1)],
    "◆": [(0, -1), (1, 0), (0, 1), (-1, 0)],
}
Box = tuple[float, float, float, float]
EXACT = (*LINES, WHITE, INK, GREY, DUSK, PALE, MIST)  # colours that a saved picture keeps


class Column(NamedTuple):
    """One scene of a picture."""

    scene: dict[str, Any]
    sentence: str
    heading: str = ""


@dataclass(eq=False)
class Picture:
    """Still scenes side by side, each with its sentence: shown as a PNG, read as text."""

    columns: Sequence[Column]
    size: tuple[float, float]
    """Width and height of one of them in pixels."""
    boxes: Mapping[str, Box]
    """Where the plots of each lie, by name."""
    pictures: Mapping[str, np.ndarray]
    """The photographs in them, by name."""

    @property
    def alt(self) -> str:
        return " ".join(column.sentence for column in self.columns)

    @property
    def above(self) -> int:
        """Pixels above the plots, for headings."""
        return HEADING if any(column.heading for column in self.columns) else 0

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height of all of it, in pixels of the page."""
        return round((self.size[0] + GAP) * len(self.columns) - GAP), round(self.size[1] + self.above)

    @property
    def figure(self) -> Figure:
        with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
            figure = blank(*self.extent)
            (axis,) = figure.axes
            for k, (scene, _, heading) in enumerate(self.columns):
                left = (self.size[0] + GAP) * k
                axis.text(left, 15, heading, fontsize=SIZES["title"] * PER, weight="bold", color=INK)
                for plot in scene["plots"]:
                    if plot["name"] in self.boxes:
                        x, y, width, height = self.boxes[plot["name"]]
                        frame = Frame(plot, width, height, (left + x, self.above + y))
                        Painter(axis, frame, self.pictures).paint()
        return figure

    @property
    def pixels(self) -> np.ndarray:
        """What is drawn, (height, width, 3) uint8."""
        figure = self.figure
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]

    @cached_property
    def png(self) -> bytes:
        """In 128 colours, small enough to keep. Those of signs and lines are exact."""
        image, own = Image.fromarray(self.pixels), bytes.fromhex("".join(EXACT).replace("#", ""))
        others = image.quantize(128 - len(EXACT), dither=Image.Dither.NONE).getpalette() or []
        colours = Image.new("P", (1, 1))
        colours.putpalette((own + bytes(others))[: 3 * 128])
        stream = io.BytesIO()
        image.quantize(palette=colours, dither=Image.Dither.NONE).save(stream, "png", optimize=True)
        return stream.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": self.extent[0]}}


def pictured(draw: Callable[[Page], str], mosaic: str, size: tuple[float, float],
             widths: Sequence[float] = ()) -> Picture:  # fmt: skip
    """A picture of that size in inches, without controls: `draw(page)` draws its plots and returns the
    sentence that describes it."""
    page, pixels = Page(mosaic.replace(";", " ").split()), (96 * size[0], 96 * size[1])
    said = draw(page)
    return Picture([Column(page.told({}), said)], pixels, boxes(mosaic, *pixels, widths), page.pictures)


def blank(width: float, height: float) -> Figure:
    """An empty figure, with a plane in pixels of the page from its upper left."""
    figure = Figure((width / 96, height / 96), dpi=DPI, facecolor=WHITE)
    FigureCanvasAgg(figure)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))
    axis.set_axis_off()
    axis.autoscale(False)
    return figure


class Painter:
    """Paints one plot, above what has been painted before."""

    def __init__(self, axis: Axes, frame: Frame, pictures: Mapping[str, np.ndarray]):
        self.axis, self.frame, self.pictures = axis, frame, pictures
        self.l, self.r, self.t, self.b = frame.left, frame.right, frame.top, frame.bottom
        self.clip = Rectangle((self.l, self.t), self.r - self.l, self.b - self.t, transform=axis.transData)

    def paint(self) -> None:
        self.ticks()
        self.labels()
        for mark in self.frame.about["marks"]:
            getattr(self, mark["kind"])(mark)

    def points(self, x: Any, y: Any) -> np.ndarray:
        return np.stack([self.frame.x(x), self.frame.y(y)], -1)

    def put(self, artist: Any, clipped: bool = False) -> None:
        artist.set_zorder(1)  # all the same: what comes later lies above
        if artist.axes is None:
            self.axis.add_artist(artist)
        if clipped:
            artist.set_clip_path(self.clip)

    def stroke(self, points: Any, colour: str, width: float, mark: Mapping[str, Any] = {},
               clipped: bool = False) -> None:  # fmt: skip
        """A line through points; mark: whose dashes and opacity it has."""
        how: dict = {
            "color": colour, "linewidth": PER * width, "linestyle": DASHES.get(mark.get("dash", ""), "-"),
            "alpha": mark.get("opacity"), "solid_joinstyle": "round", "solid_capstyle": "butt",
        }  # fmt: skip
        x, y = np.transpose(points)
        self.put(Line2D(x, y, **how), clipped)

    def shape(self, rings: Iterable[Any], fill: str | None, edge: str | None, width: float, mark: dict,
              clipped: bool = False) -> None:  # fmt: skip
        """What closed rings of points enclose; mark: whose opacity it has."""
        path = Path.make_compound_path(*(Path([*ring, ring[0]], closed=True) for ring in rings))
        how: dict = {"facecolor": fill or "none", "edgecolor": edge or "none", "linewidth": PER * width}
        self.put(PathPatch(path, alpha=mark.get("opacity"), **how), clipped)

    def write(self, said: str, x: float, y: float, size: str, **how: Any) -> None:
        self.put(Text(x, y, said, **{"fontsize": SIZES[size] * PER, "color": INK, **how}))

    def ticks(self) -> None:
        """The sides, and the ticks with their words."""
        about, l, r, t, b = self.frame.about, self.l, self.r, self.t, self.b
        sides = {"left": [(l, t), (l, b)], "bottom": [(l, b), (r, b)], "top": [(l, t), (r, t)],
                 "right": [(r, t), (r, b)]}  # fmt: skip
        lines = [sides[side] for side in about["frame"].split()]
        how: dict = {"ha": "center", "va": "top"}
        if turn := about.get("turn"):
            how = {"ha": "right", "va": "center_baseline", "rotation": turn, "rotation_mode": "anchor"}
        for value, word in about.get("xticks", []):
            x = float(self.frame.x(value))
            lines += [[(x, b), (x, b + 4)]] if "bottom" in about["frame"] else []
            self.write(word, x, b + 6, "small", **how)
        for value, word in about.get("yticks", []):
            y = float(self.frame.y(value))
            lines += [[(l - 4, y), (l, y)]] if "left" in about["frame"] else []
            self.write(word, l - 7, y, "small", ha="right", va="center_baseline")
        for line in lines:
            self.stroke(line, INK, 1)

    def labels(self) -> None:
        """The title above the plot, the names of its axes."""
        frame, middle, how = self.frame, (self.l + self.r) / 2, {"ha": "center", "va": "baseline"}
        size = LINE * SIZES["title"]
        for k, said in enumerate(frame.title):
            up = size * (len(frame.title) - k - 0.8)
            self.write(said, self.l, self.t - 5 - up, "title", va="baseline")
        size = LINE * SIZES["normal"]
        for k, said in enumerate(frame.xlabel):
            self.write(said, middle, self.b + frame.below + size * (k + 0.9), "normal", **how)
        x, y, said = frame.corner[0] + 14, (self.t + self.b) / 2, frame.about.get("ylabel", "")
        self.write(said, x, y, "normal", rotation=90, rotation_mode="anchor", **how)

    def line(self, mark: dict) -> None:
        self.stroke(self.points(mark["x"], mark["y"]), mark["colour"], mark["width"], mark, True)

    def area(self, mark: dict) -> None:
        rings = [self.points(x, y) for x, y in mark["rings"] if x]
        if rings:
            self.shape(rings, mark["colour"], mark.get("edge"), 1, mark, True)

    def dots(self, mark: dict) -> None:
        outline = np.asarray(SIGNS[mark["sign"]]) * (mark["size"] / 2, -mark["size"] / 2)
        at = self.points(mark["x"], mark["y"])
        for place, fill, edge in zip(at, each(mark["colour"]), each(mark.get("edge"))):
            if np.isfinite(place).all():
                self.shape([outline + place], fill, edge, 1, mark)

    def segments(self, mark: dict) -> None:
        for *ends, colour, width in self.pairs(mark, "colour", "width"):
            if width > 0.01:
                self.stroke(ends, colour, width, mark, True)

    def arrows(self, mark: dict) -> None:
        for start, end, colour, width in self.pairs(mark, "colour", "width"):
            long = float(np.hypot(*(end - start)))
            if long >= 1:
                head = min(3.2 * width + 2, long)
                way = (end - start) / long
                base, aside = end - head * way, head / 2 * np.array([-way[1], way[0]])
                self.stroke([start, base], colour, width)
                self.shape([[end, base + aside, base - aside]], colour, "none", 0, mark)

    def boxes(self, mark: dict) -> None:
        for (x, y), (u, v), fill, edge in self.pairs(mark, "colour", "edge"):
            if x != u and y != v:  # a browser shows no box without height or width
                self.shape([[(x, y), (u, y), (u, v), (x, v)]], fill, edge, mark["width"], mark, True)

    def pairs(self, mark: dict, *names: str) -> Iterable[Any]:
        """Both ends of each piece, and what these names say of it."""
        ends = self.points(mark["x"], mark["y"]), self.points(mark["u"], mark["v"])
        return zip(*ends, *(each(mark.get(name)) for name in names))

    def cells(self, mark: dict) -> None:
        shades = np.reshape(mark["shades"], (-1, mark["columns"]))
        rows, columns = np.indices(shades.shape).reshape(2, -1)
        x, y = columns + mark["at"][0], rows + mark["at"][1]
        (l, t), (r, b) = self.points([x[0] - 0.5, x[-1] + 0.5], [y[0] - 0.5, y[-1] + 0.5])
        self.place(CIVIDIS[shades], l, t, r, b, smooth=False)
        for (u, v), word, shade in zip(self.points(x, y), mark.get("words", []), mark["shades"]):
            colour = "white" if shade < SHADES / 2 else "black"
            self.write(word, u, v, "small", ha="center", va="center_baseline", color=colour)

    def photographs(self, mark: dict) -> None:
        half = abs(mark["size"] * self.frame.sx) / 2
        down = {"middle": 0, "bottom": -half, "top": half}[mark["hangs"]] - mark["up"]
        shown = zip(self.points(mark["x"], mark["y"]), mark["faces"], each(mark.get("frame")))
        for at, face, frame in shown:
            if np.isfinite(at).all():
                (l, t), (r, b) = at + (-half, down - half), at + (half, down + half)
                self.place(self.pictures[face], l, t, r, b, smooth=True)
                self.shape([[(l, t), (r, t), (r, b), (l, b)]], "none", frame, 2.5, mark)

    def picture(self, mark: dict) -> None:
        a, b, c, d = mark["ends"]
        (l, t), (r, low) = self.points([a, c], [b, d])
        self.place(self.pictures[mark["face"]], l, t, r, low, "smooth" in mark, clipped=True)

    def place(self, pixels: Any, left: float, top: float, right: float, bottom: float, smooth: bool,
              clipped: bool = False) -> None:  # fmt: skip
        how: dict = {"interpolation": "antialiased" if smooth else "nearest", "aspect": "auto"}
        self.put(self.axis.imshow(pixels, extent=(left, right, bottom, top), **how), clipped)

    def text(self, mark: dict) -> None:
        at = self.points(mark["x"], mark["y"])
        if mark.get("within"):
            size = self.r - self.l, self.t - self.b
            at = np.array([self.l, self.b]) + np.column_stack([mark["x"], mark["y"]]) * size
        how: dict = {
            "ha": ANCHORS[mark["anchor"]], "va": RISES[mark["rise"]],
            "rotation": mark.get("turn", 0), "rotation_mode": "anchor",
            "weight": "bold" if mark.get("bold") else "normal",
            "path_effects": [withStroke(linewidth=3 * PER, foreground=WHITE)] if mark.get("halo") else None,
        }  # fmt: skip
        at += (mark.get("right", 0), -mark.get("up", 0))
        for (x, y), said, colour in zip(at, mark["said"], each(mark["colour"])):
            if np.isfinite(x + y) and said:
                self.write(said, x, y, mark["size"], color=colour, **how)


def each(x: Any) -> Iterable[Any]:
    """One after the other: those of a list, or the same one for ever."""
    return x if isinstance(x, list) else repeat(x)
