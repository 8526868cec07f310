"""One batch seen by nine losses: their assignment matrices side by side, under one slider for the smoothing.

The batch, and each loss as a function of that slider, stand here for `family_gradients` and notebook 08 too.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from ipywidgets import ValueWidget
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection
from torch import Tensor

from setclr.explore.kit.panel import Drawing, Panel, Picture, log_slider, options, still
from setclr.explore.kit.parts import bare, cells, squares
from setclr.losses import (
    IOT,
    MMCL,
    GroCo,
    InfoNCE,
    LinearAssignment,
    NTLogistic,
    QARe,
    SetLoss,
    SparseCLR,
    Triplet,
)
from setclr.palette import GREY, LINES, VERMILION

# Degrees on a circle of two views of five images. ●4 and ■3 are the closest pair and no true match.
ANGLES = ((75, 15, 212, 184, 310), (98, 350, 197, 152, 285))
RADIUS = (1.0, 0.76)  # the circle is drawn twice: view 1 outside, view 2 inside
NAMES = [view + str(image) for view in "●■" for image in range(1, 1 + len(ANGLES[0]))]
SMOOTHING = (0.01, 10)  # the slider's ends


class Member(NamedTuple):
    """A loss of the family, as a function of the slider."""

    symbol: str  # of its parameter; empty where there is none
    paper: float  # the parameter's value where the slider is at 1
    power: int  # 1: softer as the parameter grows; −1: harder; 0: no smoothing, the slider leaves it alone
    make: Callable[[float], SetLoss]
    shares: bool = False  # its rows are drawn divided by their sums

    def parameter(self, smoothing: float) -> float:
        return self.paper * smoothing**self.power

    def drawn(self, A: np.ndarray) -> np.ndarray:
        return A / A.sum(1, keepdims=True) if self.shares else A

    def at(self, smoothing: float) -> SetLoss:
        return self.make(self.parameter(smoothing))


FAMILY = {
    "Triplet": Member("m", 0.5, 0, Triplet),
    "LinearAssignment": Member("τ", 0.5, 1, lambda tau: LinearAssignment(temperature=tau)),
    "InfoNCE": Member("τ", 0.5, 1, InfoNCE),
    "SparseCLR": Member("m", 1.0, 0, SparseCLR),
    "NTLogistic": Member("τ", 0.5, 1, NTLogistic),
    "GroCo": Member("β", 1.0, -1, lambda beta: GroCo(beta, negatives=4)),
    "IOT both": Member("ε", 0.5, 1, lambda epsilon: IOT("both", epsilon, iterations=8)),
    "IOT total": Member("ε", 0.5, 1, lambda epsilon: IOT("total", epsilon)),
    "MMCL": Member("σ²", 1.0, 1, lambda bandwidth: MMCL(bandwidth=bandwidth, solver="exact"), shares=True),
    "QARe": Member("", 1.0, 0, lambda _: QARe()),
}
MATRICES = [name for name, member in FAMILY.items() if member.at(1).has_assignment]
FOLLOWING = [name for name in MATRICES if FAMILY[name].power]  # the slider moves them
NEGATIVES_ONLY = ("Triplet", "MMCL")  # their assignment leaves the true match at 0
TRAP = (3, 7)  # row ●4, column ■3


def family_matrices(**initial) -> Panel:
    """The assignments of nine losses on one batch, with a slider for how softly all of them, or one of them,
    match."""
    controls = {"smoothing": smoothing_slider(), "moves": options("moves", ["all", *FOLLOWING])}
    return Panel(build, controls, (9, 4.6), initial, 5)


def smoothing_slider() -> ValueWidget:
    """At 1 every loss has a usual parameter: τ = ε = 0.5, β = 1, σ² = 1."""
    return log_slider("smoothing", 1, *SMOOTHING, 0.1, {0.015: "hard", 1: "usual", 9: "soft"})


def batch(angles=ANGLES) -> Tensor:
    """(2, N, 2) float64: points of the unit circle at these degrees."""
    radians = torch.tensor(angles, dtype=torch.float64).deg2rad()
    return torch.stack([radians.cos(), radians.sin()], dim=-1)


def build(figure, compact: bool) -> Drawing:
    """All nine and the batch; or, compact, those that follow the slider."""
    names, size = (FOLLOWING, 7) if compact else (MATRICES, 9)
    places = list((figure.subplots(3, 3) if compact else figure.subplots(2, 5)).flat)
    draw_batch(places[0], size)
    moving = [draw_matrix(axis, name, size) for name, axis in zip(names, places[1:])]
    if compact:
        scale = places[-1].inset_axes((0, 0.45, 1, 0.12))
        places[-1].set_axis_off()
        figure.colorbar(moving[0][0], cax=scale, orientation="horizontal", ticks=(0, 1))
        scale.set_title("weight in A", fontsize=size)
        scale.tick_params(labelsize=size)
    else:
        bar = figure.colorbar(moving[0][0], ax=places[4::5], shrink=0.9)
        bar.set_label("weight in A (above 1: the colour of 1)", fontsize=size)
        for axis in (places[1], places[5]):
            axis.set_yticks(range(len(NAMES)), NAMES, fontsize=6)

    def update(values: dict) -> str:
        words = []
        for name, (mesh, _, parameter, share) in zip(names, moving):
            member = FAMILY[name]
            follows = member.power and values["moves"] in ("all", name)
            smoothing = values["smoothing"] if follows else 1
            A = assignment_of(name, smoothing)
            mesh.set_array(member.drawn(A))
            parameter.set(
                text=f"{member.parameter(smoothing):.3g}",
                color="black" if follows else GREY,
                weight="bold" if follows else "normal",
            )
            share.set_text(
                f"{(A > 0).sum(1).mean():.2g}" if name in NEGATIVES_ONLY else f"{true_share(A):.0%}"
            )
            words.append(f"{name} {share.get_text()}")
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual values, moving {values['moves']}. Share "
            "of the weight on the true matches (for Triplet and MMCL: how many negatives an anchor uses): "
            f"{', '.join(words)}."
        )

    return Drawing([artist for artists in moving for artist in artists], update)


def draw_matrix(axis, name: str, size: int) -> tuple[Artist, ...]:
    """The still part of one matrix; returns its cells, its frames and two numbers, all of which move."""
    member, compact = FAMILY[name], size < 9
    n = len(NAMES)
    mesh = cells(axis, n, n)
    axis.set_yticks(TRAP[:1], [NAMES[TRAP[0]]], fontsize=6)
    axis.set_xticks(TRAP[1:], [NAMES[TRAP[1]]], fontsize=6)
    axis.tick_params(length=0, pad=1)
    frames = axis.add_collection(true_matches(n // 2, 1 if compact else 1.4))
    title = name.replace("Assignment", "") if compact else name
    title += " ÷ row sum" if member.shares else ""
    axis.set_title(title, fontsize=size, weight="bold", pad=size + 7)

    def word(place, x, y, text="", **kwargs):
        """Text at a corner of the axes, moved by x and y of its own size."""
        return axis.annotate(text, place, (x * size, y * size), "axes fraction", "offset points", **kwargs)

    below = {"fontsize": size, "va": "baseline"}
    label = "negatives used" if name in NEGATIVES_ONLY else "true matches"
    word(
        (0, 1),
        2.1,
        0.4,
        f"{member.symbol} =",
        ha="right",
        fontsize=size,
        color="black" if member.power else GREY,
    )
    word((0, 0), 0, -2.1, label.split()[0] if compact else label, **below)
    parameter = word((0, 1), 2.4, 0.4, fontsize=size)
    return mesh, frames, parameter, word((1, 0), 0, -2.1, ha="right", weight="bold", **below)


@lru_cache(maxsize=2**10)
def assignment_of(name: str, smoothing: float) -> np.ndarray:
    return FAMILY[name].at(smoothing).assignment(batch()).numpy()


def true_share(A: np.ndarray) -> float:
    """The part of an assignment's weight that lies on the true matches of two views."""
    n = len(A) // 2
    return float((A[:n, n:].trace() + A[n:, :n].trace()) / A.sum())


