"""A bucket that is near to everybody under three sets of constraints: nothing but the total, rows, rows and
columns (IOT-CL, figure 4)."""

import numpy as np
from matplotlib.patches import Rectangle

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import BLUE, INK, SKY
from setclr_course.panels.couplings.buckets import (
    HUB,
    N,
    bucket_controls,
    bucket_places,
    cost,
    draw_sand,
    shares,
)
from setclr_course.pixels.controls import log_slider
from setclr_course.pixels.handles import Link, box, dot, free
from setclr_course.pixels.outlines import ink, written
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

MANY = 200  # presses: until nothing moves
WAYS = {
    "total": ("the total is right", 0, "columns"),
    "rows": ("rows are right: InfoNCE", 1, "rows"),
    "both": ("rows and columns are: no hub", MANY, "columns"),
}
ENDS = 2.4  # fair shares: where a bar ends


def hub(**initial) -> Panel:
    """Drag the coffee's bucket into the middle and home again; below stands what each bucket receives."""
    controls = {
        "epsilon": log_slider("entropy ε", 0.2, 0.02, 2, 0.1, {0.05: ".05", 0.5: "paper .5"}),
        **bucket_controls((NAMES[HUB],)),
    }
    return Panel(build, controls, (9, 5), initial, 4.4)


def build(figure, compact: bool) -> Drawing:
    if compact:
        planes, bars = [], figure.subplots(3, 1)
    else:
        planes, bars = figure.subplots(2, 3, height_ratios=(1.5, 1))
    sands, sums = [draw_sand(axis) for axis in planes], [draw_received(axis, compact) for axis in bars]
    for axis, (title, _, _) in zip(bars if compact else planes, WAYS.values()):
        axis.set_title(title, fontsize=9 if compact else 11)
    now: dict = {}

    def update(values: dict) -> str:
        places = bucket_places(values)
        found = {
            name: shares(cost(places), values["epsilon"], presses, first)
            for name, (_, presses, first) in WAYS.items()
        }
        now.update(places=places, found=found)
        for sand, T in zip(sands, found.values()):
            sand.move(T, places)
        for bar, T in zip(sums, found.values()):
            bar.move(T)
        return sentence(found, values)

    name = NAMES[HUB]
    handles = {f"{name} {way}": free(axis, name, f"bucket of the {name}") for axis, way in zip(planes, WAYS)}
    artists = [artist for part in (*sands, *sums) for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(planes, bars, now))


def loss_of(T: np.ndarray) -> float:
    """Minus the mean logarithm of the share that a pile sends to its own bucket."""
    return float(-np.log(T.diagonal()).mean())


def sentence(found: dict[str, np.ndarray], values: dict) -> str:
    name = NAMES[HUB]
    x, y = values[f"{name} x"], values[f"{name} y"]
    words = []
    for way, T in found.items():
        received = T.sum(0)
        least = f"that of the {NAMES[received.argmin()]} only {received.min():.2f}"
        others = least if received.min() < 0.99 else "and so do all others"
        words.append(
            f"{way}: the {name}'s bucket gets {received[HUB]:.2f} shares, {others}, loss {loss_of(T):.2f}"
        )
    return f"ε = {values['epsilon']:.3g}, ■ {name} at ({x:.2f}, {y:.2f}). {'; '.join(words)}."


def links(planes, bars, now: dict) -> list[Link]:
    """A bucket in the planes and its three bars."""
    found = []
    for j, name in enumerate(NAMES):
        received = [T[:, j].sum() for T in now["found"].values()]
        marks = [
            box(axis, (j - 0.4, 0), (j + 0.4, max(min(r, ENDS), 0.1))) for axis, r in zip(bars, received)
        ]
        dots = [dot(axis, now["places"][j]) for axis in planes]
        text = ", ".join(f"{way} {r:.2f}" for way, r in zip(WAYS, received))
        found.append(Link([*dots, *marks], text=f"■ {name} receives: {text}"))
    return found


def draw_received(axis, compact: bool) -> Part:
    """A bar for each bucket, its photograph below; moved by shares (6, 6)."""
    bare(axis, (-0.7, N - 0.3), (-1 if compact else -1.5, ENDS + 0.8))
    bars = [
        axis.add_patch(Rectangle((j - 0.4, 0), 0.8, 0, color=BLUE if j == HUB else SKY)) for j in range(N)
    ]
    axis.plot([-0.5, N - 0.5], [1, 1], color=INK, linewidth=1)
    faces = riders(axis, two_views()[1], 0.8)
    faces.move(np.column_stack([np.arange(N), np.full(N, -0.95)]))
    pen = ink(axis, INK)

    def move(T: np.ndarray) -> None:
        words = [f"{received:.2f}" for received in T.sum(0)] + [f"loss {loss_of(T):.2f}"]
        places = [*((j, ENDS + 0.4) for j in range(N)), ((N - 1) / 2, -1.3)]
        shown = N if compact else N + 1
        pen.set_path(written(words[:shown], places[:shown], 0.38))
        for bar, received in zip(bars, T.sum(0)):
            bar.set_height(min(received, ENDS))

    return Part([*bars, pen], move)
