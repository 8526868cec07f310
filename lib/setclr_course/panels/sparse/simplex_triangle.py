"""Softmax and sparsemax of three scores: two paths through the triangle of probabilities, and the water level
that makes some of them exactly zero (QARe, section 4.2, eq. 15 and 16)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.inner import softmax, sparsemax
from setclr_course.kit.palette import BLUE, GREEN, INK, MIST, PINE, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.sparse.candidates import CORNERS
from setclr_course.panels.sparse.words import brief, signed

BESIDE_CORNER = np.array([[-0.11, -0.15], [1.11, -0.15], [0.5, 1.01]])
FINE = np.geomspace(1e-2, 1e3, 150)  # 1/τ along the path of the softmax
NEVER = 1e-3  # the smallest difference of scores that is not a tie
BOTTOM, TOP = -2.4, 0.25  # what is seen of the pillars, counted from the highest score


class Shares(NamedTuple):
    """Three scores (3,), and what both rules make of them."""

    x: np.ndarray
    scores: np.ndarray  # x/τ
    sparse: np.ndarray
    soft: np.ndarray
    level: float


def shares(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sparsemax and softmax of lists (..., n)."""
    return sparsemax(scores), softmax(scores)


def milestones(x: np.ndarray) -> tuple[float, float]:
    """The temperatures at which the sparsemax of x/τ, on its way down, drops the worst of three scores and
    then the second: 0 where a tie forbids it."""
    best, second, worst = np.sort(x)[::-1]
    edge, corner = best + second - 2 * worst, best - second
    return (edge if second - worst > NEVER else corner), (corner if corner > NEVER else 0.0)


def turns(x: np.ndarray) -> np.ndarray:
    """The corners of the path of the sparsemax (n, 3), from the centre on."""
    reached = [tau for tau in milestones(x) if tau]
    return sparsemax(np.array([[0.0], *([1 / tau] for tau in reached)]) * x)


class simplex_triangle(Panel):
    """The sparsemax and the softmax of (x₁, x₂, 0)/τ as points of a triangle and as pillars in water."""

    size, row_height = (9, 4.1), 5.2
    mosaic, widths, row_mosaic = "plane pillars", (1, 1.1), "plane; pillars"
    marks = {-2.0: "−2", 0: "0, like score 3", 2: "2"}
    knobs = {
        "x1": slider("score x₁", 1.0, -2.0, 2.0, 0.1, marks),
        "x2": slider("score x₂", 0.6, -2.0, 2.0, 0.1, marks),
        "temperature": log_slider(
            "temperature τ", 1, 0.1, 10, marks={0.12: "hard", 1: "SparseCLR: always 1", 8: "soft"}
        ),
    }

    def solve(self, values: dict) -> Shares:
        x = np.array([values["x1"], values["x2"], 0.0])
        scores = np.round(x / values["temperature"], 12)  # what just touches the level gets 0, not 1e-16
        sparse, soft = shares(scores)
        return Shares(x, scores, sparse.round(12), soft, float(scores.max() - sparse.max()))

    def draw(self, page: Page, values: dict, now: Shares) -> None:
        draw_triangle(page, now)
        draw_pillars(page, now)

    def say(self, values: dict, now: Shares) -> str:
        both = [", ".join(f"{p:.2g}" for p in point) for point in (now.sparse, now.soft)]
        return (
            f"Scores {now.x[0]:.1f}, {now.x[1]:.1f} and 0 at temperature {values['temperature']:.2g}. "
            f"Sparsemax: {both[0]}, {(now.sparse > 0).sum()} of 3 above the level {now.level:.2f}. "
            f"Softmax: {both[1]}. {journey(now.x)}."
        )


def journey(x: np.ndarray) -> str:
    """Where the path of the sparsemax goes as τ falls to 0."""
    (edge, corner), best = milestones(x), 1 + int(x.argmax())
    if edge == 0:
        return "Three equal scores stay in the centre"
    if corner == 0:
        return f"Sparsemax meets an edge at τ = {edge:.2g} and stops there, a tie"
    if corner == edge:
        return f"Sparsemax goes straight to corner {best} and is there at τ = {corner:.2g}"
    return f"Sparsemax meets an edge at τ = {edge:.2g} and is at corner {best} from τ = {corner:.2g} on"


