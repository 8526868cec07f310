"""Where four losses want the same twelve points to go: those of the trap, with arrows along their circle."""

import numpy as np
from matplotlib.axes import Axes

from setclr_course.kit.cast import NAMES
from setclr_course.kit.palette import OF_LOSS
from setclr_course.panels.family.along import QUIET, arrows_on, pushes, share_of_longest
from setclr_course.panels.family.batch import SIX, smoothing_slider
from setclr_course.panels.family.plane import (
    POINTS,
    TRAP_ANGLES,
    angle_sliders,
    angles_of,
    control,
    draw_views,
    round_the_circle,
)
from setclr_course.pixels.circle import as_drawn, on_circle
from setclr_course.pixels.handles import Link, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

SHOWN = {
    "InfoNCE": "InfoNCE",
    "LinearAssignment": "assignment",
    "IOT": "transport (IOT)",
    "MMCL": "support vectors (MMCL)",
}


def trap_pushes(**initial) -> Panel:
    """The pushes of four losses on twelve points that can be dragged in any of the circles."""
    controls = {"smoothing": smoothing_slider()} | angle_sliders(TRAP_ANGLES)
    return Panel(build, controls, (9, 7.2), initial, 3.6)


def forces(values: dict) -> dict[str, np.ndarray]:
    """(2, 6) for each loss: how it pushes the views along the circle; anticlockwise is positive."""
    z = on_circle(angles_of(values))
    return {name: pushes(SIX[name](values["smoothing"]), z) for name in SHOWN}


def build(figure, compact: bool) -> Drawing:
    axes = dict(zip(SHOWN, figure.subplots(2, 2).flat))
    circles = {name: draw_circle(axis, name, compact) for name, axis in axes.items()}
    now: dict = {}

    def update(values: dict) -> str:
        now.update(z=on_circle(angles_of(values)).numpy(), forces=forces(values))
        for name, force in now["forces"].items():
            circles[name].move(now["z"], force)
        return sentence(now["forces"], values["smoothing"])

    handles = {
        f"{control(*point)} {name}": round_the_circle(axis, *point)
        for name, axis in axes.items()
        for point in POINTS
    }
    artists = [artist for circle in circles.values() for artist in circle.artists]
    return Drawing(artists, update, handles, lambda: links(list(axes.values()), now))


def links(axes: list[Axes], now: dict) -> list[Link]:
    """Each point lights up on all circles, with its push of each loss."""
    points, found = as_drawn(now["z"]), []
    for view, i in POINTS:
        said = ", ".join(f"{SHOWN[name]} {force[view, i]:+.2g}" for name, force in now["forces"].items())
        text = f"{'●■'[view]} {NAMES[i]}: {said}"
        found.append(Link([dot(axis, points[view, i]) for axis in axes], text=text))
    return found


def sentence(found: dict[str, np.ndarray], smoothing: float) -> str:
    words = []
    for name, force in found.items():
        share = np.abs(share_of_longest(force))
        view, i = np.unravel_index(share.argmax(), share.shape)
        moved = f"pushes {int((share > QUIET).sum())} of 12 points, {'●■'[view]} {NAMES[i]} most"
        words.append(f"{SHOWN[name]} {moved if share.any() else 'is at rest'}")
    return f"Smoothing {smoothing:.3g} times the usual: {'; '.join(words)}."


def draw_circle(axis: Axes, name: str, compact: bool) -> Part:
    """The twelve photographs and the arrows of one loss; moved by views (2, 6, 2) and pushes (2, 6)."""
    views = draw_views(axis, "")
    size = 8 if compact else 11
    axis.set_title(SHOWN[name], color=OF_LOSS[name], weight="bold", loc="center", fontsize=size)
    arrows = arrows_on(axis, [OF_LOSS[name]] * len(POINTS))
    rest = axis.text(0, 0, "at rest", ha="center", va="center", fontsize=size, color=OF_LOSS[name])

    def move(z: np.ndarray, force: np.ndarray) -> None:
        views.move(z)
        share = share_of_longest(force)
        arrows.move(z, share)
        rest.set_visible(not share.any())

    return Part([*views.artists, *arrows.artists, rest], move)
