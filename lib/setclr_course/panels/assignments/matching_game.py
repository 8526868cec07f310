"""Six photographs, seen twice: draw the lines between the views, as short as you can (QARe, eq. 2 and 3)."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection

from setclr.inner import linear_assignment
from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import GREY, INK, OF_LOSS, YELLOW
from setclr_course.panels.assignments.things import random_things
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Link, cell, free, line
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import SHADES, Part, bare, cell_outlines, cells, frames
from setclr_course.pixels.parts import numbers as cell_numbers
from setclr_course.pixels.riders import riders

N = len(NAMES)
THINGS = random_things(2238, N, spread=0.75).numpy()  # (2, N, 2): neither truth nor greed finds the shortest
DISTANCE = np.hypot(*(THINGS[0, :, None] - THINGS[1]).T).T  # (N, N): from each ● to each ■
SHORTEST = linear_assignment(torch.from_numpy(DISTANCE)).matrix.argmax(1).numpy()
TRUE = np.arange(N)
DEAR = 1.4  # cells that cost more are dark
STOP = 0.17  # how far from the middle of its ■ a line ends at the start, where it can be taken
WIDE, TALL = 1.75, 1.25  # the ends move from −WIDE to WIDE and from −TALL to TALL


class Played(NamedTuple):
    """The reader's lines."""

    ends: np.ndarray  # (N, 2): where the line of each ● ends
    mine: np.ndarray  # (N,): the ■ that is nearest to this end

    def twice(self) -> list[str]:
        """Who is taken more than once."""
        return [NAMES[j] for j in range(N) if (self.mine == j).sum() > 1]


def matching_game(**initial) -> Panel:
    """Lines from six ● to six ■ whose ends can be dragged, against the shortest one-to-one matching."""
    controls = {"shown": slider("lines of the shortest", 0, 0, N, 1, {0: "none", N: "all"})}
    for name, (x, y) in zip(NAMES, ends_of(TRUE)):
        controls[f"{name} x"] = slider(f"line of {name}, to the right", x, -WIDE, WIDE, 0.05)
        controls[f"{name} y"] = slider(f"line of {name}, up", y, -TALL, TALL, 0.05)
    return Panel(build, controls, (9, 5.0), initial, 2.9, play="shown")


def length(columns: np.ndarray) -> float:
    return float(DISTANCE[np.arange(N), columns].sum())


def ends_of(columns: np.ndarray) -> np.ndarray:
    """(N, 2): where lines to these ■ end, a little before them, on the sliders' grid."""
    way = THINGS[0] - THINGS[1, columns]
    return ((THINGS[1, columns] + STOP * way / np.hypot(*way.T)[:, None]) / 0.05).round() * 0.05


def played(values: dict) -> Played:
    ends = np.array([(values[f"{name} x"], values[f"{name} y"]) for name in NAMES])
    far = np.hypot(*(ends[:, None] - THINGS[1]).T).T
    return Played(ends, far.argmin(1))


def build(figure, compact: bool) -> Drawing:
    if compact:
        axes = {"plane": figure.subplots()}
    else:
        layout = [["plane", "table"], ["bars", "bars"]]
        axes = figure.subplot_mosaic(layout, height_ratios=(3.4, 1), width_ratios=(1.9, 1))
        axes["plane"].set_title("● view 1, ■ view 2: can you do with less line?")
    bare(axes["plane"], (-1.75, 1.75), (-1.15, 1.3))
    parts = [draw_lines(axes["plane"], compact)]
    parts += [] if compact else [draw_bars(axes["bars"]), draw_table(axes["table"])]
    now: dict[str, Played] = {}

    def update(values: dict) -> str:
        now["played"] = played(values)
        for part in parts:
            part.move(now["played"], values["shown"])
        return sentence(now["played"], values["shown"])

    handles = {name: free(axes["plane"], name, f"the line of {name}") for name in NAMES}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(axes, now["played"]))


def links(axes: dict, now: Played) -> list[Link]:
    """A line and its cell, and every other cell with the two that it would join."""
    if "table" not in axes:
        return []
    found = []
    for i, j in np.ndindex(N, N):
        pair = line(axes["plane"], THINGS[0, i], THINGS[1, j])
        text = f"● {NAMES[i]}, ■ {NAMES[j]}: {DISTANCE[i, j]:.2f}"
        mark = cell(axes["table"], i, j)
        mine = now.mine[i] == j
        found.append(Link([mark, pair] if mine else [mark], [] if mine else [pair], text))
    return found