def draw_triangle(page: Page, now: Shares) -> None:
    """The triangle with both paths, and where both are now."""
    title = "" if page.row else "Softmax never touches an edge, sparsemax does, from its first ring on"
    plane = page.plane("plane", (-0.24, 1.24), (-0.2, 1.06), title)
    plane.area([CORNERS], WHITE, edge=INK)
    plane.key(("◆ softmax", BLUE), ("• sparsemax", PINE), size="small" if page.row else "normal")
    for j, (x, y) in enumerate(CORNERS):
        anchor, rise = ("end", "start", "middle")[j], "bottom" if y else "top"
        plane.text(x, y, f"all on {j + 1}", anchor=anchor, rise=rise, up=4 if y else -4)
    path, (edge, corner) = turns(now.x) @ CORNERS, milestones(now.x)
    for way, colour, width in ((softmax(FINE[:, None] * now.x) @ CORNERS, BLUE, 2), (path, GREEN, 3)):
        plane.line(way[:, 0], way[:, 1], colour, width)
    plane.dots(path[1:], WHITE, size=8, edge=GREEN)
    ahead = path[1] - path[0] if corner or edge else np.array([0.0, -1.0])
    words = [(path[0] - ahead / np.linalg.norm(ahead) * [0.15, 0.08], "τ = ∞", INK)]
    if edge > corner:
        words.append((beside_edge(path[1], CORNERS[now.x.argmin()]), f"τ = {edge:.2g}", PINE))
    if corner:
        words.append((BESIDE_CORNER[now.x.argmax()], f"τ = {corner:.2g}", PINE))
    for (x, y), said, colour in words:
        plane.text(x, y, said, colour, "small")
    plane.dots(path[:1], INK, size=6)
    plane.dots(now.soft @ CORNERS, BLUE, "◆", 18)
    plane.dots(now.sparse @ CORNERS, GREEN, "●", 12)


def beside_edge(point: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """Where words stand outside the edge that a point lies on, away from the edge's ends."""
    middle = (CORNERS.sum(0) - opposite) / 2
    along = point - middle
    outside = (middle - opposite) / np.linalg.norm(middle - opposite)
    return middle + along * min(1, 0.25 / max(float(np.linalg.norm(along)), 1e-9)) + outside * [0.16, 0.08]


def draw_pillars(page: Page, now: Shares) -> None:
    """The scores as pillars in water, seen from the highest one, and on the water what both give to each."""
    title = "What stands above the water is the probability: the level is where these add up to 1"
    names = {i: f"x{name}/τ" for i, name in enumerate("₁₂₃")}
    how: dict = {"ylabel": "score x/τ", "xticks": names, "room": (38, 0, 0, 0)}
    plot = page.plot("pillars", (-0.6, 3.3), (BOTTOM, TOP), "" if page.row else title, **how)
    top, water, places = now.scores.max(), -now.sparse.max(), np.arange(3)
    plot.bars(places - 0.16, np.maximum(now.scores - top, BOTTOM), "#b5b5b5", 0.36, BOTTOM)
    plot.boxes((-0.6, BOTTOM), (3.3, water), MIST, opacity=0.55)
    rules = (-0.16, now.sparse, GREEN, PINE, 0.36), (0.26, now.soft, BLUE, BLUE, 0.14)
    for side, p, colour, word, wide in rules:
        plot.bars(places + side, water + p, colour, wide, water)
        words = [brief(q) for q in p]
        plot.text(places + side, water + p, words, word, "small", rise="bottom", up=1, bold=True)
    feet = [signed(f"{s:.3g}") + (" ↓" if s - top < BOTTOM else "") for s in now.scores]
    plot.text(places - 0.16, BOTTOM, feet, size="small", rise="bottom", up=3)
    ticks = [signed(f"{round(float(top) + y, 2):g}") for y in (-2, -1, 0)]
    plot.text(-0.6, (-2, -1, 0), ticks, size="small", anchor="end", right=-7)
    plot.text(3.26, water, signed(f"level T\n{now.level:.2f}"), anchor="end", rise="bottom", up=3)
