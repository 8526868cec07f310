"""Solvers of one machine's dual in a race: projected gradients step by step beside the exact optimum, clipped
least squares and doing nothing (MMCL, proposition 1)."""

from functools import cache
from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.inner import dual, rbf
from setclr_course.kit.palette import BLUE, DUSK, GREEN, GREY, INK, OCHRE, ORANGE, PINE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.machines.solvers import delta, objective, unbounded

NEGATIVES, ROUNDS, RIDGE = 39, 1000, 0.1
C = log_slider("bound C", 100, 0.1, 100, 0.1, {0.1: "0.1", 1: "1", 100: "paper 100"})
BOUNDS = np.array([C.stop(k) for k in range(C.stops)])
DIMENSIONS = ("3", "16", "64", "256")
LOW = 1e-7  # the lowest gap that is drawn
ROUNDING = 1e-12  # a gap is 1 minus a quotient of float64 sums: a smaller one is rounding
RACERS = {"authors' step 1/1000": VERMILION, "step 1/λ": BLUE, "1/λ with momentum": GREEN}
DRAWN = np.unique(np.geomspace(1, ROUNDS, 250).round().astype(int))  # steps


class Race(NamedTuple):
    """All that the sliders can ask for in one dimension, for B bounds and n negatives; or, without B, a race
    at one bound."""

    gap: np.ndarray  # (ROUNDS + 1, B, 3): (g(α) − g*) / |g*| of the racers, so that α = 0 has 1
    path: np.ndarray  # (ROUNDS + 1, B, n): α of the second racer after each step
    exact: np.ndarray  # (B, n)
    clipped: np.ndarray  # (B, n)
    clipped_gap: np.ndarray  # (B, 1)


class solver_race(Panel):
    """The gap to the optimum step by step, and the weights so far, with sliders for steps, bound and case."""

    size, row_height = (9, 3.9), 3.6
    mosaic, row_mosaic = "gaps weights", "gaps"
    knobs = {
        "steps": log_slider("steps m", 10, 1, ROUNDS, 0.05, {10: "10", 100: "100", 1000: "paper 1000"}),
        "C": C,
        "dimensions": options("dimensions E", DIMENSIONS),
    }

    def solve(self, values: dict) -> Race:
        return Race(*(part[..., C.number(values["C"]), :] for part in race(values["dimensions"])))

    def draw(self, page: Page, values: dict, now: Race) -> None:
        m, title = round(values["steps"]), "" if page.row else "how far from the optimum"
        gaps = page.plot("gaps", (1, ROUNDS), (LOW, 1e5), title, "steps m", "gap (g(α) − g*) / |g*|",
                         (1, 10, 100, 1000), log="x y",
                         yticks={LOW: "less", 1e-6: "10⁻⁶", 1e-4: "10⁻⁴", 0.01: "10⁻²", 1: "1"})  # fmt: skip
        words = (*zip(RACERS, (VERMILION, BLUE, PINE)), ("clipped least squares", OCHRE))
        gaps.key(*words, ("dashed: doing nothing", DUSK))
        gaps.line([1, ROUNDS], [1, 1], GREY, 2, "dash")
        gaps.line([1, ROUNDS], [*now.clipped_gap] * 2, ORANGE, 2.5)
        colours = list(RACERS.values())
        lines = [gaps.line(DRAWN, y.clip(LOW / 10), c, 2.5) for y, c in zip(now.gap[DRAWN].T, colours)]
        at = np.stack([[m] * 3, now.gap[m].clip(LOW)], axis=1)
        dots = gaps.dots(at, colours, size=11).handle("steps", at[1], along="x", label="steps m")
        for k, (name, line, gap) in enumerate(zip(RACERS, lines, now.gap[m])):
            page.link(f"{name}: after m = {m} a gap of {gap:.2g}", line, dots[k])
        draw_weights(page, np.stack([now.exact, now.path[m], now.clipped]))

    def say(self, values: dict, now: Race) -> str:
        m = round(values["steps"])
        said = ", ".join(f"{racer} {gap:.2g}" for racer, gap in zip(RACERS, now.gap[m]))
        return (
            f"{NEGATIVES} negatives in {values['dimensions']} dimensions, C {values['C']:.3g}: the exact "
            f"machine uses {(now.exact > 0).sum()} of them, clipped least squares "
            f"{(now.clipped > 0).sum()} with a gap of {now.clipped_gap[0]:.2g}, where doing nothing "
            f"has 1. After m = {m} the gaps are: {said}."
        )


def draw_weights(page: Page, found: np.ndarray) -> None:
    """The weights (3, n) as rows of bars, in the order of the exact ones."""
    title, below = "weights α, in shares of the largest exact one", "negatives, by exact weight"
    rows = {3.4: "exact", 1.7: "step 1/λ", 0: "clipped"}
    plot = page.plot("weights", (-1, NEGATIVES), (-0.05, 4.9), title, below, yticks=rows, frame="")
    shares = found[:, np.lexsort((-found[2], -found[0]))] / found[0].max()
    for base, colour, row in zip(rows, (INK, BLUE, ORANGE), shares):
        plot.line([-1, NEGATIVES], [base, base], INK, 1)
        plot.bars(np.arange(NEGATIVES), base + row, colour, base=base)


def gram(E: int) -> np.ndarray:
    """(n + 1, n + 1): rbf kernel, σ² = 1, of random points on the sphere in E dimensions; the first is z⁺."""
    from torch import Generator, float64, randn

    x = randn(NEGATIVES + 1, E, dtype=float64, generator=Generator().manual_seed(0)).numpy()
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return rbf(x, x)


def walk(D: np.ndarray, C: np.ndarray, step: float, momentum: float = 0) -> np.ndarray:
    """α ← clip(α − η (Δα − 2), 0, C) from 0, for bounds C (B, 1): (ROUNDS + 1, B, n).

    With momentum it steps from a point ahead, farther in the direction of its last step.
    """
    path = np.zeros((ROUNDS + 1, len(C), len(D)))
    ahead = path[0]
    for m in range(ROUNDS):
        path[m + 1] = (ahead - step * (ahead @ D - 2)).clip(0, C)
        ahead = path[m + 1] + momentum * (path[m + 1] - path[m])
    return path


@cache
def race(dimension: str) -> Race:
    K, bounds = gram(int(dimension)), BOUNDS[:, None]
    D = delta(K, RIDGE)
    low, *_, high = np.linalg.eigvalsh(D)
    momentum = 1 - 2 / (1 + np.sqrt(high / low))
    paths = [walk(D, bounds, 1e-3), walk(D, bounds, 1 / high), walk(D, bounds, 1 / high, momentum)]
    exact = np.stack([dual(K, bound, RIDGE) for bound in BOUNDS])
    clipped = unbounded(D).clip(0, bounds)

    def gap(alpha: np.ndarray) -> np.ndarray:
        found = 1 - objective(D, alpha) / objective(D, exact)
        return np.where(found > ROUNDING, found, 0)

    gaps = np.stack([gap(path) for path in paths], axis=-1)
    return Race(gaps, paths[1], exact, clipped, gap(clipped)[:, None])
