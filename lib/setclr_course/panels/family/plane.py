"""Two views of the six photographs on a circle: what the panels of pages 00 and 08 let the reader drag."""

from collections.abc import Sequence

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.controls import Slider, slider
from setclr_course.kit.handles import Circle
from setclr_course.kit.losses import Answer
from setclr_course.kit.palette import GREY, INK, VERMILION
from setclr_course.kit.scene import Mark, Page, Piece, Plot

N = len(NAMES)
POINTS = [(view, i) for view in range(2) for i in range(N)]
RIDE = (1.24, 0.53)  # the radii at which the photographs of the views ride
ROUND = unit(np.arange(0, 361, 9)).T
WIDE = 6.5  # pixels: the line of a whole share
SEEN = 0.01  # the line of a smaller share is not drawn
# Degrees of a batch with a trap: ● rocket and ■ astronaut are the closest pair, and no partners.
TRAP_ANGLES = ((75, 15, 212, 184, 310, 130), (98, 350, 197, 152, 285, 115))


def control(view: int, i: int) -> str:
    """The name of the control for a point's angle."""
    return f"{NAMES[i]} {view + 1}"


CONTROLS = [control(*at) for at in POINTS]


def called(view: int, i: int) -> str:
    return f"{'●■'[view]} {NAMES[i]}"


def angle_sliders(angles: Sequence[Sequence[int]]) -> dict[str, Slider]:
    """A slider for each point, in degrees."""
    return {control(*at): slider(f"{called(*at)}, angle", angles[at[0]][at[1]], 0, 359, 1) for at in POINTS}


def angles_of(values: dict) -> np.ndarray:
    """(2, N), in degrees."""
    return np.array([values[control(*at)] for at in POINTS], float).reshape(2, N)


def row_shares(answer: Answer) -> np.ndarray:
    """What each ● gives to each ■, (N, N), as shares of what it gives to all ■; rounded, so
    that what is as near is the same."""
    part = answer.shares[:N, N:]
    return (part / part.sum(1, keepdims=True).clip(1e-12)).round(9)


def draw_circles(plot: Plot) -> None:
    for radius in RADII:
        x, y = radius * ROUND
        plot.line(x, y, GREY, 0.7)


def draw_views(plot: Plot, z: np.ndarray) -> list[Mark]:
    """The views (2, N, 2) on two circles, so that they do not hide each other, and their photographs; the
    marks of ● and of ■."""
    draw_circles(plot)
    for view, faces, ride in zip(z, two_views(), RIDE):
        plot.photographs(ride * view, faces, 0.28)
    size = 8 if plot.page.row else 11
    return [plot.dots(radius * view, INK, sign, size) for radius, view, sign in zip(RADII, z, "●■")]


def draw_plane(page: Page, z: np.ndarray, share: np.ndarray, title: str) -> tuple[list[Mark], Mark]:
    """The views, and a line for every pair, as wide as its share (N, N); their marks."""
    plane = page.plane("plane", (-1.45, 1.45), title=title)
    one, two = np.indices((N, N)).reshape(2, -1)
    colours, wide = np.where(one == two, VERMILION, GREY).tolist(), np.where(share > SEEN, WIDE * share, 0)
    lines = plane.segments(RADII[0] * z[0, one], RADII[1] * z[1, two], colours, wide.ravel())
    return draw_views(plane, z), lines


def draw_table(page: Page, name: str, share: np.ndarray, title: str, below: str = "") -> Mark:
    """The shares, a row for each ●, with the photographs along two sides and frames round the true pairs."""
    table = page.plane(name, (-1.6, N - 0.5), (N - 0.5, -1.6), title, xlabel=below)
    cells, side, along = table.cells(share), np.full(N, -1.05), np.arange(N)
    table.photographs(np.stack([side, along], 1), two_views()[0], 0.84)
    table.photographs(np.stack([along, side], 1), two_views()[1], 0.84)
    table.frames([(i, i) for i in range(N)])
    return cells


def pair(views: list[Mark], lines: Mark, i: int, j: int) -> list[Piece]:
    """● i, ■ j and the line between them."""
    return [views[0][i], views[1][j], lines[N * i + j]]


def round_the_circle(views: list[Mark], z: np.ndarray, name: str = "{}") -> None:
    """Every point can be dragged round its circle; its control is the angle."""
    for view, i in POINTS:
        where, way = RADII[view] * z[view, i], Circle(radius=RADII[view])
        at = control(view, i)
        views[view].handle(name.format(at), where, at, along=way, to=angle_at, label=called(view, i))


def angle_at(x: float, y: float) -> list[int]:
    """Of a point in the plane, in whole degrees below 360."""
    return [round(np.degrees(np.arctan2(y, x))) % 360]