def true_matches(n: int, width: float) -> LineCollection:
    """A frame round each of the 2n true matches, and white lines between the blocks of the two views."""
    frames = list(squares((i, (i + n) % (2 * n)) for i in range(2 * n)))
    between, end = n - 0.5, 2 * n - 0.5
    lines = [np.array([[between, -0.5], [between, end]]), np.array([[-0.5, between], [end, between]])]
    colours = ["white"] * 2 + [VERMILION] * len(frames)
    return LineCollection(lines + frames, colors=colours, linewidths=width)


def batch_picture() -> Picture:
    """The batch alone."""
    return still(lambda figure: draw_batch(figure.subplots()), (2.8, 3))


def draw_batch(axis, size: int = 9) -> str:
    """The batch on its two circles; returns the picture's sentence."""
    bare(axis, (-1.4, 1.4))
    axis.set_title("the batch", fontsize=size, weight="bold", pad=size + 5)
    axis.set_xlabel("● view 1   ■ view 2", fontsize=size)
    around = np.linspace(0, 2 * np.pi, 200)
    z = batch().numpy()
    for radius, marker, view in zip(RADIUS, "os", z):
        axis.plot(radius * np.cos(around), radius * np.sin(around), color=GREY, linewidth=0.5, zorder=0)
        axis.scatter(*radius * view.T, c=LINES[: len(view)], marker=marker, s=5 * size, edgecolors="white")
    for i, (x, y) in enumerate(z[0]):
        ends = np.array(RADIUS)[:, None] * z[:, i]
        axis.plot(*ends.T, color=LINES[i], linewidth=1.5, zorder=0)
        axis.text(1.27 * x, 1.27 * y, str(i + 1), fontsize=size, ha="center", va="center")
    places = ", ".join(f"{name} at {angle}°" for name, angle in zip(NAMES, np.ravel(ANGLES)))
    return f"Two views of {z.shape[1]} images on a circle: {places}."
