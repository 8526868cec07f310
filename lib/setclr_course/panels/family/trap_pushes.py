"""Where losses want the same points to go: those of the trap, with arrows along their circle."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.circle import unit
from setclr_course.kit.palette import DUSK, OF_LOSS
from setclr_course.kit.panel import Page, Panel
from setclr_course.panels.family import plane
from setclr_course.panels.family.batch import SIX, smoothing_slider

FOUR = {
    "InfoNCE": SIX["InfoNCE"],
    "assignment": SIX["LinearAssignment"],
    "transport (IOT)": SIX["IOT"],
    "support vectors (MMCL)": SIX["MMCL"],
}
LONGEST, START = 0.6, 0.07  # radii: the longest arrow, and how far from its point it begins
QUIET = 0.05  # of the longest arrow: a point pushed less than this is as good as left alone
REST = 1e-6  # a smaller push is rounding


class Pushed(NamedTuple):
    z: np.ndarray  # (2, N, 2): the views on the unit circle
    forces: dict[str, np.ndarray]  # (2, N) for each loss: along the circle; anticlockwise is positive


class trap_pushes(Panel):
    """The pushes of losses on points that can be dragged in any of the circles.

    Args:
        losses: an even number of those of `FAMILY` or `SIX`, by name; four by default.
        images: how many of the six photographs take part.
        dragged: view and image of those points that can be dragged; all by default.
    """

    def __init__(
        self, losses: Mapping = FOUR, images: int = plane.N, dragged: Sequence = plane.POINTS, **initial: Any
    ):
        self.losses, self.images, self.dragged = losses, images, dragged
        self.called = {at: plane.called(*at) for at in np.ndindex(2, images)}
        self.knobs = {"smoothing": smoothing_slider(), **plane.angle_sliders(plane.TRAP_ANGLES, dragged)}
        names, half = [name.replace(" ", "-") for name in losses], len(losses) // 2
        self.mosaic = f"{' '.join(names[:half])}; {' '.join(names[half:])}"
        self.row_mosaic = "; ".join(f"{one} {two}" for one, two in zip(names, names[half:]))
        self.size, self.row_height = (9, 2 + 12 / half), 1.9 * half
        self.least = min(0.65, 0.19 * half)
        super().__init__(**initial)

    def solve(self, values: dict) -> Pushed:
        angles = plane.TRAP_ANGLES[:, : self.images].copy()
        for at in self.dragged:
            angles[at] = values[plane.control(*at)]
        z = unit(angles)
        found = {}
        for name, loss in self.losses.items():
            force = plane.forces(loss.solved(z, values["smoothing"]), z)
            found[name] = np.where(np.abs(force) > REST, force, 0)
        return Pushed(z, found)

    def draw(self, page: Page, values: dict, now: Pushed) -> None:
        circles, small = [], page.row or len(self.losses) > 4
        size, width = (8, 2) if small else (11, 3.5)
        for name, force in now.forces.items():
            most = np.abs(force).max()
            below = f"longest {most:.2g}" if most else "at rest"
            circle = page.plane(name.replace(" ", "-"), (-1.42, 1.42), title=name, xlabel=below)
            circles.append(plane.draw_views(circle, now.z, size))
            plane.round_the_circle(circles[-1], now.z, self.dragged, f" {name}")
            push = (force / max(most, REST))[..., None] * plane.turned(now.z)
            starts = plane.drawn_at(now.z) + START * np.sign(force)[..., None] * plane.turned(now.z)
            colour = OF_LOSS.get(self.losses[name].name, DUSK)
            circle.arrows(starts, starts + LONGEST * push, colour, width)
        for (view, i), called in self.called.items():
            said = ", ".join(f"{name} {force[view, i]:+.2g}" for name, force in now.forces.items())
            page.link(f"{called}: {said}", *(views[view][i] for views in circles))

    def say(self, values: dict, now: Pushed) -> str:
        words, called = [], list(self.called.values())
        for name, force in now.forces.items():
            size = np.abs(force)
            moved = (size > QUIET * size.max()).sum()
            pushes = f"pushes {moved} of {size.size} points, {called[size.argmax()]} most"
            words.append(f"{name} {pushes if moved else 'is at rest'}")
        return f"Smoothing {values['smoothing']:.3g} times the usual: {'; '.join(words)}."
