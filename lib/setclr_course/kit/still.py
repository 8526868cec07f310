"""Paints a scene with matplotlib as paint.js does with SVG: the PNG of a page, of a slide, of a row."""

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, repeat
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Polygon, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from PIL import Image

from setclr_course.kit.layout import GAP, LINE, SIZES, Frame, boxes
from setclr_course.kit.palette import INK, WHITE
from setclr_course.kit.scene import SHADES, Page

DPI = 120
HEADING = 22  # pixels above a picture in a row
PER = 72 / 96  # points of a pixel of the page
CIVIDIS = matplotlib.colormaps["cividis"].resampled(SHADES)(range(SHADES))
DASHES = {"dash": (0, (4, 2)), "dot": (0, (1, 1.6))}
ANCHORS = {"start": "left", "middle": "center", "end": "right"}
Box = tuple[float, float, float, float]


def star(points: int, inner: float) -> np.ndarray:
    """A star with so many points on the unit circle, one of them on top."""
    angles = np.pi / 2 + np.pi * np.arange(2 * points) / points
    radii = np.where(np.arange(2 * points) % 2, inner, 1.0)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)


def cross(angle: float) -> np.ndarray:
    """A plus sign with arms a third as wide as long, turned."""
    arm = np.array([(0.36, 0.36), (0.36, 1), (-0.36, 1)])
    c, s = np.cos(angle), np.sin(angle)
    quarter = np.array([[0, 1], [-1, 0]])
    corners = [arm @ np.linalg.matrix_power(quarter, k) for k in range(4)]
    return np.concatenate(corners) @ np.array([[c, s], [-s, c]])


SIGNS = {
    "●": np.stack([np.cos(np.linspace(0, 2 * np.pi, 48)), np.sin(np.linspace(0, 2 * np.pi, 48))], 1),
    "■": np.array([(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)]),
    "★": star(5, 0.42),
    "✚": cross(0),
    "✕": cross(np.pi / 4),
    "▲": np.array([(-0.95, -0.8), (0.95, -0.8), (0, 1)]),
    "▼": np.array([(-0.95, 0.8), (0.95, 0.8), (0, -1)]),
    "◆": np.array([(0, -1), (1, 0), (0, 1), (-1, 0)]),
}


class Column(NamedTuple):
    """One scene of a picture."""

    scene: dict[str, Any]
    sentence: str
    heading: str = ""


class Picture:
    """Still scenes side by side, each with its sentence: shown as a PNG, read as text.

    Args:
        columns: the scenes, whose plots lie in the same `boxes`, by name.
        size: width and height of one of them in pixels.
        pictures: the photographs in them, by name.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        size: tuple[float, float],
        boxes: Mapping[str, Box],
        pictures: Mapping[str, np.ndarray],
    ):
        self.columns, self.size, self.boxes, self.pictures = columns, size, boxes, dict(pictures)

    @property
    def alt(self) -> str:
        return " ".join(column.sentence for column in self.columns)

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height of all of it, in pixels of the page."""
        headed = any(column.heading for column in self.columns)
        return round((self.size[0] + GAP) * len(self.columns) - GAP), round(self.size[1] + headed * HEADING)

    @property
    def figure(self) -> Figure:
        lefts = [(self.size[0] + GAP) * place for place in range(len(self.columns))]
        scenes = [(column.scene, self.boxes, left) for column, left in zip(self.columns, lefts)]
        headings = [column.heading for column in self.columns if column.heading]
        return figure_of(scenes, self.extent, self.pictures, headings)

    @cached_property
    def png(self) -> bytes:
        """In 128 colours: small enough to keep."""
        figure, stream = self.figure, io.BytesIO()
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
        image = Image.fromarray(pixels[..., :3]).quantize(128, dither=Image.Dither.NONE)
        image.save(stream, "png", optimize=True)
        return stream.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": self.extent[0]}}


