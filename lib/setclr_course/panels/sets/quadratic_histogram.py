"""All N! values of a quadratic assignment problem between its spectral bounds (QARe, eq. 5 and 7)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.circle import unit
from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import BLACK, BLUE, GREEN, PINE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sets.matchings import Fits, fits
from setclr_course.panels.sets.two_views import draw_dots

ANGLES = np.array([230, 15, 55, 165, 105, 35, 210])  # degrees of view 1
SHIFTS = np.array([1.3, 0.4, -1.5, -0.3, -0.8, -0.7, 1.5])  # of view 2, times the slider
EDGES = np.linspace(-1.75, 3, 191)  # of the bars
LIMITS = {"cosine": (-0.3, 2.85), "euclidean": (-1.75, 3)}  # of the axis


class Problem(NamedTuple):
    """One quadratic assignment problem seen whole; its values are divided by N²."""

    z: np.ndarray  # (2, N, 2): the two views on the unit circle
    fits: Fits
    rank: str  # of the true matching


def inner(z: np.ndarray, similarity: str) -> np.ndarray:
    """1 + cosines within views (..., N, 2) of unit vectors, or their Euclidean distances: (..., N, N)."""
    if similarity == "cosine":
        return 1 + z @ z.swapaxes(-1, -2)
    return np.linalg.norm(z[..., :, None, :] - z[..., None, :, :], axis=-1)


class quadratic_histogram(Panel):
    """Every matching of two views on a circle by its value, with sliders for N and for the views."""

    mosaic, widths, row_mosaic = "circle fits", (1, 3.1), "fits"
    knobs = {
        "turned": slider("scatter of view 2, degrees", 20, 0, 90, 2, {0: "identical views"}),
        "things": slider("number N of things", 7, 3, len(ANGLES), 1),
        "similarity": options("similarity", LIMITS),
    }

    def solve(self, values: dict) -> Problem:
        N = values["things"]
        z = unit(ANGLES[:N] + values["turned"] * np.stack([0 * SHIFTS[:N], SHIFTS[:N]]))
        found = fits(*inner(z, values["similarity"]))
        above = int((found.values > found.values[0] + 1e-9).sum())
        return Problem(z, found, f"{above:,} larger" if above else "the largest")

    def draw(self, page: Page, values: dict, now: Problem) -> None:
        draw_dots(page, "circle", now.z, "two views")
        left, right = LIMITS[values["similarity"]]
        low, high = now.fits.values.min(), now.fits.values.max()
        below = "tr(S_A Y S_Bᵀ Yᵀ) / N², for all Y"
        ticks = [tick for tick in range(-1, 3) if tick > left]
        plot = page.plot("fits", (left, right), (-0.09, 1.56), "", below, xticks=ticks, frame="bottom")
        signs = ("", " = QARe") if values["similarity"] == "cosine" else (" = −QARe", "")
        for name, bound, sign in zip(("lower", "upper"), now.fits[2:], signs):
            plot.line([bound, bound], [0, 1.56], GREEN, 2.5, "dash")
            said = f"{name}\nbound\n{bound:.2f}{sign}".replace("-", "−")
            plot.text(bound, 1.56, said, PINE, anchor="start", rise="top", right=5)
        true, heights = now.fits.values[0], np.histogram(now.fits.values, EDGES)[0]
        plot.steps(heights / heights.max(), EDGES, BLUE)
        plot.line([true, true], [0, 1.08], VERMILION, 2)
        how: dict = {"anchor": "end", "rise": "bottom", "right": -5, "bold": True}
        plot.text(true, 1.02, f"true: {true:.2f},\n{now.rank}", VERMILION, **how)
        plot.text(low, 0.5, f"from {low:.2f}\nto {high:.2f}", anchor="end", right=-6, halo=True)
        plot.line([low, high], -0.045, BLACK, 3)

    def say(self, values: dict, now: Problem) -> str:
        low, high = now.fits.values.min(), now.fits.values.max()
        return (
            f"{values['things']} things, {values['similarity']}, view 2 moved by about {values['turned']}°: "
            f"the {len(now.fits.values):,} matchings have values from {low:.2f} to {high:.2f}, the true one "
            f"{now.fits.values[0]:.2f} ({now.rank}), between the spectral bounds {now.fits.lower:.2f} and "
            f"{now.fits.upper:.2f}."
        )
