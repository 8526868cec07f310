"""Same pairs, different shapes: the pairs cost the same, the inner distances differ (QARe, figure 1b)."""

import numpy as np
from scipy.spatial.distance import cdist

from setclr_course.kit.controls import slider
from setclr_course.kit.palette import BLACK, BLUE, GREY, INK, ORANGE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page

KITE = np.array([[0.0, 1.1], [0.8, 0.1], [0.0, -0.9], [-0.8, 0.1]])  # view 1 of four things: a kite
SHIFT = 20.0  # degrees: the direction in which all of view 2 lies where nothing is spread
ONE, TWO = np.tril_indices(4, -1)
MEASURES = {  # as they are titled, with the largest that there is
    "pairs": ("cost of the true pairs, tr(S)", 2.4),
    "quadratic": ("quadratic term, tr(S_A S_Bᵀ)", 43.6),
    "mismatch": ("mismatch, Σ (S_A − S_B)²", 11.6),
}


def second_view(spread: float, length: float) -> np.ndarray:
    """View 2, (4, 2): every point at distance `length` from its first view.

    All lie in one direction at spread 0; each turns the shorter way towards the centre of the set as spread
    goes to 1, and away from it as spread goes to −1.
    """
    inwards = KITE.mean(0) - KITE
    goal = np.rad2deg(np.arctan2(*np.sign(spread or 1) * inwards.T[::-1]))
    turn = (goal - SHIFT + 180) % 360 - 180
    angle = np.deg2rad(SHIFT + abs(spread) * turn)
    return KITE + length * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def measures(b: np.ndarray) -> tuple[float, float, float]:
    """Sum of the true pairs' distances, tr(S_A S_Bᵀ) and Σ (S_A − S_B)² of KITE and its second view b."""
    S_A, S_B = cdist(KITE, KITE), cdist(b, b)
    return cdist(KITE, b).trace(), (S_A * S_B).sum(), ((S_A - S_B) ** 2).sum()


class same_pairs(Panel):
    """Two configurations with equal links between the views; a slider turns the links of the second apart."""

    size, row_height = (9, 3.7), 5.2
    mosaic = "left right pairs; left right quadratic; left right mismatch"
    row_mosaic = "left right; left right; pairs pairs; quadratic quadratic; mismatch mismatch"
    marks = {-1.0: "all outwards", 0.0: "all the same way", 1.0: "all inwards"}
    knobs = {
        "spread": slider("spread of the directions", 0.6, -1.0, 1.0, 0.05, marks),
        "length": slider("length r of a link", 0.5, 0.1, 0.6, 0.05),
    }

    def solve(self, values: dict) -> tuple[list[np.ndarray], np.ndarray]:
        """View 2 on both sides, and the measures (2, 3)."""
        views = [second_view(spread, values["length"]) for spread in (0, values["spread"])]
        return views, np.array([measures(b) for b in views])

    def draw(self, page: Page, values: dict, now: tuple[list[np.ndarray], np.ndarray]) -> None:
        views, found = now
        for side, how, b in zip(("left", "right"), (": shifted as one", ": each its own way"), views):
            plane = page.plane(side, (-1.5, 1.5), (-1.95, 1.75), side if page.row else side + how)
            plane.segments(KITE[ONE], KITE[TWO], BLUE, 1.6)
            plane.segments(b[ONE], b[TWO], ORANGE, 1.6, "dash")
            plane.segments(KITE, b, BLACK, 3.2)
            plane.dots(KITE, INK, "●", 11)
            plane.dots(b, INK, "■", 11)
            plane.text(0, -1.8, "● view 1   ■ view 2")
        for (name, (title, most)), pair in zip(MEASURES.items(), found.T):
            sides = {0: "left", 1: "right"}
            plot = page.plot(name, (0, 1.25 * most), (1.6, -0.6), title, yticks=sides, frame="left")
            plot.bars([0, 1], pair, [GREY, BLACK], 0.72, flat=True)
            plot.text(pair, [0, 1], [f"{abs(value):.2f}" for value in pair], anchor="start", right=5)

    def say(self, values: dict, now: tuple[list[np.ndarray], np.ndarray]) -> str:
        (pairs, even, _), (_, quadratic, mismatch) = now[1].tolist()
        return (
            f"Links of length {values['length']:.2f}, directions spread by {values['spread']:+.2f}: the pair "
            f"cost is {pairs:.2f} on both sides, the quadratic term {even:.1f} on the left and "
            f"{quadratic:.1f} on the right, the mismatch of the shapes 0 on the left and {abs(mismatch):.2f} "
            "on the right."
        )
