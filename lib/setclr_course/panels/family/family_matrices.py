"""One batch seen by nine losses: their assignment matrices side by side, under one slider for smoothing."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.circle import unit
from setclr_course.kit.controls import options
from setclr_course.kit.palette import DUSK, INK, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import SHADES, Mark, Page
from setclr_course.panels.family.batch import (
    ANGLES,
    FAMILY,
    MATRICES,
    NAMES,
    draw_batch,
    smoothing_slider,
    true_share,
)

FOLLOWING = [name for name in MATRICES if FAMILY[name].power]  # the slider moves them
NEGATIVES_ONLY = ("Triplet", "MMCL")  # their assignment leaves the true match at 0
TRAP = (3, 7)  # row ●4, column ■3
M = len(NAMES)


class Matched(NamedTuple):
    """One loss."""

    A: np.ndarray  # (M, M)
    smoothing: float
    follows: bool  # whether the slider moves it now


class family_matrices(Panel):
    """The assignments of nine losses on one batch, with a slider for how softly all, or one, match."""

    size, row_height, heights = (9, 5.2), 5.6, (1, 1, 0.16)
    mosaic = (
        "batch Triplet LinearAssignment InfoNCE SparseCLR; NTLogistic GroCo IOT-both IOT-total MMCL; "
        "scale scale scale scale scale"
    )
    row_mosaic = "batch LinearAssignment InfoNCE; NTLogistic GroCo IOT-both; IOT-total MMCL scale"
    knobs = {"smoothing": smoothing_slider(), "moves": options("moves", ["all", *FOLLOWING])}

    def solve(self, values: dict) -> dict[str, Matched]:
        z, found = unit(np.array(ANGLES)), {}
        for name in MATRICES:
            follows = name in FOLLOWING and values["moves"] in ("all", name)
            smoothing = values["smoothing"] if follows else 1
            found[name] = Matched(FAMILY[name].solved(z, smoothing).shares, smoothing, follows)
        return found

    def draw(self, page: Page, values: dict, now: dict[str, Matched]) -> None:
        draw_batch(page)
        tables = [draw_matrix(page, name, matched) for name, matched in now.items()]
        for i, j in np.ndindex(M, M):
            weights = ", ".join(f"{name} {matched.A[i, j]:.2f}" for name, matched in now.items())
            page.link(f"{NAMES[i]} to {NAMES[j]}: {weights}", *(table[i, j] for table in tables))
        draw_scale(page)

    def say(self, values: dict, now: dict[str, Matched]) -> str:
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual values, moving {values['moves']}. Share "
            "of the weight on the true matches (for Triplet and MMCL: how many negatives an anchor uses): "
            f"{', '.join(f'{name} {score(name, matched.A)}' for name, matched in now.items())}."
        )


def score(name: str, A: np.ndarray) -> str:
    """The share of the weight on the true matches, or how many negatives an anchor uses."""
    return f"{(A > 0).sum(1).mean():.2g}" if name in NEGATIVES_ONLY else f"{true_share(A):.0%}"


def draw_scale(page: Page) -> None:
    """What the colours mean."""
    x, y = ((0, SHADES), (4, -3)) if page.row else ((-SHADES, 2 * SHADES), (0.5, -0.5))
    scale = page.plot("scale", x, y, frame="", xticks={0: "0", SHADES: "1"})
    scale.cells(np.linspace(0, 1, SHADES)[None], at=(0.5, 0))
    if page.row:
        scale.text(0, -1, "weight in A", size="small", anchor="start", rise="bottom")
    else:
        scale.text(0, 0, "weight in A", size="small", anchor="end", right=-6)
        scale.text(SHADES, 0, "and above", size="small", anchor="start", right=6)


def draw_matrix(page: Page, name: str, now: Matched) -> Mark:
    """A row for each anchor, frames round the true matches, a cross between the views."""
    loss, row = FAMILY[name], page.row
    negatives, matches = ("used", "true") if row else ("negatives", "true matches")
    below = f"{negatives if name in NEGATIVES_ONLY else matches} {score(name, now.A)}"
    ticks: dict = {} if row else {"xticks": {TRAP[1]: "■3"}, "yticks": {TRAP[0]: "●4"}}
    table = page.plane(name.replace(" ", "-"), (-0.5, M - 0.5), (M - 0.5, -0.5), xlabel=below,
                       room=(0, 36, 0, 0), **ticks)  # fmt: skip
    title = (name.replace("Assignment", "") if row else name) + (
        " ÷ sum" if row else " ÷ row sum"
    ) * loss.shares
    above: dict = {"anchor": "start", "rise": "bottom", "within": True}
    table.text(0, 1, title, size="title", up=19, **above)
    said, colour = f"{loss.symbol} = {loss.parameter(now.smoothing):.3g}", INK if now.follows else DUSK
    table.text(0, 1, said, colour, up=2, bold=now.follows, **above)
    cells, half = table.cells(loss.drawn(now.A)), M // 2
    table.frames([(i, (i + half) % M) for i in range(M)], width=1 if row else 1.5)
    table.segments([(half - 0.5, -0.5), (-0.5, half - 0.5)], [(half - 0.5, M), (M, half - 0.5)], WHITE)
    return cells