def pictured(
    draw: Callable[[Page], str], mosaic: str, size: tuple[float, float], widths: Sequence[float] = ()
) -> Picture:
    """A picture of that size in inches, without controls: `draw(page)` draws its plots and returns the
    sentence that describes it."""
    page, pixels = Page(mosaic.replace(";", " ").split()), (96 * size[0], 96 * size[1])
    said = draw(page)
    return Picture([Column(page.told({}), said)], pixels, boxes(mosaic, *pixels, widths), page.pictures)


def figure_of(
    scenes: Sequence[tuple[dict[str, Any], Mapping[str, Box], float]],
    size: tuple[float, float],
    pictures: Mapping[str, np.ndarray],
    headings: Sequence[str] = (),
) -> Figure:
    """A figure of this width and height in pixels. Each scene comes with the boxes of its plots, by name, and
    how far from the left its picture begins; a heading stands above each, if there are any."""
    with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
        figure = Figure((size[0] / 96, size[1] / 96), dpi=DPI, facecolor=WHITE)
        FigureCanvasAgg(figure)
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set(xlim=(0, size[0]), ylim=(size[1], 0))
        axis.set_axis_off()
        axis.autoscale(False)
        order, down = count(1), HEADING if headings else 0
        for scene, places, left in scenes:
            for plot in scene["plots"]:
                if plot["name"] in places:
                    x, y, width, height = places[plot["name"]]
                    Painter(axis, (left + x, down + y), Frame(plot, width, height), pictures, order).paint()
        for (_, _, left), said in zip(scenes, headings):
            axis.text(left, 15, said, fontsize=SIZES["title"] * PER, weight="bold", color=INK)
        return figure


