"""Two sets of pictures, lines between them as thick as the coupling, a queue (IOT-CL, figures 1, 5c, 6)."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from torch import Tensor
from torch.nn.functional import normalize

from setclr.losses import IOT
from setclr_course.kit.palette import BLACK, BLUE, GREY, LINES, SKY, VERMILION
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

N, QUEUE = 5, 8
PARTS = (N, N, QUEUE)  # pictures, second views, queue
ROUNDS = 8
ROWS, OLDER = 1.15 * np.arange(N), np.linspace(-0.1, 4.7, QUEUE)  # y of pictures and queue, downwards
SIDE, SMALL = 0.9, 0.6  # of pictures and of the queue's
BESIDE = SIDE / 2 + 0.08  # from the middle of a picture to where lines and bars begin
THICKEST = 9  # points
MOST = 2.2  # fair shares: where the bars end, with an arrowhead if they are cut off
CONSTRAINTS = {"total": "U(1)", "rows": "U(a)", "both": "U(a, b)"}


def matching_lines(images: Tensor | None = None, z: Tensor | None = None, **initial) -> Panel:
    """Five pictures matched with their second views; with a queue, older pictures become the negatives.

    Args:
        images: (18, 3, H, W) uint8: five pictures, their second views, eight older ones; numbered discs by
            default.
        z: (18, E), their embeddings; made up by default.

    Raises:
        ValueError: only one of the two is given, or there are not 18.
    """
    counts = [None if x is None else len(x) for x in (images, z)]
    if counts not in ([None, None], [2 * N + QUEUE] * 2):
        raise ValueError(f"images and z must be {2 * N + QUEUE} each, or neither given, got {counts}")
    z = normalize(made_up() if z is None else z.detach().double(), dim=-1)
    cost = 1 - z[:N] @ z[N:].T
    controls = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.07: "MoCo .07", 0.5: "paper .5"}),
        "queue": slider("queue size Q", 0, 0, QUEUE, 1, {0: "none", QUEUE: str(QUEUE)}),
        "constraint": options("constraint", CONSTRAINTS, "rows"),
    }
    return Panel(
        lambda figure, compact: build(figure, compact, images, cost), controls, (9, 4.9), initial, 3.3
    )


def made_up() -> Tensor:
    """(18, 3): five points, their second views near them and eight others."""
    generator = torch.Generator().manual_seed(3)
    a = normalize(torch.randn(N, 3, generator=generator, dtype=torch.float64), dim=-1)
    b = a + 0.5 * torch.randn(N, 3, generator=generator, dtype=torch.float64)
    return torch.cat([a, b, torch.randn(QUEUE, 3, generator=generator, dtype=torch.float64)])


def coupling(cost: Tensor, epsilon: float, queue: int, constraint: str) -> Tensor:
    """P (5, 5 + queue); with a queue the batch's other pictures are forbidden (IOT-CL, eq. 38)."""
    cost = cost[:, : N + queue]
    if queue:
        itself = torch.eye(*cost.shape, dtype=torch.bool)
        itself[:, N:] = True
        cost = cost.masked_fill(~itself, torch.inf)
    return IOT(constraint, epsilon, iterations=ROUNDS).log_coupling(-cost[None] / epsilon)[0].exp()


class Layout(NamedTuple):
    """Where everything stands. The masses are in the order pictures, second views, queue."""

    xs: tuple[float, float]  # of pictures and of second views; the queue's is 0
    starts: np.ndarray  # (18,): x where the bars of masses begin
    units: np.ndarray  # (18,): the length of a fair share, negative towards the left
    heights: np.ndarray  # (18,): y of the bars
    left: float
    bottom: float
    compact: bool

    @property
    def word(self) -> dict:
        return {"fontsize": 7 if self.compact else 9, "ha": "center", "va": "center"}


def layout(compact: bool) -> Layout:
    first, second = (2.5, 4.7) if compact else (4.2, 8.4)
    fair = 0.45 if compact else 0.9
    starts = np.repeat([first - SIDE / 2, second + BESIDE, -SMALL / 2 - 0.08], PARTS)
    units = np.repeat([SIDE / MOST, fair, -fair], PARTS)
    heights = np.array([*ROWS + 0.55, *ROWS, *OLDER])
    left, bottom = starts[-1] - MOST * fair - 0.1, ROWS[-1] + 0.6
    return Layout((first, second), starts, units, heights, left, bottom, compact)


def build(figure, compact: bool, images: Tensor | None, cost: Tensor) -> Drawing:
    axis, where = figure.subplots(), layout(compact)
    draw_still(axis, images, where)
    bars, lines = draw_masses(axis, where), draw_lines(axis, where)
    veil = axis.add_patch(
        Rectangle((where.left, 0), 0, 0, color="white", alpha=0.9, zorder=4, in_layout=False)
    )
    loud = {"fontsize": where.word["fontsize"] + 2, "weight": "bold", "in_layout": False}
    note = axis.text(where.xs[0], where.bottom + 0.35, "", **where.word | loud)

    def update(values: dict) -> str:
        queue, name = values["queue"], CONSTRAINTS[values["constraint"]]
        P = coupling(cost, values["epsilon"], queue, values["constraint"]).numpy()
        share = np.zeros((N, N + QUEUE))
        share[:, : N + queue] = N * P
        lines.move(share)
        sent, received = N * P.sum(1), P.shape[1] * P.sum(0)
        bars.move(np.array([*sent, *received, *[0] * (QUEUE - queue)]))
        top = OLDER[0] - 0.4 + queue * (OLDER[1] - OLDER[0])
        veil.set_bounds(where.left, top, SMALL / 2 - where.left + 0.1, where.bottom - top)
        true = share[range(N), range(N)]
        note.set_text(
            f"{name}, {N} × {N + queue}: true matches {true.mean():.0%}, loss {-np.log(true).mean():.2f}"
        )
        return sentence(values, share, sent, received)

    return Drawing([*bars.artists[:1], *lines.artists, *bars.artists[1:], veil, note], update)


