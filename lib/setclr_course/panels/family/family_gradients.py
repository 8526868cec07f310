"""One batch pushed by ten losses: the same points on ten circles, with arrows where that loss wants them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba_array
from matplotlib.text import Text
from torch import Tensor

from setclr_course.kit.palette import GREY, LINES
from setclr_course.panels.family.along import QUIET, REST, arrows_on, pushes, share_of_longest
from setclr_course.panels.family.batch import ANGLES, FAMILY, NAMES, batch, smoothing_slider
from setclr_course.pixels.circle import RADII, as_drawn
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Circle, Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

FEW = ("LinearAssignment", "InfoNCE", "NTLogistic", "GroCo", "IOT total", "MMCL")  # in the compact form
MOVED = (1, 2)  # ■3, the point with the slider
ORDER = [0, 1, 3, 4, 2]  # in which the images are drawn: ■3 on top


class Numbers(NamedTuple):
    """The two numbers in one circle."""

    parameter: Text
    longest: Text


def family_gradients(**initial) -> Panel:
    """Ten losses' pushes on one batch, with sliders for the smoothing and for the angle of one point."""
    home = ANGLES[MOVED[0]][MOVED[1]]
    controls = {
        "smoothing": smoothing_slider(),
        "angle": slider("angle of ■3 in degrees", home, 0, 359, 1, {15: "by ●2", home: "home", 310: "by ●5"}),
    }
    return Panel(build, controls, (8.8, 4.2), initial, 5.4)


@lru_cache(maxsize=2**12)
def pushes_of(name: str, smoothing: float, angle: int) -> np.ndarray:
    """(2, 5): with ■3 at this angle. A loss without a smoothing is asked for it at 1 only."""
    return pushes(FAMILY[name].at(smoothing), moved_batch(angle))


def moved_batch(angle: int) -> Tensor:
    angles = np.array(ANGLES)
    angles[MOVED] = angle
    return batch(angles)


def build(figure, compact: bool) -> Drawing:
    names = FEW if compact else list(FAMILY)
    columns, size = (2, 7) if compact else (5, 8)
    centres = np.array([(3.1 * (k % columns), -3.5 * (k // columns)) for k in range(len(names))])
    axis = figure.subplots()
    axis.set(aspect="equal", xlim=(-1.5, 3.1 * columns - 1.6), ylim=(centres[-1, 1] - 1.9, 1.8))
    axis.set_axis_off()
    if not compact:
        legend = "● view 1    ■ view 2    black edge: ■3, which you move    ○ □ pushed by less than 5 %"
        axis.text(centres[:, 0].mean(), axis.get_ylim()[0] - 0.1, legend, fontsize=size, ha="center")
    numbers = [draw_circle(axis, name, centre, size) for name, centre in zip(names, centres)]
    points = draw_points(axis, centres)

    def update(values: dict) -> str:
        shown = {name: values["smoothing"] if FAMILY[name].power else 1 for name in names}
        forces = {name: pushes_of(name, smoothing, values["angle"]) for name, smoothing in shown.items()}
        words = []
        for (name, force), (parameter, longest) in zip(forces.items(), numbers):
            most, where = np.abs(force).max(), NAMES[np.abs(force).argmax()]
            if FAMILY[name].power:
                parameter.set_text(f"{FAMILY[name].parameter(shown[name]):.3g}")
            longest.set_text(f"{most:.2g}" if most > REST else "at rest")
            words.append(f"{name} {most:.2g} at {where}" if most > REST else f"{name} at rest")
        push = np.stack([share_of_longest(force) for force in forces.values()])
        points.move(moved_batch(values["angle"]).numpy(), push)
        quiet = np.abs(push) <= QUIET
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual values, ■3 at {values['angle']}°. "
            f"The strongest push of each loss: {', '.join(words)}. "
            f"{quiet.sum()} of the {quiet.size} points get less than 5 % of their loss's strongest."
        )

    handles = {"■3": handle(axis, centres[0])}
    return Drawing([*points.artists, *(text for pair in numbers for text in pair)], update, handles)


def handle(axis, centre: np.ndarray) -> Handle:
    """■3 on the circle round this centre."""
    x, y = centre.tolist()

    def at(values: dict) -> np.ndarray:
        return centre + as_drawn(moved_batch(values["angle"]).numpy())[MOVED]

    def to(u: float, v: float) -> list[float]:
        return [np.degrees(np.arctan2(v - y, u - x)) % 360]

    return Handle(axis, ("angle",), at, Circle((x, y), RADII[MOVED[0]]), to)


def draw_points(axis, centres: np.ndarray) -> Part:
    """The batch on every circle with its arrows; moved by the views z (2, 5, 2) and by pushes (losses, 2, 5)
    from −1 to 1."""
    colours = np.tile(to_rgba_array(LINES[: len(ANGLES[0])]), (len(centres), 1, 1))  # (losses, images, 4)
    dots = [draw_view(axis, marker, colours, v == MOVED[0]) for v, marker in enumerate("os")]
    arrows = arrows_on(axis, np.repeat(colours, 2, axis=0).reshape(-1, 4))

    def move(z: np.ndarray, push: np.ndarray) -> None:
        ends = centres[:, None, None] + as_drawn(z)  # (losses, views, images, 2)
        for v, view in enumerate(dots):
            view.set_offsets(ends[:, v, ORDER].reshape(-1, 2))
            loud = np.abs(push[:, v, :, None]) > QUIET
            view.set_facecolor(list(np.where(loud, colours, 1)[:, ORDER].reshape(-1, 4)))
        arrows.move(np.broadcast_to(z, ends.shape), push, centres[:, None, None])

    return Part([*arrows.artists, *dots], move)


def draw_view(axis, marker: str, colours: np.ndarray, holds_moved: bool) -> PathCollection:
    """The points of one view on all circles, ■3 with a black edge."""
    edges = colours.copy()
    if holds_moved:
        edges[:, MOVED[1]] = to_rgba_array("black")
    points = axis.scatter([], [], marker=marker, s=26, linewidth=1.3, zorder=3)
    points.set_edgecolor(edges[:, ORDER].reshape(-1, 4))
    return points


def draw_circle(axis, name: str, centre: np.ndarray, size: float) -> Numbers:
    """One circle with the name of its loss; the two numbers in it move."""
    around = np.linspace(0, 2 * np.pi, 120)
    for radius in RADII:
        ring = centre + radius * np.stack([np.cos(around), np.sin(around)], axis=-1)
        axis.plot(*ring.T, color=GREY, linewidth=0.5, zorder=0)

    def word(x, y, text="", **kwargs):
        return axis.text(*(centre + (x, y)), text, fontsize=size, **kwargs)

    word(0, 1.45, name, ha="center", weight="bold")
    for i, (x, y) in enumerate(batch()[0].numpy()):
        word(1.24 * x, 1.24 * y, str(i + 1), ha="center", va="center")
    symbol, paper, power, *_ = FAMILY[name]
    if power:
        word(-0.17, -0.07, f"{symbol} =", ha="right")
    elif symbol:
        word(0, -0.07, f"{symbol} = {paper:g}", ha="center", color=GREY)
    word(0.05, -1.55, "longest", ha="right")
    return Numbers(word(-0.07, -0.07), word(0.2, -1.55))
