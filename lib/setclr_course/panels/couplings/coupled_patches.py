"""Two views of a dozen patches coupled by what an encoder makes of them: the matching, with its pictures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import log_slider, options
from setclr_course.kit.inner import scaled
from setclr_course.kit.palette import VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.couplings.fair_shares import LIGHT, MOST, sum_bars

ROUNDS = 100
PRESSES = {"rows": (1, "rows"), "both": (2 * ROUNDS, "columns")}  # of `scaled`, and which comes first
LISTED = 8  # mistakes


class coupled_patches(Panel):
    """The coupling of the first views with the second ones, every row fair or every column too.

    Args:
        embedded: (2, N, E), embeddings of both views, by the name of the encoder; pixels and an untrained
            network by default.
        views: (2, N, C, H, W) uint8, the pictures.
    """

    size, row_height = (9, 5.2), 4
    mosaic, widths, row_mosaic = "matrix mistakes", (2, 1), "matrix"

    def __init__(
        self, embedded: Mapping[str, ArrayLike] | None = None, views: ArrayLike | None = None, **initial: Any
    ):
        if embedded is None or views is None:
            from setclr_course.kit.few_patches import unlearned_pair

            embedded, views = unlearned_pair()
        self.costs = {name: cost_of(z) for name, z in embedded.items()}
        faces = np.moveaxis(np.asarray(views), 2, -1)
        self.faces = np.broadcast_to(faces, (*faces.shape[:-1], 3))
        self.knobs = {
            "epsilon": log_slider("smoothing ε", 0.5, 0.005, 5, 0.1, {0.05: ".05", 0.5: "paper .5"}),
            "constraint": options("fair sums", PRESSES),
            "loss": options("trained with", self.costs),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> np.ndarray:
        """N·P: rows sum to 1; with "both" the columns too, as nearly as Sinkhorn's rounds make them."""
        return scaled(self.costs[values["loss"]], values["epsilon"], *PRESSES[values["constraint"]])

    def draw(self, page: Page, values: dict, now: np.ndarray) -> None:
        n, received, best = len(now), now.sum(0), now.argmax(1)
        at, wrong = np.arange(n), np.flatnonzero(best != np.arange(n))
        bar = n / 20
        who = "they" if page.row else "second views"
        title = f"{who} receive {received.min():.2f} to {received.max():.2f} fair shares"
        matrix = page.plane("matrix", (-1.7, n - 0.5), (n + 0.6, -0.7 - MOST * bar), title)
        matrix.cells(np.log10(now.clip(0.1 / n, 1)), -1 - np.log10(n), 0)
        matrix.frames(zip(at, at), LIGHT, 1.5)
        sum_bars(matrix, received, -0.7, -bar)
        first = matrix.photographs(np.column_stack([np.full(n, -1.14), at]), self.faces[0], 0.92)
        second = matrix.photographs(np.column_stack([at, np.full(n, n + 0.12)]), self.faces[1], 0.92)
        crosses = matrix.dots(np.column_stack([best[wrong], wrong]), VERMILION, "✕", 14, edge="")

        listed = page.plane("mistakes", (0, 4.8), (LISTED, -0.7))
        heads = ("patch", "takes", "own", "shares")
        listed.text((0.5, 1.5, 2.5, 3.75), -0.1, heads, rise="bottom")
        for row, i in enumerate(wrong[:LISTED]):
            faces = [self.faces[0][i], self.faces[1][best[i]], self.faces[1][i]]
            three = listed.photographs([(k + 0.5, row + 0.5) for k in range(3)], faces, 0.92)
            shares = f"{now[i, best[i]]:.0%} : {now[i, i]:.0%}"
            listed.text(3.15, row + 0.5, shares, anchor="start")
            page.link(
                f"takes another's second view, {shares}", crosses[row], three, lit=[first[i], second[best[i]]]
            )

    def say(self, values: dict, now: np.ndarray) -> str:
        n, received = len(now), now.sum(0)
        right = (now.argmax(1) == np.arange(n)).sum()
        return (
            f"{values['loss']}, ε = {values['epsilon']:.3g}, fair {values['constraint']}: {right} of {n} "
            f"patches give their largest share to their own second view, all of them together "
            f"{now.trace() / n:.0%} of their mass; second views receive between {received.min():.2f} and "
            f"{received.max():.2f} fair shares."
        )


def cost_of(z: ArrayLike) -> np.ndarray:
    """1 − cosine of (2, N, E): (N, N)."""
    z = np.asarray(z, float)
    a, b = z / np.linalg.norm(z, axis=-1, keepdims=True)
    return 1 - a @ b.T
