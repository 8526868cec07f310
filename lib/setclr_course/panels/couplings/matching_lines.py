"""Two sets of pictures, lines between them as thick as the coupling, a queue (IOT-CL, figures 1, 5c, 6)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.palette import BLUE, GREY, INK, VERMILION, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Plot
from setclr_course.panels.couplings.fair_shares import MOST, constrained, loss_of, sum_bars

N, QUEUE = 5, 8
ROUNDS = 8
ROWS, OLDER = 1.15 * np.arange(N), np.linspace(-0.1, 4.7, QUEUE)  # y of pictures and queue, downwards
FIRST, SECOND = 3.0, 6.8  # x of the pictures and of their second views; the queue is at 0
SIDE, SMALL = 0.75, 0.5  # of pictures and of the queue's
BESIDE = SIDE / 2 + 0.08  # from the middle of a picture to where lines and bars begin
FAIR = 0.6  # the bar of a fair share
THICKEST = 12  # pixels: the line of a whole share
CONSTRAINTS = {"total": "U(1)", "rows": "U(a)", "both": "U(a, b)"}
PLACES = np.concatenate([
    np.column_stack([np.full(len(y), x), y]) for x, y in ((FIRST, ROWS), (SECOND, ROWS), (0, OLDER))
])  # fmt: skip


class matching_lines(Panel):
    """Five pictures matched with their second views; with a queue, older pictures become the negatives.

    Args:
        images: (18, 3, H, W) uint8: five pictures, their second views, eight older ones; numbered discs by
            default.
        z: (18, E), their embeddings; made up by default.

    Raises:
        ValueError: only one of the two is given, or there are not 18.
    """

    size, row_height = (9, 4.9), 3.3
    knobs = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.07: "MoCo .07", 0.5: "paper .5"}),
        "queue": slider("queue size Q", 0, 0, QUEUE, 1, {0: "none", QUEUE: str(QUEUE)}),
        "constraint": options("constraint", CONSTRAINTS, "rows"),
    }

    def __init__(self, images: ArrayLike | None = None, z: ArrayLike | None = None, **initial: Any):
        counts = [None if x is None else len(np.asarray(x)) for x in (images, z)]
        if counts not in ([None, None], [2 * N + QUEUE] * 2):
            raise ValueError(f"images and z must be {2 * N + QUEUE} each, or neither given, got {counts}")
        self.faces = None if images is None else np.moveaxis(np.asarray(images), 1, -1)
        points = made_up() if z is None else np.asarray(z, float)
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
        self.cost = 1 - points[:N] @ points[N:].T
        super().__init__(**initial)

    def solve(self, values: dict) -> np.ndarray:
        """N·P (5, 5 + queue); with a queue the batch's other pictures are forbidden (IOT-CL, eq. 38)."""
        cost = self.cost[:, : N + values["queue"]].copy()
        if values["queue"]:
            cost[:, :N][~np.eye(N, dtype=bool)] = np.inf
        return constrained(cost, values["epsilon"], ROUNDS)[values["constraint"]]

    def draw(self, page: Page, values: dict, now: np.ndarray) -> None:
        queue, true = values["queue"], now.diagonal()
        said = f"true matches {true.mean():.0%}, loss {loss_of(true):.2f}"
        title = said if page.row else f"{CONSTRAINTS[values['constraint']]}, {N} × {N + queue}: {said}"
        below = "level lines: true matches, slanted: wrong ones; bars: mass, with a line at a fair share"
        right = SECOND + BESIDE + MOST * FAIR + 0.1
        plot = page.plot("plot", (SECOND - right, right), (ROWS[-1] + 0.8, -1.1), title,
                         "" if page.row else below, frame="")  # fmt: skip
        plot.text((0, FIRST, SECOND), -0.85, ("queue" if queue else "no queue", "pictures", "second views"))
        received = now.sum(0) * (N + queue) / N
        sum_bars(plot, now.sum(1), FIRST - SIDE / 2, SIDE / MOST, flat=True, wide=0.16, places=ROWS + 0.55)
        sum_bars(plot, received[:N], SECOND + BESIDE, FAIR, flat=True, wide=0.3, places=ROWS)
        if queue:
            start = -SMALL / 2 - 0.08
            sum_bars(plot, received[N:], start, -FAIR, flat=True, wide=0.2, places=OLDER[:queue])
        lines = draw_lines(plot, now)
        self.draw_pictures(plot, queue)
        for k, share in enumerate(now.flat):
            if share >= 0.005:
                i, j = divmod(k, N + queue)
                page.link(f"picture {i + 1} and {name_of(j)}: {share:.0%} of a row", lines[k])

    def draw_pictures(self, plot: Plot, queue: int) -> None:
        """The pictures, or numbered discs."""
        shown = 2 * N + queue
        if self.faces is not None:
            plot.photographs(PLACES[: 2 * N], self.faces[: 2 * N], SIDE)
            plot.photographs(PLACES[2 * N : shown], self.faces[2 * N : shown], SMALL)
            return
        plot.dots(PLACES[:N], INK, "●", 30)
        plot.dots(PLACES[N : 2 * N], INK, "■", 30)
        plot.dots(PLACES[2 * N : shown], GREY, "■", 20)
        numbers = [str(k + 1) for k in (*range(N), *range(N), *range(queue))]
        plot.text(PLACES[:shown, 0], PLACES[:shown, 1], numbers, WHITE, bold=True)

    def say(self, values: dict, now: np.ndarray) -> str:
        queue, true, sent = values["queue"], now.diagonal(), now.sum(1)
        received = now.sum(0) * (N + queue) / N
        wrong = now * (1 - np.eye(*now.shape))
        i, j = divmod(int(wrong.argmax()), N + queue)
        return (
            f"ε = {values['epsilon']:.3g}, {CONSTRAINTS[values['constraint']]}, {N} pictures, {N + queue} "
            f"candidates (queue of {queue}): the true matches hold {true.sum() / N:.1%} of the mass, the "
            f"loss is {loss_of(true):.3f}, the thickest wrong line joins picture {i + 1} and {name_of(j)} "
            f"({wrong[i, j]:.0%} of a row). Candidates receive {received.min():.2f} to {received.max():.2f} "
            f"fair shares, pictures send {sent.min():.2f} to {sent.max():.2f}."
        )


def made_up() -> np.ndarray:
    """(18, 3): five points, their second views near them and eight others."""
    import torch

    generator = torch.Generator().manual_seed(3)
    draw = lambda n: torch.randn(n, 3, generator=generator, dtype=torch.float64).numpy()  # noqa: E731
    a = draw(N)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return np.concatenate([a, a + 0.5 * draw(N), draw(QUEUE)])


def draw_lines(plot: Plot, shares: np.ndarray) -> Mark:
    """A line from every picture to every candidate, as thick as its share."""
    n, m = shares.shape
    candidate = np.arange(m)
    batch = candidate < N
    starts = np.where(batch, FIRST + BESIDE, FIRST - BESIDE)
    ends = np.where(batch, SECOND - BESIDE, SMALL / 2 + 0.05)
    ones = [(x, y) for y in ROWS for x in starts]
    others = np.tile(np.column_stack([ends, PLACES[N : N + m, 1]]), (n, 1))
    colours = [BLUE if j == i else VERMILION for i in range(n) for j in candidate]
    return plot.segments(ones, others, colours, THICKEST * shares.clip(max=1.5).ravel(), opacity=0.75)


def name_of(candidate: int) -> str:
    return f"second view {candidate + 1}" if candidate < N else f"queue entry {candidate - N + 1}"
