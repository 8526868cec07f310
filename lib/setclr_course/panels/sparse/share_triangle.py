"""Three scores as a point beside the triangle of shares: the water leads to the triangle's nearest point, the
softmax never to an edge (QARe, eq. 16)."""

from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.inner import softmax, sparsemax
from setclr_course.kit.palette import BLUE, GREEN, INK, MIST, PINE, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, Plot, log_slider, slider

THREE = NAMES[:3]
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])  # where one of three has everything
BESIDE = np.array([[-0.2, -0.2], [1.2, -0.2], [0.5, 0.93]])  # the lower edges of the photographs
LOWEST, HIGHEST = -1.0, 1.5  # of a score
TEMPERATURE = log_slider("temperature τ", 1, 0.1, 10, marks={1: "SparseCLR: always 1"})
FALLING = np.geomspace(100, 1e-3, 150)  # τ along the path of the softmax


class Shares(NamedTuple):
    """Of three scores (3,), by either rule."""

    scores: np.ndarray
    sparse: np.ndarray
    soft: np.ndarray


def place_of(scores: np.ndarray) -> np.ndarray:
    """Scores (..., 3), moved alike until they add up to 1, as points (..., 2) of the triangle's plane."""
    return (scores - (scores.sum(-1, keepdims=True) - 1) / 3) @ CORNERS


def scores_at(x: float, y: float) -> list[float]:
    """The reverse of `place_of`, for a third score of 0: the other two."""
    square = np.vstack([CORNERS.T, np.ones(3)])
    first, second, third = np.linalg.solve(square, [x, y, 1])
    return [float(first - third), float(second - third)]


class share_triangle(Panel):
    """The shares of three scores as a point of the triangle; the point of the scores can be dragged.

    Args:
        cooled: the scores are divided by a temperature τ, and both paths are drawn as it falls to 0.
    """

    least = 0.9
    size, row_height = (9, 4.2), 2.9
    mosaic, widths, row_mosaic = "plane shares", (1.9, 1), "plane"
    knobs = {
        "first": slider("score of cat", 1.2, LOWEST, HIGHEST, 0.05),
        "second": slider("score of coffee", 0.8, LOWEST, HIGHEST, 0.05),
    }

    def __init__(self, cooled: bool = False, **initial: Any):
        self.cooled = cooled
        if cooled:
            self.knobs = {"temperature": TEMPERATURE, **self.knobs}
        super().__init__(**initial)

    def solve(self, values: dict) -> Shares:
        scores = np.array([values["first"], values["second"], 0.0])
        x = scores / values.get("temperature", 1.0)
        return Shares(scores, sparsemax(x.round(9)), softmax(x))

    def draw(self, page: Page, values: dict, now: Shares) -> None:
        title = "" if page.row else "the water finds the nearest point of the triangle"
        wide = ((-0.45, 1.45), (-0.3, 1.25)) if self.cooled else ((-0.8, 1.8), (-0.72, 1.3))
        plane = page.plane("plane", *wide, title)
        scores, water, soft = place_of(now.scores), now.sparse @ CORNERS, now.soft @ CORNERS
        if not self.cooled:
            draw_ground(plane)
        plane.area([CORNERS], WHITE, edge=INK)
        corners = plane.dots(CORNERS, INK, size=4, edge=INK)
        faces = plane.photographs(BESIDE, two_views()[0][:3], 0.26, "bottom")
        if self.cooled:
            way = draw_paths(plane, now.scores)
        else:
            way = plane.segments(scores, water, GREEN, 2, "dash")
            point = plane.dots(scores, INK, size=13)
            point.handle("scores", scores, "first", "second", to=scores_at, step=0.05)
        plane.dots(soft, BLUE, size=14)
        green = plane.dots(water, GREEN, size=14)

        shares = page.plot("shares", (-0.6, 2.6), (0, 1.3), "shares: softmax never gives 0",
                           xticks=dict(enumerate(THREE)), yticks=(0, 0.5, 1))  # fmt: skip
        (plane if page.row else shares).key(("• by water", PINE), ("• by softmax", BLUE), where="top right")
        bars = []
        for side, of, colour in ((-0.2, now.sparse, GREEN), (0.2, now.soft, BLUE)):
            places = np.arange(3) + side
            bars.append(shares.bars(places, of, colour, 0.38))
            words = [f"{share:.2f}" if share else "0" for share in of]
            shares.text(places, of, words, size="small", rise="bottom", up=1)

        for j, name in enumerate(THREE):
            said = f"{name}: score {now.scores[j]:.2f}, shares {now.sparse[j]:.2f} and {now.soft[j]:.2f}"
            page.link(said, faces[j], *(bar[j] for bar in bars), lit=[corners[j]])
        page.link("water: " + listed(now.sparse), green, lit=[way])

    def say(self, values: dict, now: Shares) -> str:
        where = {1: "a corner", 2: "an edge", 3: "the inside"}[int((now.sparse > 0).sum())]
        named = ", ".join(f"{name} {score:.2f}" for name, score in zip(THREE, now.scores))
        cooled = f"τ = {values['temperature']:.2g}. " if self.cooled else ""
        return (
            f"{cooled}Scores {named}. The water shares out {listed(now.sparse)}: {where} of the triangle. "
            f"Softmax: {listed(now.soft)}."
        )


def draw_ground(plane: Plot) -> None:
    """In blue what lies nearest to the triangle's edges."""
    for j, corner in enumerate(CORNERS):
        others = np.delete(CORNERS, j, axis=0)
        out = 3 * (others.mean(0) - corner)
        plane.area([[*others, *(others[::-1] + out)]], MIST, opacity=0.6)
    plane.note("• the scores", bold=True)
    plane.text(0.5, -0.68, "blue ground:\ntwo share", size="small", rise="bottom")
    plane.note("outside\nthe blue:\none has all", "bottom left", size="small")


def draw_paths(plane: Plot, scores: np.ndarray) -> Mark:
    """Where both answers go as τ falls, with a ring where somebody goes under; the line of the water."""
    leads = (scores[:, None] - scores).clip(0).sum(0)  # over each; it goes under where τ is as small
    drops = -np.unique(-leads[leads > 0])
    turns = sparsemax(scores / np.append(1e9, drops)[:, None]) @ CORNERS
    bent = softmax(scores / FALLING[:, None]) @ CORNERS
    plane.line(bent[:, 0], bent[:, 1], BLUE, 1.5)
    way = plane.line(turns[:, 0], turns[:, 1], GREEN, 2.5)
    plane.dots(turns[1:], WHITE, size=9, edge=GREEN)
    return way


def listed(shares: np.ndarray) -> str:
    return ", ".join(f"{share:.2f}" for share in shares)
