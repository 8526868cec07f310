"""Paints a scene with matplotlib as paint.js does with SVG: the PNG of a page, of a slide, of a row."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from matplotlib import axes, image, patches, path, patheffects, text, transforms
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from setclr_course.kit.controls import minus
from setclr_course.kit.front import Front, address, both, png
from setclr_course.kit.layout import GAP, LINE, SIZES, Frame, boxes
from setclr_course.kit.palette import DUSK, EMPTY, FULL, GREY, INK, LINES, MIST, PALE, WHITE
from setclr_course.kit.scene import SHADES, Page

DPI = 120
HEADING = 22  # pixels above a picture in a row
PER = 72 / 96  # points of a pixel of the page
NOTHING, ALL = (np.array(list(bytes.fromhex(hue[1:]))) for hue in (EMPTY, FULL))
RAMP = np.linspace(NOTHING, ALL, SHADES).astype(np.uint8)
DASHES = {"dash": (0, (4, 2)), "dot": (0, (1, 1.6))}
ANCHORS = {"start": "left", "middle": "center", "end": "right"}
RISES = {"top": "top", "middle": "center_baseline", "bottom": "bottom", "base": "baseline"}
CLIPPED = ("line", "area", "segments", "boxes", "cells", "picture")
EXACT = (*LINES, WHITE, INK, GREY, DUSK, PALE, MIST)  # colours that a saved picture keeps


class Column(NamedTuple):
    """One scene of a picture."""

    scene: dict[str, Any]
    sentence: str
    heading: str = ""


@dataclass(eq=False)
class Picture:
    """Still scenes side by side, each with its heading and its sentence: a browser with a kernel paints
    them as it paints panels, a page without one shows a PNG."""

    columns: Sequence[Column]
    size: tuple[float, float]
    """Width and height of one of them in pixels."""
    boxes: Mapping[str, Sequence[float]]
    """Where the plots of each lie, by name."""
    pictures: Mapping[str, np.ndarray]
    """The photographs in them, by name."""
    above: int = 0
    """Pixels above the plots, for headings."""

    @property
    def alt(self) -> str:
        return " ".join(column.sentence for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """What a page knows that paints it anew, in its own colours."""
        return {"size": self.size, "boxes": self.boxes, "columns": [one._asdict() for one in self.columns]}

    @property
    def extent(self) -> tuple[int, int]:
        """Width and height of all of it, in pixels of the page."""
        return round((self.size[0] + GAP) * len(self.columns) - GAP), round(self.size[1] + self.above)

    @property
    def pixels(self) -> np.ndarray:
        """What is drawn, (height, width, 3) uint8."""
        wide, high = self.extent
        figure = Figure((wide / 96, high / 96), dpi=DPI, facecolor=WHITE)
        canvas = FigureCanvasAgg(figure)
        axis = figure.add_axes((0, 0, 1, 1), xlim=(0, wide), ylim=(high, 0))
        axis.set_axis_off()  # a plane in pixels of the page, from its upper left
        for k, (scene, _, heading) in enumerate(self.columns):
            left = (self.size[0] + GAP) * k
            axis.add_artist(write(heading, left, 15, "title", anchor="start", rise="base", bold=True))
            for plot in scene["plots"]:
                if plot["name"] in self.boxes:
                    x, y, width, height = self.boxes[plot["name"]]
                    frame = Frame(plot, width, height, (left + x, self.above + y))
                    Painter(axis, frame, self.pictures).paint()
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3]

    @cached_property
    def png(self) -> bytes:
        """In 128 colours, small enough to keep. Those of signs and lines are exact."""
        image, own = Image.fromarray(self.pixels), bytes.fromhex("".join(EXACT).replace("#", ""))
        others = image.quantize(128 - len(EXACT), dither=Image.Dither.NONE).getpalette() or []
        colours = Image.new("P", (1, 1))
        colours.putpalette((own + bytes(others))[: 3 * 128])
        return png(image.quantize(palette=colours, dither=Image.Dither.NONE), optimize=True)

    @property
    def saved(self) -> tuple[dict, dict]:
        """What a page without a kernel shows."""
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.alt}
        return data, {"image/png": {"width": self.extent[0]}}

    @property
    def widget(self) -> Front:
        """The picture in the browser, made each time that it is asked for."""
        pictures = {name: address(one) for name, one in self.pictures.items()}
        return Front(told=self.to_json(), pictures=pictures)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return both(self.widget, self.saved)


def pictured(draw: Callable[[Page], str], mosaic: str, size: tuple[float, float],
             widths: Sequence[float] = ()) -> Picture:  # fmt: skip
    """A picture of that size in inches, without controls: `draw(page)` draws its plots and returns the
    sentence that describes it."""
    page, pixels = Page(mosaic.replace(";", " ").split()), (96 * size[0], 96 * size[1])
    said = minus(draw(page))
    return Picture([Column(page.to_json({}), said)], pixels, boxes(mosaic, *pixels, widths), page.pictures)


@dataclass
class Painter:
    """Paints one plot, above what has been painted before."""

    axis: axes.Axes
    frame: Frame
    pictures: Mapping[str, np.ndarray]

    def paint(self) -> None:
        self.put(self.around())
        for mark in self.frame.about["marks"]:
            self.put(self.pieces(mark), mark["kind"] in CLIPPED)

    def put(self, artists: Iterable[Artist], clipped: bool = False) -> None:
        f = self.frame
        plot = transforms.Bbox([(f.left, f.bottom), (f.right, f.top)]).transformed(self.axis.transData)
        for artist in artists:
            artist.set_zorder(1)  # all the same: what comes later lies above
            self.axis.add_artist(artist)
            if clipped:
                artist.set_clip_box(plot)

    def pieces(self, mark: Mapping[str, Any]) -> Iterator[Artist]:
        """Of what a mark has a list of, each of its pieces has its own."""
        kind, outlines = mark["kind"], self.frame.outlines(mark)
        if kind == "cells":  # one image, which is faster
            shades = RAMP[np.reshape(mark["shades"], (-1, mark["columns"]))]
            yield self.image(shades, outlines[0][0], outlines[-1][2])
        for k, points in enumerate(outlines):
            if kind in ("line", "area") or np.isfinite(points).all():
                piece = {name: x[k % len(x)] if isinstance(x, list) else x for name, x in mark.items()}
                yield from getattr(self, kind)(points, piece)

    def line(self, points: np.ndarray, how: Mapping[str, Any]) -> Iterator[Artist]:
        yield drawn(points, **how, edge=how["colour"])

    def area(self, points: np.ndarray, how: Mapping[str, Any]) -> Iterator[Artist]:
        yield drawn(points, how["kind"] != "area", **how, fill=how.get("colour"))

    segments = line
    dots = boxes = area

    def arrows(self, ends: np.ndarray, how: Mapping[str, Any]) -> Iterator[Artist]:
        (start, end), width = ends, how["width"]
        long = float(np.hypot(*(end - start)))
        if long >= 1:
            head = min(3.2 * width + 2, long)
            way = (end - start) / long
            base, aside = end - head * way, head / 2 * np.array([-way[1], way[0]])
            yield drawn([start, base], edge=how["colour"], width=width)
            yield drawn([end, base + aside, base - aside], fill=how["colour"])

    def cells(self, ring: np.ndarray, how: Mapping[str, Any]) -> Iterator[Artist]:
        if "words" in how:
            (x, y), colour = ring.mean(0), WHITE if how["shades"] > 0.6 * SHADES else INK
            yield write(how["words"], x, y, "small", colour=colour)

    def photographs(self, ring: np.ndarray, how: Mapping[str, Any]) -> Iterator[Artist]:
        sharp = how["kind"] == "picture" and "smooth" not in how
        yield self.image(self.pictures[how.get("face") or how["faces"]], ring[0], ring[2], sharp)
        yield drawn(ring, True, edge=how.get("frame"), width=2.5)

    picture = photographs

    def image(self, pixels: np.ndarray, corner: Any, opposite: Any, sharp: bool = True) -> Artist:
        (l, t), (r, b), how = corner, opposite, "nearest" if sharp else "antialiased"
        shown = image.AxesImage(self.axis, extent=(l, r, b, t), interpolation=how, resample=True)
        shown.set_data(pixels)
        return shown

    def text(self, at: np.ndarray, how: Mapping[str, Any]) -> Iterator[Artist]:
        x, y = at[0] + (how.get("right", 0), -how.get("up", 0))
        yield write(how["said"], x, y, **how)

    def around(self) -> Iterator[Artist]:
        """The sides, the ticks and their words, the title above, the names of the axes."""
        f, about, turn = self.frame, self.frame.about, self.frame.about.get("turn")
        l, r, t, b = f.left, f.right, f.top, f.bottom
        sides = {"left": [(l, t), (l, b)], "bottom": [(l, b), (r, b)]}
        lines = [sides[side] for side in about["frame"].split()]
        below: dict = {"anchor": "end", "turn": turn} if turn else {"rise": "top"}
        for value, word in about.get("xticks", []):
            x = float(f.x(value))
            lines += [[(x, b), (x, b + 4)]] if "bottom" in about["frame"] else []
            yield write(word, x, b + 6, "small", **below)
        for value, word in about.get("yticks", []):
            y = float(f.y(value))
            lines += [[(l - 4, y), (l, y)]] if "left" in about["frame"] else []
            yield write(word, l - 7, y, "small", anchor="end")
        yield from (drawn(line, edge=INK) for line in lines)
        for k, said in enumerate(f.title):
            up = LINE * SIZES["title"] * (len(f.title) - k - 0.8)
            yield write(said, f.begin, t - 5 - up, "title", anchor="start", rise="base")
        for k, said in enumerate(f.xlabel):
            down = LINE * SIZES["normal"] * (k + 0.9)
            yield write(said, (l + r) / 2, b + f.below + down, "normal", rise="base")
        yield write(about.get("ylabel", ""), f.corner[0] + 14, (t + b) / 2, "normal", rise="base", turn=90)


def drawn(points: Any, closed: bool = False, /, **how: Any) -> Artist:
    """A line through points, or what they enclose."""
    return patches.PathPatch(
        path.Path([*points, points[0]], closed=True) if closed else path.Path(points),
        facecolor=how.get("fill") or "none", edgecolor=how.get("edge") or "none", alpha=how.get("opacity"),
        linewidth=PER * how.get("width", 1), linestyle=DASHES.get(how.get("dash", ""), "-"),
        joinstyle="miter" if closed else "round",
    )  # fmt: skip


def write(said: str, x: float, y: float, /, size: str, anchor: str = "middle", rise: str = "middle",
          **how: Any) -> Artist:  # fmt: skip
    halo = [patheffects.withStroke(linewidth=3 * PER, foreground=WHITE)] if how.get("halo") else None
    return text.Text(
        x, y, said, fontsize=SIZES[size] * PER, family="DejaVu Sans", color=how.get("colour", INK),
        weight="bold" if how.get("bold") else "normal", ha=ANCHORS[anchor], va=RISES[rise],
        rotation=how.get("turn", 0), rotation_mode="anchor", path_effects=halo, parse_math=False,
    )  # fmt: skip
