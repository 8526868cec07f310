"""The one idea of the course: two views of six photographs look for each other, and training makes them find
their partners."""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES
from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.handles import Circle
from setclr_course.kit.panel import Page, Panel, log_slider, options, slider
from setclr_course.panels.family import plane
from setclr_course.panels.family.batch import FAMILY
from setclr_course.panels.family.plane import CONTROLS, POINTS, N, control

STEPS = 30  # of training
STEP = np.rad2deg(0.16)  # the farthest that a point turns in one
USUAL = 0.4  # the softness in training
ANGLES = np.array([(80, 20, 320, 250, 200, 140), (110, 345, 285, 215, 60, 180)])  # where the views begin
WAYS = {"softmax": "InfoNCE", "sort": "GroCo", "transport": "IOT both", "support vectors": "MMCL"}
FINDINGS = {
    "softmax": "each ● shares itself out among the ■",
    "sort": "each ● sorts the ■: who comes first?",
    "transport": "as softmax, but each ■ gets its share too",
    "support vectors": "whom each ● pushes: blank is nobody",
}
KEY = 0.02  # radii: how far an arrow key moves a point


class Found(NamedTuple):
    angles: np.ndarray  # (2, N): where the points are seen, in degrees
    z: np.ndarray  # (2, N, 2): the same on the unit circle
    share: np.ndarray  # (N, N): what each ● (row) gives to each ■ (column), as shares of the row


class one_idea(Panel):
    """Two views of six photographs on a circle, the matching inside a loss, and training that mends it."""

    size, row_height = (9, 4.3), 2.1
    words = FINDINGS
    mosaic, in_sight, play = "plane table", 2, "step"
    knobs = {
        "way": options("they look for each other by", WAYS, losses=WAYS.values()),
        "softness": log_slider("softness (temperature)", 0.4, 0.04, 10, 0.05, {0.14: "MoCo", 1: "SimCLR"}),
        "step": slider("step of training", 0, 0, STEPS, 1, {0: "start", STEPS: "trained"}),
        **plane.angle_sliders(ANGLES),
    }

    def solve(self, values: dict) -> Found:
        angles = trained(tuple(plane.angles_of(values).flat), values["way"], values["step"])
        z = unit(angles)
        answer = FAMILY[WAYS[values["way"]]].solved(z, values["softness"])
        return Found(angles, z, plane.row_shares(answer))

    def draw(self, page: Page, values: dict, now: Found) -> None:
        finding = "" if page.row else FINDINGS[values["way"]]
        large = "a strong push" if values["way"] == "support vectors" else "a large share"
        title = "" if page.row else f"drag ● and ■; thick is {large}, orange to the partner"
        below = "" if page.row else f"framed: the true pairs; blue: {large}"
        views, lines = plane.draw_plane(page, now.z, now.share, title)
        table = plane.draw_table(page, "table", now.share, finding, below)
        for (i, j), share in np.ndenumerate(now.share):
            lit = plane.pair(views, lines, i, j)
            page.link(f"{NAMES[i]} to {NAMES[j]}: {share:.2f}", table[i, j], lit=lit)
        for view, i in POINTS:
            page.link(NAMES[i], views[view][i], lit=[table[:, i] if view else table[i]])
        if values["step"] == 0:
            return plane.round_the_circle(views, now.z)
        for view, i in POINTS:
            anew: dict = {"along": Circle(radius=RADII[view]), "to": partial(moved, now.angles, (view, i))}
            where, label = plane.drawn_at(now.z)[view, i], plane.called(view, i)
            views[view].handle(control(view, i), where, *CONTROLS, "step", **anew, label=label, step=KEY)

    def say(self, values: dict, now: Found) -> str:
        others = np.where(np.eye(N), 0, now.share).max(1)
        first = now.share.diagonal() > others + 1e-9  # who is as near as another is not found
        if values["way"] == "sort":  # whose network puts the partner before those that are as near
            cosine = now.z[0] @ now.z[1].T
            first &= (np.abs(cosine - cosine.diagonal()[:, None]) < 1e-9).sum(1) == 1
        found = int(first.sum())
        mean = now.share.trace() / N
        what = f"{found} of 6 photographs find their own second view first; on average it gets {mean:.0%}"
        if values["way"] == "support vectors":
            what = f"{int((now.share == 0).sum()) - N} of the 30 wrong pairs have weight zero"
        return f"Step {values['step']}, {values['way']} of softness {values['softness']:.2g}: {what}."


@lru_cache(maxsize=1000)
def trained(start: tuple[float, ...], way: str, step: int) -> np.ndarray:
    """Angles (2, N) after so many steps of gradient descent on the loss, from these ones."""
    if step == 0:
        return np.array(start).reshape(2, N)
    angles = trained(start, way, step - 1)
    z = unit(angles)
    force = plane.forces(FAMILY[WAYS[way]].solved(z, USUAL), z)
    return (angles + STEP * force / max(np.abs(force).max(), 1e-12)).round(4)  # the twin's are the same


def moved(seen: np.ndarray, at: tuple[int, int], x: float, y: float) -> list[int]:
    """One point is dragged: training begins anew from where all points are seen."""
    angles = np.floor(seen + 0.5).astype(int) % 360  # as its twin rounds a half
    angles[at] = plane.angle_at(x, y)[0]
    return [*angles.ravel().tolist(), 0]