def sentence(now: Played, shown: int) -> str:
    truth, mine, best = map(length, (TRUE, now.mine, SHORTEST))
    twice = now.twice()
    if twice:
        state = f"taken more than once, so this is no matching: {', '.join(twice)}"
    else:
        state = (
            "you have found the shortest"
            if mine < best + 1e-9
            else f"{round(mine, 2) - round(best, 2):.2f} too long"
        )
    hints = ", ".join(f"{NAMES[i]} to {NAMES[SHORTEST[i]]}" for i in range(shown)) or "not shown"
    return (
        f"Your lines are {mine:.2f} long: {state}. The true pairs need {truth:.2f}, the shortest matching "
        f"{best:.2f}, so the loss is {(truth - best) / N:.3f} for each photograph. Its lines: {hints}."
    )


def draw_lines(axis, compact: bool) -> Part:
    """The reader's lines, over those of the shortest matching as far as they are shown."""
    small = 0.65 if compact else 1.0
    for view, places, marker in zip(two_views(), THINGS, "os"):
        riders(axis, view, 0.33 if compact else 0.28, 0.06).move(places)
        axis.plot(*places.T, marker, color=INK, markersize=10 * small, markeredgecolor="white", zorder=6)
    under = LineCollection([], colors=YELLOW, linewidths=9 * small, alpha=0.8, capstyle="round", zorder=5)
    lines = LineCollection([], colors=INK, linewidths=2.2 * small, zorder=5)
    threads = LineCollection([], colors=INK, linewidths=1.2 * small, linestyles=":", zorder=5)
    for collection in (under, lines, threads):
        axis.add_collection(collection)
    ends = axis.plot([], [], "o", color=INK, markersize=6 * small, markeredgecolor="white", zorder=6)[0]

    def move(now: Played, shown: int) -> None:
        under.set_segments([(THINGS[0, i], THINGS[1, SHORTEST[i]]) for i in range(shown)])
        lines.set_segments(list(np.stack([THINGS[0], now.ends], 1)))
        threads.set_segments(list(np.stack([now.ends, THINGS[1, now.mine]], 1)))
        ends.set_data(*now.ends.T)

    return Part([under, lines, threads, ends], move)


def draw_table(axis) -> Part:
    """The distances, with a frame round each that the reader uses."""
    mesh = cells(axis, N, N, high=2 * DEAR)
    mesh.set_cmap(SHADES.reversed())  # bright: near each other
    mesh.set_array(DISTANCE)
    axis.set_yticks(range(N), [f"{name} ●" for name in NAMES], fontsize=9)
    columns = [f"{name} ■" for name in NAMES]
    axis.set_xticks(range(N), columns, fontsize=9, rotation=50, ha="right", rotation_mode="anchor")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title("distance d: bright is close, smaller is closer", fontsize=10, loc="right")
    for text, d in zip(cell_numbers(axis, N, N, 9), DISTANCE.flat):
        text.set(text=f"{d:.2f}", color="white" if d > DEAR else "black")
    framed = frames(axis, [], INK, 2.5)
    return Part([framed], lambda now, _: framed.set_segments(cell_outlines(enumerate(now.mine))))


def draw_bars(axis) -> Part:
    """The length of the true pairs, of the reader's lines, and of the shortest matching."""
    axis.set(xlim=(0, 8), ylim=(-0.6, 2.6), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    true, best = length(TRUE), length(SHORTEST)
    axis.barh((2, 0), (true, best), color=(GREY, YELLOW), height=0.7)
    axis.plot([best, true], [0, 0], color=OF_LOSS["LinearAssignment"], linewidth=4, solid_capstyle="butt")
    gap = f"shortest matching: {best:.2f}, less by {true - best:.2f}: that gap is the loss"
    for y, words in ((2, f"true pairs: {true:.2f}"), (0, gap)):
        axis.text(true + 0.06, y, words, va="center", fontsize=10)
    (bar,) = axis.barh(1, 0, color=INK, height=0.7)
    text = axis.text(0, 1, "", va="center", fontsize=10)

    def move(now: Played, _: int) -> None:
        mine = length(now.mine)
        bar.set_width(mine)
        text.set(x=mine + 0.06, text=f"your lines: {mine:.2f}" + ", not one to one" * bool(now.twice()))

    return Part([bar, text], move)
