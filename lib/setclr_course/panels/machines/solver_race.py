"""Solvers of one machine's dual in a race: projected gradients step by step beside the exact optimum, clipped
least squares and doing nothing (MMCL, proposition 1)."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from torch import Generator, float64, randn

from setclr_course.kit.inner import delta, dual, rbf
from setclr_course.kit.palette import BLUE, DUSK, GREY, INK, OCHRE, PINE, VERMILION
from setclr_course.kit.panel import Page, Panel, log_slider, options
from setclr_course.panels.machines.solvers import objective, unbounded

N, ROUNDS, RIDGE = 39, 1000, 0.1  # negatives, steps, λ
LOW = 1e-7  # the lowest gap that is drawn
RACERS = {"authors' step 1/1000": VERMILION, "step 1/λ": BLUE, "1/λ with momentum": PINE}
DRAWN = np.unique(np.geomspace(1, ROUNDS, 250).round().astype(int))  # steps


class Race(NamedTuple):
    """All steps of a race, and its two solvers that take none."""

    path: np.ndarray  # (ROUNDS + 1, 3, n): α of the racers after each step
    gap: np.ndarray  # (ROUNDS + 1, 3): (g(α) − g*) / |g*| of the racers, so that α = 0 has 1
    exact: np.ndarray  # (n,)
    clipped: np.ndarray  # (n,)
    clipped_gap: float


class solver_race(Panel):
    """The gap to the optimum step by step, and the weights so far, with sliders for steps, bound and case."""

    size, row_height = (9, 3.9), 3.6
    mosaic, row_mosaic = "gaps weights", "gaps"
    knobs = {
        "steps": log_slider("steps m", 10, 1, ROUNDS, 0.05, {10: "10", 1000: "paper 1000"}),
        "C": log_slider("bound C", 100, 0.1, 100, 0.1, {0.1: "0.1", 1: "1", 100: "paper 100"}),
        "dimensions": options("dimensions E", ("3", "16", "64", "256")),
    }

    def solve(self, values: dict) -> Race:
        return race(int(values["dimensions"]), values["C"])

    def draw(self, page: Page, values: dict, now: Race) -> None:
        m, title = round(values["steps"]), "" if page.row else "how far from the optimum"
        gaps = page.plot("gaps", (1, ROUNDS), (LOW, 1e5), title, "steps m", "gap (g(α) − g*) / |g*|",
                         (1, 10, 100, 1000), log="x y",
                         yticks={LOW: "less", 1e-6: "10⁻⁶", 1e-4: "10⁻⁴", 0.01: "10⁻²", 1: "1"})  # fmt: skip
        gaps.key(*RACERS.items(), ("clipped least squares", OCHRE), ("dashed: doing nothing", DUSK))
        gaps.line([1, ROUNDS], 1, GREY, 2, "dash")
        gaps.line([1, ROUNDS], now.clipped_gap, OCHRE, 2.5)
        colours = list(RACERS.values())
        lines = [gaps.line(DRAWN, y.clip(LOW / 10), c, 2.5) for y, c in zip(now.gap[DRAWN].T, colours)]
        at = np.stack([[m] * 3, now.gap[m].clip(LOW)], axis=1)
        dots = gaps.dots(at, colours, size=11).handle("steps", at[1], along="x", label="steps m")
        for k, (name, line, gap) in enumerate(zip(RACERS, lines, now.gap[m])):
            page.link(f"{name}: after m = {m} a gap of {gap:.2g}", line, dots[k])
        title, below = "weights α, in shares of the largest exact one", "negatives, by exact weight"
        rows = {3.4: "exact", 1.7: "step 1/λ", 0: "clipped"}
        plot = page.plot("weights", (-1, N), (-0.05, 4.9), title, below, yticks=rows, frame="")
        order = np.lexsort((-now.clipped, -now.exact))
        for base, colour, alpha in zip(rows, (INK, BLUE, OCHRE), (now.exact, now.path[m, 1], now.clipped)):
            plot.line([-1, N], base, INK, 1)
            plot.bars(range(N), base + alpha[order] / now.exact.max(), colour, base=base)

    def say(self, values: dict, now: Race) -> str:
        m = round(values["steps"])
        said = ", ".join(f"{racer} {gap:.2g}" for racer, gap in zip(RACERS, now.gap[m]))
        return (
            f"{N} negatives in {values['dimensions']} dimensions, C {values['C']:.3g}: the exact "
            f"machine uses {(now.exact > 0).sum()} of them, clipped least squares "
            f"{(now.clipped > 0).sum()} with a gap of {now.clipped_gap:.2g}, where doing nothing "
            f"has 1. After m = {m} the gaps are: {said}."
        )


@cache
def gram(E: int) -> np.ndarray:
    """(n + 1, n + 1): rbf kernel, σ² = 1, of random points on the sphere in E dimensions; the first is z⁺."""
    x = randn(N + 1, E, dtype=float64, generator=Generator().manual_seed(0)).numpy()
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return rbf(x, x)


@lru_cache(8)
def race(E: int, C: float) -> Race:
    """Projected gradients, α ← clip(α − η (Δα − 2), 0, C) from 0. With momentum they step from a point ahead,
    farther in the direction of the last step."""
    K = gram(E)
    D = delta(K, RIDGE)
    low, *_, high = np.linalg.eigvalsh(D)
    steps, momentum = np.array([1e-3, 1 / high, 1 / high]), 1 - 2 / (1 + np.sqrt(high / low))
    ahead = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [-momentum, 0, 0, 1 + momentum]])
    move = np.column_stack([ahead, -steps[:, None] * ahead, 2 * steps])
    path = np.zeros((ROUNDS + 2, len(RACERS), N))  # it begins twice at 0
    rows, terms = path.reshape(-1, N), np.ones((9, N))  # four α, as many Δα, and 1
    here, pulls = terms[:4], terms[4:8]
    floor, roof = np.zeros_like(path[0]), np.full_like(path[0], C)  # whole, which is faster than a number
    for start, after in zip(range(2, len(rows), 3), path[2:]):
        here[:] = rows[start : start + 4]  # the last racer's step before, and all last steps
        np.dot(here, D, out=pulls)
        np.dot(move, terms, out=after)
        np.maximum(after, floor, out=after)
        np.minimum(after, roof, out=after)
    path = path[1:]
    exact, clipped = dual(K, C, RIDGE), unbounded(D).clip(0, C)
    gap, clipped_gap = (1 - objective(D, alpha) / objective(D, exact) for alpha in (path, clipped))
    return Race(path, np.abs(gap).round(12), exact, clipped, clipped_gap)  # smaller gaps are rounding
