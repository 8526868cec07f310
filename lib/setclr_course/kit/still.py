"""Paints a scene with matplotlib, pixel by pixel as paint.js does, for the PNG of a saved page, of slides, of a row."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from setclr_course.kit.layout import LINE, SIZES, Frame
from setclr_course.kit.palette import INK, WHITE
from setclr_course.kit.scene import SHADES

DPI = 120
PER = 72 / 96  # points of a pixel of the page
CIVIDIS = matplotlib.colormaps["cividis"].resampled(SHADES)(range(SHADES))
DASHES = {"dash": (0, (4, 2)), "dot": (0, (1, 1.6))}


def star(points: int, inner: float) -> Path:
    """A star with so many points on the unit circle, one of them on top."""
    angles = np.pi / 2 + np.pi * np.arange(2 * points) / points
    radii = np.where(np.arange(2 * points) % 2, inner, 1.0)
    return Path(np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1), closed=False)


def cross(angle: float) -> Path:
    """A plus sign with arms a third as wide as long, turned."""
    a, b = 1.0, 0.36
    corners = np.array(
        [
            (b, b),
            (b, a),
            (-b, a),
            (-b, b),
            (-a, b),
            (-a, -b),
            (-b, -b),
            (-b, -a),
            (b, -a),
            (b, -b),
            (a, -b),
            (a, b),
        ]
    )
    c, s = np.cos(angle), np.sin(angle)
    return Path(corners @ np.array([[c, s], [-s, c]]))


SIGNS = {
    "●": Path.unit_circle(), "■": Path([(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)]),
    "★": star(5, 0.42), "✚": cross(0), "✕": cross(np.pi / 4), "▲": Path([(-0.95, -0.8), (0.95, -0.8), (0, 1)]),
    "▼": Path([(-0.95, 0.8), (0.95, 0.8), (0, -1)]), "◆": Path([(0, -1), (1, 0), (0, 1), (-1, 0)]),
}  # fmt: skip


def figure_of(
    scenes: Sequence[tuple[dict[str, Any], Mapping[str, tuple[float, float, float, float]], float]],
    size: tuple[float, float], pictures: Mapping[str, np.ndarray], headings: Sequence[str] = (),
) -> Figure:  # fmt: skip
    """A figure of this width and height in pixels. Each scene comes with the boxes of its plots, by name, and how far
    from the left its picture begins; a heading stands above each, if there are any."""
    with matplotlib.rc_context({"font.family": "DejaVu Sans"}):
        figure = Figure((size[0] / 96, size[1] / 96), dpi=DPI, facecolor=WHITE)
        FigureCanvasAgg(figure)
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set(xlim=(0, size[0]), ylim=(size[1], 0))
        axis.set_axis_off()
        axis.autoscale(False)
        order = count(1)
        down = 22 if headings else 0
        for scene, places, left in scenes:
            for plot in scene["plots"]:
                if plot["name"] in places:
                    x, y, width, height = places[plot["name"]]
                    Painter(axis, (left + x, down + y), Frame(plot, width, height), pictures, order).paint()
        for (_, _, left), said in zip(scenes, headings):
            axis.text(left, 15, said, fontsize=SIZES["title"] * PER, weight="bold", color=INK)
        return figure


class Painter:
    """Paints one plot, which begins at a `corner` of the figure."""

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
        (x0, x1), (y0, y1) = sorted((frame.left, frame.right)), sorted((frame.top, frame.bottom))
        self.clip = Rectangle((self.left + x0, self.top + y0), x1 - x0, y1 - y0, transform=axis.transData)

    def paint(self) -> None:
        self.words()
        for mark in self.frame.about["marks"]:
            getattr(self, mark["kind"])(mark)

    def points(self, x: Any, y: Any) -> np.ndarray:
        return np.stack([self.left + self.frame.x(x), self.top + self.frame.y(y)], -1)

    def words(self) -> None:
        """Title, sides, ticks and labels."""
        frame, about = self.frame, self.frame.about
        l, r, t, b = (
            self.left + frame.left,
            self.left + frame.right,
            self.top + frame.top,
            self.top + frame.bottom,
        )
        sides = {
            "left": [(l, t), (l, b)],
            "bottom": [(l, b), (r, b)],
            "top": [(l, t), (r, t)],
            "right": [(r, t), (r, b)],
        }
        lines = [sides[side] for side in about.get("frame", "").split()]
        for value, word in about.get("xticks", []):
            x = self.left + float(frame.x(value))
            if "bottom" in about.get("frame", ""):
                lines.append([(x, b), (x, b + 4)])
            turned = (
                {"ha": "right", "rotation": about["turn"], "rotation_mode": "anchor"}
                if about.get("turn")
                else {"ha": "center"}
            )
            self.write(word, (x, b + 6), "small", va="top", **turned)
        for value, word in about.get("yticks", []):
            y = self.top + float(frame.y(value))
            if "left" in about.get("frame", ""):
                lines.append([(l - 4, y), (l, y)])
            self.write(word, (l - 7, y), "small", ha="right", va="center_baseline")
        self.put(LineCollection(lines, colors=INK, linewidths=PER))
        size = LINE * SIZES["title"]
        above = self.top + frame.top - 5 - size * len(frame.title)
        for k, said in enumerate(frame.title):
            self.write(said, (l, above + size * (k + 0.8)), "title", va="baseline")
        size = LINE * SIZES["normal"]
        for k, said in enumerate(frame.xlabel):
            self.write(
                said, ((l + r) / 2, b + frame.below + size * (k + 0.9)), "normal", ha="center", va="baseline"
            )
        if about.get("ylabel"):
            self.write(
                about["ylabel"],
                (self.left + 14, (t + b) / 2),
                "normal",
                rotation=90,
                ha="center",
                va="baseline",
            )

    def write(self, said: str, at: Any, size: str, **how: Any) -> None:
        self.put(Text(*at, said, fontsize=SIZES[size] * PER, **{"color": INK, **how}))

    def put(self, artist: Any, clipped: bool = False) -> None:
        """Onto the picture, above what is there."""
        artist.set_zorder(next(self.order))
        if artist.axes is None:
            self.axis.add_artist(artist)
        if clipped:
            artist.set_clip_path(self.clip)

    def line(self, mark: dict) -> None:
        dash = DASHES.get(mark.get("dash", ""), "-")
        self.put(Line2D(*self.points(mark["x"], mark["y"]).T, color=mark["colour"], linewidth=PER * mark["width"],
                        linestyle=dash, alpha=mark.get("opacity"), solid_joinstyle="round"), True)  # fmt: skip

    def area(self, mark: dict) -> None:
        rings = [self.points(x, y) for x, y in mark["rings"] if x]
        if not rings:
            return
        path = Path.make_compound_path(
            *(Path(np.concatenate([ring, ring[:1]]), closed=True) for ring in rings)
        )
        self.put(PathPatch(path, facecolor=mark["colour"], edgecolor=mark.get("edge", "none"),
                                                   alpha=mark.get("opacity"), linewidth=PER), True)  # fmt: skip

    def dots(self, mark: dict) -> None:
        for (x, y), colour, edge in zip(
            self.points(mark["x"], mark["y"]), each(mark["colour"]), each(mark.get("edge", "none"))
        ):
            if np.isfinite(x + y):
                half = mark["size"] / 2
                outline = SIGNS[mark["sign"]]
                path = Path(outline.vertices * (half, -half) + (x, y), outline.codes)
                self.put(
                    PathPatch(
                        path, facecolor=colour, edgecolor=edge, linewidth=PER, alpha=mark.get("opacity")
                    )
                )

    def segments(self, mark: dict) -> None:
        lines = np.stack([self.points(mark["x"], mark["y"]), self.points(mark["u"], mark["v"])], 1)
        colour = mark["colour"] if isinstance(mark["colour"], list) else [mark["colour"]]
        self.put(LineCollection(
            list(lines), colors=colour, linewidths=PER * np.asarray(mark["width"]), alpha=mark.get("opacity"),
            linestyles=[DASHES.get(mark.get("dash", ""), "-")]), True)  # fmt: skip

    def arrows(self, mark: dict) -> None:
        ends = zip(
            self.points(mark["x"], mark["y"]),
            self.points(mark["u"], mark["v"]),
            each(mark["colour"]),
            each(mark["width"]),
        )
        for start, end, colour, width in ends:
            if np.hypot(*(end - start)) >= 1:
                head = min(3.2 * width + 2, np.hypot(*(end - start)))
                how = f"-|>,head_length={PER * head},head_width={PER * head / 2}"
                self.put(FancyArrowPatch(start, end, arrowstyle=how, mutation_scale=1, shrinkA=0, shrinkB=0,
                                                    color=colour, linewidth=PER * width))  # fmt: skip

    def boxes(self, mark: dict) -> None:
        one, two = self.points(mark["x"], mark["y"]), self.points(mark["u"], mark["v"])
        shapes = [Rectangle(np.minimum(a, b), *np.abs(b - a)) for a, b in zip(one, two)]
        edge = mark.get("edge")
        self.put(PatchCollection(
            shapes, facecolors=mark.get("colour", "none"), edgecolors=edge or "none", alpha=mark.get("opacity"),
            linewidths=PER * mark["width"] if edge else 0), True)  # fmt: skip

    def cells(self, mark: dict) -> None:
        columns, (x, y) = mark["columns"], mark["at"]
        shades = np.array(mark["shades"]).reshape(-1, columns)
        rows, column = np.indices(shades.shape).reshape(2, -1)
        middles = self.points(x + column, y + rows)
        corners = self.points([x - 0.5, x + columns - 0.5], [y - 0.5, y + len(shades) - 0.5])
        (l, r), (t, b) = np.sort(corners[:, 0]), np.sort(corners[:, 1])
        image = CIVIDIS[shades if corners[0, 1] < corners[1, 1] else shades[::-1]]
        self.put(self.axis.imshow(image, extent=(l, r, b, t), interpolation="nearest", aspect="auto"), True)
        for at, word, shade in zip(middles, mark.get("words", []), shades.flat):
            self.write(
                word,
                at,
                "small",
                ha="center",
                va="center_baseline",
                color="white" if shade < SHADES / 2 else "black",
            )

    def photographs(self, mark: dict) -> None:
        half = abs(mark["size"] * self.frame.sx) / 2
        middle = {"middle": 0, "bottom": -half, "top": half}[mark["hangs"]] - mark["up"]
        frames = each(mark["frame"]) if mark.get("frame") else each("")
        for (x, y), face, frame in zip(self.points(mark["x"], mark["y"]), mark["faces"], frames):
            if np.isfinite(x + y):
                self.place(face, x - half, y + middle - half, x + half, y + middle + half, True)
                if frame:
                    self.put(Rectangle((x - half, y + middle - half), 2 * half, 2 * half, fill=False, edgecolor=frame,
                                                  linewidth=2.5 * PER))  # fmt: skip

    def picture(self, mark: dict) -> None:
        a, b, c, d = mark["ends"]
        (l, t), (r, low) = self.points([a, c], [b, d])
        self.place(mark["face"], l, t, r, low, bool(mark.get("smooth")))

    def place(self, face: str, left: float, top: float, right: float, bottom: float, smooth: bool) -> None:
        how = "antialiased" if smooth else "nearest"
        extent = left, right, bottom, top
        self.put(self.axis.imshow(self.pictures[face], extent=extent, aspect="auto", interpolation=how))

    def text(self, mark: dict) -> None:
        frame = self.frame
        if mark.get("within"):
            x = self.left + frame.left + np.array(mark["x"]) * (frame.right - frame.left)
            y = self.top + frame.bottom + np.array(mark["y"]) * (frame.top - frame.bottom)
            at = np.stack([x, y], -1)
        else:
            at = self.points(mark["x"], mark["y"])
        how: dict[str, Any] = {
            "ha": {"start": "left", "middle": "center", "end": "right"}[mark["anchor"]],
            "va": {"top": "top", "middle": "center_baseline", "bottom": "bottom"}[mark["rise"]],
            "rotation": mark.get("turn", 0), "rotation_mode": "anchor", "weight": "bold" if mark.get("bold") else "normal",
            "path_effects": [withStroke(linewidth=3 * PER, foreground=WHITE)] if mark.get("halo") else None,
        }  # fmt: skip
        moved = mark.get("right", 0), -mark.get("up", 0)
        for place, said, colour in zip(at, mark["said"], each(mark["colour"])):
            if np.isfinite(place).all() and said:
                self.write(said, place + moved, mark["size"], color=colour, **how)


def each(x: Any) -> Any:
    """One after the other: those of a list, or the same one for ever."""
    return x if isinstance(x, list) else repeat(x)
