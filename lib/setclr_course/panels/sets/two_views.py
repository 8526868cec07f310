"""Two views of the six photographs on a circle: ● stand still outside, ■ can be dragged inside."""

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.controls import slider
from setclr_course.kit.handles import Circle
from setclr_course.kit.palette import GREY, INK
from setclr_course.kit.scene import Mark, Page, Plot

FIRST = np.array([10, 60, 110, 180, 225, 300])  # degrees of ●
SPREAD = np.array([20, -20, 25, -15, 30, -10])  # by how much ■ differ where they go their own ways
RIDE = {1.27: 0.36, 0.47: 0.3}  # the radii at which the photographs ride, and their sizes


class Ring:
    """The angles of ■ as controls, and the picture. `own`: by how much each differs from its ● at first."""

    def __init__(self, own: np.ndarray, turn: int):
        self.knobs = {"turn": slider("turn of view 2", turn, -180, 180, 5, {0: "not turned"})}
        for name, angle in zip(NAMES, wrapped(FIRST + own)):
            self.knobs[name] = slider(f"■ {name}, degrees", int(angle), -180, 175, 5)

    def vectors(self, values: dict) -> np.ndarray:
        """Unit vectors (2, 6, 2): ● and ■."""
        return unit(np.array([FIRST, [values[name] + values["turn"] for name in NAMES]], float))

    def draw(self, page: Page, values: dict) -> list[Mark]:
        """The plot "ring"; the marks of ● and of ■."""
        z = self.vectors(values)
        views = draw_views(page.plane("ring", (-1.5, 1.5)), z)

        def to(x: float, y: float) -> list[float]:
            return [float(wrapped(np.rad2deg(np.arctan2(y, x)) - values["turn"]))]

        for thing, point in zip(NAMES, RADII[1] * z[1]):
            views[1].handle(thing, point, along=Circle(radius=RADII[1]), to=to, label=f"■ {thing}")
        return views


def wrapped(degrees):
    """The same angles from −180 up to 180."""
    return (degrees + 180) % 360 - 180


def draw_views(ring: Plot, z: np.ndarray) -> list[Mark]:
    """Both circles, a line from each ● to its ■, and the photographs; the marks of ● and of ■."""
    for x, y in RADII[:, None, None] * unit(np.arange(0, 361, 4)).T:
        ring.line(x, y, GREY, 0.7)
    ring.segments(RADII[0] * z[0], RADII[1] * z[1], GREY, 1.6)
    for view, faces, (radius, size) in zip(z, two_views(), RIDE.items()):
        ring.photographs(radius * view, faces, size)
    if not ring.page.row:
        ring.note("● view 1, outside\n■ view 2, inside", "bottom left")
    return [ring.dots(r * view, INK, sign, 11) for r, view, sign in zip(RADII, z, "●■")]
