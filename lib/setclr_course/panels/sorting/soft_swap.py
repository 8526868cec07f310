"""Two numbers, a certain swap and one that hesitates: a staircase and a slope (GroCo, eq. 2 and 3)."""

from math import hypot, pi
from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import two_views
from setclr_course.kit.inner import swapped
from setclr_course.kit.palette import DUSK, GREY, INK, OCHRE, ORANGE
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, slider
from setclr_course.panels.sorting.five import beside, spread

LOOKS = 2 * np.linspace(-1, 1, 81) ** 3  # differences, most of them near 0


class Swap(NamedTuple):
    """Of two numbers, the cat's and the coffee's."""

    before: np.ndarray  # (2,)
    apart: float  # by how much the cat's is larger
    q: float  # how likely they are swapped
    slope: float  # of that, by `apart`
    after: np.ndarray  # (2,): what the two places hold


class soft_swap(Panel):
    """The cat stands before the coffee: drag either, and see how likely they are to be swapped."""

    size, mosaic, widths, row_mosaic = (9, 4), "step lines", (1, 1.1), "step"
    knobs = {
        "beta": log_slider("steepness β", 8, 0.8, 800, 0.1, {8: "8", 80: "80"}),
        "first": slider("cat, distance", -0.2, -1.0, 1.0, 0.05),
        "second": slider("coffee, distance", 0.15, -1.0, 1.0, 0.05),
    }

    def solve(self, values: dict) -> Swap:
        beta, before = values["beta"], np.array([values["first"], values["second"]])
        apart = before[0] - before[1]
        q = float(swapped(beta * apart))
        slope = beta / (pi * (1 + (beta * apart) ** 2))
        return Swap(before, apart, q, slope, (1 - q) * before + q * before[::-1])

    def draw(self, page: Page, values: dict, now: Swap) -> None:
        spot, dots = draw_step(page, values["beta"], now), draw_lines(page, now)
        for name, thing, at in zip(("first", "second"), ("cat", "coffee"), now.before):
            dots.handle(name, (at, 1), along="x", label=thing)
        page.link(f"apart by {now.apart:+.2f}: swapped with w = {now.q:.3f}", spot[0], dots[:])

    def say(self, values: dict, now: Swap) -> str:
        return (
            f"β = {values['beta']:.3g}. The cat is at {values['first']:.2f}, the coffee at "
            f"{values['second']:.2f}: swapped with probability {now.q:.3f}, the slope there is "
            f"{now.slope:.3g}. The two places then hold {now.after[0]:.2f} and {now.after[1]:.2f}."
        )


def draw_step(page: Page, beta: float, now: Swap) -> Mark:
    """The staircase, the soft step, and its tangent where the two numbers are now."""
    title = "probability of a swap" if page.row else "a soft step has a slope everywhere"
    ticks: dict = {"xticks": (-2, -1, 0, 1, 2), "yticks": (0, 0.5, 1)}
    step = page.plot("step", (-2.1, 2.1), (-0.08, 1.12), title, "distances: cat − coffee", **ticks)
    step.line([-2.1, 0, 0, 2.1], [0, 0, 1, 1], GREY, 1.2, "dash")
    step.line(LOOKS, swapped(beta * LOOKS), ORANGE, 2.5)
    half = 0.35 / hypot(1, now.slope)
    step.line(now.apart + np.array([-half, half]), now.q + now.slope * np.array([-half, half]), INK, 1.8)
    step.key(("certain", DUSK), ("soft", OCHRE), ("slope here", INK), where="bottom right")
    return step.dots([now.apart, now.q], INK, "●", 12)


def draw_lines(page: Page, now: Swap) -> Mark:
    """The two numbers before the swap, and what the two places hold after it."""
    lines = page.plane("lines", (-1.15, 1.15), (-0.35, 1.55), "swapped in part, both move to the middle")
    lines.segments([[-1, 1], [-1, 0]], [[1, 1], [1, 0]], GREY, 1)
    lines.text(-1, [0.9, -0.1], ["before", "after"], anchor="start", rise="top")
    lines.text(1, -0.1, "larger is farther", anchor="end", rise="top")
    faces = spread(now.before, 0.32, -1, 1)
    lines.photographs(beside(faces, 1), two_views()[0][:2], 0.3, "bottom", up=10)
    lines.text(spread(now.after, 0.5, -0.9, 0.9), 0.08, ["place 1", "place 2"], rise="bottom")
    lines.dots(beside(now.after, 0), INK, "●", 12)
    return lines.dots(beside(now.before, 1), INK, "●", 12)
