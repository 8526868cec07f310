"""An anchor, its positive and five negatives on a circle: whom InfoNCE and SparseCLR push away, and how hard
(QARe, section 4.2)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.circle import unit
from setclr_course.kit.handles import Circle
from setclr_course.kit.inner import softmax, sparsemax
from setclr_course.kit.palette import GREEN, GREY, INK, OF_LOSS, PINE, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, slider
from setclr_course.panels.sparse.candidates import faces

ANGLES = dict(zip(NAMES, (25, 60, -80, -150, 115, -55)))  # degrees from the anchor, which is on the right
POSITIVE = np.eye(6)[0]
OUTSIDE = 1.36  # the radius at which the photographs ride


class Pushes(NamedTuple):
    """Where the candidates stand (6, 2), and the slope of each by either loss (6,): what it gets, for the
    positive less 1."""

    points: np.ndarray
    soft: np.ndarray  # InfoNCE
    sparse: np.ndarray  # SparseCLR


class pushes(Panel):
    """Where the candidates stand round an anchor, and the pull and the pushes of two losses: each candidate
    can be dragged along the circle."""

    size, row_height = (9, 4.2), 4.4
    mosaic, widths = "circle bars", (1, 1.35)
    row_mosaic = "circle; circle; circle; bars; bars"
    knobs = {
        "margin": slider("margin", 1.0, 0.0, 2.0, 0.1, {1.0: "authors' program"}),
        "temperature": log_slider("InfoNCE's temperature τ", 0.5, 0.05, 5, 0.1),
        **{name: slider(f"angle of {name}", angle, -180, 175, 5) for name, angle in ANGLES.items()},
    }

    def solve(self, values: dict) -> Pushes:
        points = unit(np.array([values[name] for name in NAMES]))
        cosines = points[:, 0]
        soft = softmax(cosines, values["temperature"])
        sparse = sparsemax((cosines - values["margin"] * POSITIVE).round(12))
        return Pushes(points, soft - POSITIVE, sparse - POSITIVE)

    def draw(self, page: Page, values: dict, now: Pushes) -> None:
        plus, crosses = draw_circle(page, now)
        soft, sparse = draw_bars(page, values, now)
        for j, name in enumerate(NAMES):
            dot = crosses[j - 1] if j else plus[0]
            dot.handle(name, now.points[j], along=Circle())
            said = f"{name}: InfoNCE {now.soft[j]:+.2f}, SparseCLR {now.sparse[j]:+.2f}"
            page.link(said, dot, soft[j], sparse[j])

    def say(self, values: dict, now: Pushes) -> str:
        pushed = [f"{name} {slope:.2f}" for name, slope in zip(NAMES[1:], now.sparse[1:]) if slope > 0]
        pull, soft_pull = abs(now.sparse[0]), abs(now.soft[0])
        return (
            f"Margin {values['margin']:.1f}: SparseCLR pulls the cat with {pull:.2f} and pushes "
            f"{', '.join(pushed) or 'nobody'}. InfoNCE pulls it with {soft_pull:.2g} and pushes all five, "
            f"the farthest with {now.soft[1:].min():.2g}."
        )


def draw_circle(page: Page, now: Pushes) -> tuple[Mark, Mark]:
    """The anchor and its candidates; lines to those that SparseCLR moves, as thick as it moves them."""
    circle = page.plane("circle", (-1.65, 1.65), title="" if page.row else "larger cosine is closer")
    x, y = unit(np.arange(0, 361, 4)).T
    circle.line(x, y, GREY, 0.7)
    wide = np.where(now.sparse == 0, 0, 0.8 + 10 * abs(now.sparse))
    circle.segments([1, 0], now.points, GREEN, wide)
    circle.photographs([OUTSIDE, 0], two_views()[0][:1], 0.34)
    circle.photographs(OUTSIDE * now.points, faces(), 0.34)
    colours = [GREEN if slope > 0 else WHITE for slope in now.sparse[1:]]
    crosses = circle.dots(now.points[1:], colours, "✕", 15, INK)
    plus = circle.dots(now.points[:1], INK, "✚", 16)
    circle.dots([1, 0], INK, "★", 20)
    return plus, crosses


def draw_bars(page: Page, values: dict, now: Pushes) -> tuple[Mark, Mark]:
    """What each loss does to each candidate: pushes upwards, the pull downwards."""
    title = "" if page.row else "InfoNCE pushes all five, SparseCLR a few"
    plot = page.plot("bars", (-0.6, 5.6), (-2, 1.7), title, yticks=(-1, 0, 1), frame="left")
    places = np.arange(6)
    plot.photographs(np.column_stack([places, np.full(6, -1.6)]), faces(), 0.8)
    plot.line([-0.6, 5.6], 0, INK, 1)
    soft = plot.bars(places - 0.2, now.soft, OF_LOSS["InfoNCE"], 0.38)
    sparse = plot.bars(places + 0.2, now.sparse, OF_LOSS["SparseCLR"], 0.38)
    plot.key(
        (f"InfoNCE, τ = {values['temperature']:.2g}", OF_LOSS["InfoNCE"]),
        (f"SparseCLR, margin {values['margin']:.1f}", PINE),
        where="top right",
    )
    if page.row:
        return soft, sparse
    for side, slopes in ((-0.2, now.soft), (0.2, now.sparse)):
        for up, rise, chosen in ((2, "bottom", slopes >= 0), (-2, "top", slopes < 0)):
            words = [brief(abs(slope)) if here else "" for slope, here in zip(slopes, chosen)]
            colours = [INK if slope else GREY for slope in slopes]
            plot.text(places + side, slopes, words, colours, "small", rise=rise, up=up)
    plot.text(-0.5, 1.05, "push ↑", anchor="start")
    plot.text(0.55, -1.05, "pull ↓", anchor="start")
    return soft, sparse


def brief(p: float) -> str:
    """A probability in a few letters; only 0 is written 0, and only 1 is written 1."""
    if p in (0, 1):
        return f"{p:.0f}"
    return f"{p:.2f}".lstrip("0")[:3] if p >= 0.005 else f"{p:.0e}".replace("e-0", "e-")
