"""Two negatives on one ray from the positive: the far one is hidden, and clipping does not see it (MMCL,
proposition 1)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import two_views
from setclr_course.kit.inner import delta, dual
from setclr_course.kit.palette import BLUE, DUSK, GREY, INK, VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, log_slider, slider
from setclr_course.panels.machines.long_bars import long_bars
from setclr_course.panels.machines.solvers import objective, unbounded

WAYS = ("exact", "without bounds", "clipped")
THINGS = ("coffee", "rocket")


class Solved(NamedTuple):
    """By each of `WAYS`."""

    alpha: np.ndarray  # (3, 2): the weights of the near and the far negative
    g: np.ndarray  # (3,): smaller is better; 0 is what weights of 0 get


class ray(Panel):
    """Two negatives that can be pulled along a ray, and their weights by three ways of solving."""

    size, row_height = (9, 4.2), 4.4
    mosaic, row_mosaic = "ray ray; alpha g", "ray; alpha; alpha"
    widths, heights = (1.7, 1), (1.15, 1.5)
    knobs = {
        "ridge": log_slider("ridge ρ", 0.1, 0.01, 1, 0.1, {0.1: "paper 0.1"}),
        "near": slider("coffee, distance from ✚", 1.0, 0.2, 3.0, 0.05),
        "far": slider("rocket, distance from ✚", 2.0, 0.2, 3.0, 0.05),
    }

    def solve(self, values: dict) -> Solved:
        """The machine of ✚ at 0 against two points at these distances, with the linear kernel."""
        at = np.array([0, values["near"], values["far"]])
        D = delta(np.outer(at, at), values["ridge"])
        exact, free = dual(np.outer(at, at), ridge=values["ridge"]), unbounded(D)
        alpha = np.stack([exact, free, free.clip(0)])
        return Solved(alpha, objective(D, alpha))

    def draw(self, page: Page, values: dict, now: Solved) -> None:
        way = page.plot("ray", (-0.4, 3.2), (-0.2, 1), "one ray from ✚: larger is farther", frame="")
        way.line([0, 3.2], 0, GREY, 1)
        way.dots([0, 0], INK, "✚", 16)
        at = np.array([[values["near"], 0], [values["far"], 0]])
        one, two = two_views()
        faces = way.photographs([(-0.18, 0), *at], [two[0], one[1], one[3]], 0.4, hangs="bottom", up=11)
        crosses = way.dots(at, [VERMILION if a > 0 else WHITE for a in now.alpha[0]], "✕", 15, INK)
        for name, thing, point in zip(("near", "far"), THINGS, at):
            crosses.handle(name, point, along="x", label=thing)

        alpha = page.plot("alpha", (-0.6, 6.6), (-8.5, 19), "weight α", frame="left",
                          xticks={1: "coffee", 5: "rocket"}, yticks=(-5, 0, 5, 10))  # fmt: skip
        alpha.text([0.1, 0.48, 0.85], 0.95, WAYS, (BLUE, DUSK, VERMILION), bold=True, within=True)
        alpha.line([-0.6, 6.6], 0, GREY, 1)
        bars = long_bars(alpha, (0, 1, 2, 4, 5, 6), now.alpha.T.ravel(), (BLUE, GREY, VERMILION) * 2, -5, 12)
        for j, thing in enumerate(THINGS):
            said = ", ".join(f"{way} {weight:.2f}" for way, weight in zip(WAYS, now.alpha[:, j]))
            page.link(f"{thing}: {said}", crosses[j], faces[1 + j], bars[3 * j : 3 * j + 3])

        worth = page.plot("g", (-0.6, 1.6), (-15, 30), "g: below the line is good", frame="left",
                          xticks={0: "exact", 1: "clipped"}, yticks=(0, 10, 20))  # fmt: skip
        worth.line([-0.6, 1.6], 0, INK, 1)
        long_bars(worth, (0, 1), now.g[::2], (BLUE, VERMILION), -8, 22)

    def say(self, values: dict, now: Solved) -> str:
        (near, far), _, clipped = now.alpha
        held = "coffee alone holds" if far <= 0 else "rocket alone holds" if near <= 0 else "both hold"
        worse = "worse than doing nothing" if now.g[2] > 0 else "better than nothing"
        return (
            f"Ridge {values['ridge']:.3g}, coffee at {values['near']:g}, rocket at {values['far']:g}: {held} "
            f"the street. The exact weights are {near:.2f} and {far:.2f}, the clipped ones {clipped[0]:.2f} "
            f"and {clipped[1]:.2f}, with g = {now.g[2]:.1f} against {now.g[0]:.1f}: {worse}."
        )