class Painter:
    """Paints one plot, which begins at a `corner` of the figure, above what has been painted before."""

    def __init__(
        self,
        axis: Axes,
        corner: tuple[float, float],
        frame: Frame,
        pictures: Mapping[str, np.ndarray],
        order: Iterator[int],
    ):
        self.axis, self.frame, self.pictures, self.order = axis, frame, pictures, order
        self.left, self.top = corner
        self.l, self.r = self.left + frame.left, self.left + frame.right
        self.t, self.b = self.top + frame.top, self.top + frame.bottom
        size = self.r - self.l, self.b - self.t
        self.clip = Rectangle((self.l, self.t), *size, transform=axis.transData)

    def paint(self) -> None:
        self.ticks()
        self.labels()
        for mark in self.frame.about["marks"]:
            getattr(self, mark["kind"])(mark)

    def points(self, x: Any, y: Any) -> np.ndarray:
        return np.stack([self.left + self.frame.x(x), self.top + self.frame.y(y)], -1)

    def put(self, artist: Any, clipped: bool = False) -> None:
        artist.set_zorder(next(self.order))
        if artist.axes is None:
            self.axis.add_artist(artist)
        if clipped:
            artist.set_clip_path(self.clip)

    def write(self, said: str, x: float, y: float, size: str, **how: Any) -> None:
        self.put(Text(x, y, said, **{"fontsize": SIZES[size] * PER, "color": INK, **how}))

    def ticks(self) -> None:
        """The sides, and the ticks with their words."""
        about, l, r, t, b = self.frame.about, self.l, self.r, self.t, self.b
        sides = {"left": [(l, t), (l, b)], "bottom": [(l, b), (r, b)], "top": [(l, t), (r, t)],
                 "right": [(r, t), (r, b)]}  # fmt: skip
        drawn = about.get("frame", "").split()
        lines = [sides[side] for side in drawn]
        turn = about.get("turn", 0)
        how: dict = {"ha": "center", "va": "top"}
        if turn:
            how = {"ha": "right", "va": "center_baseline", "rotation": turn, "rotation_mode": "anchor"}
        for value, word in about.get("xticks", []):
            x = self.left + float(self.frame.x(value))
            lines += [[(x, b), (x, b + 4)]] if "bottom" in drawn else []
            self.write(word, x, b + 6, "small", **how)
        for value, word in about.get("yticks", []):
            y = self.top + float(self.frame.y(value))
            lines += [[(l - 4, y), (l, y)]] if "left" in drawn else []
            self.write(word, l - 7, y, "small", ha="right", va="center_baseline")
        self.put(LineCollection(lines, colors=INK, linewidths=PER))

    def labels(self) -> None:
        """The title above the plot, the names of its axes."""
        frame, middle = self.frame, (self.l + self.r) / 2
        size = LINE * SIZES["title"]
        above = self.t - 5 - size * len(frame.title)
        for k, said in enumerate(frame.title):
            self.write(said, self.l, above + size * (k + 0.8), "title", va="baseline")
        size = LINE * SIZES["normal"]
        for k, said in enumerate(frame.xlabel):
            down = self.b + frame.below + size * (k + 0.9)
            self.write(said, middle, down, "normal", ha="center", va="baseline")
        said, up = frame.about.get("ylabel", ""), (self.t + self.b) / 2
        self.write(said, self.left + 14, up, "normal", rotation=90, ha="center", va="baseline",
                   rotation_mode="anchor")  # fmt: skip

    def line(self, mark: dict) -> None:
        x, y = self.points(mark["x"], mark["y"]).T
        how: dict = {"color": mark["colour"], "linewidth": PER * mark["width"], "alpha": mark.get("opacity")}
        self.put(Line2D(x, y, linestyle=dash_of(mark), solid_joinstyle="round", **how), True)

    def area(self, mark: dict) -> None:
        rings = [self.points(x, y) for x, y in mark["rings"] if x]
        if rings:
            closed = (Path(np.concatenate([ring, ring[:1]]), closed=True) for ring in rings)
            how: dict = {"facecolor": mark["colour"], "edgecolor": mark.get("edge", "none"), "linewidth": PER}
            path = Path.make_compound_path(*closed)
            self.put(PathPatch(path, alpha=mark.get("opacity"), **how), True)

    def dots(self, mark: dict) -> None:
        half = mark["size"] / 2
        outline = SIGNS[mark["sign"]] * (half, -half)
        each_dot = zip(
            self.points(mark["x"], mark["y"]), each(mark["colour"]), each(mark.get("edge", "none"))
        )
        for at, colour, edge in each_dot:
            if np.isfinite(at).all():
                how: dict = {"facecolor": colour, "edgecolor": edge, "linewidth": PER}
                self.put(Polygon(outline + at, alpha=mark.get("opacity"), **how))

    def segments(self, mark: dict) -> None:
        lines = np.stack([self.points(mark["x"], mark["y"]), self.points(mark["u"], mark["v"])], 1)
        how: dict = {"colors": mark["colour"], "linewidths": PER * np.asarray(mark["width"])}
        dash: Any = [dash_of(mark)]
        self.put(LineCollection(list(lines), linestyles=dash, alpha=mark.get("opacity"), **how), True)

    def arrows(self, mark: dict) -> None:
        ends = self.points(mark["x"], mark["y"]), self.points(mark["u"], mark["v"])
        for start, end, colour, width in zip(*ends, each(mark["colour"]), each(mark["width"])):
            long = float(np.hypot(*(end - start)))
            if long >= 1:
                head = min(3.2 * width + 2, long)
                way = (end - start) / long
                base, aside = end - head * way, head / 2 * np.array([-way[1], way[0]])
                self.put(Line2D(*zip(start, base), color=colour, linewidth=PER * width))
                self.put(Polygon([end, base + aside, base - aside], facecolor=colour, linewidth=0))

    def boxes(self, mark: dict) -> None:
        one, two = self.points(mark["x"], mark["y"]), self.points(mark["u"], mark["v"])
        shapes = [Rectangle(tuple(np.minimum(a, b)), *np.abs(b - a)) for a, b in zip(one, two)]
        fill, edge = mark.get("colour", "none"), mark.get("edge")
        how: dict = {"facecolors": fill, "edgecolors": edge or "none", "alpha": mark.get("opacity")}
        self.put(PatchCollection(shapes, linewidths=PER * mark["width"] if edge else 0, **how), True)

    def cells(self, mark: dict) -> None:
        columns, (x, y) = mark["columns"], mark["at"]
        shades = np.array(mark["shades"]).reshape(-1, columns)
        rows, column = np.indices(shades.shape).reshape(2, -1)
        one, two = self.points([x - 0.5, x + columns - 0.5], [y - 0.5, y + len(shades) - 0.5])
        image = CIVIDIS[shades if one[1] < two[1] else shades[::-1]]
        (l, t), (r, b) = np.minimum(one, two), np.maximum(one, two)
        self.place(image, l, t, r, b, smooth=False)
        for (u, v), word, shade in zip(self.points(x + column, y + rows), mark.get("words", []), shades.flat):
            colour = "white" if shade < SHADES / 2 else "black"
            self.write(word, u, v, "small", ha="center", va="center_baseline", color=colour)

    def photographs(self, mark: dict) -> None:
        half = abs(mark["size"] * self.frame.sx) / 2
        down = {"middle": 0, "bottom": -half, "top": half}[mark["hangs"]] - mark["up"]
        shown = zip(self.points(mark["x"], mark["y"]), mark["faces"], each(mark.get("frame", "")))
        for at, face, frame in shown:
            if np.isfinite(at).all():
                l, t = at + (-half, down - half)
                self.place(self.pictures[face], l, t, l + 2 * half, t + 2 * half, smooth=True)
                if frame:
                    box: dict = {"fill": False, "edgecolor": frame, "linewidth": 2.5 * PER}
                    self.put(Rectangle((l, t), 2 * half, 2 * half, **box))

    def picture(self, mark: dict) -> None:
        a, b, c, d = mark["ends"]
        (l, t), (r, low) = self.points([a, c], [b, d])
        self.place(self.pictures[mark["face"]], l, t, r, low, bool(mark.get("smooth")), clipped=True)

    def place(
        self, pixels: Any, left: float, top: float, right: float, bottom: float, smooth: bool,
        clipped: bool = False,
    ) -> None:  # fmt: skip
        how: dict = {"interpolation": "antialiased" if smooth else "nearest", "aspect": "auto"}
        self.put(self.axis.imshow(pixels, extent=(left, right, bottom, top), **how), clipped)

    def text(self, mark: dict) -> None:
        if mark.get("within"):
            x, y = np.array(mark["x"], float), np.array(mark["y"], float)
            at = np.stack([self.l + x * (self.r - self.l), self.b + y * (self.t - self.b)], -1)
        else:
            at = self.points(mark["x"], mark["y"])
        how: dict = {
            "ha": ANCHORS[mark["anchor"]],
            "va": {"top": "top", "middle": "center_baseline", "bottom": "bottom"}[mark["rise"]],
            "rotation": mark.get("turn", 0),
            "rotation_mode": "anchor",
            "weight": "bold" if mark.get("bold") else "normal",
            "path_effects": [withStroke(linewidth=3 * PER, foreground=WHITE)] if mark.get("halo") else None,
        }
        right, up = mark.get("right", 0), mark.get("up", 0)
        for (x, y), said, colour in zip(at, mark["said"], each(mark["colour"])):
            if np.isfinite(x + y) and said:
                self.write(said, x + right, y - up, mark["size"], color=colour, **how)


def dash_of(mark: dict) -> Any:
    return DASHES.get(mark.get("dash", ""), "-")


def each(x: Any) -> Iterable[Any]:
    """One after the other: those of a list, or the same one for ever."""
    return x if isinstance(x, list) else repeat(x)
