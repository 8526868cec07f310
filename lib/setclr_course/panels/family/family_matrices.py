"""One batch seen by nine losses: their assignment matrices side by side, under one slider for smoothing."""

import numpy as np

from setclr_course.kit.circle import unit
from setclr_course.kit.palette import GREY
from setclr_course.kit.panel import Mark, Page, Panel
from setclr_course.panels.family import batch
from setclr_course.panels.family.batch import ANGLES, FAMILY, MATRICES, NAMES

NEGATIVES_ONLY = ("Triplet", "MMCL")  # their assignment leaves the true match at 0
TRAP = (3, 7)  # row ●4, column ■3
M = len(NAMES)


class family_matrices(Panel):
    """The assignments of nine losses on one batch, with a slider for how softly they match."""

    size, row_height = (9, 4.8), 5.6
    mosaic = "batch Triplet LinearAssignment InfoNCE SparseCLR; NTLogistic GroCo IOT-both IOT-total MMCL"
    row_mosaic = "batch LinearAssignment InfoNCE; SparseCLR NTLogistic GroCo; IOT-both IOT-total MMCL"
    knobs = {"smoothing": batch.smoothing_slider()}

    def solve(self, values: dict) -> dict[str, np.ndarray]:
        """The assignment (M, M) of each loss."""
        return {name: FAMILY[name].solved(unit(ANGLES), values["smoothing"]).shares for name in MATRICES}

    def draw(self, page: Page, values: dict, now: dict[str, np.ndarray]) -> None:
        batch.draw_batch(page)
        tables = [draw_matrix(page, name, values["smoothing"], A) for name, A in now.items()]
        shares = {name: A.tolist() for name, A in now.items()}
        for i, j in np.ndindex(M, M):
            weights = ", ".join(f"{name} {A[i][j]:.2f}" for name, A in shares.items())
            page.link(f"{NAMES[i]} to {NAMES[j]}: {weights}", *(table[i, j] for table in tables))

    def say(self, values: dict, now: dict[str, np.ndarray]) -> str:
        return (
            f"Smoothing {values['smoothing']:.3g} times the usual values. Share of the weight on the true "
            "matches (for Triplet and MMCL: how many negatives an anchor uses): "
            f"{', '.join(f'{name} {score(name, A)}' for name, A in now.items())}."
        )


def score(name: str, A: np.ndarray) -> str:
    """The share of the weight on the true matches, or how many negatives an anchor uses."""
    return f"{(A > 0).sum(1).mean():.2g}" if name in NEGATIVES_ONLY else f"{batch.true_share(A):.0%}"


def draw_matrix(page: Page, name: str, smoothing: float, A: np.ndarray) -> Mark:
    """A row for each anchor, frames round the true matches, a cross between the views."""
    loss, half = FAMILY[name], M // 2
    called = name.replace("Assignment", "") if page.row else name
    title = f"{called}\n{loss.symbol} = {loss.parameter(smoothing):.3g}"
    below = f"{'used' if name in NEGATIVES_ONLY else 'true'} {score(name, A)}"
    trap = {} if page.row else {"xticks": {TRAP[1]: "■3"}, "yticks": {TRAP[0]: "●4"}}
    table = page.plane(name.replace(" ", "-"), (-0.5, M - 0.5), (M - 0.5, -0.5), title, xlabel=below, **trap)
    cells = table.cells(A / A.sum(1, keepdims=True) if name == "MMCL" else A)
    table.frames([(i, (i + half) % M) for i in range(M)], width=1)
    table.segments([(half - 0.5, -0.5), (-0.5, half - 0.5)], [(half - 0.5, M), (M, half - 0.5)], GREY)
    return cells
