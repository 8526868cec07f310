"""Three scores as a point beside the triangle of shares: the water leads to the triangle's nearest point, the
softmax never to an edge (QARe, eq. 16)."""

from typing import Any

import numpy as np
import torch
from matplotlib.patches import Polygon

from setclr.inner import sparsemax
from setclr_course.kit.cast import two_views
from setclr_course.kit.palette import BLUE, GREEN, INK, MIST, PINE
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Handle, Link, box, dot, line
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.riders import riders

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])  # where one of the three has everything
THREE = ("cat", "coffee", "astronaut")
BESIDE = np.array([[-0.2, -0.2], [1.2, -0.2], [0.5, 0.93]])  # the lower edges of the photographs
PLANE = (-0.8, 1.8), (-0.72, 1.3)
LOWEST, HIGHEST = -1.0, 1.5  # of a score


def share_triangle(**initial) -> Panel:
    """The shares of three scores as a point of the triangle; the point of the scores can be dragged."""
    controls = {
        "first": slider("score of cat", 1.2, LOWEST, HIGHEST, 0.05),
        "second": slider("score of coffee", 0.8, LOWEST, HIGHEST, 0.05),
    }
    return Panel(build, controls, (9, 4.2), initial, 2.9)


def scores_of(values: dict) -> np.ndarray:
    return np.array([values["first"], values["second"], 0.0])


def place_of(scores: np.ndarray) -> np.ndarray:
    """Scores (..., 3), moved alike until they add up to 1, as points (..., 2) of the triangle's plane."""
    return (scores - (scores.sum(-1, keepdims=True) - 1) / 3) @ CORNERS


def scores_at(x: float, y: float) -> list[float]:
    """The reverse of `place_of`, for a third score of 0: the other two."""
    square = np.vstack([CORNERS.T, np.ones(3)])
    shares = np.linalg.solve(square, [x, y, 1])
    return [float(share - shares[2]) for share in shares[:2]]


def shares_of(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sparsemax and softmax."""
    x = torch.from_numpy(np.round(scores, 9))
    return sparsemax(x).numpy(), x.softmax(-1).numpy()


def build(figure, compact: bool) -> Drawing:
    plane, *right = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1.9, 1))
    parts = [draw_plane(plane, compact), *(draw_shares(axis) for axis in right)]
    now: dict[str, Any] = {}  # scores, and the shares of both

    def update(values: dict) -> str:
        scores = scores_of(values)
        sparse, soft = shares_of(scores)
        now.update(scores=scores, sparse=sparse, soft=soft)
        for part in parts:
            part.move(**now)
        return sentence(**now)

    handles = {"scores": Handle(plane, ("first", "second"), lambda v: place_of(scores_of(v)), to=scores_at)}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(plane, right, now))


def links(plane, right: list, now: dict) -> list[Link]:
    """Each photograph at its corner and its two bars; the two shares and what they are."""
    found = []
    for j, name in enumerate(THREE):
        bars = [
            box(axis, (j + 0.2 * side - 0.2, 0), (j + 0.2 * side + 0.2, max(now[kind][j], 0.02)))
            for axis in right
            for side, kind in ((-1, "sparse"), (1, "soft"))
        ]
        text = f"{name}: score {now['scores'][j]:.2f}, shares {now['sparse'][j]:.2f} and {now['soft'][j]:.2f}"
        found.append(Link([dot(plane, BESIDE[j] + [0, 0.13]), *bars], [dot(plane, CORNERS[j])], text))
    ends = place_of(now["scores"]), now["sparse"] @ CORNERS
    words = "water: " + ", ".join(f"{share:.2f}" for share in now["sparse"])
    return [*found, Link([dot(plane, ends[1])], [line(plane, *ends)], words)]


def sentence(scores: np.ndarray, sparse: np.ndarray, soft: np.ndarray) -> str:
    where = {1: "a corner", 2: "an edge", 3: "the inside"}[int((sparse > 0).sum())]
    named = ", ".join(f"{name} {score:.2f}" for name, score in zip(THREE, scores))
    shares = [", ".join(f"{share:.2f}" for share in of) for of in (sparse, soft)]
    return f"Scores {named}. The water shares out {shares[0]}: {where} of the triangle. Softmax: {shares[1]}."


def draw_plane(axis, compact: bool) -> Part:
    """The triangle, what lies nearest to its edges, and the three points."""
    bare(axis, *PLANE)
    for j, corner in enumerate(CORNERS):
        others = np.delete(CORNERS, j, axis=0)
        out = 3 * (others.mean(0) - corner)
        axis.add_patch(Polygon([*others, *(others[::-1] + out)], facecolor=MIST, alpha=0.55, zorder=0))
    axis.add_patch(Polygon(CORNERS, facecolor="white", edgecolor=INK, linewidth=1.4, zorder=1))
    faces = riders(axis, two_views()[0][:3], 0.26)
    faces.move(BESIDE)
    if not compact:
        axis.set_title("the water finds the nearest point of the triangle")
        axis.text(-0.78, 1.19, "• the scores", color=INK, weight="bold")
        axis.text(0.5, -0.68, "blue ground: two share", ha="center")
        axis.text(-0.78, -0.68, "white outside:\none has all")
    way = axis.plot([], [], color=GREEN, linewidth=1.6, linestyle=(0, (3, 2)), zorder=2)[0]
    points = [
        axis.plot([], [], ".", color=colour, markersize=size, markeredgecolor="white", zorder=6)[0]
        for colour, size in ((INK, 17), (BLUE, 19), (GREEN, 19))
    ]

    def move(scores: np.ndarray, sparse: np.ndarray, soft: np.ndarray) -> None:
        places = np.array([place_of(scores), soft @ CORNERS, sparse @ CORNERS])
        way.set_data(*places[[0, 2]].T)
        for point, place in zip(points, places):
            point.set_data(*place[:, None])

    return Part([*faces.artists, way, *points], move)


def draw_shares(axis) -> Part:
    """The shares of the three by both rules."""
    axis.set(xlim=(-0.6, 2.6), ylim=(0, 1.08), xticks=range(3), xticklabels=THREE, yticks=(0, 0.5, 1))
    axis.set_title("shares: softmax never gives 0")
    for y, word, colour in ((0.93, "• by water", PINE), (0.86, "• by softmax", BLUE)):
        axis.text(0.99, y, word, color=colour, weight="bold", ha="right", transform=axis.transAxes)
    lefts = [j + shift for shift in (-0.2, 0.2) for j in range(3)]
    bars = axis.bar(lefts, np.zeros(6), 0.38, color=[GREEN] * 3 + [BLUE] * 3)
    words = [axis.text(x, 0, "", ha="center", va="bottom") for x in lefts]

    def move(scores: np.ndarray, sparse: np.ndarray, soft: np.ndarray) -> None:
        for bar, word, share in zip(bars, words, [*sparse, *soft]):
            bar.set_height(share)
            word.set(y=share + 0.01, text=f"{share:.2f}" if share else "0")

    return Part([*bars, *words], move)
