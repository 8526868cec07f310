"""Six photographs whose second views can be dragged, matched one to one and each row alone, hard or soft
(QARe, eq. 3, 4, 12 and 13)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.palette import INK, OF_LOSS, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Piece
from setclr_course.panels.assignments.things import (
    WAYS,
    distances,
    heading,
    placed,
    places,
    soft_losses,
    soft_matching,
)

N = len(NAMES)
CIRCLES = np.array([(-0.5, 0.45), (1.05, -0.65), (-0.25, -0.45), (0.6, 0.25), (1.2, 0.8), (-1.1, -0.15)])
SQUARES = {"cat": (-0.65, -0.05), "coffee": (1.4, -0.6), "astronaut": (0.35, -0.9), "rocket": (0.45, 0.8),
           "temple": (1.3, 0.3), "flower": (-1.3, 0.35)}  # fmt: skip
PAIRS = np.indices((N, N)).reshape(2, -1)  # (2, N²): the ● and the ■ of every pair
COLOURS = dict(zip(WAYS, (OF_LOSS["LinearAssignment"], OF_LOSS["InfoNCE"])))
LINES = {"batch-hard": (11, 0.35), "one-to-one": (3.2, 1.0)}  # how wide a whole share is, and how opaque
SEEN = 0.05  # lines of a smaller share are not drawn
TOP = 1.0  # of the bars


class Paired(NamedTuple):
    """The pairing of one picture."""

    squares: np.ndarray  # (N, 2)
    weights: dict[str, np.ndarray]  # (N, N) for each way: rows sum to 1
    loss: dict[str, float]  # for each photograph


class pairings(Panel):
    """Six ● and six ■, which can be dragged: who is matched with whom, one to one and each row alone."""

    size, row_height = (9, 5.4), 5.4
    mosaic = "plane one-to-one; plane batch-hard; bars bars"
    widths, heights = (2.1, 1), (2.0, 2.0, 0.9)
    row_mosaic = "plane plane; " * 3 + "one-to-one batch-hard; " * 3 + "bars bars"
    knobs = {
        "temperature": log_slider(
            "temperature τ", 0.005, 0.005, 0.5, 0.1, {0.005: "hard", 0.05: ".05", 0.5: ".5"}
        ),
        "margin": slider("margin", 0.0, 0.0, 0.6, 0.05, {0: "none", 0.5: "Triplet .5"}),
        **places("{} ■", SQUARES, 1.6, 1.0),
    }

    def solve(self, values: dict) -> Paired:
        squares = placed(values, NAMES)
        cost = distances(CIRCLES, squares) + values["margin"] * np.eye(N)
        return Paired(
            squares,
            {way: soft_matching(cost, values["temperature"], way) for way in WAYS},
            {way: max(soft_losses(cost, values["temperature"], way).item(), 0.0) for way in WAYS},
        )

    def draw(self, page: Page, values: dict, now: Paired) -> None:
        lines = self.draw_pairs(page, now)
        tables = [self.draw_table(page, now, way) for way in WAYS]
        for k, (i, j) in enumerate(PAIRS.T):
            said = ", ".join(f"{word} {now.weights[way][i, j]:.2f}" for way, word in WAYS.items())
            cells: list[Piece] = [table[i, j] for table in tables]
            page.link(f"● {NAMES[i]}, ■ {NAMES[j]}: {said}", *cells, lit=[lines[k]])

        losses = list(now.loss.values())
        beside = {1 - k: f"{WAYS[way]} {loss:.3f}" for k, (way, loss) in enumerate(now.loss.items())}
        title = "" if page.row else "loss for each photograph: what the true pairs cost too much"
        bars = page.plot("bars", (0, TOP), (-0.5, 1.5), title, yticks=beside, frame="left")
        bars.bars([1, 0], np.minimum(losses, TOP), list(COLOURS.values()), 0.7, flat=True)
        bars.text(
            TOP, [1, 0], ["and more" if loss > TOP else "" for loss in losses], WHITE, anchor="end", right=-5
        )

    def draw_pairs(self, page: Page, now: Paired) -> Mark:
        """The photographs and their lines: black one to one, pale blue beneath each row alone."""
        title = "" if page.row else "drag a ■: who is matched with whom?"
        plane = page.plane("plane", (-1.8, 1.8), (-1.15, 1.35), title)
        for faces, points in zip(two_views(), (CIRCLES, now.squares)):
            plane.photographs(points, faces, 0.34 if page.row else 0.28, hangs="bottom", up=8)
        for way, (wide, opacity) in LINES.items():
            share = now.weights[way].ravel()
            width = np.where(share > SEEN, wide * share, 0)
            lines = plane.segments(
                CIRCLES[PAIRS[0]], now.squares[PAIRS[1]], COLOURS[way], width, opacity=opacity
            )
        plane.dots(CIRCLES, INK, "●", 13)
        squares = plane.dots(now.squares, INK, "■", 13)
        for name, point in zip(NAMES, now.squares):
            squares.handle(name, point, f"{name} x", f"{name} y", label=f"{name} ■")
        return lines

    def draw_table(self, page: Page, now: Paired, way: str) -> Mark:
        """The shares as a table, the truth framed, the sums of its columns below."""
        beside = {} if page.row else dict(enumerate([*(f"{name} ●" for name in NAMES), "sum"]))
        table = page.plane(way, (-0.5, N - 0.5), (N + 0.5, -0.5), yticks=beside, room=(0, 20, 0, 0))
        said = WAYS[way] + ": ● by ■" * (not page.row)
        heading(table, said, COLOURS[way])
        cells = table.cells(now.weights[way])
        table.frames([(i, i) for i in range(N)], width=1.6)
        sums = [f"{total:.1f}" for total in now.weights[way].sum(0)]
        table.text(np.arange(N), N, sums, size="small")
        return cells

    def say(self, values: dict, now: Paired) -> str:
        one = now.weights["one-to-one"].argmax(1)
        wrong = [f"{NAMES[i]} with {NAMES[j]}" for i, j in enumerate(one) if i != j]
        wanted = np.bincount(now.weights["batch-hard"].argmax(1), minlength=N)
        twice = [NAMES[j] for j in range(N) if wanted[j] > 1]
        moved = [
            f"{name} ■ to ({x:g}, {y:g})"
            for name, (x, y) in zip(NAMES, now.squares)
            if not np.allclose(SQUARES[name], (x, y))  # a browser rounds
        ]
        return (
            f"Temperature {values['temperature']:.3g}, margin {values['margin']:.2f}. One to one: loss "
            f"{now.loss['one-to-one']:.3f}, wrong pairs: {', '.join(wrong) or 'none'}. Each row alone: loss "
            f"{now.loss['batch-hard']:.3f}, wanted by more than one: {', '.join(twice) or 'nobody'}. "
            f"Moved: {', '.join(moved) or 'nothing'}."
        )
