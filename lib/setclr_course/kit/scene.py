"""A panel's picture as data: plots with limits and words, and on them marks in data coordinates.

`draw` says the whole picture each time, from nothing. Whoever paints it decides how: SVG in the browser
(paint.js), matplotlib for a PNG (still.py). Both read what `Page.to_json` gives.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import Knob, minus
from setclr_course.kit.handles import Handle
from setclr_course.kit.palette import INK, VERMILION, WHITE

Words = str | Sequence[str]  # one for all, or one for each
Ticks = Iterable[float] | Mapping[float, str]  # numbers, or words by number

SHADES = 40  # in a table: few enough for a small PNG
SIDES = {"left": (0.0, "start", 4), "middle": (0.5, "middle", 0), "right": (1.0, "end", -4)}
LEVELS = {"top": (1.0, "top", -3.0), "middle": (0.5, "middle", 0), "bottom": (0.0, "bottom", 3)}


@dataclass(eq=False)
class Mark:
    """One mark of a plot; `dots[1]`, `bars[2:4]`, `table[i, :]` are pieces of it, for links."""

    plot: "Plot"
    number: int
    pieces: np.ndarray
    """Their numbers, in the shape by which they are chosen."""
    numbers: list[int] | None = None
    """Those that are chosen. None: all of it."""

    def __getitem__(self, where: Any) -> "Piece":
        return Mark(self.plot, self.number, self.pieces, self.pieces[where].ravel().tolist())

    def to_json(self) -> list[int]:
        return [] if self.numbers == [] else [self.plot.number, self.number, *(self.numbers or [])]

    def handle(self, name: str, point: ArrayLike, *moves: str, snap: ArrayLike = (), **how: Any) -> "Mark":
        """The mark can be dragged by this point (2,) of it; see `Handle`, also for `how`.

        It `moves` these controls; where none is named, the one that is called as the handle.
        """
        at, *drops = ((x, y) for x, y in np.array([point, *np.reshape(snap, (-1, 2))], float).tolist())
        more = {"label": name, "snap": tuple(drops)} | how
        self.plot.page.handles[name] = Handle(self.plot.number, at, moves or (name,), **more)
        return self


Piece = Mark


@dataclass(eq=False)
class Plot:
    """One axes: its limits and words, and the marks on it, in drawing order.

    Points are (n, 2) in data units; sizes and widths of lines are in pixels. What has one colour may have a
    list of them, one for each piece.
    """

    page: "Page"
    number: int
    about: dict[str, Any]
    marks: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, shape: tuple[int, ...] = (), **what: Any) -> Mark:
        said = {name: x if isinstance(x, str) else plain(x) for name, x in what.items()}
        self.marks.append({"kind": kind} | {name: x for name, x in said.items() if x not in (None, "")})
        return Mark(self, len(self.marks) - 1, np.arange(prod(shape)).reshape(shape))

    def _at(self, kind: str, points: ArrayLike, **what: Any) -> Mark:
        x, y = np.asarray(points, float).reshape(-1, 2).T
        return self.add(kind, x.shape, x=x, y=y, **what)

    def _ends(self, kind: str, starts: ArrayLike, ends: ArrayLike, **what: Any) -> Mark:
        one, two = np.broadcast_arrays(np.reshape(starts, (-1, 2)), np.reshape(ends, (-1, 2)))
        return self._at(kind, one, u=two[:, 0], v=two[:, 1], **what)

    def line(self, x: ArrayLike, y: ArrayLike, colour: str = INK, width: float = 2, dash: str = "",
             opacity: float | None = None) -> Mark:  # fmt: skip
        """A line through x (n,) and y (n,), broken where one is nan. dash: "", "dash" or "dot"."""
        x, y = np.broadcast_arrays(np.atleast_1d(x), np.atleast_1d(y))
        return self.add("line", x=x, y=y, colour=colour, width=width, dash=dash, opacity=opacity)

    def area(self, rings: Iterable[ArrayLike], colour: str, opacity: float | None = None,
             edge: str = "") -> Mark:  # fmt: skip
        """What closed rings of points (n, 2) enclose; one within another, the other way round, is a hole."""
        ways = [list(np.asarray(ring, float).T) for ring in rings]
        return self.add("area", rings=ways, colour=colour, opacity=opacity, edge=edge)

    def steps(self, heights: ArrayLike, edges: ArrayLike, colour: str, opacity: float | None = None) -> Mark:
        """A histogram: heights (n,) between edges (n + 1,), filled from 0."""
        x, y = np.repeat(np.asarray(edges, float), 2), np.repeat(np.asarray(heights, float), 2)
        return self.area([np.column_stack([x, [0, *y, 0]])], colour, opacity)

    def dots(self, points: ArrayLike, colour: Words = INK, sign: str = "●", size: float = 10,
             edge: Words = WHITE, opacity: float | None = None) -> Mark:  # fmt: skip
        """Signs ● ■ ★ ✚ ✕ ▲ ▼ ◆ at points (n, 2), `size` across. Hollow is filled WHITE. None at nan."""
        return self._at("dots", points, colour=colour, sign=sign, size=size, edge=edge, opacity=opacity)

    def segments(self, starts: ArrayLike, ends: ArrayLike, colour: Words = INK, width: ArrayLike = 1.5,
                 dash: str = "", opacity: float | None = None) -> Mark:  # fmt: skip
        """Straight lines from points (n, 2) to points (n, 2), of one width or one each."""
        return self._ends("segments", starts, ends, colour=colour, width=width, dash=dash, opacity=opacity)

    def arrows(self, starts: ArrayLike, ends: ArrayLike, colour: Words = INK, width: ArrayLike = 2) -> Mark:
        """As segments, with a head at the end."""
        return self._ends("arrows", starts, ends, colour=colour, width=width)

    def boxes(self, corners: ArrayLike, opposite: ArrayLike, colour: Words = "", edge: Words = "",
              width: float = 1, opacity: float | None = None) -> Mark:  # fmt: skip
        """Rectangles from corners (n, 2) to the opposite ones (n, 2); without a colour they are frames."""
        return self._ends("boxes", corners, opposite, colour=colour, edge=edge, width=width, opacity=opacity)

    def bars(self, places: ArrayLike, heights: ArrayLike, colour: Words, wide: float = 0.8,
             base: ArrayLike = 0.0, edge: Words = "", flat: bool = False) -> Mark:  # fmt: skip
        """Bars `wide` at places (n,), from `base` up to heights (n,); `flat`: to the right."""
        numbers = (np.atleast_1d(np.asarray(a, float)) for a in (places, heights, base))
        x, top, low = np.broadcast_arrays(*numbers)
        one, two = np.stack([x - wide / 2, low], 1), np.stack([x + wide / 2, top], 1)
        return self.boxes(one[:, ::-1] if flat else one, two[:, ::-1] if flat else two, colour, edge)

    def cells(self, values: ArrayLike, low: float = 0.0, high: float = 1.0,
              words: str | ArrayLike | None = None, at: tuple[float, float] = (0, 0)) -> Mark:  # fmt: skip
        """A table of values (rows, columns), EMPTY at `low`, FULL at `high`, either may be more.

        The middle of cell (0, 0) is `at`, that of cell (i, j) j to the right and i further in y. words: what
        stands in the cells (rows, columns), or a format for the values.
        """
        values = np.asarray(values, float)
        share = np.nan_to_num((values - low) / (high - low)).clip(0, 1)
        shades = (share * SHADES).astype(int).clip(max=SHADES - 1)
        if isinstance(words, str):
            words = [format(value, words) for value in values.ravel()]
        said = None if words is None else [minus(str(word)) for word in np.ravel(words)]
        return self.add("cells", values.shape, shades=shades, columns=values.shape[1], at=at, words=said)

    def frames(self, where: Iterable[tuple[int, int]], colour: Words = VERMILION, width: float = 2) -> Mark:
        """Frames round the cells at these (row, column)."""
        middle = np.reshape([(column, row) for row, column in where], (-1, 2))
        return self.boxes(middle - 0.5, middle + 0.5, edge=colour, width=width)

    def photographs(self, points: ArrayLike, faces: Sequence[str] | np.ndarray, size: float,
                    hangs: str = "middle", up: float = 0, frame: Words = "") -> Mark:  # fmt: skip
        """Square photographs, `size` wide in data units of x, at points (n, 2); none at nan.

        faces: (n, side, side, 3) uint8, or names that `Page.picture` gave. hangs: which part of it is at the
        point: "middle", "bottom" or "top"; it is moved `up` by so many pixels.
        """
        names = [face if isinstance(face, str) else self.page.picture(face) for face in faces]
        return self._at("photographs", points, faces=names, size=size, hangs=hangs, up=up, frame=frame)

    def picture(self, pixels: np.ndarray, corner: ArrayLike, opposite: ArrayLike,
                smooth: bool = False) -> Mark:  # fmt: skip
        """An image (h, w, 3) uint8 from its upper left corner to its lower right one, clipped to the plot."""
        return self._ends("picture", corner, opposite, face=self.page.picture(pixels), smooth=smooth or None)

    def text(self, x: ArrayLike, y: ArrayLike, said: Words, colour: Words = INK, size: str = "normal",
             anchor: str = "middle", rise: str = "middle", right: float = 0, up: float = 0,
             bold: bool = False, halo: bool = False, turn: float = 0,
             within: bool = False) -> Mark:  # fmt: skip
        """Words at a point, or at each of several.

        size: "small", "normal" or "title". anchor: which end of them is there, "start", "middle" or "end";
        rise: "top", "middle" or "bottom"; then they are moved to the `right` and `up` in pixels. halo: on a
        ground of the page's colour, to be read among dots. turn: in degrees, to the left. within: x and y are
        shares of the plot's width and height, from its lower left.
        """
        words = [minus(str(word)) for word in ([said] if isinstance(said, str) else said)]
        points = np.stack([np.broadcast_to(np.asarray(a, float), len(words)) for a in (x, y)], 1)
        how = {"colour": colour, "size": size, "anchor": anchor, "rise": rise}
        more = {"right": right, "up": up, "bold": bold, "halo": halo, "turn": turn, "within": within}
        return self._at("text", points, said=words, **how, **{name: x for name, x in more.items() if x})

    def note(self, said: str, where: str = "top left", colour: str = INK, size: str = "normal",
             bold: bool = False, line: float = 0) -> Mark:  # fmt: skip
        """Words at a side of the plot, such as "bottom right" or "top middle"; so many lines further in."""
        level, side = where.split()
        (y, rise, up), (x, anchor, right) = LEVELS[level], SIDES[side]
        how: dict = {"right": right, "up": up + line * (-17 if level == "top" else 17), "bold": bold}
        return self.text(x, y, said, colour, size, anchor, rise, halo=True, within=True, **how)

    def key(self, *entries: tuple[str, str], where: str = "top left", size: str = "normal") -> None:
        """What colours mean: words in their colours, below one another."""
        lines = range(len(entries)) if where.startswith("top") else range(len(entries) - 1, -1, -1)
        for line, (said, colour) in zip(lines, entries):
            self.note(said, where, colour, size, bold=True, line=line)

    def level(self, value: float, said: str = "", colour: str = INK, to: float | None = None,
              side: str = "right", width: float = 2, dash: str = "") -> Mark:  # fmt: skip
        """A vertical line from the axis up to `to`, with words on one side of its upper end."""
        bottom, top = self.about["y"]
        end = top if to is None else to
        line = self.line([value, value], [bottom, end], colour, width, dash)
        if said:
            right, anchor = (5, "start") if side == "right" else (-5, "end")
            self.text(value, end, said, colour, anchor=anchor, rise="top", right=right, bold=True)
        return line


@dataclass(eq=False)
class Page:
    """What `draw` fills: plots by name, handles, links.

    `names` are the plots that will be seen. In a `row` of several states there may be fewer of them, and they
    are smaller; `draw` may then leave words out.
    """

    names: Sequence[str]
    row: bool = False
    pictures: dict[str, np.ndarray] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)
    handles: dict[str, Handle] = field(default_factory=dict)
    links: list[tuple[str, list, list, dict[str, Any]]] = field(default_factory=list)

    def __getitem__(self, name: str) -> Plot:
        return self.plots[name]

    def plot(self, name: str, x: ArrayLike, y: ArrayLike, title: str = "", xlabel: str = "", ylabel: str = "",
             xticks: Ticks = (), yticks: Ticks = (), equal: bool = False, frame: str = "left bottom",
             log: str = "", turn: float = 0, room: Sequence[int] = ()) -> Plot:  # fmt: skip
        """A plot with limits x and y, of which either may run downwards.

        equal: the same scale in both directions. frame: the sides that are drawn, of "left" and "bottom".
        log: "x", "y" or "x y". turn: of the words at the ticks of x, in degrees. room: pixels kept free at
        the left, top, right and bottom for what is written there.
        """
        about = {"name": name, "frame": frame, "x": plain(x), "y": plain(y)}
        more = {"title": minus(title), "xlabel": minus(xlabel), "ylabel": minus(ylabel), "equal": equal,
                "xticks": ticks(xticks), "yticks": ticks(yticks), "log": log, "room": room,
                "turn": turn}  # fmt: skip
        about |= {key: value for key, value in more.items() if value}
        self.plots[name] = Plot(self, len(self.plots), about)
        return self.plots[name]

    def plane(self, name: str, x: ArrayLike, y: ArrayLike | None = None, title: str = "", **how: Any) -> Plot:
        """A plot without a frame, of the same scale in both directions; y is as x where it is not given."""
        return self.plot(name, x, x if y is None else y, title, equal=True, frame="", **how)

    def table(self, name: str, rows: int, columns: int, title: str = "", beside: Iterable[str] = (),
              below: Iterable[str] = (), **how: Any) -> Plot:  # fmt: skip
        """A plot for `cells`, row 0 on top, with words beside the rows and below the columns."""
        words = {"xticks": dict(enumerate(below)), "yticks": dict(enumerate(beside))}
        return self.plane(name, (-0.5, columns - 0.5), (rows - 0.5, -0.5), title, **words, **how)

    def picture(self, pixels: np.ndarray) -> str:
        """The name of an image (h, w, 3) uint8, by which marks refer to it."""
        name = name_of(pixels.tobytes())
        self.pictures.setdefault(name, pixels)
        return name

    def link(self, said: str, *over: Mark | Piece, lit: Iterable[Mark | Piece] = (), **sets: Any) -> None:
        """Things that belong together: pointing at one of `over` lights up all of them and those `lit`, and
        says so. A click sets the controls that are named: `patch=3`. A letter that stands alone in what is
        said ("share p = 0.29") is that of the page's formulas: on the site each lights the other."""
        shown, also = ([one for thing in things if (one := thing.to_json())] for things in (over, lit))
        self.links.append((said, shown, also, sets))

    def to_json(self, knobs: Mapping[str, Knob]) -> dict[str, Any]:
        """The scene: what both painters read, as JSON can hold it."""
        links = []
        for said, over, lit, sets in self.links:
            stops = {name: knobs[name].number(value) for name, value in sets.items()}
            links.append([minus(said), over, lit, stops])
        plots = [{**plot.about, "marks": plot.marks} for plot in self.plots.values()]
        handles = {name: handle.to_json(knobs) for name, handle in self.handles.items()}
        return {"plots": plots, "handles": handles, "links": links}


@lru_cache(64)
def name_of(pixels: bytes) -> str:
    """A hash of an image. Those of the last scenes are known: the faces of the cast come again in each."""
    return blake2b(pixels, digest_size=8).hexdigest()


def plain(x: Any) -> Any:
    """As JSON can hold it, flat: numbers with six figures, a hundredth of a pixel; None where not finite."""
    if isinstance(x, np.ndarray):
        flat = x.ravel().tolist()
        if x.dtype.kind != "f":
            return flat
        return [float(f"{one:.6g}") if isfinite(one) else None for one in flat]
    if isinstance(x, float):
        return float(f"{x:.6g}") if isfinite(x) else None
    if isinstance(x, list | tuple):
        return [one if isinstance(one, str) else plain(one) for one in x]
    return x.item() if isinstance(x, np.generic) else x


def ticks(at: Ticks) -> list[tuple[float, str]]:
    named = at.items() if isinstance(at, Mapping) else [(value, f"{value:g}") for value in at]
    return [(plain(value), minus(word)) for value, word in named]
