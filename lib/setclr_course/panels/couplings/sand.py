"""Piles of sand and buckets, and two buttons, rows! and columns!: pressed in turn they are Sinkhorn's rounds
(IOT-CL, eq. 21 and 22)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.inner import scaled
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, options, slider
from setclr_course.panels.couplings.buckets import KNOBS, N, cost, draw_sand, placed
from setclr_course.panels.couplings.fair_shares import MOST, sum_bars

SIDES = ("columns", "rows")
PRESSES = 40
HIGH, LONG = 0.8, 0.6  # of a cell: the bars of a fair share above the columns and beside the rows
ABOVE, BESIDE = -1.45, N - 0.3  # where these bars begin


class Sand(NamedTuple):
    """Everything (6, 6): row pile, column bucket."""

    buckets: np.ndarray  # (6, 2)
    cost: np.ndarray
    shares: np.ndarray  # of a pile, or of a full bucket


class sand(Panel):
    """Six piles and six buckets: drag a bucket, and press rows! and columns! until nothing moves."""

    size, row_height = (9, 4.5), 4.2
    mosaic, widths, row_mosaic = "plane table", (1, 1.12), "table"
    knobs = {
        "presses": slider("presses", 0, 0, PRESSES, 1, {0: "none yet"}),
        "epsilon": log_slider("entropy ε", 0.2, 0.02, 2, 0.1, {0.05: ".05", 0.5: "paper .5"}),
        "first": options("which comes first", SIDES),
        **KNOBS,
    }
    play = "presses"
    buttons = {
        "rows!": "scale each row until its pile gives out exactly what it has",
        "columns!": "scale each column until its bucket is exactly full",
    }

    def pressed(self, button: str, values: dict) -> dict:
        """Pressed twice, a button moves nothing the second time."""
        side, done = button[:-1], values["presses"]
        if not done:
            return {"presses": 1, "first": side}
        return {"presses": min(done + (side != side_of(done, values["first"])), PRESSES)}

    def solve(self, values: dict) -> Sand:
        buckets = placed(values, NAMES)
        d = cost(buckets)
        return Sand(buckets, d, scaled(d, values["epsilon"], values["presses"], values["first"]))

    def draw(self, page: Page, values: dict, now: Sand) -> None:
        lines, buckets = draw_sand(
            page, "plane", "each grain prefers a near bucket", now.shares, now.buckets,
            "● pile · ■ bucket · line: sand that is carried",
        )  # fmt: skip
        for name, place in zip(NAMES, now.buckets):
            buckets.handle(name, place, f"{name} x", f"{name} y", label=f"bucket of the {name}")
        done, first = values["presses"], values["first"]
        last = f"after {side_of(done, first)}!" if done else f"no press yet, {first}! in turn"
        title = last if page.row else f"shares of sand, {last}"
        cells, above, beside = draw_table(page, title, now.shares)
        for i, pile in enumerate(NAMES):
            for j, bucket in enumerate(NAMES):
                share = now.shares[i, j]
                said = f"● {pile} to ■ {bucket}: {share:.2f} of a share, d = {now.cost[i, j]:.2f}"
                page.link(said, cells[i, j], *([lines[N * i + j]] if share > 0.05 else []))
        for j, name in enumerate(NAMES):
            page.link(f"■ {name} holds {now.shares[:, j].sum():.2f} shares", above[j], lit=[cells[:, j]])
            page.link(f"● {name} gives out {now.shares[j].sum():.2f} shares", beside[j], lit=[cells[j]])

    def say(self, values: dict, now: Sand) -> str:
        done, first = values["presses"], values["first"]
        last = f", the last of them {side_of(done, first)}!" if done else ""
        received, given = now.shares.sum(0), now.shares.sum(1)
        off = max(abs(sums - 1).max() for sums in (received, given))
        most = f", most of all that of the {NAMES[received.argmax()]}" if received.max() >= 1.01 else ""
        still = f"The worst is off by {100 * off:.3g} %" if off >= 0.01 else "All are right to within 1 %"
        return (
            f"{done} press{'es' * (done != 1)}{last}, ε = {values['epsilon']:.3g}; "
            f"{side_of(done + 1, first)}! is next. Buckets hold {span(received)}{most}; piles give out "
            f"{span(given)}. {still}."
        )


def draw_table(page: Page, title: str, shares: np.ndarray) -> tuple[Mark, Mark, Mark]:
    """Shares, photographs at the rows and columns, bars for the sums: the marks of cells and of both bars."""
    right, top = BESIDE + MOST * LONG + 0.9, ABOVE - MOST * HIGH - 0.6
    table = page.plane("table", (-1.5, right), (N, top), title)
    cells = table.cells(shares, words=[f"{share:.2f}".removeprefix("0") for share in shares.flat])
    table.frames((i, i) for i in range(N))
    table.photographs([(-1, i) for i in range(N)], two_views()[0], 0.8)
    table.photographs([(j, -0.95) for j in range(N)], two_views()[1], 0.8)
    table.text((-1, N - 0.2), -0.95, ("●", "■"))
    above = sum_bars(table, shares.sum(0), ABOVE, -HIGH, wide=0.8, words=".2f")
    beside = sum_bars(table, shares.sum(1), BESIDE, LONG, flat=True, wide=0.8, words=".2f")
    below = ("framed: own buckets", "given by ●")
    table.text((-0.5, BESIDE), N - 0.2, below, size="small", anchor="start")
    table.text(BESIDE, ABOVE - HIGH, "a fair share", size="small", anchor="start")
    return cells, above, beside


def span(sums: np.ndarray) -> str:
    """From the least to the most, in shares."""
    low, high = f"{sums.min():.2f}", f"{sums.max():.2f}"
    return f"{low} shares each" if low == high else f"{low} to {high} shares"


def side_of(number: int, first: str) -> str:
    """What the press of this number, from 1, scales."""
    return SIDES[(SIDES.index(first) + number - 1) % 2]
