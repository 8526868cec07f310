"""Sinkhorn round by round on 64 features: ε blurs the coupling, rounds make it fair (IOT-CL, figure 3)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.palette import BLUE, GREY, VERMILION
from setclr_course.kit.panel import Page, Panel, log_slider, slider
from setclr_course.panels.couplings.fair_shares import MOST, sum_bars

ROUNDS = 30
ERRORS = (1e-6, 100)
PER_CENT = {1e-6: "0.0001 %", 1e-4: "0.01 %", 1e-2: "1 %", 1: "100 %"}


class Rounds(NamedTuple):
    shares: np.ndarray  # (n, n): n times the coupling after the rounds that are shown
    errors: np.ndarray  # (ROUNDS + 1,): the largest relative error of a row or column sum after each


class sinkhorn_rounds(Panel):
    """The coupling of two sets of features after any number of rounds, with the sums of its rows and columns.

    Args:
        cost: (n, n), 0 to 2, with the true matches on the diagonal; 64 made-up features in 8 groups by
            default.
        names: of equally large groups of neighbouring rows and columns.
    """

    size, row_height = (9, 4.7), 5
    mosaic, row_mosaic = "matrix errors", "matrix; matrix; errors"
    knobs = {
        "epsilon": log_slider("entropy ε", 0.5, 0.005, 5, marks={0.05: ".05", 0.5: "paper .5"}),
        "rounds": slider("rounds", 1, 0, ROUNDS, 1, {8: "paper 1 to 8"}),
    }
    play = "rounds"

    def __init__(self, cost: ArrayLike | None = None, names: Sequence[str] = (), **initial: Any):
        self.cost = made_up_cost() if cost is None else np.asarray(cost, float)
        self.names = names
        super().__init__(**initial)

    def solve(self, values: dict) -> Rounds:
        return after(self.cost, values["epsilon"], values["rounds"])

    def draw(self, page: Page, values: dict, now: Rounds) -> None:
        self.draw_coupling(page, now.shares)
        rounds, error = values["rounds"], now.errors[values["rounds"]]
        curve = page.plot(
            "errors", (-0.5, ROUNDS + 0.5), ERRORS, f"largest error: {per_cent(error)}", "rounds", log="y",
            xticks=range(0, ROUNDS + 1, 5), yticks=PER_CENT,
        )  # fmt: skip
        curve.line([-0.5, ROUNDS + 0.5], 0.01, GREY, 1, "dot")
        curve.line(range(ROUNDS + 1), np.where(now.errors < ERRORS[0], np.nan, now.errors), BLUE)
        at = rounds, np.clip(error, *ERRORS)
        curve.dots([at], VERMILION, "●", 12).handle("rounds", at, along="x")

    def draw_coupling(self, page: Page, shares: np.ndarray) -> None:
        """The matrix on a log scale, with its sums, and what its shades mean."""
        n, names = len(shares), self.names
        size, bar, gap = n // max(len(names), 1), n / 16, max(n / 32, 1)
        columns, low = shares.sum(0), -1 - np.log10(n)
        above, beside = -0.5 - gap, n - 0.5 + gap
        matrix = page.plane(
            "matrix", (-0.5, beside + MOST * bar), (n - 0.5 + 4 * gap * (not page.row), above - MOST * bar),
            f"column sums: {columns.min():.2f} to {columns.max():.2f} fair shares",
            xlabel="" if page.row else f"share of a row; 1/{n} is even", room=(14, 0, 0, 0),
            yticks={} if page.row else {(i + 0.5) * size - 0.5: name for i, name in enumerate(names)},
        )  # fmt: skip
        matrix.cells(np.log10(shares.clip(0.1 / n, 1)), low, 0)
        sum_bars(matrix, columns, above, -bar, wide=1.2)
        sum_bars(matrix, shares.sum(1), beside, bar, flat=True, wide=1.2)
        if not page.row:
            strip = np.linspace(low, 0, n)
            matrix.cells(np.tile(strip, (round(gap), 1)), low, 0, at=(0, n + gap))
            ends = np.interp((low, low + 1, 0), strip, range(n))
            words = f"1/{10 * n}", f"1/{n}", "1"
            matrix.text(ends, n + 2 * gap, words, size="small", rise="top", up=-2)

    def say(self, values: dict, now: Rounds) -> str:
        rounds, columns, rows = values["rounds"], now.shares.sum(0), now.shares.sum(1)
        fair = np.flatnonzero(now.errors < 0.01)
        return (
            f"ε = {values['epsilon']:.3g}, {rounds} round{'s' * (rounds != 1)}: columns hold "
            f"{columns.min():.2f} to {columns.max():.2f} times their fair share, rows {rows.min():.2f} to "
            f"{rows.max():.2f}; largest error {per_cent(now.errors[rounds])}, "
            + (f"under 1 % from round {fair[0]} on" if len(fair) else f"not under 1 % within {ROUNDS} rounds")
            + f". The true matches hold {now.shares.diagonal().mean():.1%} of the mass."
        )


def made_up_cost(n: int = 64, groups: int = 8, dimensions: int = 16) -> np.ndarray:
    """1 − cosine of two views of n points on a sphere, neighbours in one group."""
    chance = np.random.default_rng(0)
    centres, own = chance.normal(size=(groups, dimensions)), chance.normal(size=(n, dimensions))
    z = centres.repeat(n // groups, 0) + 0.5 * own + 0.6 * chance.normal(size=(2, n, dimensions))
    one, two = z / np.linalg.norm(z, axis=-1, keepdims=True)
    return 1 - one @ two.T


def after(cost: np.ndarray, epsilon: float, rounds: int) -> Rounds:
    """Round 0 is exp(−C/ε) with the right total; each round scales the columns, then the rows."""
    K = np.exp((cost.min() - cost) / epsilon)
    shares = [len(K) * K / K.sum()]
    for _ in range(ROUNDS):
        fair = shares[-1] / shares[-1].sum(0)
        shares.append(fair / fair.sum(1, keepdims=True))
    errors = [abs(np.concatenate([S.sum(0), S.sum(1)]) - 1).max() for S in shares]
    return Rounds(shares[rounds], np.array(errors))


def per_cent(error: float) -> str:
    return f"{100 * error:.0f} %" if error >= 1 else f"{100 * error:.3g} %"
