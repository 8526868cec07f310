"""Solvers of one machine's dual in a race: projected gradients step by step beside the exact optimum, clipped
least squares and doing nothing (MMCL, proposition 1)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from torch.nn.functional import normalize

from setclr.inner import kernel, svm_dual
from setclr_course.kit.palette import BLACK, BLUE, GREEN, GREY, OCHRE, ORANGE, VERMILION
from setclr_course.pixels.controls import log_slider, options
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

NEGATIVES, ROUNDS, RIDGE = 39, 1000, 0.1
BOUNDS = 10 ** np.arange(-1, 2.01, 0.1)  # every C that the slider can ask for
DIMENSIONS = ("3", "16", "64", "256")
LOW = 1e-7  # the lowest gap that is drawn
ROUNDING = 1e-12  # a gap is 1 minus a quotient of float64 sums: a smaller one is rounding
RACERS = {"authors' step 1/1000": VERMILION, "step 1/λ": BLUE, "1/λ with momentum": GREEN}


class Race(NamedTuple):
    """All that the sliders can ask for in one dimension, for B bounds, n negatives and the racers."""

    path: np.ndarray  # (ROUNDS + 1, 3, B, n): α of the three racers after each step
    gap: np.ndarray  # (ROUNDS + 1, 3, B): (g(α) − g*) / |g*|, so that α = 0 has 1
    exact: np.ndarray  # (B, n)
    clipped: np.ndarray  # (B, n)
    clipped_gap: np.ndarray  # (B,)


def solver_race(**initial) -> Panel:
    """The gap to the optimum step by step, and the weights so far, with sliders for steps, bound and case."""
    for dimension in DIMENSIONS:
        race(dimension)
    controls = {
        "steps": log_slider("steps m", 10, 1, ROUNDS, 0.05, {10: "10", 100: "100", 1000: "paper 1000"}),
        "C": log_slider("bound C", 100, BOUNDS[0], BOUNDS[-1], 0.1, {0.1: "0.1", 1: "1", 100: "paper 100"}),
        "dimensions": options("dimensions E", DIMENSIONS),
    }
    return Panel(build, controls, (9, 3.9), initial, 3.6)


def gram(E: int) -> torch.Tensor:
    """(n + 1, n + 1): rbf kernel, σ² = 1, of random points on the sphere in E dimensions; the first is z⁺."""
    generator = torch.Generator().manual_seed(0)
    x = normalize(torch.randn(NEGATIVES + 1, E, dtype=torch.float64, generator=generator), dim=1)
    return kernel(x, x)


def delta(K: torch.Tensor) -> np.ndarray:
    """Δ = k⁺⁺ 11ᵀ + K_YY + ρI − k_Y 1ᵀ − 1 k_Yᵀ (n, n), written out."""
    k = K[0, 1:]
    return (K[0, 0] + K[1:, 1:] + RIDGE * torch.eye(len(k)) - k - k.unsqueeze(1)).numpy()


def objective(D: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """g(α) = ½ αᵀΔα − 2·1ᵀα of α (..., n)."""
    return ((0.5 * alpha @ D - 2) * alpha).sum(-1)


def descend(D: np.ndarray, bounds: np.ndarray, rounds: int = ROUNDS) -> np.ndarray:
    """(rounds + 1, 3, B, n): α ← clip(α − η (Δα − 2), 0, C) from 0, all racers and bounds at once.

    The third racer steps from a point ahead, and forgets its momentum where that points uphill.
    """
    curvature = np.linalg.eigvalsh(D)[-1]
    step = np.array([1e-3, 1 / curvature, 1 / curvature]).reshape(3, 1, 1)
    path = np.zeros((rounds + 1, 3, len(bounds), len(D)))
    ahead, t = path[0], np.ones((len(bounds), 1))
    for m in range(rounds):
        np.clip(ahead - step * (ahead @ D - 2), 0, bounds[:, None], out=path[m + 1])
        new, old = path[m + 1, 2], path[m, 2]
        uphill = ((ahead[2] - new) * (new - old)).sum(-1, keepdims=True) > 0
        t_next = np.where(uphill, 1, (1 + np.sqrt(1 + 4 * t * t)) / 2)
        ahead = path[m + 1].copy()
        ahead[2] += np.where(uphill, 0, (t - 1) / t_next) * (new - old)
        t = t_next
    return path


@lru_cache
def race(dimension: str) -> Race:
    K = gram(int(dimension))
    D = delta(K)
    found = {
        solver: np.stack([svm_dual(K, C=C, ridge=RIDGE, solver=solver).alpha[1:].numpy() for C in BOUNDS])
        for solver in ("exact", "inv")
    }
    best = objective(D, found["exact"])
    path = descend(D, BOUNDS)
    gap = objective(D, path) / -best + 1
    return Race(path, gap, found["exact"], found["inv"], objective(D, found["inv"]) / -best + 1)


def build(figure, compact: bool) -> Drawing:
    """The race and the weights; or, compact, the race."""
    grid = figure.add_gridspec(3, 1 if compact else 2)
    parts = [draw_gaps(figure.add_subplot(grid[:, 0]), "" if compact else "how far from the optimum")]
    if not compact:
        parts.append(draw_weights([figure.add_subplot(grid[row, 1]) for row in range(3)]))

    def update(values: dict) -> str:
        m, b = round(values["steps"]), int(np.abs(np.log10(BOUNDS / values["C"])).argmin())
        found = race(values["dimensions"])
        for part in parts:
            part.move(found, m, b)
        return sentence(values, found, m, b)

    return Drawing([artist for part in parts for artist in part.artists], update)


def sentence(values: dict, found: Race, m: int, b: int) -> str:
    gaps = [left if left > ROUNDING else 0 for left in found.gap[m, :, b]]
    said = ", ".join(f"{racer} {left:.2g}" for racer, left in zip(RACERS, gaps))
    return (
        f"{NEGATIVES} negatives in {values['dimensions']} dimensions, C {values['C']:.3g}: the exact "
        f"machine uses {(found.exact[b] > 0).sum()} of them, clipped least squares "
        f"{(found.clipped[b] > 0).sum()} with a gap of {found.clipped_gap[b]:.2g}, where doing nothing "
        f"has 1. After m = {m} the gaps are: {said}."
    )


def draw_gaps(axis, title: str) -> Part:
    """The gaps over the steps; moved by the race, the step and the number of the bound."""
    axis.set(xscale="log", yscale="log", xlim=(1, ROUNDS), ylim=(LOW, 100), xlabel="steps m", title=title)
    axis.set_ylabel("gap (g(α) − g*) / |g*|, dashed: α = 0")
    axis.axhline(1, color=GREY, linewidth=1.5, linestyle=(0, (4, 2)))
    lines = [axis.plot([], [], color=colour)[0] for colour in RACERS.values()]
    dots = axis.scatter([1] * 3, [1] * 3, c=list(RACERS.values()), s=45, clip_on=False)
    clipped = axis.axhline(1, color=ORANGE)
    for k, (name, colour) in enumerate({**RACERS, "clipped least squares": OCHRE}.items()):
        axis.text(1.1, 55 / 2.2**k, name, color=colour, weight="bold", fontsize=8, va="center")

    def move(found: Race, m: int, b: int) -> None:
        gap = np.maximum(found.gap[:, :, b], LOW / 10)
        for line, y in zip(lines, gap.T):
            line.set_data(np.arange(1, ROUNDS + 1), y[1:])
        dots.set_offsets(np.stack([[m] * 3, np.maximum(gap[m], LOW)], axis=1))
        level = max(found.clipped_gap[b], LOW)
        clipped.set_ydata([level, level])

    return Part([*lines, dots, clipped], move)


def draw_weights(axes: list) -> Part:
    """The weights of three solvers as bars; moved as the gaps are."""
    bars = []
    for axis, solver, colour in zip(axes, ("exact", "step 1/λ", "clipped"), (BLACK, BLUE, ORANGE)):
        axis.set(xlim=(-1, NEGATIVES), ylim=(0, 1.6), xticks=[], yticks=[0, 1], ylabel=solver)
        axis.yaxis.label.set_color(colour)
        bars.append(axis.add_collection(LineCollection([], colors=colour, linewidths=4)))
    axes[0].set_title("the weights α, as shares of the largest exact one")
    axes[-1].set_xlabel("negatives, by exact weight")

    def move(found: Race, m: int, b: int) -> None:
        exact, x = found.exact[b], np.arange(NEGATIVES)
        order = np.lexsort((-found.clipped[b], -exact))
        for collection, alpha in zip(bars, (exact, found.path[m, 1, b], found.clipped[b])):
            heights = alpha[order] / exact.max()
            collection.set_segments(np.stack([x, 0 * x, x, heights], axis=1).reshape(-1, 2, 2))

    return Part(bars, move)
