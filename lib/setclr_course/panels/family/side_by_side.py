"""Six losses on the same twelve points: whom each anchor is matched with, under one slider."""

import numpy as np
from matplotlib.axes import Axes

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.palette import OF_LOSS, VERMILION
from setclr_course.panels.family.batch import SIX, smoothing_slider
from setclr_course.panels.family.plane import (
    POINTS,
    TRAP_ANGLES,
    N,
    angle_sliders,
    angles_of,
    control,
    draw_plane,
    pair_of,
    round_the_circle,
)
from setclr_course.pixels.circle import as_drawn, on_circle
from setclr_course.pixels.handles import Link, cell
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, frames

TRAP = (3, 2)  # ● rocket, ■ astronaut
TITLE = "drag ● and ■; orange joins partners"


def side_by_side(**initial) -> Panel:
    """Twelve points that can be dragged, and the matchings of six losses."""
    controls = {"smoothing": smoothing_slider()} | angle_sliders(TRAP_ANGLES)
    controls["smoothing"].value = 10**-1.5  # hard, where the losses differ
    return Panel(build, controls, (9, 4.8), initial, 4.6)


def matchings(values: dict) -> dict[str, np.ndarray]:
    """(6, 6) for each loss: what each ● gives to each ■, as shares of the row."""
    z = on_circle(angles_of(values))
    found = {}
    for name, made in SIX.items():
        part = made(values["smoothing"]).assignment(z)[:N, N:]
        found[name] = (part / part.sum(1, keepdim=True).clamp(min=1e-12)).numpy()
    return found


def build(figure, compact: bool) -> Drawing:
    if compact:
        axes, plane = list(figure.subplots(3, 2).flat), None
    else:
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
        axes, plane = list(right.subplots(2, 3).flat), left.subplots()
    drawn = [] if plane is None else [draw_plane(plane, TITLE)]
    matrices = [draw_matrix(axis, name, compact) for axis, name in zip(axes, SIX)]
    now: dict = {}

    def update(values: dict) -> str:
        now.update(z=on_circle(angles_of(values)).numpy(), found=matchings(values))
        for part in drawn:
            part.move(now["z"], now["found"]["InfoNCE"])
        for matrix, share in zip(matrices, now["found"].values()):
            matrix.move(share)
        return sentence(now["found"], values)

    handles = {} if plane is None else {control(*point): round_the_circle(plane, *point) for point in POINTS}
    artists = [artist for part in [*drawn, *matrices] for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(plane, axes, now))


def links(plane: Axes | None, axes: list[Axes], now: dict) -> list[Link]:
    """A cell lights up in all matrices, with its pair in the plane."""
    points = as_drawn(now["z"])
    found = []
    for i, j in np.ndindex(N, N):
        shares = ", ".join(f"{name} {share[i, j]:.2f}" for name, share in now["found"].items())
        over = [cell(axis, i, j) for axis in axes]
        found.append(
            Link(over, pair_of(plane, points[0, i], points[1, j]), f"{NAMES[i]} to {NAMES[j]}: {shares}")
        )
    return found


def sentence(found: dict[str, np.ndarray], values: dict) -> str:
    choice = {name: int(share[TRAP[0]].argmax()) for name, share in found.items() if name != "MMCL"}
    fooled = [name for name, j in choice.items() if j == TRAP[1]]
    right = [name for name, j in choice.items() if j == TRAP[0]]
    pushed = int((found["MMCL"] > 1e-9).sum())
    return (
        f"Smoothing {values['smoothing']:.3g} times the usual. ● rocket goes to ■ astronaut by "
        f"{' and '.join(fooled) or 'no loss'}, to its own ■ rocket by {' and '.join(right) or 'no loss'}. "
        f"MMCL pushes {pushed} of 30 wrong pairs."
    )


def draw_matrix(axis: Axes, name: str, compact: bool) -> Part:
    """The shares of one loss, with its name in its colour and frames round the true pairs."""
    mesh = cells(axis, N, N)
    title = {"LinearAssignment": "assignment", "MMCL": "MMCL: pushes"}.get(name, name)
    axis.set_title(title, color=OF_LOSS[name], fontsize=10 if not compact else 8, loc="center", weight="bold")
    true_pairs = frames(axis, [(i, i) for i in range(N)], VERMILION, 1.2)
    if not compact:
        one, two = two_views()
        for i in range(N):
            axis.imshow(one[i], extent=(-1.5, -0.62, i + 0.44, i - 0.44))
            axis.imshow(two[i], extent=(i - 0.44, i + 0.44, -0.62, -1.5))
        axis.set(xlim=(-1.6, N - 0.5), ylim=(N - 0.5, -1.6))
    bare(axis)
    return Part([mesh, true_pairs], mesh.set_array)
