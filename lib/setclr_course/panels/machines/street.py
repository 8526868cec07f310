"""The widest street between one positive and five negatives, all of which can be dragged (MMCL, figure 1)."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection, PolyCollection

from setclr.inner import kernel, svm_dual
from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import FIELD, GREY, INK, VERMILION
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Link, box, dot, free
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

OTHERS = NAMES[1:]  # the negatives; the cat is anchor and positive
SIDE = 2.0  # the plane is drawn from −SIDE to SIDE
PLACES = {
    "positive": (1.1, 0.7), "anchor": (0.3, 0.5),
    "coffee": (-0.6, 1.0), "astronaut": (-0.1, -0.6), "rocket": (-1.5, 1.2), "temple": (-1.1, -0.3),
    "flower": (-0.9, -1.5),
}  # fmt: skip
RIDGE = 0.01
NOTHING = 1e-6  # a weight below is rounding


class Machine(NamedTuple):
    """The machine of one picture: f(x) = normal · x + offset."""

    alpha: np.ndarray  # (5,): the weights of the negatives
    normal: np.ndarray  # (2,)
    offset: float

    def f(self, point: np.ndarray) -> float:
        return float(self.normal @ point + self.offset)


def street(**initial) -> Panel:
    """The street between a positive and five negatives: drag any of them, and the anchor."""
    controls = {"bound": log_slider("no weight above C", 10, 0.1, 10, 0.1, {0.1: "soft", 10: "hard"})}
    for name, (x, y) in PLACES.items():
        controls[f"{name} x"] = slider(f"{name}, to the right", x, -SIDE, SIDE, 0.05)
        controls[f"{name} y"] = slider(f"{name}, up", y, -SIDE, SIDE, 0.05)
    return Panel(build, controls, (9, 4.3), initial, 3.9)


def place(values: dict, name: str) -> np.ndarray:
    return np.array([values[f"{name} x"], values[f"{name} y"]])


def machine(values: dict) -> Machine:
    """Solved exactly, with the linear kernel."""
    pool = torch.tensor(np.array([place(values, name) for name in ("positive", *OTHERS)]))
    solved = svm_dual(
        kernel(pool, pool, "linear", 1.0), C=values["bound"], ridge=RIDGE, solver="exact", rounds=200
    )
    alpha = np.where(solved.alpha[1:] > NOTHING, solved.alpha[1:], 0)
    normal = alpha.sum() * pool[0].numpy() - alpha @ pool[1:].numpy()
    return Machine(alpha, normal, 1 - normal @ pool[0].numpy())


def build(figure, compact: bool) -> Drawing:
    axis, *right = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1, 1))
    bare(axis, (-SIDE, SIDE))
    if not compact:
        axis.set_title("the widest street, and who holds it open")
    parts = [draw_street(axis), draw_points(axis), *(draw_bars(part) for part in right)]
    now: dict = {}  # the machine, and where the points are

    def update(values: dict) -> str:
        now.update(values, machine=machine(values))
        for part in parts:
            part.move(now["machine"], values)
        return sentence(now["machine"], values)

    handles = {name: free(axis, name) for name in PLACES}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: [link(axis, right, now, j) for j in range(len(OTHERS))])


def link(axis, right: list, now: dict, j: int) -> Link:
    """A negative in the plane and its bar."""
    name, alpha = OTHERS[j], now["machine"].alpha[j]
    bars = [box(part, (j - 0.4, 0), (j + 0.4, max(alpha, 0.1))) for part in right]
    point = place(now, name)
    return Link(
        [dot(axis, point), *bars], text=f"{name}: weight {alpha:.2f}, f = {now['machine'].f(point):+.2f}"
    )


def sentence(now: Machine, values: dict) -> str:
    holding = [name for name, alpha in zip(OTHERS, now.alpha) if alpha > 0]
    free = [name for name in OTHERS if name not in holding]
    width = 2 / max(float(np.hypot(*now.normal)), 1e-9)
    held = f"{listed(holding).capitalize()} hold{'s' * (len(holding) == 1)} it open"
    rest = f"; {listed(free)} weigh{'s' * (len(free) == 1)} nothing" if free else ""
    beginning = f"C is {values['bound']:.3g}, the street {width:.2f} wide"
    return f"{beginning}. {held}{rest}."


def listed(names: list[str]) -> str:
    """The names in words."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "nobody"


def draw_street(axis) -> Part:
    """The bands of the plane between f = −1, 0 and 1, and the lines there."""
    bands = axis.add_collection(PolyCollection([], facecolors=FIELD, linewidths=0, zorder=0))
    lines = axis.add_collection(LineCollection([], colors=INK, linewidths=(1.2, 2.4, 1.2)))
    lines.set_linestyles([(0, (4, 2)), "solid", (0, (4, 2))])
    for artist in (bands, lines):
        artist.set_clip_path(axis.patch)

    def move(now: Machine, _: dict) -> None:
        length = max(float(np.hypot(*now.normal)), 1e-9)
        across = now.normal / length
        along = 9 * np.array([-across[1], across[0]])

        def at(f: float) -> np.ndarray:
            middle = across * np.clip((f - now.offset) / length, -9, 9)
            return np.array([middle - along, middle + along])

        ends = [at(f) for f in (-1e9, -1, 0, 1, 1e9)]
        bands.set_verts([np.concatenate([low, high[::-1]]) for low, high in zip(ends, ends[1:])])
        lines.set_segments(ends[1:4])

    return Part([bands, lines], move)


def draw_points(axis) -> Part:
    """The photographs on their signs: ✕ filled where it holds the street, ✚ the positive, ★ the anchor."""
    crosses = axis.scatter(
        np.zeros(5), np.zeros(5), marker="X", s=110, linewidths=1.6, edgecolors=INK, zorder=5
    )
    signs = [
        axis.plot([], [], marker, color=INK, markersize=size, markeredgecolor="white", zorder=5)[0]
        for marker, size in (("P", 13), ("*", 16))
    ]
    one, two = two_views()
    faces = riders(axis, np.concatenate([one[1:], two[:1], one[:1]]), 0.42, 0.13)

    def move(now: Machine, values: dict) -> None:
        points = np.array([place(values, name) for name in (*OTHERS, "positive", "anchor")])
        crosses.set(offsets=points[:5], facecolors=[VERMILION if a > 0 else "white" for a in now.alpha])
        for sign, point in zip(signs, points[5:]):
            sign.set_data(point[:1], point[1:])
        faces.move(points)

    return Part([*faces.artists, crosses, *signs], move)


TOP = 2.0  # of the bars


def draw_bars(axis) -> Part:
    """The weight of each negative."""
    axis.set_title("weight α of each negative")
    axis.set(xlim=(-0.6, 4.6), ylim=(0, TOP), xticks=range(5), xticklabels=OTHERS)
    bars = axis.bar(range(5), np.zeros(5), color=VERMILION)
    numbers = [axis.text(j, 0, "", ha="center", va="bottom") for j in range(5)]

    def move(now: Machine, _: dict) -> None:
        for bar, number, alpha in zip(bars, numbers, now.alpha):
            bar.set_height(min(alpha, TOP))
            number.set(y=min(alpha, TOP) + 0.02, text=f"{alpha:.2f}" if alpha > 0 else "0")
            number.set_color(INK if alpha > 0 else GREY)

    return Part([*bars, *numbers], move)
