"""The batch that the panels on the family show, and each loss of it as a function of one smoothing."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from ipywidgets import ValueWidget
from numpy.typing import ArrayLike
from torch import Tensor

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
from setclr_course.kit.palette import LINES
from setclr_course.kit.png import Picture, still
from setclr_course.pixels.circle import as_drawn, draw_circles, on_circle
from setclr_course.pixels.controls import log_slider
from setclr_course.pixels.parts import bare

# Degrees on a circle of two views of five images. ●4 and ■3 are the closest pair and no true match.
ANGLES = ((75, 15, 212, 184, 310), (98, 350, 197, 152, 285))
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
# Each loss at a smoothing; 1 is its usual value. SparseCLR has none, and no margin here.
SIX: dict[str, Callable[[float], SetLoss]] = {
    "InfoNCE": lambda c: InfoNCE(0.5 * c),
    "SparseCLR": lambda c: SparseCLR(margin=0.0),
    "GroCo": lambda c: GroCo(1 / c, negatives=5),
    "LinearAssignment": lambda c: LinearAssignment(temperature=0.5 * c),
    "IOT": lambda c: IOT("both", 0.5 * c, iterations=10),
    "MMCL": lambda c: MMCL(bandwidth=c, solver="exact"),
}
MATRICES = [name for name, member in FAMILY.items() if member.at(1).has_assignment]


def batch(angles: ArrayLike = ANGLES) -> Tensor:
    """(2, N, 2) float64: points of the unit circle at these degrees."""
    return on_circle(angles)


def smoothing_slider() -> ValueWidget:
    """At 1 every loss has a usual parameter: τ = ε = 0.5, β = 1, σ² = 1."""
    return log_slider("smoothing", 1, *SMOOTHING, 0.1, {0.015: "hard", 1: "usual", 9: "soft"})


def true_share(A: np.ndarray) -> float:
    """The part of an assignment's weight that lies on the true matches of two views."""
    n = len(A) // 2
    return float((A[:n, n:].trace() + A[n:, :n].trace()) / A.sum())


def batch_picture() -> Picture:
    """The batch alone."""
    return still(lambda figure: draw_batch(figure.subplots()), (2.8, 3))


def draw_batch(axis, size: int = 9) -> str:
    """The batch on its two circles; returns the picture's sentence."""
    bare(axis, (-1.4, 1.4))
    axis.set_title("the batch", fontsize=size, weight="bold", pad=size + 5)
    axis.set_xlabel("● view 1   ■ view 2", fontsize=size)
    draw_circles(axis)
    z = batch().numpy()
    for marker, view in zip("os", as_drawn(z)):
        axis.scatter(*view.T, c=LINES[: len(view)], marker=marker, s=5 * size, edgecolors="white")
    for i, (x, y) in enumerate(z[0]):
        axis.plot(*as_drawn(z)[:, i].T, color=LINES[i], linewidth=1.5, zorder=0)
        axis.text(1.27 * x, 1.27 * y, str(i + 1), fontsize=size, ha="center", va="center")
    where = ", ".join(f"{name} at {angle}°" for name, angle in zip(NAMES, np.ravel(ANGLES)))
    return f"Two views of {z.shape[1]} images on a circle: {where}."
