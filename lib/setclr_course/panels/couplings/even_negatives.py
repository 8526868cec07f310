"""The uniformity penalty: the negatives' masses against their mean or maximum (IOT-CL, eq. 24 and 25)."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from setclr.losses import IOT
from setclr_course.kit.palette import BLUE, SKY, VERMILION
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part

N = 4  # images, orthogonal but for the first two
PAIRS = 4 * N * (N - 1)  # of negatives
COSINES = np.linspace(-0.95, 0.95, 39)  # what the cosine of those two can be
HIGHEST, PENALTIES = 2 * N - 2, (1e-4, 100)  # bars, in means: two images hold all the mass; curves


class Scores(NamedTuple):
    """What batches get under U(a)."""

    masses: np.ndarray  # (B, 2N(2N − 2)): P of the negative pairs, ascending
    mean: np.ndarray  # (B,): the penalty KL(Q̄ ‖ P) with q = mean
    max: np.ndarray  # (B,): with q = max
    whole: np.ndarray  # (B,): the mass of Q̄ with q = max


def even_negatives(**initial) -> Panel:
    """The masses of a batch's negative pairs while two images approach each other, and what the penalty makes
    of them with the mean, as the paper's text has it, and with the maximum, as its eq. 25 has it."""
    marks = {-0.95: "opposite", 0.0: "like all others", 0.95: "alike"}
    controls = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.1: ".1", 0.5: "paper .5", 2: "2"}),
        "cosine": slider("cosine of images 1, 2", 0.5, -0.95, 0.95, 0.05, marks),
    }
    return Panel(build, controls, (9, 3.1), initial, 4)


def batch_with(cosine: float) -> Tensor:
    """(2, N, N): two equal views of N orthogonal images, but the first two have this cosine."""
    z = torch.eye(N, dtype=torch.float64)
    z[1, :2] = torch.tensor([cosine, np.sqrt(1 - cosine**2)])
    return torch.stack([z, z])


def scores(z: Tensor, epsilon: float) -> Scores:
    """Batches z (B, 2, N, E) of unit vectors, each by itself, where `IOT` gives one number for one batch."""
    x, image = z.flatten(1, 2), torch.arange(z.shape[2]).repeat(2)
    negative, itself = image[:, None] != image, torch.eye(len(image), dtype=torch.bool)
    logits = ((x @ x.mT - 1) / epsilon).masked_fill(itself, -torch.inf)
    log_P = IOT("rows").log_coupling(logits)[:, negative]
    masses = log_P.exp().sort(-1).values
    mean, largest = masses.mean(-1, keepdim=True), masses[:, -1:]
    of_mean, of_max = ((q * (q.log() - log_P)).sum(-1).numpy().round(12) for q in (mean, largest))
    return Scores(masses.numpy(), of_mean, of_max, (1 + (largest - masses).sum(-1)).numpy())


@lru_cache(maxsize=64)
def approach(epsilon: float) -> Scores:
    return scores(torch.stack([batch_with(cosine) for cosine in COSINES]), epsilon)


def build(figure, compact: bool) -> Drawing:
    upper, lower = figure.subplots(2, 1) if compact else figure.subplots(1, 2)
    size = 8 if compact else 10
    bars, curves = draw_masses(upper, size), draw_penalties(lower, size)
    for axis in (upper, lower):
        axis.tick_params(labelsize=size)

    def update(values: dict) -> str:
        now, at = approach(values["epsilon"]), int(np.abs(COSINES - values["cosine"]).argmin())
        masses = now.masses[at] / now.masses[at].mean()
        bars.move(masses)
        curves.move(now, at)
        return (
            f"ε = {values['epsilon']:.3g}, images 1 and 2 at cosine {COSINES[at]:.2f}: of {PAIRS} negative "
            f"masses the largest is {masses[-1]:.2f} times their mean, the smallest {masses[0]:.2g} times. "
            f"The penalty is {abs(now.mean[at]):.2g} with the mean and {abs(now.max[at]):.2g} with the "
            f"maximum, whose Q̄ has mass {now.whole[at]:.2f}."
        )

    return Drawing([*bars.artists, *curves.artists], update)


def draw_masses(axis, size: int) -> Part:
    """The masses of the negative pairs, ascending; moved by their values in means."""
    stairs = axis.stairs(np.zeros(PAIRS), fill=True, color=SKY)
    axis.axhline(1, color=BLUE, linewidth=1.5, zorder=3)
    axis.set(xlim=(0, PAIRS), ylim=(0, HIGHEST + 1), xticks=[])
    axis.set_title(f"masses of the {PAIRS} negative pairs ÷ mean", fontsize=size)
    (top,) = axis.plot([0, PAIRS], [0, 0], color=VERMILION, linewidth=1.5, linestyle="--")
    highest = axis.text(1, 0, "", color=VERMILION, fontsize=size, va="bottom")

    def move(masses: np.ndarray) -> None:
        stairs.set_data(masses)
        top.set_ydata([masses[-1]] * 2)
        highest.set(text=f"max: {masses[-1]:.2f} times the mean", y=masses[-1] + 0.08)

    return Part([stairs, top, highest], move)


def draw_penalties(axis, size: int) -> Part:
    """Both penalties over the cosine; moved by the scores of all cosines and the place of the one shown."""
    axis.set(xlim=(-1, 1), xticks=(-1, 0, 1), yscale="log", ylim=PENALTIES)
    axis.set_xlabel("cosine of images 1 and 2", fontsize=size)
    axis.set_title("penalty KL(Q̄ ‖ P)", fontsize=size)
    axis.minorticks_off()
    styles = (("mean", "-", BLUE, 0.8), ("max", "--", VERMILION, 0.9))
    lines = [axis.plot([], [], style, color=colour)[0] for _, style, colour, _ in styles]
    inside = {"fontsize": size, "transform": axis.transAxes}
    words = [axis.text(0.03, y, "", color=colour, **inside) for *_, colour, y in styles]
    (marks,) = axis.plot([], [], "ko", markersize=6)

    def move(now: Scores, at: int) -> None:
        for line, text, name in zip(lines, words, ("mean", "max")):
            penalties = getattr(now, name)
            line.set_data(COSINES, np.where(penalties < PENALTIES[0], np.nan, penalties))
            text.set_text(f"q = {name}: {abs(penalties[at]):.2g}")
        marks.set_data([COSINES[at]] * 2, [line.get_ydata()[at] for line in lines])

    return Part([*lines, *words, marks], move)
