"""Six losses on the same twelve points: whom each anchor is matched with, under one slider."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES
from setclr_course.kit.circle import unit
from setclr_course.kit.palette import OF_LOSS
from setclr_course.kit.panel import Page, Panel
from setclr_course.panels.family import plane
from setclr_course.panels.family.batch import SIX, smoothing_slider

ROCKET, ASTRONAUT = NAMES.index("rocket"), NAMES.index("astronaut")
TITLES = {"LinearAssignment": "assignment", "MMCL": "MMCL: pushes"}


class Found(NamedTuple):
    z: np.ndarray  # (2, N, 2): the views on the unit circle
    shares: dict[str, np.ndarray]  # (N, N) for each loss: what each ● gives to each ■, as shares of the row


class side_by_side(Panel):
    """Twelve points that can be dragged, and the matchings of six losses."""

    size, row_height = (9, 4.3), 5.6
    mosaic = "plane InfoNCE SparseCLR GroCo; plane LinearAssignment IOT MMCL"
    widths, row_mosaic = (2.7, 1, 1, 1), "InfoNCE SparseCLR; GroCo LinearAssignment; IOT MMCL"
    # Hard at first: the losses differ.
    knobs = {"smoothing": smoothing_slider(10**-1.5), **plane.angle_sliders(plane.TRAP_ANGLES)}

    def solve(self, values: dict) -> Found:
        z = unit(plane.angles_of(values))
        return Found(
            z, {name: plane.row_shares(loss.solved(z, values["smoothing"])) for name, loss in SIX.items()}
        )

    def draw(self, page: Page, values: dict, now: Found) -> None:
        title = "drag ● and ■; orange joins partners, as wide as InfoNCE's share"
        views, lines = plane.draw_plane(page, now.z, now.shares["InfoNCE"], title)
        plane.round_the_circle(views, now.z)
        tables = []
        for name, share in now.shares.items():
            tables.append(plane.draw_table(page, name, share, TITLES.get(name, name)))
            page[name].line([-1.5, plane.N - 0.5], [-1.62, -1.62], OF_LOSS[name], 5)
        shares = {name: share.tolist() for name, share in now.shares.items()}
        for i, j in np.ndindex(plane.N, plane.N):
            said = ", ".join(f"{name} {share[i][j]:.2f}" for name, share in shares.items())
            over = [table[i, j] for table in tables]
            page.link(f"{NAMES[i]} to {NAMES[j]}: {said}", *over, lit=plane.pair(views, lines, i, j))

    def say(self, values: dict, now: Found) -> str:
        choice = {name: share[ROCKET].argmax() for name, share in now.shares.items() if name != "MMCL"}
        fooled = " and ".join(name for name, j in choice.items() if j == ASTRONAUT)
        right = " and ".join(name for name, j in choice.items() if j == ROCKET)
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual. ● rocket goes to ■ astronaut by "
            f"{fooled or 'no loss'}, to its own ■ rocket by {right or 'no loss'}. "
            f"MMCL pushes {(now.shares['MMCL'] > 0).sum()} of 30 wrong pairs."
        )
