"""The losses that the panels on the family show, each as a function of one smoothing, and the batch of the
careful page."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit import losses
from setclr_course.kit.circle import unit
from setclr_course.kit.controls import Slider, log_slider
from setclr_course.kit.palette import LINES
from setclr_course.kit.scene import Page
from setclr_course.panels.family.plane import TRAP_ANGLES, draw_circles, drawn_at

# Degrees on a circle of two views of five images. ●4 and ■3 are the closest pair and no true match.
ANGLES = TRAP_ANGLES[:, :5]
COLOURS = LINES[:5]  # of the images
NAMES = [view + image for view in "●■" for image in "12345"]


class Member(NamedTuple):
    """A loss of the family, as a function of the slider."""

    symbol: str  # of its parameter; empty where there is none
    paper: float  # the parameter's value where the slider is at 1
    power: int  # 1: softer as the parameter grows; −1: harder; 0: no smoothing, the slider leaves it alone
    formula: Callable[..., losses.Answer]
    name: str  # of the loss in the library
    argument: str = ""  # how the library calls the parameter
    how: Mapping[str, Any] = {}  # its other arguments

    def parameter(self, smoothing: float) -> float:
        return self.paper * smoothing**self.power

    def solved(self, z: np.ndarray, smoothing: float) -> losses.Answer:
        """Of views z (2, N, E) on the unit sphere."""
        x = z.reshape(-1, z.shape[-1])
        S = x @ x.T
        return self.formula(S, losses.partners(S), self.parameter(smoothing))

    def at(self, smoothing: float) -> Any:
        """The library's loss, which needs torch."""
        from setclr import losses

        parameter = {self.argument: self.parameter(smoothing)} if self.argument else {}
        return getattr(losses, self.name)(**parameter, **self.how)


def transport(rounds: int) -> Member:
    how = {"constraint": "both", "iterations": rounds}
    return Member("ε", 0.5, 1, partial(losses.iot_both, rounds=rounds), "IOT", "epsilon", how)


FAMILY = {
    "Triplet": Member("m", 0.5, 0, losses.triplet, "Triplet", "margin"),
    "LinearAssignment": Member("τ", 0.5, 1, losses.linear_assignment, "LinearAssignment", "temperature"),
    "InfoNCE": Member("τ", 0.5, 1, losses.info_nce, "InfoNCE", "temperature"),
    "SparseCLR": Member("m", 1.0, 0, losses.sparse_clr, "SparseCLR", "margin"),
    "NTLogistic": Member("τ", 0.5, 1, losses.nt_logistic, "NTLogistic", "temperature"),
    "GroCo": Member("β", 1.0, -1, partial(losses.groco, negatives=4), "GroCo", "beta", {"negatives": 4}),
    "IOT both": transport(8),
    "IOT total": Member("ε", 0.5, 1, losses.iot_total, "IOT", "epsilon", {"constraint": "total"}),
    "MMCL": Member("σ²", 1.0, 1, losses.mmcl, "MMCL", "bandwidth", {"solver": "exact"}),
    "QARe": Member("", 1.0, 0, losses.qare, "QARe"),
}
MATRICES = [name for name in FAMILY if name != "QARe"]  # a regulariser matches nobody
SIX = {
    "InfoNCE": FAMILY["InfoNCE"],
    "SparseCLR": FAMILY["SparseCLR"]._replace(paper=0.0),
    "GroCo": Member("β", 1.0, -1, partial(losses.groco, negatives=5), "GroCo", "beta", {"negatives": 5}),
    "LinearAssignment": FAMILY["LinearAssignment"],
    "IOT": transport(10),
    "MMCL": FAMILY["MMCL"],
}


def smoothing_slider(start: float = 1) -> Slider:
    """At 1 every loss has a usual parameter: τ = ε = 0.5, β = 1, σ² = 1."""
    return log_slider("smoothing", start, 0.01, 10, 0.1, {0.015: "hard", 1: "usual", 9: "soft"})


def true_share(A: np.ndarray) -> float:
    """The part of an assignment's weight that lies on the true matches of two views."""
    return float((A * losses.partners(A)).sum() / A.sum())


def draw_batch(page: Page) -> str:
    """The batch on its two circles, with the images' numbers and a line from view to view; in a sentence."""
    below = "" if page.row else "● view 1, ■ view 2"
    plane = page.plane("batch", (-1.4, 1.4), title="the batch", xlabel=below)
    one, two = drawn_at(unit(ANGLES))
    plane.segments(one, two, COLOURS)
    draw_circles(plane)
    plane.text(1.25 * one[:, 0], 1.25 * one[:, 1], list("12345"), size="small")
    plane.dots(one, COLOURS, "●", 9)
    plane.dots(two, COLOURS, "■", 9)
    where = ", ".join(f"{name} at {angle}°" for name, angle in zip(NAMES, ANGLES.flat))
    return f"Two views of five images on a circle: {where}."
