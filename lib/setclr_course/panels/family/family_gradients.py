"""One batch pushed by ten losses: the same points on ten circles, with arrows where that loss wants them."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.controls import slider
from setclr_course.kit.handles import Circle
from setclr_course.kit.palette import BLACK, DUSK, INK, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page, Piece
from setclr_course.panels.family.along import QUIET, REST, draw_arrows, forces, share_of_longest
from setclr_course.panels.family.batch import ANGLES, COLOURS, FAMILY, NAMES, draw_images, smoothing_slider
from setclr_course.panels.family.plane import angle_at

MOVED = (1, 2)  # ■3, the point with the slider
HOME = ANGLES[1][2]
LEGEND = "● view 1, ■ view 2; drag ■3 (black edge); hollow: pushed by less than 5 % of the longest"


class Pushed(NamedTuple):
    z: np.ndarray  # (2, 5, 2): the views on the unit circle
    forces: dict[str, np.ndarray]  # (2, 5) for each loss: along the circle; anticlockwise is positive


class family_gradients(Panel):
    """Ten losses' pushes on one batch, with sliders for the smoothing and for the angle of one point."""

    size, row_height = (9, 5.4), 6.2
    mosaic = (
        "Triplet LinearAssignment InfoNCE SparseCLR NTLogistic; GroCo IOT-both IOT-total MMCL QARe; "
        "legend legend legend legend legend"
    )
    heights = (1, 1, 0.3)
    row_mosaic = "LinearAssignment InfoNCE; NTLogistic GroCo; IOT-total MMCL"
    knobs = {
        "smoothing": smoothing_slider(),
        "angle": slider("angle of ■3 in degrees", HOME, 0, 359, 1, {15: "by ●2", HOME: "home", 310: "by ●5"}),
    }

    def solve(self, values: dict) -> Pushed:
        angles = np.array(ANGLES)
        angles[MOVED] = values["angle"]
        z = unit(angles)
        return Pushed(
            z, {name: forces(loss.solved(z, values["smoothing"]), z) for name, loss in FAMILY.items()}
        )

    def draw(self, page: Page, values: dict, now: Pushed) -> None:
        dots = [
            draw_circle(page, name, values["smoothing"], now.z, force) for name, force in now.forces.items()
        ]
        page.plot("legend", (0, 1), (0, 1), LEGEND, frame="")
        for k, point in enumerate(NAMES):
            said = ", ".join(f"{name} {told(force.flat[k])}" for name, force in now.forces.items())
            page.link(f"{point}: {said}", *(pieces[k] for pieces in dots))

    def say(self, values: dict, now: Pushed) -> str:
        words = []
        for name, force in now.forces.items():
            most, where = np.abs(force).max(), NAMES[np.abs(force).argmax()]
            words.append(f"{name} {most:.2g} at {where}" if most > REST else f"{name} at rest")
        quiet = np.abs([share_of_longest(force) for force in now.forces.values()]) <= QUIET
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual values, ■3 at {values['angle']}°. "
            f"The strongest push of each loss: {', '.join(words)}. "
            f"{quiet.sum()} of the {quiet.size} points get less than 5 % of their loss's strongest."
        )


def draw_circle(page: Page, name: str, smoothing: float, z: np.ndarray, force: np.ndarray) -> list[Piece]:
    """The batch pushed by one loss; its ten points."""
    plane = page.plane(name.replace(" ", "-"), (-1.36, 1.36), (-1.62, 1.36), name)
    loss, share, most = FAMILY[name], share_of_longest(force), np.abs(force).max()
    fill = [[c if abs(push) > QUIET else WHITE for c, push in zip(COLOURS, row)] for row in share]
    dots = draw_images(plane, z, fill)
    view, i = MOVED
    moved = plane.dots(where := RADII[view] * z[MOVED], BLACK, "■", 13)
    plane.dots(where, fill[view][i], "■", 8, COLOURS[i])
    moved.handle(f"■3 {name}", where, "angle", along=Circle(radius=RADII[view]), to=angle_at, label="■3")
    draw_arrows(plane, z, share, COLOURS * 2, 2)
    if loss.symbol:
        said = f"{loss.symbol} = {loss.parameter(smoothing):.3g}"
        plane.text(0, 0, said, INK if loss.power else DUSK, "small")
    plane.text(0, -1.52, f"longest {most:.2g}" if most > REST else "at rest", size="small")
    return [dots[v][k] for v in range(2) for k in range(len(COLOURS))]


def told(push: float) -> str:
    return f"{push:+.2g}".replace("-", "−") if abs(push) > REST else "0"
