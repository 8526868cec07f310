"""All N! values of a quadratic assignment problem between its spectral bounds (QARe, eq. 5 and 7)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setclr.inner import quadratic_assignment, spectral_bounds
from setclr_course.kit.palette import BLUE, GREEN, PINE, VERMILION
from setclr_course.panels.sets.circle import draw_circle
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

ANGLES = torch.tensor([230.0, 15.0, 55.0, 165.0, 105.0, 35.0, 210.0], dtype=torch.float64)  # view 1
SHIFTS = torch.tensor(
    [1.3, 0.4, -1.5, -0.3, -0.8, -0.7, 1.5], dtype=torch.float64
)  # of view 2, times the slider
EDGES = np.linspace(-1.75, 3, 191)  # of the bars
LIMITS = {"cosine": (-0.3, 2.85), "euclidean": (-1.75, 3)}  # of the axis


class Problem(NamedTuple):
    """One quadratic assignment problem seen whole; its values are divided by N²."""

    z: np.ndarray  # (2, N, 2): the two views on the unit circle
    values: np.ndarray  # (N!,), ascending
    true: float  # of the true matching
    lower: float
    upper: float


def quadratic_histogram(**initial) -> Panel:
    """Every matching of two views on a circle by its value, with sliders for N and for the views."""
    controls = {
        "turned": slider("scatter of view 2, degrees", 20, 0, 90, 2, {0: "identical views"}),
        "things": slider("number N of things", 7, 3, len(ANGLES), 1),
        "similarity": options("similarity", LIMITS),
    }
    return Panel(build, controls, (9, 3.6), initial, 3.6)


def inner(z: Tensor, similarity: str) -> Tensor:
    """1 + cosines within a view z (..., N, E) of unit vectors, or its Euclidean distances: (..., N, N)."""
    if similarity == "cosine":
        return 1 + z @ z.mT
    return torch.cdist(z, z, compute_mode="donot_use_mm_for_euclid_dist")


@lru_cache(maxsize=2**10)
def problem(N: int, turned: float, similarity: str) -> Problem:
    angles = torch.stack([ANGLES[:N], ANGLES[:N] + turned * SHIFTS[:N]])
    z = torch.stack([angles.deg2rad().cos(), angles.deg2rad().sin()], dim=-1)
    F, D = inner(z, similarity)
    values = quadratic_assignment(torch.zeros_like(F), F, D).values
    lower, upper = spectral_bounds(F, D)
    numbers = (round(float(x) / N**2, 12) + 0.0 for x in (values[0], lower, upper))  # values[0]: the identity
    return Problem(z.numpy(), values.sort().values.numpy() / N**2, *numbers)


def build(figure, compact: bool) -> Drawing:
    if compact:
        circle, axis, size = None, figure.subplots(), 8
    else:
        (left, axis), size = figure.subplots(1, 2, width_ratios=[1, 3.1]), 9
        axis.set_title("all N! matchings, by their quadratic value")
        circle = draw_circle(left, "two views", size)
    histogram = draw_histogram(axis, size)

    def update(values: dict) -> str:
        seen = problem(values["things"], values["turned"], values["similarity"])
        rank = rank_of_truth(seen)
        histogram.move(seen, values["similarity"], f",{chr(10) if compact else ' '}{rank} ")
        if circle:
            circle.move(seen.z)
        low, high = seen.values[[0, -1]]
        return (
            f"{values['things']} things, {values['similarity']}, view 2 moved by about {values['turned']}°: "
            f"the {len(seen.values):,} matchings have values from {low:.2f} to {high:.2f}, the true one "
            f"{seen.true:.2f} ({rank}), between the spectral bounds {seen.lower:.2f} and {seen.upper:.2f}."
        )

    return Drawing([*histogram.artists, *(circle.artists if circle else [])], update)


def rank_of_truth(seen: Problem) -> str:
    """How many matchings have a larger value than the true one."""
    above = int((seen.values > seen.true + 1e-9).sum())
    return f"{above:,} larger" if above else "the largest"


def draw_histogram(axis, size: int) -> Part:
    """All values as bars, the bounds and the true value as lines, all values' span below; moved by a problem,
    its similarity and what is said of the true value."""
    axis.set(xticks=range(-1, 3), ylim=(-0.09, 1.5), yticks=[])
    below = r"tr($S_A\,Y\,S_B^T\,Y^T$) / N²" + (",   Y one of the N! matchings" if size > 8 else "")
    axis.text(0.5, -0.12, below, ha="center", va="top", transform=axis.transAxes)
    axis.spines["left"].set_visible(False)
    bars = axis.stairs(0 * EDGES[:-1], EDGES, fill=True, color=BLUE)
    dashed = {"linewidth": 2.2, "linestyle": (0, (4, 1.2)), "zorder": 0.4}
    bounds = [axis.plot([], [], color=GREEN, **dashed)[0] for _ in range(2)]
    words = [axis.text(0, 1.5, "", color=PINE, fontsize=size, va="top") for _ in bounds]
    true = axis.plot([], [], color=VERMILION, linewidth=1.8, zorder=0.5)[0]
    flag = axis.text(0, 1.08, "", color=VERMILION, fontsize=size, ha="right", va="center", weight="bold")
    ends = axis.text(0, 0.5, "", fontsize=size, ha="right", va="center")
    span = axis.plot([], [], color="black", linewidth=3, solid_capstyle="butt")[0]

    def move(seen: Problem, similarity: str, said: str) -> None:
        axis.set_xlim(LIMITS[similarity])
        heights = np.histogram(seen.values, EDGES)[0]
        bars.set_data(heights / heights.max())
        signs = ("", "= QARe") if similarity == "cosine" else ("= -QARe", "")
        for line, word, name, bound, sign in zip(bounds, words, ("lower", "upper"), seen[-2:], signs):
            line.set_data([bound, bound], [0, 1.5])
            word.set(x=bound, text=f" {name}\n bound\n {bound:.2f} {sign}".replace("-", "−"))
        true.set_data([seen.true, seen.true], [0, 1.08])
        flag.set(x=seen.true - 0.04, text=f"true: {seen.true:.2f}{said}")
        low, high = seen.values[[0, -1]]
        ends.set(x=low - 0.05, text=f"from {low:.2f}\nto {high:.2f}")
        span.set_data([low, high], [-0.045, -0.045])

    return Part([axis.xaxis, *bounds, true, bars, *words, flag, ends, span], move)
