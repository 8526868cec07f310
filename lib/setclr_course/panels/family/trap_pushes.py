"""Where four losses want the same twelve points to go: those of the trap, with arrows along their circle."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.circle import unit
from setclr_course.kit.palette import OF_LOSS
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.family.along import QUIET, REST, draw_arrows, forces, share_of_longest
from setclr_course.panels.family.batch import SIX, smoothing_slider
from setclr_course.panels.family.plane import (
    POINTS,
    TRAP_ANGLES,
    angle_sliders,
    angles_of,
    called,
    draw_views,
    round_the_circle,
)

SHOWN = {
    "InfoNCE": "InfoNCE",
    "LinearAssignment": "assignment",
    "IOT": "transport (IOT)",
    "MMCL": "support vectors (MMCL)",
}


class Pushed(NamedTuple):
    z: np.ndarray  # (2, 6, 2): the views on the unit circle
    forces: dict[str, np.ndarray]  # (2, 6) for each loss: along the circle; anticlockwise is positive


class trap_pushes(Panel):
    """The pushes of four losses on twelve points that can be dragged in any of the circles."""

    size, row_height = (9, 8), 3.8
    mosaic = "InfoNCE LinearAssignment; IOT MMCL"
    knobs = {"smoothing": smoothing_slider(), **angle_sliders(TRAP_ANGLES)}

    def solve(self, values: dict) -> Pushed:
        z = unit(angles_of(values))
        return Pushed(z, {name: forces(SIX[name].solved(z, values["smoothing"]), z) for name in SHOWN})

    def draw(self, page: Page, values: dict, now: Pushed) -> None:
        circles = []
        for name, force in now.forces.items():
            title = SHOWN[name].split(" (")[0] if page.row else SHOWN[name]
            plane = page.plane(name, (-1.42, 1.42), title=title)
            circles.append(draw_views(plane, now.z))
            round_the_circle(circles[-1], now.z, "{} " + name)
            share = share_of_longest(force)
            draw_arrows(plane, now.z, share, OF_LOSS[name], 2 if page.row else 3.5)
            if not share.any():
                plane.text(0, 0, "at rest", halo=True)
        for view, i in POINTS:
            pushes = {SHOWN[name]: force[view, i] for name, force in now.forces.items()}
            said = [
                f"{name} {push:+.2g}" if abs(push) > REST else f"{name} 0" for name, push in pushes.items()
            ]
            page.link(f"{called(view, i)}: {', '.join(said)}", *(views[view][i] for views in circles))

    def say(self, values: dict, now: Pushed) -> str:
        words = []
        for name, force in now.forces.items():
            share = np.abs(share_of_longest(force))
            most = np.unravel_index(share.argmax(), share.shape)
            moved = f"pushes {int((share > QUIET).sum())} of 12 points, {called(*most)} most"
            words.append(f"{SHOWN[name]} {moved if share.any() else 'is at rest'}")
        return f"Smoothing {values['smoothing']:.3g} times the usual: {'; '.join(words)}."
