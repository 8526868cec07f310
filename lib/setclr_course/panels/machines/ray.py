"""Two negatives on one ray from the positive: the far one is hidden, and clipping does not see it (MMCL,
proposition 1)."""

from functools import partial
from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import two_views
from setclr_course.kit.palette import BLUE, GREY, INK, VERMILION
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle, Link, box, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

WAYS = ("exact", "without bounds", "clipped")
COLOURS = dict(zip(WAYS, (BLUE, GREY, VERMILION)))
TOP = 13.0  # of the bars; longer ones end there
END = 3.2  # of the ray


class Solved(NamedTuple):
    """The weights of the near and the far negative by each way, and what each is worth."""

    alpha: dict[str, np.ndarray]  # (2,) each
    g: dict[str, float]  # smaller is better; 0 is what weights of 0 get


def ray(**initial) -> Panel:
    """Two negatives that can be pulled along a ray, and their weights by three ways of solving."""
    controls = {
        "ridge": log_slider("ridge ρ", 0.1, 0.01, 1, 0.1, {0.1: "paper 0.1"}),
        "near": slider("coffee, distance from ✚", 1.0, 0.2, 3.0, 0.05),
        "far": slider("rocket, distance from ✚", 2.0, 0.2, 3.0, 0.05),
    }
    return Panel(build, controls, (9, 4.2), initial, 4.4)


def solve(near: float, far: float, ridge: float) -> Solved:
    """The machine of ✚ at 0 against two points at these distances, with the linear kernel."""
    at = np.array([near, far])
    D = np.outer(at, at) + ridge * np.eye(2)

    def g(alpha: np.ndarray) -> float:
        return float(0.5 * alpha @ D @ alpha - 2 * alpha.sum())

    free = np.linalg.solve(D, np.full(2, 2.0))
    # The minimum over weights >= 0 is that of one of the faces: both weights free, one of them, or none.
    faces = [np.zeros(2), *([free] if free.min() >= 0 else [])]
    faces += [np.where(np.arange(2) == j, 2 / D[j, j], 0) for j in range(2)]
    alpha = {"exact": min(faces, key=g), "without bounds": free, "clipped": free.clip(0)}
    return Solved(alpha, {way: g(a) for way, a in alpha.items()})


def build(figure, compact: bool) -> Drawing:
    top, *lower = figure.subplots(2, 1) if compact else figure.subplot_mosaic(
        [["ray", "ray"], ["alpha", "g"]], height_ratios=(1, 1.5), width_ratios=(1.7, 1)
    ).values()  # fmt: skip
    parts = [draw_ray(top), draw_weights(lower[0], compact), *(draw_worth(axis) for axis in lower[1:])]
    now: dict = {}

    def update(values: dict) -> str:
        now.update(values, solved=solve(values["near"], values["far"], values["ridge"]))
        for part in parts:
            part.move(now["solved"], values)
        return sentence(now["solved"], values)

    handles = {
        name: Handle(top, (name,), partial(on_the_ray, name), along="x", label=thing)
        for name, thing in (("near", "coffee"), ("far", "rocket"))
    }
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(top, lower[0], now))


def on_the_ray(name: str, values: dict) -> tuple[float, float]:
    return values[name], 0.0


def links(top, bars, now: dict) -> list[Link]:
    """Each negative and its three bars."""
    found = []
    for j, (name, thing) in enumerate((("near", "coffee"), ("far", "rocket"))):
        weights = {way: now["solved"].alpha[way][j] for way in WAYS}
        marks = [
            box(bars, (4 * j + k - 0.4, 0), (4 * j + k + 0.4, np.clip(w, -TOP, TOP)))
            for k, w in enumerate(weights.values())
        ]
        text = ", ".join(f"{way} {w:.2f}" for way, w in weights.items())
        found.append(Link([dot(top, (now[name], 0)), *marks], text=f"{thing}: {text}"))
    return found


def sentence(now: Solved, values: dict) -> str:
    exact, clipped = now.alpha["exact"], now.alpha["clipped"]
    held = (
        "both hold" if (exact > 0).all() else "coffee alone holds" if exact[0] > 0 else "rocket alone holds"
    )
    worse = "worse than doing nothing" if now.g["clipped"] > 0 else "better than nothing"
    return (
        f"Ridge {values['ridge']:.3g}, coffee at {values['near']:g}, rocket at {values['far']:g}: {held} the "
        f"street. The exact weights are {exact[0]:.2f} and {exact[1]:.2f}, the clipped ones {clipped[0]:.2f} "
        f"and {clipped[1]:.2f}, with g = {now.g['clipped']:.1f} against {now.g['exact']:.1f}: {worse}."
    )


def draw_ray(axis) -> Part:
    """The positive at 0, and the two negatives to its right."""
    bare(axis)
    axis.set(xlim=(-0.4, END), ylim=(-0.3, 1.1))
    axis.set_title("one ray from ✚: larger is farther", fontsize=10)
    axis.plot([0, END], [0, 0], color=GREY, linewidth=1, zorder=0)
    axis.plot(0, 0, "P", color=INK, markersize=13, markeredgecolor="white")
    crosses = axis.scatter([0, 0], [0, 0], marker="X", s=110, linewidths=1.6, edgecolors=INK, zorder=5)
    faces = riders(axis, np.stack([two_views()[1][0], *two_views()[0][[1, 3]]]), 0.28, 0.25)
    faces.move(np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))

    def move(now: Solved, values: dict) -> None:
        points = np.array([[values["near"], 0], [values["far"], 0]])
        crosses.set(offsets=points, facecolors=[VERMILION if a > 0 else "white" for a in now.alpha["exact"]])
        faces.move(np.concatenate([[[0, 0]], points]))

    return Part([*faces.artists, crosses], move)


def draw_weights(axis, compact: bool) -> Part:
    """Three bars for each negative."""
    axis.set(xlim=(-0.6, 6.6), ylim=(-6, TOP), xticks=(1, 5), xticklabels=("coffee", "rocket"))
    axis.set_title("weight α", fontsize=10)
    axis.axhline(0, color=GREY, linewidth=0.8)
    places = [4 * j + k for j in range(2) for k in range(3)]
    bars = axis.bar(places, np.zeros(6), color=[COLOURS[way] for way in WAYS] * 2)
    for y, way in zip((0.92, 0.81, 0.70), WAYS):
        where = (0.98, y) if not compact else (0.99, y)
        axis.text(*where, way, color=COLOURS[way], transform=axis.transAxes, ha="right", weight="bold")

    def move(now: Solved, _: dict) -> None:
        for bar, height in zip(bars, np.stack([now.alpha[way] for way in WAYS], axis=1).ravel()):
            bar.set_height(np.clip(height, -6, TOP))

    return Part(list(bars), move)


def draw_worth(axis) -> Part:
    """The value g of the exact and of the clipped weights."""
    axis.set(xlim=(-0.6, 1.6), ylim=(-8, 22), xticks=(0, 1), xticklabels=("exact", "clipped"))
    axis.set_title("g: below the line is good", fontsize=10)
    axis.axhline(0, color=INK, linewidth=1)
    bars = axis.bar([0, 1], [0, 0], color=[BLUE, VERMILION])
    numbers = [axis.text(x, 0, "", ha="center") for x in (0, 1)]

    def move(now: Solved, _: dict) -> None:
        for bar, number, way in zip(bars, numbers, ("exact", "clipped")):
            height = np.clip(now.g[way], -8, 22)
            bar.set_height(height)
            number.set(y=max(height, 0) + 0.5 if height > -5 else 0.5, text=f"{now.g[way]:.1f}")

    return Part([*bars, *numbers], move)
