"""Two sets of pictures, lines between them as thick as the coupling, a queue (IOT-CL, figures 1, 5c, 6)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.palette import BLUE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
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
        images: (18, 3, H, W) uint8: five pictures, their second views, eight older ones; squares of
            photographs by default.
        z: (18, E), their embeddings; the pixels by default.

    Raises:
        ValueError: there are not 18 of both.
    """

    size, row_height = (9, 4.9), 3.3
    knobs = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.07: "MoCo .07", 0.5: "paper .5"}),
        "queue": slider("queue size Q", 0, 0, QUEUE, 1, {0: "none", QUEUE: str(QUEUE)}),
        "constraint": options("constraint", CONSTRAINTS, "rows"),
    }

    def __init__(self, images: ArrayLike | None = None, z: ArrayLike | None = None, **initial: Any):
        if images is None:
            images = eighteen()
        faces = np.asarray(images)
        points = np.asarray(faces.reshape(len(faces), -1) if z is None else z, float)
        if not len(faces) == len(points) == 2 * N + QUEUE:
            raise ValueError(f"images and z must be {2 * N + QUEUE} each, got {len(faces)} and {len(points)}")
        self.faces = np.moveaxis(faces, 1, -1)
        points = (points - points.mean(0)) if z is None else points
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
        right = SECOND + BESIDE + MOST * FAIR + 0.1
        plot = page.plot("plot", (SECOND - right, right), (ROWS[-1] + 0.8, -1.1), said, frame="")
        plot.text((0, FIRST, SECOND), -0.85, ("queue" if queue else "no queue", "pictures", "second views"))
        received = now.sum(0) * (N + queue) / N
        sum_bars(plot, now.sum(1), FIRST - SIDE / 2, SIDE / MOST, flat=True, wide=0.16, places=ROWS + 0.55)
        sum_bars(plot, received[:N], SECOND + BESIDE, FAIR, flat=True, wide=0.3, places=ROWS)
        if queue:
            start = -SMALL / 2 - 0.08
            sum_bars(plot, received[N:], start, -FAIR, flat=True, wide=0.2, places=OLDER[:queue])
        ones, others, colours = ends_of(N + queue)
        lines = plot.segments(ones, others, colours, THICKEST * now.clip(max=1.5).ravel(), opacity=0.75)
        plot.photographs(PLACES[: 2 * N], self.faces[: 2 * N], SIDE)
        plot.photographs(PLACES[2 * N : 2 * N + queue], self.faces[2 * N : 2 * N + queue], SMALL)
        for k, share in enumerate(now.flat):
            if share >= 0.005:
                i, j = divmod(k, N + queue)
                page.link(f"picture {i + 1} and {name_of(j)}: {share:.0%} of a row", lines[k])

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


def eighteen() -> np.ndarray:
    """(18, 3, 32, 32) uint8: five patches, their second views, eight others."""
    from setclr_course.kit.few_patches import augmented_pair, decoded, few_patches

    one, two = augmented_pair(decoded(few_patches())[: 8 * (N + QUEUE) : 8]).numpy()
    return np.concatenate([one[:N], two])


def ends_of(candidates: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Of a line from every picture to every candidate: both ends (5, n, 2), and the colours."""
    side = np.where(np.arange(candidates) < N, BESIDE, -BESIDE)
    starts = np.stack(np.broadcast_arrays(FIRST + side, ROWS[:, None]), -1)
    ends = np.broadcast_to(PLACES[N : N + candidates] - np.outer(side, (1, 0)), starts.shape)
    return starts, ends, np.where(np.eye(N, candidates), BLUE, VERMILION).ravel().tolist()


def name_of(candidate: int) -> str:
    return f"second view {candidate + 1}" if candidate < N else f"queue entry {candidate - N + 1}"
