"""Two numbers, a certain swap and one that hesitates: a staircase and a slope (GroCo, eq. 2 and 3)."""

from math import pi

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.cast import two_views
from setclr_course.kit.palette import GREY, INK, OCHRE, ORANGE
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle, Link, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

SIDE = 1.0  # distances go from −SIDE to SIDE, as −cosines do
LOOKS = np.linspace(-2 * SIDE, 2 * SIDE, 201)  # differences


def soft_swap(**initial) -> Panel:
    """The cat stands before the coffee: drag either, and see how likely they are to be swapped."""
    controls = {
        "beta": log_slider("steepness β", 8, 0.8, 800, 0.1, {8: "8", 80: "80"}),
        "first": slider("cat, distance", -0.2, -SIDE, SIDE, 0.05),
        "second": slider("coffee, distance", 0.15, -SIDE, SIDE, 0.05),
    }
    return Panel(build, controls, (9, 4), initial, 3.6)


def swapped(apart: ArrayLike, beta: float) -> np.ndarray:
    """The probability of a swap where the first is larger by this difference."""
    return np.arctan(beta * np.asarray(apart)) / pi + 0.5


def slope(apart: float, beta: float) -> float:
    """Of that probability, by the difference."""
    return beta / (pi * (1 + (beta * apart) ** 2))


def after(values: dict) -> tuple[float, float]:
    """What the first and the second place hold after the swap."""
    first, second = values["first"], values["second"]
    _, q = difference(values)
    return (1 - q) * first + q * second, q * first + (1 - q) * second


def difference(values: dict) -> tuple[float, float]:
    """By how much the first is larger, and the probability of a swap."""
    apart = values["first"] - values["second"]
    return apart, float(swapped(apart, values["beta"]))


def build(figure, compact: bool) -> Drawing:
    left, *lines = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1, 1.1))
    parts = [draw_step(left, compact), *(draw_lines(axis) for axis in lines)]

    now: dict = {}

    def update(values: dict) -> str:
        now.update(values)
        for part in parts:
            part.move(values)
        (apart, q), held = difference(values), after(values)
        return (
            f"β = {values['beta']:.3g}. The cat is at {values['first']:.2f}, the coffee at "
            f"{values['second']:.2f}: swapped with probability {q:.3f}, the slope there is "
            f"{slope(apart, values['beta']):.3g}. The two places then hold {held[0]:.2f} and "
            f"{held[1]:.2f}."
        )

    def handle(axis, name: str, thing: str) -> Handle:
        return Handle(axis, (name,), lambda values: (values[name], 1), along="x", label=thing)

    things = (("first", "cat"), ("second", "coffee"))
    handles = {name: handle(axis, name, thing) for axis in lines for name, thing in things}

    def links() -> list[Link]:
        """The two numbers and their spot on the step."""
        ends = [dot(axis, (now[name], 1)) for axis in lines for name in ("first", "second")]
        at = difference(now)
        return [Link([dot(left, at), *ends], text=f"apart by {at[0]:+.2f}: swapped with {at[1]:.3f}")]

    return Drawing([artist for part in parts for artist in part.artists], update, handles, links)


def draw_step(axis, compact: bool) -> Part:
    """The staircase, the soft step, and its tangent where the two numbers are now."""
    axis.set(xlim=(-1.2, 1.2), ylim=(-0.08, 1.18), yticks=(0, 0.5, 1))
    axis.set_xlabel("distances: cat − coffee")
    axis.set_title("probability of a swap" if compact else "a soft step has a slope everywhere")
    axis.plot([-1.2, 0, 0, 1.2], [0, 0, 1, 1], color=GREY, linewidth=1.2, linestyle=(0, (4, 2)))
    axis.text(-1.17, 1.1, "certain", color=GREY, weight="bold", va="center")
    axis.text(-0.65, 1.1, "soft", color=OCHRE, weight="bold", va="center")
    axis.text(-0.3, 1.1, "slope here", color=INK, weight="bold", va="center")
    (curve,) = axis.plot([], [], color=ORANGE, linewidth=2.5)
    (tangent,) = axis.plot([], [], color=INK, linewidth=1.8)
    (spot,) = axis.plot([], [], "o", color=INK, markersize=9, markeredgecolor="white")

    def move(values: dict) -> None:
        beta, x = values["beta"], values["first"] - values["second"]
        curve.set_data(LOOKS, swapped(LOOKS, beta))
        half = 0.35 / np.hypot(1, slope(x, beta))
        ends = np.array([x - half, x + half])
        tangent.set_data(ends, swapped(x, beta) + slope(x, beta) * (ends - x))
        spot.set_data([x], [swapped(x, beta)])

    return Part([curve, tangent, spot], move)


def draw_lines(axis) -> Part:
    """The two numbers before the swap, and what the two places hold after it."""
    bare(axis, (-1.15, 1.15), (-0.5, 1.55))
    axis.set_title("swapped in part, both move to the middle")
    for y, word in ((1, "before"), (0, "after")):
        axis.plot([-SIDE, SIDE], [y, y], color=GREY, linewidth=1, zorder=0)
        axis.text(-SIDE, y - 0.1, word, va="top")
    axis.text(SIDE, -0.1, "larger is farther", va="top", ha="right")
    signs = [axis.plot([], [], "o", color=INK, markersize=9, markeredgecolor="white")[0] for _ in range(2)]
    sides = (("place 1 ", "right"), (" place 2", "left"))
    names = [axis.text(0, 0.16, word, ha=ha, fontsize=9) for word, ha in sides]
    faces = riders(axis, two_views()[0][:2], 0.3, 0.1)

    def move(values: dict) -> None:
        before, then = np.array([values["first"], values["second"]]), np.array(after(values))
        for sign, place, word, now in zip(signs, before, names, then):
            sign.set_data([place, now], [1, 0])
            word.set_x(now)
        faces.move(np.column_stack([before, [1, 1]]))

    return Part([*faces.artists, *signs, *names], move)
