"""Two views of a dozen patches coupled by what an encoder makes of them: the matching, with its pictures, and
a queue (IOT-CL, figures 1, 5c and 6)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.inner import largest, scaled
from setclr_course.kit.palette import VERMILION
from setclr_course.kit.panel import Page, Panel, log_slider, options, slider
from setclr_course.panels.couplings.fair_shares import MOST, sum_bars

if TYPE_CHECKING:
    from torch import Tensor

ROUNDS = 100
PRESSES = {"rows": (1, "rows"), "both": (2 * ROUNDS, "columns")}  # of `scaled`, and which comes first
FAIR = 0.6  # of a cell: the bar of a fair share
LISTED = 7  # patches


class coupled_patches(Panel):
    """The coupling of the first views with the second ones, every row fair or every column too.

    Args:
        embedded: by the name of the encoder, embeddings (N, E) of the first views and (N + Q, E) of the
            second ones; pixels and an untrained network by default.
        views: their pictures, (N, C, H, W) and (N + Q, C, H, W) uint8.

    The last Q are a queue of older pictures. As long as some of it is shown, a patch may go to its own second
    view or to the queue, and to no other second view (IOT-CL, eq. 38).
    """

    least = 0.9
    size, row_height = (9, 5.2), 4
    mosaic, widths, row_mosaic = "matrix listed", (2, 1), "matrix"

    def __init__(
        self, embedded: "Mapping[str, Sequence[Tensor] | Tensor] | None" = None,
        views: "Sequence[Tensor] | Tensor | None" = None, **initial: Any,
    ):  # fmt: skip
        from setclr_course.kit.few_patches import unlearned_pair
        from setclr_course.kit.tiles import tiles

        if embedded is None or views is None:
            embedded, views = unlearned_pair()
        self.costs = {name: cost_of(*both) for name, both in embedded.items()}
        self.faces = [tiles(view) for view in views]
        self.knobs = {
            "epsilon": log_slider("smoothing ε", 0.5, 0.005, 5, 0.1, {0.05: ".05", 0.5: "paper .5"}),
            "constraint": options("fair sums", PRESSES),
            "loss": options("trained with", self.costs),
        }
        first, second = map(len, self.faces)
        if second > first:
            self.knobs["queue"] = slider("pictures of the queue", 0, 0, second - first, 1, {0: "none"})
        super().__init__(**initial)

    def solve(self, values: dict) -> np.ndarray:
        """N·P: rows sum to 1; with "both" the columns too, as nearly as Sinkhorn's rounds make them."""
        n, queue = len(self.faces[0]), values.get("queue", 0)
        cost = self.costs[values["loss"]][:, : n + queue].copy()
        if queue:
            cost[:, :n][~np.eye(n, dtype=bool)] = np.inf
        return scaled(cost, values["epsilon"], *PRESSES[values["constraint"]])

    def draw(self, page: Page, values: dict, now: np.ndarray) -> None:
        (n, m), received, best = now.shape, fair_shares(now), largest(now)
        at, other = np.arange(n), (now - 2 * np.eye(n, m)).argmax(1)
        wrong = best != at
        who = "they" if page.row else candidates(values)
        title = f"{who} receive {received.min():.2f} to {received.max():.2f} fair shares"
        below = "second views" + ", then the queue" * (m > n)
        matrix = page.plane("matrix", (-2.3, m - 0.5), (n + 0.6, -0.7 - MOST * FAIR), title, xlabel=below)
        matrix.text(-2, (n - 1) / 2, "first views", turn=90)
        cells = matrix.cells(np.log10(now.clip(0.1 / n, 1)), -1 - np.log10(n), 0)
        matrix.frames(zip(at, at), width=1.5)
        sum_bars(matrix, received, -0.7, -FAIR)
        first = matrix.photographs(np.column_stack([np.full(n, -1.14), at]), self.faces[0], 0.92)
        below = np.column_stack([np.arange(m), np.full(m, n + 0.12)])
        second = matrix.photographs(below, self.faces[1][:m], 0.92)
        matrix.dots(np.column_stack([best, at])[wrong], VERMILION, "✕", 14, edge="")

        listed = page.plane("listed", (0, 4.8), (min(n, LISTED), -0.7), f"{wrong.sum()} of {n} take another")
        heads = ("patch", "taken", "own", "shares")
        listed.text((0.4, 1.5, 2.5, 3.75), -0.1, heads, size="small", rise="bottom")
        for row, i in enumerate(np.argsort(~wrong, kind="stable")[:LISTED]):
            faces = [self.faces[0][i], self.faces[1][other[i]], self.faces[1][i]]
            frames = ["", VERMILION if wrong[i] else "", ""]
            three = listed.photographs([(k + 0.5, row + 0.5) for k in range(3)], faces, 0.92, frame=frames)
            shares = f"{now[i, other[i]]:.0%} : {now[i, i]:.0%}"
            listed.text(3.15, row + 0.5, shares, anchor="start")
            page.link(f"taken : own, {shares}", cells[i, other[i]], three, lit=[first[i], second[other[i]]])

    def say(self, values: dict, now: np.ndarray) -> str:
        n, received = len(now), fair_shares(now)
        right = (largest(now) == np.arange(n)).sum()
        return (
            f"{values['loss']}, ε = {values['epsilon']:.3g}, fair {values['constraint']}: {right} of {n} "
            f"patches give their largest share to their own second view, all of them together "
            f"{now.trace() / n:.0%} of their mass; {candidates(values)} receive between "
            f"{received.min():.2f} and {received.max():.2f} fair shares."
        )


def cost_of(one: ArrayLike, two: ArrayLike) -> np.ndarray:
    """1 − cosine of (n, E) and (m, E): (n, m); 1 where one of the two is 0."""
    a, b = (np.asarray(z, float) for z in (one, two))
    return 1 - a @ b.T / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)).clip(1e-24)


def fair_shares(shares: np.ndarray) -> np.ndarray:
    """What each column of (n, m) receives, in n/m."""
    return shares.mean(0) * shares.shape[1]


def candidates(values: dict) -> str:
    queue = values.get("queue", 0)
    return f"second views and {queue} of the queue" if queue else "second views"
