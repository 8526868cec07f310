"""Two views of the six photographs on a circle: what the panels of pages 00 and 08 let the reader drag."""

from collections.abc import Sequence

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.controls import Slider, slider
from setclr_course.kit.handles import Circle
from setclr_course.kit.losses import Answer, gradient
from setclr_course.kit.palette import GREY, INK, VERMILION
from setclr_course.kit.scene import Mark, Page, Piece, Plot

N = len(NAMES)
POINTS = [(view, i) for view in range(2) for i in range(N)]
RIDE = (1.24, 0.53)  # the radii at which the photographs of the views ride
ROUND = unit(np.arange(0, 361, 9)).T
WIDE = 6.5  # pixels: the line of a whole share
# Degrees of a batch with a trap: ● rocket and ■ astronaut are the closest pair, and no partners.
TRAP_ANGLES = np.array([(75, 15, 212, 184, 310, 130), (98, 350, 197, 152, 285, 115)])


def control(view: int, i: int) -> str:
    """The name of the control for a point's angle."""
    return f"{NAMES[i]} {view + 1}"


CONTROLS = [control(*at) for at in POINTS]


def called(view: int, i: int) -> str:
    return f"{'●■'[view]} {NAMES[i]}"


def angle_sliders(angles: np.ndarray, points: Sequence = POINTS) -> dict[str, Slider]:
    """A slider for each of these points, in degrees."""
    return {control(*at): slider(f"{called(*at)}, angle", int(angles[at]), 0, 359, 1) for at in points}


def angles_of(values: dict) -> np.ndarray:
    """(2, N), in degrees."""
    return np.array([values[name] for name in CONTROLS], float).reshape(2, N)


def row_shares(answer: Answer) -> np.ndarray:
    """What each ● gives to each ■, (N, N), as shares of what it gives to all ■; rounded, so
    that what is as near is the same."""
    part = answer.shares[:N, N:]
    return (part / part.sum(1, keepdims=True).clip(1e-12)).round(9)


def drawn_at(z: np.ndarray) -> np.ndarray:
    """Where views z (2, N, 2) of the unit circle are drawn: on two circles, so that they do not hide each
    other."""
    return RADII[:, None, None] * z


def turned(z: np.ndarray) -> np.ndarray:
    """Vectors (..., 2), turned by a right angle to the left."""
    return np.stack([-z[..., 1], z[..., 0]], axis=-1)


def forces(answer: Answer, z: np.ndarray) -> np.ndarray:
    """(2, N): minus the gradient at views z (2, N, 2) of the circle, along it; anticlockwise is positive."""
    return -(gradient(answer, z.reshape(-1, 2)).reshape(z.shape) * turned(z)).sum(-1)


def draw_circles(plot: Plot) -> None:
    for radius in RADII:
        x, y = radius * ROUND
        plot.line(x, y, GREY, 0.7)


def draw_views(plot: Plot, z: np.ndarray, size: float) -> list[Mark]:
    """The views (2, N, 2), with signs of that size, and their photographs; the marks of ● and of ■."""
    draw_circles(plot)
    for view, faces, ride in zip(z, two_views(), RIDE):
        plot.photographs(ride * view, faces[: len(view)], 0.28)
    return [plot.dots(points, INK, sign, size) for points, sign in zip(drawn_at(z), "●■")]


def draw_plane(page: Page, z: np.ndarray, share: np.ndarray, title: str) -> tuple[list[Mark], Mark]:
    """The views, and a line for every pair, as wide as its share (N, N); their marks."""
    plane = page.plane("plane", (-1.45, 1.45), title=title)
    one, two = np.indices((N, N)).reshape(2, -1)
    colours, ends = np.where(one == two, VERMILION, GREY).tolist(), drawn_at(z)
    lines = plane.segments(ends[0, one], ends[1, two], colours, WIDE * share.ravel())
    return draw_views(plane, z, 8 if page.row else 11), lines


def draw_table(page: Page, name: str, share: np.ndarray, title: str, below: str = "") -> Mark:
    """The shares, a row for each ●, with the photographs along two sides and frames round the true pairs."""
    table = page.plane(name, (-1.6, N - 0.5), (N - 0.5, -1.6), title, xlabel=below)
    cells = table.cells(share)
    for way, faces in zip((1, -1), two_views()):
        table.photographs([(-1.05, i)[::way] for i in range(N)], faces, 0.84)
    table.frames([(i, i) for i in range(N)])
    return cells


def pair(views: list[Mark], lines: Mark, i: int, j: int) -> list[Piece]:
    """● i, ■ j and the line between them."""
    return [views[0][i], views[1][j], lines[N * i + j]]


def round_the_circle(views: list[Mark], z: np.ndarray, points: Sequence = POINTS, of: str = "") -> None:
    """These points can be dragged round their circles; their controls are the angles."""
    for view, i in points:
        name, way = control(view, i), Circle(radius=RADII[view])
        how: dict = {"along": way, "to": angle_at, "label": called(view, i)}
        views[view].handle(name + of, drawn_at(z)[view, i], name, **how)


def angle_at(x: float, y: float) -> list[int]:
    """Of a point in the plane, in whole degrees below 360."""
    return [round(np.degrees(np.arctan2(y, x))) % 360]
