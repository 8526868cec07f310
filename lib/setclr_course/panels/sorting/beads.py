"""Five similarities as beads on a line, and how a softmax shares out one unit among them (GroCo, eq. 11)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import two_views
from setclr_course.kit.palette import GREY, INK, OF_LOSS, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, Piece, log_slider, slider
from setclr_course.panels.sorting.five import FIVE, PLACES, beside, draw_signs, faces, spread

BLUE = OF_LOSS["InfoNCE"]
COLOURS = (BLUE, "#4d4d4d", "#808080", "#b3b3b3", "#d9d9d9")
ANCHOR = 1.17  # where ★ is drawn: beyond all similarities
FACE, ROOM = 0.22, 0.24  # of a photograph, and from one to the next
CURVE = np.linspace(-1, 1, 101)


class Shares(NamedTuple):
    """What the softmax makes of five similarities."""

    s: np.ndarray  # (5,): the positive first
    p: np.ndarray  # (5,): sums to 1
    whole: float  # Σ exp(s/τ)
    loss: float


class beads(Panel):
    """The similarities of one anchor to five others, which can be dragged, and the share of each."""

    size, row_height = (9, 4.2), 3.9
    mosaic, widths, row_mosaic = "line unit", (3.4, 1), "line"
    marks = {0.1: ".1", 0.5: "SimCLR .5"}
    knobs = {
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, 0.05, marks),
        **{name: slider(f"{name}, similarity", s, -1.0, 1.0, 0.05) for name, s in PLACES.items()},
    }

    def solve(self, values: dict) -> Shares:
        s = np.array([values[name] for name in FIVE])
        powers = np.exp(s / values["temperature"])
        p = powers / powers.sum()
        return Shares(s, p, powers.sum(), -np.log(p[0]))

    def draw(self, page: Page, values: dict, now: Shares) -> None:
        bars, signs = draw_line(page, values["temperature"], now)
        pieces = draw_unit(page, now)
        for k, (name, s, p) in enumerate(zip(FIVE, now.s, now.p)):
            signs[k].handle(name, (s, 0), along="x")
            page.link(f"{name}: similarity s = {s:+.2f}, share p = {p:.3f}", signs[k], bars[k], pieces[k])

    def say(self, values: dict, now: Shares) -> str:
        got = ", ".join(f"{name} {p:.2g}" for name, p in zip(FIVE[1:], now.p[1:]))
        return (
            f"At temperature {values['temperature']:.2g} the cat's other view gets a share of "
            f"{now.p[0]:.2g}: the loss is {now.loss:.2f}. The others: {got}. "
            f"Most goes to the {FIVE[now.p.argmax()]}."
        )


def draw_line(page: Page, temperature: float, now: Shares) -> tuple[Mark, list[Piece]]:
    """The beads on their line, bars as high as the shares, and the exponential curve through their tops."""
    title, axis = "the nearest gets most, and everybody gets something", "similarity s to ★: larger is closer"
    ticks: dict = {"xticks": (-1, -0.5, 0, 0.5, 1), "yticks": (0, 0.5, 1)}
    line = page.plot("line", (-1.3, 1.35), (-0.45, 1.02), "" if page.row else title, axis, "share p", **ticks)
    line.line([-1.3, 1.35], 0, INK, 1)
    line.dots([ANCHOR, 0], INK, "★", 18)
    line.photographs([ANCHOR, 0], two_views()[0][:1], FACE, "bottom", up=12)
    line.line(CURVE, np.minimum(np.exp(CURVE / temperature) / now.whole, 1.1), BLUE, 1, "dash")
    bars = line.bars(now.s, now.p, COLOURS, 0.06, edge=INK)
    under = spread(now.s, ROOM, -1.18, 1.23)
    line.segments(beside(now.s, -0.02), beside(under, -0.1), GREY, 0.8)
    line.text(under, -0.14, [brief(p) for p in now.p], size="small")
    line.photographs(beside(under, -0.18), faces(), FACE, "top")
    return bars, draw_signs(line, beside(now.s, 0))


def draw_unit(page: Page, now: Shares) -> Mark:
    """One unit, cut into five pieces."""
    unit = page.plot("unit", (-0.1, 2.6), (-0.45, 1.02), "one unit, shared out", frame="")
    ends = now.p.cumsum()
    pieces = unit.bars([0.5] * 5, ends, COLOURS, 1, ends - now.p, edge=WHITE)
    unit.text(1.12, spread(ends - now.p / 2, 0.085, 0, 1), ("✚ cat", *FIVE[1:]), anchor="start")
    unit.text(0, -0.2, f"loss\n−log {now.p[0]:.2g} = {now.loss:.2f}", BLUE, anchor="start", bold=True)
    return pieces


def brief(share: float) -> str:
    return "<.01" if share < 0.005 else f"{share:.2f}".lstrip("0")
