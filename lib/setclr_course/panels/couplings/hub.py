"""A bucket that is near to everybody under three sets of constraints: nothing but the total, rows, rows and
columns (IOT-CL, figure 4)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.inner import scaled
from setclr_course.kit.palette import BLUE, SKY
from setclr_course.kit.panel import Page, Panel, log_slider
from setclr_course.panels.couplings.buckets import BUCKETS, HUB, KNOBS, N, cost, draw_sand, placed
from setclr_course.panels.couplings.fair_shares import MOST, sum_bars

NAME = NAMES[HUB]
PLACE = f"{NAME} x", f"{NAME} y"
PRESSES = 200  # until nothing moves
TITLES = {
    "total": "the total is right",
    "rows": "rows are right: InfoNCE",
    "both": "both sides are right: no hub",
}
HIGH = 0.7  # of a bar's place: a fair share
COLOURS = [BLUE if name == NAME else SKY for name in NAMES]


class Hub(NamedTuple):
    buckets: np.ndarray  # (6, 2)
    shares: dict[str, np.ndarray]  # (6, 6), row pile, column bucket, by what is constrained


class hub(Panel):
    """Drag the coffee's bucket into the middle and home again; below stands what each bucket receives."""

    least = 0.62
    size, row_height = (9, 5), 8.4
    mosaic, heights = "total rows both; total-sums rows-sums both-sums", (1.4, 1)
    row_mosaic = "rows; rows; total-sums; rows-sums; both-sums"
    knobs = {
        "epsilon": log_slider("entropy ε", 0.2, 0.02, 2, 0.1, {0.05: ".05", 0.5: "paper .5"}),
        **{name: KNOBS[name] for name in PLACE},
    }

    def solve(self, values: dict) -> Hub:
        buckets = BUCKETS.copy()
        buckets[HUB] = placed(values, [NAME])
        d, epsilon = cost(buckets), values["epsilon"]
        return Hub(buckets, {
            "total": scaled(d, epsilon, 0),
            "rows": scaled(d, epsilon, 1, "rows"),
            "both": scaled(d, epsilon, PRESSES),
        })  # fmt: skip

    def draw(self, page: Page, values: dict, now: Hub) -> None:
        marks = []
        for way, title in TITLES.items():
            shares = now.shares[way]
            buckets = draw_sand(page, way, title, shares, now.buckets)[1]
            buckets.handle(f"{NAME} {way}", now.buckets[HUB], *PLACE, label=f"bucket of the {NAME}")
            sums = page.plane(
                f"{way}-sums", (-0.6, N - 0.4), (-1, HIGH * MOST + 0.5), title if page.row else "",
                xlabel="" if page.row else f"loss {loss_of(shares):.2f}",
            )  # fmt: skip
            bars = sum_bars(sums, shares.sum(0), 0, HIGH, COLOURS, wide=0.8, words=".1f")
            sums.photographs([(j, -0.55) for j in range(N)], two_views()[1], 0.8)
            marks += [buckets, bars]
        for j, name in enumerate(NAMES):
            said = ", ".join(f"{way} {shares[:, j].sum():.2f}" for way, shares in now.shares.items())
            page.link(f"■ {name} receives: {said}", *(mark[j] for mark in marks))

    def say(self, values: dict, now: Hub) -> str:
        words = []
        for way, shares in now.shares.items():
            received = shares.sum(0)
            least = f"that of the {NAMES[received.argmin()]} only {received.min():.2f}"
            others = least if received.min() < 0.99 else "and so do all others"
            words.append(
                f"{way}: the {NAME}'s bucket gets {received[HUB]:.2f} shares, {others}, "
                f"loss {loss_of(shares):.2f}"
            )
        x, y = now.buckets[HUB]
        return f"ε = {values['epsilon']:.3g}, ■ {NAME} at ({x:.2f}, {y:.2f}). {'; '.join(words)}."


def loss_of(shares: np.ndarray) -> float:
    """Minus the mean logarithm of what goes to one's own bucket."""
    return float(-np.log(shares.diagonal()).mean())
