"""Two views as two shapes: the table of similarities within each, and what it does not notice (QARe,
figure 1b)."""

from typing import Any

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import INK, PURPLE
from setclr_course.panels.sets.ring import FIRST, degrees_of, draw_ring, ring_controls, ring_handles, vectors
from setclr_course.pixels.circle import RADII
from setclr_course.pixels.handles import Link, cell, dot, line
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, numbers, write
from setclr_course.pixels.riders import riders

PAIRS = [(i, j) for i in range(6) for j in range(i)]


def two_shapes(**initial) -> Panel:
    """Six photographs in two views on a circle, and the similarities within each view: ■ can be dragged."""
    return Panel(build, ring_controls(np.zeros(6, int), 30), (9, 4.3), initial, 4.0)


def measures(z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The tables (2, 6, 6), the mean similarity of ● with its ■, and the mean of (A − B)²."""
    tables = z @ z.swapaxes(1, 2)
    return tables, float((z[0] * z[1]).sum(-1).mean()), float(((tables[0] - tables[1]) ** 2).mean())


def build(figure, compact: bool) -> Drawing:
    if compact:
        axes = figure.subplot_mosaic([["ring"], ["B"]], height_ratios=(1.3, 1))
    else:
        axes = figure.subplot_mosaic(
            [["ring", "A", "B"], ["ring", "bars", "bars"]], width_ratios=(1.6, 1, 1), height_ratios=(1.3, 1)
        )
    ring = draw_ring(axes["ring"], compact)
    tables = {name: draw_table(axes[name], name, compact) for name in axes if name in ("A", "B")}
    if "A" in tables:  # it stands still
        tables.pop("A").move(measures(vectors(np.array([FIRST, FIRST])))[0][0])
    table = tables["B"]
    bars = None if compact else draw_bars(axes["bars"])
    now: dict[str, Any] = {}

    def update(values: dict) -> str:
        z = vectors(degrees_of(values))
        both, pairs, mismatch = measures(z)
        now.update(turn=values["turn"], z=z, tables=both)
        ring.move(z)
        table.move(both[1])
        if bars:
            bars.move(pairs, mismatch)
        return (
            f"View 2 is turned by {values['turn']}°. The mean similarity of ● with its ■ is {pairs:.2f}; the "
            f"mean of (A − B)² over the tables is {mismatch:.3f}."
        )

    artists = [artist for part in (ring, table, *([bars] if bars else [])) for artist in part.artists]
    handles = ring_handles(axes["ring"], now)
    return Drawing(artists, update, handles, lambda: links(axes, now))


def links(axes: dict, now: dict) -> list[Link]:
    """Two photographs in both tables, and the lines between their points."""
    found = []
    for i, j in PAIRS:
        boxes = [cell(axes[name], *where) for name in "AB" if name in axes for where in ((i, j), (j, i))]
        points = [radius * z for radius, z in zip(RADII, now["z"])]
        lines = [line(axes["ring"], view[i], view[j]) for view in points]
        A, B = now["tables"][:, i, j]
        found.append(Link(boxes, lines, f"{NAMES[i]} and {NAMES[j]}: {A:.2f} in view 1, {B:.2f} in view 2"))
    for i, name in enumerate(NAMES):
        boxes = [cell(axes[table], i, 0, 1, 6) for table in "AB" if table in axes]
        found.append(Link([dot(axes["ring"], RADII[1] * now["z"][1, i])], boxes, f"{name}: its row"))
    return found


def draw_table(axis, name: str, compact: bool) -> Part:
    """The similarities within a view, the photographs at rows and columns."""
    view = "AB".index(name)
    mesh = cells(axis, 6, 6, 1.0, -1.0)
    bare(axis)
    axis.set(xlim=(-1.6, 5.5), ylim=(5.5, -1.6))
    faces = two_views()[view]
    riders(axis, faces, 0.9, -0.45).move(np.array([(j, -1.05) for j in range(6)]))
    riders(axis, faces, 0.9, -0.45).move(np.array([(-1.05, i) for i in range(6)]))
    axis.set_title(f"{name}: within view {view + 1} {'●■'[view]}", fontsize=9 if compact else 11)
    words = [] if compact else numbers(axis, 6, 6, 8)

    def move(table: np.ndarray) -> None:
        mesh.set_array(table)
        if words:
            write(words, table.round(1) + 0.0, 0.0, ".1f")

    return Part([mesh, *words], move)


def draw_bars(axis) -> Part:
    """What a loss on pairs sees, and what a comparison of the tables sees."""
    axis.set(xlim=(0, 1.25), ylim=(1.7, -0.75), xticks=(0, 0.5, 1), yticks=[])
    axis.spines["left"].set_visible(False)
    axis.set_title("turned as one: the pairs suffer, the shape does not")
    for y, word in enumerate(("pairs: 1 − mean similarity of ● and ■", "shapes: mean (A − B)²")):
        axis.text(0.01, y - 0.3, word, va="bottom")
    bars = axis.barh([0, 1], [0, 0], 0.5, color=["#777777", PURPLE])
    words = [axis.text(0, y, "", va="center", color=INK, weight="bold") for y in (0, 1)]

    def move(pairs: float, mismatch: float) -> None:
        for bar, word, value in zip(bars, words, (1 - pairs, mismatch)):
            bar.set_width(min(value, 1.05))
            word.set(x=min(value, 1.05) + 0.02, text=f"{value:.2f}")

    return Part([*bars, *words], move)
