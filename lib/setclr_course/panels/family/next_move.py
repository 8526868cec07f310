"""The question of pages 00 to 08: where does each point of a batch move next, by one loss and by InfoNCE?"""

from typing import Any

import numpy as np

from setclr_course.kit import losses
from setclr_course.kit.circle import unit
from setclr_course.kit.palette import DUSK, OF_LOSS, ORANGE
from setclr_course.kit.panel import Page, Panel, log_slider, options
from setclr_course.panels.family import plane
from setclr_course.panels.family.batch import FAMILY, SIX, Member

RULES = {
    "only pull": Member("", 0, 0, lambda S, true, _: losses.Answer(S, -true / len(S)), "pull"),
    "InfoNCE": FAMILY["InfoNCE"]._replace(paper=1.0),
    "matching": FAMILY["LinearAssignment"]._replace(paper=0.01),
    "SparseCLR": FAMILY["SparseCLR"]._replace(symbol="margin"),
    "QARe": FAMILY["QARe"],
    "GroCo": SIX["GroCo"],
    "transport": SIX["IOT"]._replace(paper=0.2),
    "MMCL": FAMILY["MMCL"],
}
ASKED = (0, 3)  # ● rocket
LONGEST, START = 0.6, 0.08  # radii: the longest arrow, and how far from its point it begins


class next_move(Panel):
    """Where the points of the same batch move next, by InfoNCE and by another loss.

    Args:
        rule: the other loss, one of `RULES`; a switch between all of them by default.
    """

    size, row_height, mosaic, row_mosaic = (9, 5), 5.4, "one two", "one; two"

    def __init__(self, rule: str = "", **initial: Any):
        self.rule = rule
        warmth = log_slider("temperature τ of InfoNCE", 0.2, 0.02, 2, 0.1, {0.02: ".02", 0.2: ".2", 2: "2"})
        switch: dict = {} if rule else {"rule": options("the other loss", RULES)}
        self.knobs = switch | {"temperature": warmth, **plane.angle_sliders(plane.TRAP_ANGLES)}
        super().__init__(**initial)

    def pair(self, values: dict) -> list[tuple[str, Member]]:
        """InfoNCE and the other loss, with the words above their pictures."""
        name = self.rule or values["rule"]
        both = ("InfoNCE", FAMILY["InfoNCE"]._replace(paper=values["temperature"])), (name, RULES[name])
        return [(f"{name}, {m.symbol} = {m.paper:.2g}" if m.symbol else name, m) for name, m in both]

    def solve(self, values: dict) -> tuple[np.ndarray, np.ndarray]:
        """The views (2, N, 2) on the unit circle, and the forces (2, 2, N) on them along it, by InfoNCE and
        by the other loss; above 0 to the left."""
        z = unit(plane.angles_of(values))
        forces = [plane.forces(loss.solved(z, 1), z) for _, loss in self.pair(values)]
        return z, np.stack(forces).round(6)

    def draw(self, page: Page, values: dict, now: tuple[np.ndarray, np.ndarray]) -> None:
        (z, forces), views = now, []
        along, (size, width) = plane.turned(z), (8, 2) if page.row else (11, 3.5)
        for plot, (name, loss), force in zip(("one", "two"), self.pair(values), forces):
            below = f"{12 - resting(force)} of 12 move" if force.any() else "nobody moves"
            circle = page.plane(plot, (-1.42, 1.42), title=name, xlabel=below)
            circle.dots([plane.drawn_at(z)[ASKED]], ORANGE, size=2 * size)
            views.append(plane.draw_views(circle, z, size))
            plane.round_the_circle(views[-1], z, of=f" {plot}")
            starts = plane.drawn_at(z) + START * np.sign(force)[..., None] * along
            push = (force / (np.abs(force).max() or 1))[..., None] * along
            circle.arrows(starts, starts + LONGEST * push, OF_LOSS.get(loss.name, DUSK), width)
        for view, i in plane.POINTS:
            page.link(plane.called(view, i), *(signs[view][i] for signs in views))

    def say(self, values: dict, now: tuple[np.ndarray, np.ndarray]) -> str:
        return "; ".join(told(m[0], force, now[0]) for m, force in zip(self.pair(values), now[1])) + "."


def resting(force: np.ndarray) -> int:
    """How many points hardly move: by no more than a twentieth of the longest arrow."""
    return int((np.abs(force) <= 0.05 * np.abs(force).max()).sum())


def told(name: str, force: np.ndarray, z: np.ndarray) -> str:
    """Where ● rocket moves, and how many points stay."""
    size = np.abs(force) / (np.abs(force).max() or 1)
    nearer = force[ASKED] * (plane.turned(z[ASKED]) @ z[1, ASKED[1]]) > 0
    way = f"moves {'towards' if nearer else 'away from'} its own ■, {size[ASKED]:.0%} of the longest arrow"
    return f"{name}: ● rocket {way if size[ASKED] else 'stays'}; {resting(force)} of 12 hardly move"
