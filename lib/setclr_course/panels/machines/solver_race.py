"""Solvers of one machine's dual in a race: projected gradients step by step beside the exact optimum, clipped
least squares and doing nothing (MMCL, proposition 1)."""

from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.inner import dual, rbf
from setclr_course.kit.palette import BLUE, DUSK, GREEN, GREY, INK, OCHRE, ORANGE, PINE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.machines.solvers import delta, descent

NEGATIVES, ROUNDS, RIDGE = 39, 1000, 0.1
C = log_slider("bound C", 100, 0.1, 100, 0.1, {0.1: "0.1", 1: "1", 100: "paper 100"})
BOUNDS = np.array([C.stop(k) for k in range(C.stops)])
DIMENSIONS = ("3", "16", "64", "256")
LOW = 1e-7  # the lowest gap that is drawn
ROUNDING = 1e-12  # a gap is 1 minus a quotient of float64 sums: a smaller one is rounding
RACERS = {"authors' step 1/1000": VERMILION, "step 1/λ": BLUE, "1/λ with momentum": GREEN}
DRAWN = np.unique(np.geomspace(1, ROUNDS, 250).round().astype(int))  # steps


class Race(NamedTuple):
    """All that the sliders can ask for in one dimension, for B bounds and n negatives."""

    gap: np.ndarray  # (ROUNDS + 1, 3, B): (g(α) − g*) / |g*| of the racers, so that α = 0 has 1
    path: np.ndarray  # (ROUNDS + 1, B, n): α of the second racer after each step
    exact: np.ndarray  # (B, n)
    clipped: np.ndarray  # (B, n)
    clipped_gap: np.ndarray  # (B,)


class Shown(NamedTuple):
    """A race at one step and one bound."""

    gap: np.ndarray  # (ROUNDS + 1, 3)
    weights: np.ndarray  # (3, n): exact, by steps 1/λ so far, clipped
    clipped_gap: float


class solver_race(Panel):
    """The gap to the optimum step by step, and the weights so far, with sliders for steps, bound and case."""

    size, row_height = (9, 3.9), 3.6
    mosaic, row_mosaic = "gaps weights", "gaps"
    knobs = {
        "steps": log_slider("steps m", 10, 1, ROUNDS, 0.05, {10: "10", 100: "100", 1000: "paper 1000"}),
        "C": C,
        "dimensions": options("dimensions E", DIMENSIONS),
    }

    def __init__(self, **initial: Any):
        for dimension in DIMENSIONS:
            race(dimension)
        super().__init__(**initial)

    def solve(self, values: dict) -> Shown:
        found, m, b = race(values["dimensions"]), round(values["steps"]), C.number(values["C"])
        weights = np.stack([found.exact[b], found.path[m, b], found.clipped[b]])
        return Shown(found.gap[:, :, b], weights, found.clipped_gap[b])

    def draw(self, page: Page, values: dict, now: Shown) -> None:
        m, title = round(values["steps"]), "" if page.row else "how far from the optimum"
        gaps = page.plot("gaps", (1, ROUNDS), (LOW, 1e5), title, "steps m", "gap (g(α) − g*) / |g*|",
                         (1, 10, 100, 1000), log="x y",
                         yticks={LOW: "less", 1e-6: "10⁻⁶", 1e-4: "10⁻⁴", 0.01: "10⁻²", 1: "1"})  # fmt: skip
        words = (*zip(RACERS, (VERMILION, BLUE, PINE)), ("clipped least squares", OCHRE))
        gaps.key(*words, ("dashed: doing nothing", DUSK))
        gaps.line([1, ROUNDS], [1, 1], GREY, 2, "dash")
        gaps.line([1, ROUNDS], [now.clipped_gap] * 2, ORANGE, 2.5)
        colours = list(RACERS.values())
        lines = [gaps.line(DRAWN, y.clip(LOW / 10), c, 2.5) for y, c in zip(now.gap[DRAWN].T, colours)]
        at = np.stack([[m] * 3, now.gap[m].clip(LOW)], axis=1)
        dots = gaps.dots(at, colours, size=11).handle("steps", at[1], along="x", label="steps m")
        for k, (name, line, gap) in enumerate(zip(RACERS, lines, now.gap[m])):
            page.link(f"{name}: after m = {m} a gap of {seen(gap):.2g}", line, dots[k])
        draw_weights(page, now.weights)

    def say(self, values: dict, now: Shown) -> str:
        m = round(values["steps"])
        said = ", ".join(f"{racer} {seen(gap):.2g}" for racer, gap in zip(RACERS, now.gap[m]))
        return (
            f"{NEGATIVES} negatives in {values['dimensions']} dimensions, C {values['C']:.3g}: the exact "
            f"machine uses {(now.weights[0] > 0).sum()} of them, clipped least squares "
            f"{(now.weights[2] > 0).sum()} with a gap of {now.clipped_gap:.2g}, where doing nothing "
            f"has 1. After m = {m} the gaps are: {said}."
        )


def draw_weights(page: Page, found: np.ndarray) -> None:
    """The weights (3, n) as rows of bars, in the order of the exact ones."""
    names = {"exact": (3.4, INK, INK), "step 1/λ": (1.7, BLUE, BLUE), "clipped": (0, ORANGE, OCHRE)}
    at = {base + one: str(one) for base, *_ in names.values() for one in (0, 1)}
    title, below = "weights α, in shares of the largest exact one", "negatives, by exact weight"
    plot = page.plot("weights", (-1, NEGATIVES), (-0.05, 4.9), title, below, yticks=at, frame="left")
    shares = found[:, np.lexsort((-found[2], -found[0]))] / found[0].max()
    for (name, (base, colour, of_words)), row in zip(names.items(), shares):
        plot.line([-1, NEGATIVES], [base, base], INK, 1)
        plot.bars(np.arange(NEGATIVES), base + row, colour, base=base)
        plot.text(NEGATIVES, base + 1.25, name, of_words, anchor="end", bold=True)


def seen(gap: float) -> float:
    """A gap without its rounding."""
    return gap if gap > ROUNDING else 0


def objective(D: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """g(α) = ½ αᵀΔα − 2·1ᵀα of α (..., n)."""
    return ((0.5 * alpha @ D - 2) * alpha).sum(-1)


def gram(E: int) -> np.ndarray:
    """(n + 1, n + 1): rbf kernel, σ² = 1, of random points on the sphere in E dimensions; the first is z⁺."""
    from torch import Generator, float64, randn

    x = randn(NEGATIVES + 1, E, dtype=float64, generator=Generator().manual_seed(0)).numpy()
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return rbf(x, x)


@cache
def race(dimension: str) -> Race:
    K = gram(int(dimension))
    D = delta(K, RIDGE)
    exact = np.stack([dual(K, bound, RIDGE) for bound in BOUNDS])
    clipped = np.linalg.solve(D, np.full(NEGATIVES, 2.0)).clip(0, BOUNDS[:, None])
    step = 1 / np.linalg.eigvalsh(D)[-1]
    paths = [
        np.stack([np.zeros_like(exact), *islice(descent(D, BOUNDS, *how), ROUNDS)])
        for how in ((1e-3, False), (step, False), (step, True))
    ]
    best = objective(D, exact)
    gap = np.stack([objective(D, path) for path in paths], axis=1) / -best + 1
    return Race(gap, paths[1], exact, clipped, objective(D, clipped) / -best + 1)