def sentence(values: dict, share: np.ndarray, sent: np.ndarray, received: np.ndarray) -> str:
    queue, true = values["queue"], share[range(N), range(N)]
    wrong = share * (1 - np.eye(*share.shape))
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    whose = f"second view {j + 1}" if j < N else f"queue entry {j - N + 1}"
    return (
        f"ε = {values['epsilon']:.3g}, {CONSTRAINTS[values['constraint']]}, {N} pictures, {N + queue} "
        f"candidates (queue of {queue}): the true matches hold {true.sum() / N:.1%} of the mass, the loss is "
        f"{-np.log(true).mean():.3f}, the thickest wrong line joins picture {i + 1} and {whose} "
        f"({wrong[i, j]:.0%} of a row). Candidates receive {received.min():.2f} to {received.max():.2f} fair "
        f"shares, pictures send {sent.min():.2f} to {sent.max():.2f}."
    )


def draw_still(axis, images: Tensor | None, where: Layout) -> None:
    """Pictures, headings, and a line where a fair share ends."""
    (first, second), bottom, word = where.xs, where.bottom, where.word
    right = where.starts[N] + MOST * where.units[N] + 0.1
    bare(axis, (where.left, right), (bottom + (0.7 if where.compact else 1.1), -1.1))
    draw_pictures(axis, images, first, second, word)
    for x, heading in ((0, "queue"), (first, "pictures"), (second, "second views")):
        axis.text(x, -0.8, heading, weight="bold", **word)
    ones = where.starts + where.units
    axis.vlines(ones[[N, -1]], -0.5, bottom - 0.1, color=BLACK, linewidth=0.8, zorder=3)
    axis.vlines(ones[:N], ROWS + 0.46, ROWS + 0.64, color=BLACK, linewidth=0.8, zorder=3)
    if not where.compact:
        for x in (where.left + 0.9, second + 2.1):
            axis.text(x, -0.8, "mass received", **word)
        words = "level lines: true matches    slanted: wrong ones    bars: mass, black line: a fair share"
        axis.text(first, bottom + 0.9, words, **word)


def draw_lines(axis, where: Layout) -> Part:
    """A line from every picture to every candidate; moved by the shares (5, 13) of each picture's mass."""
    first, second = where.xs
    candidates = [(first + BESIDE, second - BESIDE)] * N + [(first - BESIDE, SMALL / 2 + 0.05)] * QUEUE
    ends = [[(x, y), (to, z)] for y in ROWS for (x, to), z in zip(candidates, where.heights[N:])]
    colours = [BLUE if j == i else VERMILION for i in range(N) for j in range(N + QUEUE)]
    lines = axis.add_collection(LineCollection(ends, colors=colours, alpha=0.75, zorder=2, capstyle="round"))

    def move(share: np.ndarray) -> None:
        lines.set_linewidths(THICKEST * share.clip(max=1.5).ravel())

    return Part([lines], move)


def draw_masses(axis, where: Layout) -> Part:
    """Bars of the masses sent and received, with arrowheads where cut off; moved by masses in fair shares."""
    widths = np.repeat([4, 9, 5] if where.compact else [6, 16, 10], PARTS)
    bars = axis.add_collection(LineCollection([], colors=SKY, linewidths=widths, zorder=1, capstyle="butt"))
    marks = [axis.plot([], [], sign, color=BLACK, markersize=4, zorder=3)[0] for sign in "><"]

    def move(masses: np.ndarray) -> None:
        tips = where.starts + where.units * masses.clip(max=MOST)
        bars.set_segments(np.stack([np.stack([where.starts, tips]), [where.heights] * 2]).T)
        for mark, way in zip(marks, (1, -1)):
            torn = (masses > MOST) & (way * where.units > 0)
            mark.set_data(tips[torn], where.heights[torn])

    return Part([bars, *marks], move)


def draw_pictures(axis, images: Tensor | None, first: float, second: float, word: dict) -> None:
    """The pictures, or numbered discs."""
    boxes = [(x, y, SIDE) for x in (first, second) for y in ROWS] + [(0, y, SMALL) for y in OLDER]
    for k, (x, y, side) in enumerate(boxes):
        if images is None:
            number, colour = (k % N + 1, LINES[k % N]) if k < 2 * N else (k - 2 * N + 1, GREY)
            axis.plot(x, y, "o" if k < N else "s", color=colour, markersize=3.2 * word["fontsize"] * side)
            axis.text(x, y, str(number), color="white", weight="bold", **word)
        else:
            box = (x - side / 2, x + side / 2, y + side / 2, y - side / 2)
            axis.imshow(images[k].permute(1, 2, 0).numpy(), extent=box, interpolation="nearest")
