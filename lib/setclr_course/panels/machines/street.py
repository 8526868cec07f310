"""The widest street between one positive and five negatives, all of which can be dragged (MMCL, figure 1)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import two_views
from setclr_course.kit.inner import dual
from setclr_course.kit.palette import DUSK, FIELD, GREY, INK, VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, log_slider, slider
from setclr_course.panels.machines.long_bars import long_bars

SIDE = 2.0  # points can be dragged from −SIDE to SIDE
PLACES = {
    "coffee": (-0.6, 1.0), "astronaut": (-0.1, -0.6), "rocket": (-1.5, 1.2), "temple": (-1.1, -0.3),
    "flower": (-0.9, -1.5), "positive": (1.1, 0.7), "anchor": (0.3, 0.5),
}  # fmt: skip
OTHERS = list(PLACES)[:5]  # the negatives; the cat is positive and anchor
RIDGE = 0.01
TOP = 1.0  # of the bars; a longer one gets an arrow
FAR = 9  # beyond the picture


class Machine(NamedTuple):
    """The machine of one picture: f(x) = normal · x + offset."""

    points: np.ndarray  # (7, 2): the negatives, the positive, the anchor
    alpha: np.ndarray  # (5,): the weights of the negatives
    normal: np.ndarray  # (2,)
    f: np.ndarray  # (7,): the decision values of the points
    offset: float


class street(Panel):
    """The street between a positive and five negatives: drag any of them, and the anchor."""

    least = 0.7
    size, row_height = (9, 4.3), 3.9
    mosaic, row_mosaic = "plane bars", "plane"
    knobs = {"bound": log_slider("C, the most an ✕ may weigh", 10, 0.1, 10, 0.1, {0.1: "soft", 10: "hard"})}
    knobs |= {
        f"{name} {way}": slider(f"{name}, {said}", at, -SIDE, SIDE, 0.05)
        for name, place in PLACES.items()
        for way, said, at in zip("xy", ("to the right", "up"), place)
    }

    def solve(self, values: dict) -> Machine:
        points = np.array([[values[f"{name} x"], values[f"{name} y"]] for name in PLACES])
        negatives, positive = points[:5], points[5]
        pool = np.array([positive, *negatives])
        alpha = dual(pool @ pool.T, values["bound"], RIDGE)
        alpha[alpha < 1e-6] = 0  # rounding
        normal = alpha @ (positive - negatives)
        offset = 1 - normal @ positive
        return Machine(points, alpha, normal, (points @ normal + offset).round(9), offset)

    def draw(self, page: Page, values: dict, now: Machine) -> None:
        title = "" if page.row else "the widest street, and who holds it open"
        plane = page.plane("plane", (-2.25, 2.25), (-2.12, 2.68), title)
        length = max(np.hypot(*now.normal), 1e-9)
        across = now.normal / length
        along = FAR * np.array([-across[1], across[0]])
        levels = np.array([-np.inf, -1, 0, 1, np.inf])  # of f
        middles = np.clip((levels - now.offset) / length, -FAR, FAR)[:, None] * across
        left, right = middles - along, middles + along
        for k, colour in enumerate(FIELD):
            plane.area([[left[k], right[k], right[k + 1], left[k + 1]]], colour)
        sides = plane.segments(left[[1, 3]], right[[1, 3]], INK, 1.2, "dash")
        plane.segments(left[2], right[2], INK, 2.4)

        one, two = two_views()
        faces = plane.photographs(now.points, [*one[1:], two[0], one[0]], 0.48, hangs="bottom", up=11)
        crosses = plane.dots(now.points[:5], np.where(now.alpha > 0, VERMILION, WHITE).tolist(), "✕", 15, INK)
        plane.dots(now.points[5], INK, "✚", 16)
        plane.dots(now.points[6], INK, "★", 20)
        for name, point in zip(PLACES, now.points):
            crosses.handle(name, point, f"{name} x", f"{name} y")

        bars = page.plot("bars", (-0.6, 4.6), (0, 1.2 * TOP), "weight α of each negative",
                         xticks=dict(enumerate(OTHERS)), yticks=(0, 0.5, 1))  # fmt: skip
        if values["bound"] <= TOP:
            bars.line([-0.6, 4.6], values["bound"], GREY, 1.5, "dash")
            bars.text(4.6, values["bound"], "C", DUSK, anchor="end", rise="bottom")
        boxes = long_bars(bars, range(5), now.alpha, [VERMILION] * 5, 0, TOP)
        for j, name in enumerate(OTHERS):
            said = f"{name}: weight α = {now.alpha[j]:.2f}, f = {now.f[j]:+.2f}"
            page.link(said, crosses[j], boxes[j], faces[j])
        page.link(f"v: the street is 2 / |v| = {2 / length:.2f} wide", sides)

    def say(self, values: dict, now: Machine) -> str:
        holding = " and ".join(name for name, alpha in zip(OTHERS, now.alpha) if alpha > 0)
        free = " and ".join(name for name, alpha in zip(OTHERS, now.alpha) if alpha == 0)
        width = 2 / max(np.hypot(*now.normal), 1e-9)
        held = f"held open by {holding or 'nobody'}; of weight zero: {free or 'nobody'}"
        return f"C is {values['bound']:.3g}, the street {width:.2f} wide, {held}."
