"""One batch seen by nine losses: their assignment matrices side by side, under one slider for smoothing."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.text import Text

from setclr_course.kit.palette import GREY
from setclr_course.panels.family.batch import (
    FAMILY,
    MATRICES,
    NAMES,
    batch,
    draw_batch,
    smoothing_slider,
    true_share,
)
from setclr_course.pixels.controls import options
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import cells, true_match_frames

FOLLOWING = [name for name in MATRICES if FAMILY[name].power]  # the slider moves them
NEGATIVES_ONLY = ("Triplet", "MMCL")  # their assignment leaves the true match at 0
TRAP = (3, 7)  # row ●4, column ■3


class Matrix(NamedTuple):
    """What moves of one loss's matrix."""

    mesh: QuadMesh
    frames: LineCollection  # round the true matches; they stand still, but over the cells
    parameter: Text
    share: Text  # of the weight on the true matches, or how many negatives are used

    def update(self, name: str, smoothing: float, follows: bool) -> str:
        """Draw the loss at this smoothing; returns what the picture's sentence says of it."""
        member, A = FAMILY[name], assignment_of(name, smoothing)
        self.mesh.set_array(member.drawn(A))
        self.parameter.set(
            text=f"{member.parameter(smoothing):.3g}",
            color="black" if follows else GREY,
            weight="bold" if follows else "normal",
        )
        used = name in NEGATIVES_ONLY
        self.share.set_text(f"{(A > 0).sum(1).mean():.2g}" if used else f"{true_share(A):.0%}")
        return f"{name} {self.share.get_text()}"


def family_matrices(**initial) -> Panel:
    """The assignments of nine losses on one batch, with a slider for how softly all, or one, match."""
    controls = {"smoothing": smoothing_slider(), "moves": options("moves", ["all", *FOLLOWING])}
    return Panel(build, controls, (9, 4.6), initial, 5)


def build(figure, compact: bool) -> Drawing:
    """All nine and the batch; or, compact, those that follow the slider."""
    names = FOLLOWING if compact else MATRICES
    matrices = dict(zip(names, draw_matrices(figure, names, compact)))

    def update(values: dict) -> str:
        words = []
        for name, matrix in matrices.items():
            follows = bool(FAMILY[name].power) and values["moves"] in ("all", name)
            words.append(matrix.update(name, values["smoothing"] if follows else 1, follows))
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual values, moving {values['moves']}. Share "
            "of the weight on the true matches (for Triplet and MMCL: how many negatives an anchor uses): "
            f"{', '.join(words)}."
        )

    return Drawing([artist for matrix in matrices.values() for artist in matrix], update)


def draw_matrices(figure, names: list[str], compact: bool) -> list[Matrix]:
    """The batch, a matrix for each name and the scale of the colours."""
    size = 7 if compact else 9
    axes = list((figure.subplots(3, 3) if compact else figure.subplots(2, 5)).flat)
    draw_batch(axes[0], size)
    matrices = [draw_matrix(axis, name, size) for name, axis in zip(names, axes[1:])]
    if compact:
        scale = axes[-1].inset_axes((0, 0.45, 1, 0.12))
        axes[-1].set_axis_off()
        figure.colorbar(matrices[0].mesh, cax=scale, orientation="horizontal", ticks=(0, 1))
        scale.set_title("weight in A", fontsize=size)
        scale.tick_params(labelsize=size)
    else:
        bar = figure.colorbar(matrices[0].mesh, ax=axes[4::5], shrink=0.9)
        bar.set_label("weight in A (above 1: the colour of 1)", fontsize=size)
        for axis in (axes[1], axes[5]):
            axis.set_yticks(range(len(NAMES)), NAMES, fontsize=6)
    return matrices


def draw_matrix(axis, name: str, size: int) -> Matrix:
    member, compact = FAMILY[name], size < 9
    n = len(NAMES)
    mesh = cells(axis, n, n)
    axis.set_yticks(TRAP[:1], [NAMES[TRAP[0]]], fontsize=6)
    axis.set_xticks(TRAP[1:], [NAMES[TRAP[1]]], fontsize=6)
    axis.tick_params(length=0, pad=1)
    frames = axis.add_collection(true_match_frames(n // 2, 1 if compact else 1.4))
    title = name.replace("Assignment", "") if compact else name
    title += " ÷ row sum" if member.shares else ""
    axis.set_title(title, fontsize=size, weight="bold", pad=size + 7)

    def word(corner, x, y, text="", **kwargs):
        """Text at a corner of the axes, moved by x and y of its own size."""
        return axis.annotate(text, corner, (x * size, y * size), "axes fraction", "offset points", **kwargs)

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
    return Matrix(mesh, frames, parameter, word((1, 0), 0, -2.1, ha="right", weight="bold", **below))


@lru_cache(maxsize=2**10)
def assignment_of(name: str, smoothing: float) -> np.ndarray:
    return FAMILY[name].at(smoothing).assignment(batch()).numpy()
