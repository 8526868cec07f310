"""Five similarities as beads on a line, and how a softmax shares out one unit among them (GroCo, eq. 11)."""

from typing import NamedTuple

import numpy as np
from matplotlib.collections import LineCollection

from setclr_course.kit.cast import two_views
from setclr_course.kit.palette import GREY, INK, OF_LOSS
from setclr_course.panels.sorting.five import FIVE, PLACES, faces, spread
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle, Link, box, dot
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part
from setclr_course.pixels.riders import riders

COLOURS = (OF_LOSS["InfoNCE"], "#4d4d4d", "#808080", "#b3b3b3", "#d9d9d9")
ANCHOR = 1.17  # where ★ is drawn: beyond all similarities
FACE, ROOM = 0.22, 0.24  # of a photograph, and from one to the next
CURVE = np.linspace(-1, 1, 101)


class Shares(NamedTuple):
    """What the softmax makes of five similarities."""

    s: np.ndarray  # (5,): the positive first
    p: np.ndarray  # (5,): sums to 1
    whole: float  # Σ exp(s/τ)

    @property
    def loss(self) -> float:
        return float(-np.log(self.p[0]))


def beads(**initial) -> Panel:
    """The similarities of one anchor to five others, which can be dragged, and the share of each."""
    marks = {0.1: ".1", 0.5: "SimCLR .5", 2: "2"}
    controls = {"temperature": log_slider("temperature τ", 0.5, 0.05, 5, 0.05, marks)}
    controls |= {name: slider(f"{name}, similarity", s, -1.0, 1.0, 0.05) for name, s in PLACES.items()}
    return Panel(build, controls, (9, 4.2), initial, 3.9)


def shares(values: dict) -> Shares:
    s = np.array([values[name] for name in FIVE])
    powers = np.exp(s / values["temperature"])
    return Shares(s, powers / powers.sum(), float(powers.sum()))


def build(figure, compact: bool) -> Drawing:
    axis, *right = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(3.4, 1))
    parts = [draw_line(axis, compact), *(draw_unit(part) for part in right)]
    now: dict[str, Shares] = {}

    def update(values: dict) -> str:
        now["shares"] = shares(values)
        for part in parts:
            part.move(now["shares"], values["temperature"])
        return sentence(now["shares"], values["temperature"])

    handles = {name: handle(axis, name) for name in FIVE}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(axis, right, now["shares"]))


def handle(axis, name: str) -> Handle:
    return Handle(axis, (name,), lambda values: (values[name], 0), along="x")


def links(axis, right: list, now: Shares) -> list[Link]:
    """A bead, its bar and its piece of the unit."""
    found = []
    ends = now.p.cumsum()
    for name, s, p, end in zip(FIVE, now.s, now.p, ends):
        marks = [dot(axis, (s, 0)), box(axis, (s - 0.03, 0), (s + 0.03, p))]
        marks += [box(part, (0, end - p), (1, end)) for part in right]
        found.append(Link(marks, text=f"{name}: similarity {s:+.2f}, share {p:.3f}"))
    return found


def sentence(now: Shares, temperature: float) -> str:
    got = ", ".join(f"{name} {p:.2g}" for name, p in zip(FIVE[1:], now.p[1:]))
    first = FIVE[int(now.p.argmax())]
    return (
        f"At temperature {temperature:.2g} the cat's other view gets a share of {now.p[0]:.2g}: "
        f"the loss is {now.loss:.2f}. The others: {got}. Most goes to the {first}."
    )


def draw_line(axis, compact: bool) -> Part:
    """The beads on their line, bars as high as the shares, and the exponential curve through their tops."""
    colour = OF_LOSS["InfoNCE"]
    axis.set(xlim=(-1.3, 1.35), ylim=(-0.52, 1.02), xticks=(-1, -0.5, 0, 0.5, 1), yticks=(0, 0.5, 1))
    axis.set_xlabel("similarity s" if compact else "similarity s to the anchor ★: larger is closer")
    axis.axhline(0, color=INK, linewidth=1)
    if not compact:
        axis.set_title("the nearest gets most, but nobody gets nothing")
        axis.set_ylabel("share p", loc="top")
    axis.plot(ANCHOR, 0, "*", color=INK, markersize=16, markeredgecolor="white", clip_on=False, zorder=6)
    riders(axis, two_views()[0][:1], FACE, -0.4).move(np.array([[ANCHOR, 0]]))
    curve = axis.plot([], [], color=colour, linewidth=1, linestyle=(0, (4, 2)))[0]
    bars = axis.bar(range(5), np.zeros(5), width=0.06, color=COLOURS, edgecolor=INK, linewidth=0.6)
    threads = axis.add_collection(LineCollection([], colors=GREY, linewidths=0.8))
    crosses = axis.scatter([], [], marker="X", s=110, color=INK, edgecolors="white", zorder=6)
    plus = axis.scatter([], [], marker="P", s=150, color=colour, edgecolors="white", zorder=6)
    shown = riders(axis, faces(), FACE, -0.4)
    numbers = [axis.text(0, 0, "", ha="right", va="bottom", fontsize=10) for _ in FIVE]

    def move(now: Shares, temperature: float) -> None:
        curve.set_data(CURVE, np.minimum(np.exp(CURVE / temperature) / now.whole, 1.1))
        under = spread(now.s, ROOM)
        threads.set_segments([[(s, -0.02), (x, -0.19)] for s, x in zip(now.s, under)])
        shown.move(np.stack([under, np.zeros(5)], 1))
        crosses.set_offsets(np.stack([now.s[1:], np.zeros(4)], 1))
        plus.set_offsets([[now.s[0], 0]])
        for bar, number, s, p in zip(bars, numbers, now.s, now.p):
            bar.set(x=s - 0.03, height=p)
            number.set(x=s - 0.04, y=p, text="" if compact else f"{p:.2g}" if p >= 0.001 else "<0.001")

    return Part([curve, threads, *bars, *shown.artists, crosses, plus, *numbers], move)


def draw_unit(axis) -> Part:
    """One unit, cut into five pieces."""
    axis.set(xlim=(-0.1, 2.6), ylim=(-0.52, 1.02), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    axis.set_title("one unit, shared out")
    pieces = axis.bar(
        [0.5] * 5, np.zeros(5), width=1, color=COLOURS, edgecolor="white", linewidth=0.8, align="center"
    )
    names = [axis.text(1.12, 0, name, va="center", fontsize=10) for name in ("✚ cat", *FIVE[1:])]
    loss = axis.text(0, -0.28, "", va="center", fontsize=11, color=OF_LOSS["InfoNCE"], weight="bold")

    def move(now: Shares, _: float) -> None:
        ends = now.p.cumsum()
        for piece, name, p, end, y in zip(pieces, names, now.p, ends, spread(ends - now.p / 2, 0.085)):
            piece.set(y=end - p, height=p)
            name.set_y(y)
        loss.set_text(f"loss = −log {now.p[0]:.2g}\n     = {now.loss:.2f}")

    return Part([*pieces, *names, loss], move)
