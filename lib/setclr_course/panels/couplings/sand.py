"""Piles of sand and buckets, and two buttons, rows! and columns!: pressed in turn they are Sinkhorn's rounds
(IOT-CL, eq. 21 and 22)."""

import ipywidgets as widgets
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import INK, SKY
from setclr_course.panels.couplings.buckets import (
    PILES,
    SIDES,
    N,
    bucket_controls,
    bucket_places,
    cost,
    draw_sand,
    pressed,
    shares,
    spread,
)
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.handles import Link, box, free, line
from setclr_course.pixels.outlines import ink, written
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import SHADES, Part, bare, cell_outlines
from setclr_course.pixels.riders import riders

MOST = 40  # presses
ENDS = 2.4  # fair shares: where a bar ends at the latest
COLUMN_BARS, ROW_BARS = N + 0.75, N - 0.3  # where the bars begin


class Sand(Panel):
    """A panel with two buttons beside its sliders. Pressed twice, a button moves nothing the second time."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.buttons = {side: self._button(side) for side in ("rows", "columns")}
        front, *below = self.widget.children
        self.widget.children = [front, widgets.HBox(list(self.buttons.values())), *below]

    def _button(self, side: str) -> widgets.Button:
        button = widgets.Button(description=f"{side}!")
        button.tooltip = {"rows": "scale each row until its pile gives out exactly what it has",
                          "columns": "scale each column until its bucket is exactly full"}[side]  # fmt: skip
        button.on_click(lambda _: self.press(side))
        return button

    def press(self, side: str) -> None:
        """Scale the rows, or the columns, to their fair shares."""
        done = self.values["presses"]
        if done and pressed(done, self.values["first"]) == side:
            return
        with self._one_picture(""):
            if not done:
                self.controls["first"].value = side
            self.controls["presses"].value = min(done + 1, MOST)


def sand(**initial) -> Panel:
    """Six piles and six buckets: drag a bucket, and press rows! and columns! until nothing moves."""
    controls = {
        "presses": slider("presses", 0, 0, MOST, 1, {0: "none yet"}),
        "epsilon": log_slider("entropy ε", 0.2, 0.02, 2, 0.1, {0.05: ".05", 0.5: "paper .5"}),
        "first": options("which comes first", SIDES),
        **bucket_controls(NAMES),
    }
    return Sand(build, controls, (9, 4.5), initial, 3.5, play="presses")


def build(figure, compact: bool) -> Drawing:
    *plane, table = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1, 1.12))
    parts = [draw_sand(axis) for axis in plane]
    numbers = draw_table(table, compact)
    for axis in plane:
        axis.set_title("each grain prefers a near bucket")
        axis.text(0, -1.05, "● pile   ■ bucket   line: sand that is carried", ha="center", fontsize=9)
    now: dict = {}

    def update(values: dict) -> str:
        places = bucket_places(values)
        T = shares(cost(places), values["epsilon"], values["presses"], values["first"])
        now.update(T=T, places=places, cost=cost(places))
        for part in parts:
            part.move(T, places)
        numbers.move(T, values["presses"], values["first"])
        return sentence(T, values)

    handles = {name: free(axis, name, f"bucket of the {name}") for axis in plane for name in NAMES}
    artists = [artist for part in (*parts, numbers) for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(plane[0], table, now) if plane else [])


def sentence(T: np.ndarray, values: dict) -> str:
    done, first = values["presses"], values["first"]
    last = f", the last of them {pressed(done, first)}!" if done else ""
    off = max(np.abs(T.sum(axis) - 1).max() for axis in (0, 1))
    most = f", most of all that of the {NAMES[T.sum(0).argmax()]}" if off >= 0.01 else ""
    still = f"The worst is off by {100 * off:.3g} %" if most else "All are right to within 1 %"
    return (
        f"{done} press{'es' * (done != 1)}{last}, ε = {values['epsilon']:.3g}. Buckets hold "
        f"{spread(T.sum(0))} shares{most}; piles give out {spread(T.sum(1))}. {still}; in turn now: "
        f"{pressed(done + 1, first)}!."
    )


def links(plane, table, now: dict) -> list[Link]:
    """A cell of the table and its line in the plane; a row or column sum and its bar."""
    found = []
    for i, j in np.ndindex(N, N):
        cell = box(table, (j - 0.5, N - 1.5 - i), (j + 0.5, N - 0.5 - i))
        text = f"● {NAMES[i]} to ■ {NAMES[j]}: {now['T'][i, j]:.2f} of a share, d = {now['cost'][i, j]:.2f}"
        seen = [line(plane, PILES[i], now["places"][j])] if now["T"][i, j] > 0.05 else []
        found.append(Link([cell, *seen], text=text))
    for j, (received, given) in enumerate(zip(now["T"].sum(0), now["T"].sum(1))):
        y, high, long = N - 1 - j, min(received, ENDS), min(given, 1.5)
        above = box(table, (j - 0.4, COLUMN_BARS), (j + 0.4, COLUMN_BARS + high))
        beside = box(table, (ROW_BARS, y - 0.4), (ROW_BARS + long, y + 0.4))
        column, row = (
            box(table, (j - 0.5, -0.5), (j + 0.5, N - 0.5)),
            box(table, (-0.5, y - 0.5), (N - 0.5, y + 0.5)),
        )
        found.append(Link([above], [column], f"■ {NAMES[j]} holds {received:.2f} shares"))
        found.append(Link([beside], [row], f"● {NAMES[j]} gives out {given:.2f} shares"))
    return found


def draw_table(axis, compact: bool) -> Part:
    """The table of shares, photographs at its rows and columns, bars for the sums; moved by shares (6, 6),
    the number of presses and which side came first."""
    bare(axis, (-1.4, N + 2.8), (-0.6, N + 4.4))
    edges = np.arange(N + 1) - 0.5
    mesh = axis.pcolormesh(edges, edges, np.zeros((N, N)), cmap=SHADES, vmin=0, vmax=1)
    draw_heads(axis)
    own = LineCollection(cell_outlines((N - 1 - j, j) for j in range(N)), colors="white", linewidths=1.6)
    axis.add_collection(own)
    above = [axis.add_patch(Rectangle((j - 0.4, COLUMN_BARS), 0.8, 0, color=SKY)) for j in range(N)]
    beside = [axis.add_patch(Rectangle((ROW_BARS, N - 1 - i - 0.4), 0, 0.8, color=SKY)) for i in range(N)]
    axis.plot([-0.5, N - 0.5], [COLUMN_BARS + 1] * 2, color=INK, linewidth=1)
    axis.plot([ROW_BARS + 1] * 2, [-0.5, N - 0.5], color=INK, linewidth=1)
    if not compact:
        axis.text(N + 0.1, COLUMN_BARS + 1, "a fair share", fontsize=9, va="center")
        axis.text(-0.5, -0.6, "white frames: own buckets", fontsize=9, va="top")
        axis.text(ROW_BARS, -0.6, "given by ●", fontsize=9, va="top")
    heading = axis.text(-1.3, N + 4.2, "", fontsize=11, va="bottom")
    white, black = ink(axis, "white"), ink(axis, "black")

    def move(T: np.ndarray, presses: int, first: str) -> None:
        mesh.set_array(T[::-1])
        for j, (received, given) in enumerate(zip(T.sum(0), T.sum(1))):
            above[j].set_height(min(received, ENDS))
            beside[j].set_width(min(given, 1.5))
        cells: list[tuple[str, tuple[float, float], bool]] = []
        for (i, j), share in np.ndenumerate(T):
            cells.append((f"{share:.2f}".lstrip("0"), (j, N - 1 - i), bool(share < 0.5)))
        cells += [(f"{s:.2f}", (j, COLUMN_BARS + ENDS + 0.35), False) for j, s in enumerate(T.sum(0))]
        cells += [(f"{s:.2f}", (ROW_BARS + 2, N - 1 - i), False) for i, s in enumerate(T.sum(1))]
        for pen, dark in ((white, True), (black, False)):
            texts = [(text, at) for text, at, on_dark in cells if on_dark == dark]
            pen.set_path(written([text for text, _ in texts], [at for _, at in texts], 0.34))
        last = f"after {pressed(presses, first)}!" if presses else f"no press yet, {first}! in turn"
        heading.set_text(last if compact else f"shares of sand, {last}")

    return Part([mesh, own, *above, *beside, white, black, heading], move)


def draw_heads(axis) -> None:
    """The photographs at the rows and columns of the table, with their signs."""
    beside, above = [(-1.0, N - 1.4 - i) for i in range(N)], [(j, N - 0.35) for j in range(N)]
    for view, places in zip(two_views(), (beside, above)):
        riders(axis, view, 0.8).move(np.array(places))
    axis.plot(-1.0, N + 0.05, "o", color=INK, markersize=6)
    axis.plot(N - 0.3, N + 0.05, "s", color=INK, markersize=6)
