"""The uniformity penalty: the negatives' masses against their mean or maximum (IOT-CL, eq. 24 and 25)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.inner import softmax
from setclr_course.kit.palette import BLUE, INK, SKY, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page

N = 4  # images, orthogonal but for the first two
PAIRS = 4 * N * (N - 1)  # of negatives
COSINES = np.linspace(-0.95, 0.95, 39)  # what the cosine of those two can be
HIGHEST, PENALTIES = 2 * N - 2, (1e-4, 100)  # bars, in means: two images hold all the mass; curves


class Scores(NamedTuple):
    """What batches get under U(a)."""

    masses: np.ndarray  # (B, PAIRS): P of the negative pairs, ascending
    mean: np.ndarray  # (B,): the penalty KL(Q̄ ‖ P) with q = mean
    max: np.ndarray  # (B,): with q = max


class even_negatives(Panel):
    """The masses of a batch's negative pairs while two images approach each other, and what the penalty makes
    of them with the mean, as the paper's text has it, and with the maximum, as its eq. 25 has it."""

    size, row_height = (9, 3.1), 4
    mosaic, row_mosaic = "masses penalty", "masses; penalty"
    knobs = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.1: ".1", 0.5: "paper .5", 2: "2"}),
        "cosine": slider(
            "cosine of images 1, 2", 0.5, -0.95, 0.95, 0.05,
            {-0.95: "opposite", 0.0: "like all others", 0.95: "alike"},
        ),
    }  # fmt: skip

    def solve(self, values: dict) -> Scores:
        return scores(values["epsilon"])

    def draw(self, page: Page, values: dict, now: Scores) -> None:
        at = self.knobs["cosine"].number(values["cosine"])
        masses = now.masses[at] / now.masses[at].mean()
        title = f"{PAIRS} negative masses ÷ mean"
        bars = page.plot("masses", (0, PAIRS), (0, HIGHEST + 1), title, yticks=(0, 2, 4, 6))
        bars.steps(masses, range(PAIRS + 1), SKY)
        bars.line([0, PAIRS], 1, BLUE)
        bars.line([0, PAIRS], masses[-1], VERMILION, dash="dash")
        said = f"max: {masses[-1]:.2f} times the mean"
        bars.text(1, masses[-1], said, VERMILION, anchor="start", rise="bottom", up=2)
        curves = page.plot(
            "penalty", (-1, 1), PENALTIES, "penalty KL(Q̄ ‖ P)", "cosine of images 1 and 2", log="y",
            xticks=(-1, 0, 1), yticks=(1e-4, 0.01, 1, 100),
        )  # fmt: skip
        for name, colour, dash in (("mean", BLUE, ""), ("max", VERMILION, "dash")):
            penalties = getattr(now, name)
            curves.line(COSINES, np.where(penalties < PENALTIES[0], np.nan, penalties), colour, dash=dash)
            point = COSINES[at], max(penalties[at], PENALTIES[0])
            curves.dots([point], INK, "●", 10).handle("cosine", point, along="x", label="their cosine")
        of_max, of_mean = (f"q = {name}: {abs(getattr(now, name)[at]):.2g}" for name in ("max", "mean"))
        curves.key((of_max, VERMILION), (of_mean, BLUE))

    def say(self, values: dict, now: Scores) -> str:
        at = self.knobs["cosine"].number(values["cosine"])
        masses = now.masses[at] / now.masses[at].mean()
        return (
            f"ε = {values['epsilon']:.3g}, images 1 and 2 at cosine {COSINES[at]:.2f}: of {PAIRS} negative "
            f"masses the largest is {masses[-1]:.2f} times their mean, the smallest {masses[0]:.2g} times. "
            f"The penalty is {abs(now.mean[at]):.2g} with the mean, {abs(now.max[at]):.2g} with the maximum."
        )


def batches() -> np.ndarray:
    """(39, N, N): N orthogonal images, but the first two have each of these cosines."""
    z = np.tile(np.eye(N), (len(COSINES), 1, 1))
    z[:, 1, :2] = np.stack([COSINES, np.sqrt(1 - COSINES**2)], 1)
    return z


def scores(epsilon: float) -> Scores:
    """Of all `batches`, each in two equal views."""
    x, image = np.tile(batches(), (1, 2, 1)), np.tile(np.arange(N), 2)
    logits = (x @ x.swapaxes(1, 2) - 1) / epsilon - np.diag(np.full(2 * N, np.inf))
    P = softmax(logits)[:, image[:, None] != image] / (2 * N)
    masses = np.sort(P, axis=1)
    mean, largest = masses.mean(1, keepdims=True), masses[:, -1:]
    of_mean, of_max = ((q * np.log(q / masses)).sum(1).round(12) for q in (mean, largest))
    return Scores(masses, of_mean, of_max)
