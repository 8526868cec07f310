"""Two negatives on one ray from the positive: the far one is hidden, and clipping does not see it (MMCL,
proposition 1)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import two_views
from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.palette import BLUE, DUSK, GREY, INK, VERMILION, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.machines.long_bars import long_bars

WAYS = ("exact", "without bounds", "clipped")
THINGS = ("coffee", "rocket")
END = 3.2  # of the ray
WEIGHTS, WORTH = (-5, 12), (-8, 22)  # longer bars are arrows


class Solved(NamedTuple):
    """The weights of the near and the far negative by each way, and what each is worth."""

    alpha: dict[str, np.ndarray]  # (2,) each
    g: dict[str, float]  # smaller is better; 0 is what weights of 0 get


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
        at = np.array([values["near"], values["far"]])
        D = np.outer(at, at) + values["ridge"] * np.eye(2)

        def g(alpha: np.ndarray) -> float:
            return float(0.5 * alpha @ D @ alpha - 2 * alpha.sum())

        free = np.linalg.solve(D, np.full(2, 2.0))
        # The minimum over weights >= 0 is that of one of the faces: both weights free, one of them, or none.
        faces = [np.zeros(2), *([free] if free.min() >= 0 else []), *np.diag(2 / D.diagonal())]
        alpha = {"exact": min(faces, key=g), "without bounds": free, "clipped": free.clip(0)}
        return Solved(alpha, {way: g(a) for way, a in alpha.items()})

    def draw(self, page: Page, values: dict, now: Solved) -> None:
        crosses, faces = draw_ray(page, values, now)
        alpha = page.plot("alpha", (-0.6, 6.6), (-8.5, 19), "weight α", frame="left",
                          xticks={1: "coffee", 5: "rocket"}, yticks=(-5, 0, 5, 10))  # fmt: skip
        key: dict = {"anchor": "start", "rise": "top", "bold": True, "within": True}
        alpha.text([0.02, 0.27, 0.73], 1, WAYS, (BLUE, DUSK, VERMILION), **key)
        weights = np.stack([now.alpha[way] for way in WAYS], axis=1)
        alpha.line([-0.6, 6.6], [0, 0], GREY, 1)
        bars = long_bars(alpha, np.array([0, 1, 2, 4, 5, 6]), weights.ravel(), (BLUE, GREY, VERMILION) * 2,
                         [number(weight) for weight in weights.ravel()], *WEIGHTS)  # fmt: skip
        for j, thing in enumerate(THINGS):
            said = ", ".join(f"{way} {weight:.2f}" for way, weight in zip(WAYS, weights[j]))
            page.link(f"{thing}: {said}", crosses[j], faces[1 + j], bars[3 * j : 3 * j + 3])

        worth = page.plot("g", (-0.6, 1.6), (-15, 30), "g: below the line is good", frame="left",
                          xticks={0: "exact", 1: "clipped"}, yticks=(0, 10, 20))  # fmt: skip
        worth.line([-0.6, 1.6], [0, 0], INK, 1)
        g = np.array([now.g["exact"], now.g["clipped"]])
        long_bars(worth, np.arange(2), g, (BLUE, VERMILION), [number(value) for value in g], *WORTH)

    def say(self, values: dict, now: Solved) -> str:
        exact, clipped = now.alpha["exact"], now.alpha["clipped"]
        alone = "coffee alone holds" if exact[0] > 0 else "rocket alone holds"
        held = "both hold" if (exact > 0).all() else alone
        worse = "worse than doing nothing" if now.g["clipped"] > 0 else "better than nothing"
        return (
            f"Ridge {values['ridge']:.3g}, coffee at {values['near']:g}, rocket at {values['far']:g}: {held} "
            f"the street. The exact weights are {exact[0]:.2f} and {exact[1]:.2f}, the clipped ones "
            f"{clipped[0]:.2f} and {clipped[1]:.2f}, with g = {now.g['clipped']:.1f} against "
            f"{now.g['exact']:.1f}: {worse}."
        )


def draw_ray(page: Page, values: dict, now: Solved) -> tuple[Mark, Mark]:
    """The positive at 0, and the two negatives to its right."""
    way = page.plot("ray", (-0.4, END), (-0.2, 1), "one ray from ✚: larger is farther", frame="")
    way.line([0, END], [0, 0], GREY, 1)
    way.dots([0, 0], INK, "✚", 16)
    at = np.array([[values["near"], 0], [values["far"], 0]])
    one, two = two_views()
    faces = way.photographs([(-0.18, 0), *at], [two[0], one[1], one[3]], 0.4, hangs="bottom", up=11)
    crosses = way.dots(at, [VERMILION if a > 0 else WHITE for a in now.alpha["exact"]], "✕", 15, INK)
    for name, thing, point in zip(("near", "far"), THINGS, at):
        crosses.handle(name, point, along="x", label=thing)
    return crosses, faces


def number(value: float) -> str:
    return "0" if value == 0 else f"{value:.{int(abs(value) < 100)}f}".replace("-", "−")
