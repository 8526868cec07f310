"""The shares of three scores as points of a triangle: the water leads to the triangle's nearest point, the
softmax never to an edge (QARe, eq. 16)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.inner import softmax, sparsemax
from setclr_course.kit.palette import BLUE, GREEN, INK, PINE, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, Plot, log_slider, slider

THREE = NAMES[:3]
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])  # where one of three has everything
BESIDE = np.array([[-0.17, -0.09], [1.17, -0.09], [0.5, 0.93]])  # the lower edges of the photographs
LOWEST, HIGHEST = -1.0, 1.5  # of a score
COOLED = 0.1, 10.0  # ends of τ
FALLING = np.geomspace(100, 1e-3, 150)  # τ along the path of the softmax


class Shares(NamedTuple):
    """Of three scores (3,), by either rule."""

    scores: np.ndarray
    sparse: np.ndarray
    soft: np.ndarray


class share_triangle(Panel):
    """The shares of three scores over a temperature τ as points of the triangle, and the paths of both rules
    as τ falls to 0. The point of the softmax can be dragged along its path."""

    least = 0.75
    size, row_height = (9, 4.2), 2.9
    mosaic, widths, row_mosaic = "plane shares", (1.27, 1), "plane"
    knobs = {
        "temperature": log_slider("temperature τ", 1, *COOLED, marks={1: "SparseCLR: always 1"}),
        "first": slider("score of cat", 1.2, LOWEST, HIGHEST, 0.05),
        "second": slider("score of coffee", 0.8, LOWEST, HIGHEST, 0.05),
    }

    def solve(self, values: dict) -> Shares:
        scores = np.array([values["first"], values["second"], 0.0])
        x = scores / values["temperature"]
        return Shares(scores, sparsemax(x.round(9)), softmax(x))

    def draw(self, page: Page, values: dict, now: Shares) -> None:
        title = "" if page.row else "the water finds the nearest point of the triangle"
        plane = page.plane("plane", (-0.32, 1.32), (-0.11, 1.2), title)
        plane.area([CORNERS], WHITE, edge=INK)
        corners = plane.dots(CORNERS, INK, size=4, edge=INK)
        faces = plane.photographs(BESIDE, two_views()[0][:3], 0.26, "bottom")
        plane.key(("• by water", PINE), ("• by softmax", BLUE), where="top right")
        way, bent = draw_paths(plane, now.scores)

        def to(x: float, y: float) -> list[float]:
            return [float(FALLING[np.hypot(*(bent - (x, y)).T).argmin()].clip(*COOLED))]

        soft = now.soft @ CORNERS
        plane.dots(soft, BLUE, size=14).handle("softmax", soft, "temperature", to=to)
        green = plane.dots(now.sparse @ CORNERS, GREEN, size=14)

        shares = page.plot("shares", (-0.6, 2.6), (0, 1.1), "shares: softmax never gives 0",
                           xticks=dict(enumerate(THREE)), yticks=(0, 0.5, 1))  # fmt: skip
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
        return (
            f"τ = {values['temperature']:.2g}. Scores {named}. The water shares out {listed(now.sparse)}: "
            f"{where} of the triangle. Softmax: {listed(now.soft)}."
        )


def draw_paths(plane: Plot, scores: np.ndarray) -> tuple[Mark, np.ndarray]:
    """Where both answers go as τ falls, with a ring where somebody goes under: the line of the water, and the
    points of the softmax at FALLING."""
    leads = (scores[:, None] - scores).clip(0).sum(0)  # over each; it goes under where τ is as small
    drops = -np.unique(-leads[leads > 0])
    turns = sparsemax(scores / np.append(1e9, drops)[:, None]) @ CORNERS
    bent = softmax(scores / FALLING[:, None]) @ CORNERS
    plane.line(bent[:, 0], bent[:, 1], BLUE, 1.5)
    way = plane.line(turns[:, 0], turns[:, 1], GREEN, 2.5)
    plane.dots(turns[1:], WHITE, size=9, edge=GREEN)
    return way, bent


def listed(shares: np.ndarray) -> str:
    return ", ".join(f"{share:.2f}" for share in shares)
