"""Six photographs whose second views can be dragged, matched one to one and each row alone, hard or soft
(QARe, eq. 2 to 4, 9, 12 and 13)."""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.inner import softmax
from setclr_course.kit.palette import INK, OF_LOSS, WHITE
from setclr_course.kit.panel import Mark, Page, Panel, log_slider, slider
from setclr_course.panels.assignments.things import distances, placed, places

N = len(NAMES)
CIRCLES = np.array([(-0.5, 0.45), (1.05, -0.65), (-0.25, -0.45), (0.6, 0.25), (1.2, 0.8), (-1.1, -0.15)])
SQUARES = {"cat": (-0.65, -0.05), "coffee": (1.4, -0.6), "astronaut": (0.35, -0.9), "rocket": (0.45, 0.8),
           "temple": (1.3, 0.3), "flower": (-1.3, 0.35)}  # fmt: skip
MATCHINGS = np.eye(N)[list(permutations(range(N)))]  # (N!, N, N): all of them, as tables of 0 and 1
PAIRS = np.indices((N, N)).reshape(2, -1)  # (2, N²): the ● and the ■ of every pair
WAYS = {"one-to-one": "one to one", "batch-hard": "each row alone"}
COLOURS = dict(zip(WAYS, (OF_LOSS["LinearAssignment"], OF_LOSS["InfoNCE"])))
LINES = {"batch-hard": (11, 0.35), "one-to-one": (3.2, 1.0)}  # how wide a whole share is, and how opaque
SEEN = 0.05  # lines of a smaller share are not drawn
TOP = 1.0  # of the bars


class Solved(NamedTuple):
    """For each way."""

    points: np.ndarray  # (N, 2): where the ■ are
    shares: dict[str, np.ndarray]  # (N, N), rows sum to 1
    loss: dict[str, float]  # for each thing, by how much the true pairs cost more than the soft minimum


class pairings(Panel):
    """Six ● and six ■, which can be dragged: who is matched with whom, one to one and each row alone."""

    least = 0.8
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

    def solve(self, values: dict) -> Solved:
        points, temperature = placed(values, NAMES), values["temperature"]
        cost = distances(CIRCLES, points) + values["margin"] * np.eye(N)
        of_matchings = -np.tensordot(MATCHINGS, cost, 2)  # (N!,)
        shares = {
            "one-to-one": np.tensordot(softmax(of_matchings, temperature), MATCHINGS, 1),
            "batch-hard": softmax(-cost, temperature),
        }
        loss = {}
        for way, chosen in zip(WAYS, (of_matchings[None], -cost)):
            most = temperature * np.logaddexp.reduce(chosen / temperature, axis=1)
            loss[way] = max(float(cost.trace() + most.sum()) / N, 0.0)
        return Solved(points, shares, loss)

    def draw(self, page: Page, values: dict, now: Solved) -> None:
        lines = draw_pairs(page, now)
        tables = [draw_shares(page, way, now.shares[way]) for way in WAYS]
        for k, (i, j) in enumerate(PAIRS.T):
            said = ", ".join(f"{word} {now.shares[way][i, j]:.2f}" for way, word in WAYS.items())
            cells = [table[i, j] for table in tables]
            page.link(f"P of ● {NAMES[i]}, ■ {NAMES[j]}: {said}", *cells, lit=[lines[k]])

        losses = np.array(list(now.loss.values()))
        beside = {1 - k: f"{WAYS[way]} {loss:.3f}" for k, (way, loss) in enumerate(now.loss.items())}
        title = "" if page.row else "loss for each photograph: extra cost of the true pairs"
        bars = page.plot("bars", (0, TOP), (-0.5, 1.5), title, yticks=beside, frame="left")
        bars.bars([1, 0], losses.clip(0, TOP), list(COLOURS.values()), 0.7, flat=True)
        more = ["and more" if loss > TOP else "" for loss in losses]
        bars.text(TOP, [1, 0], more, WHITE, anchor="end", right=-5)

    def say(self, values: dict, now: Solved) -> str:
        one = now.shares["one-to-one"].argmax(1)
        wrong = [f"{NAMES[i]} with {NAMES[j]}" for i, j in enumerate(one) if i != j]
        wanted = np.bincount(now.shares["batch-hard"].argmax(1), minlength=N)
        twice = [NAMES[j] for j in range(N) if wanted[j] > 1]
        moved = [
            f"{name} ■ to ({x:g}, {y:g})"
            for name, (x, y) in zip(NAMES, now.points)
            if not np.allclose(SQUARES[name], (x, y))  # a browser rounds
        ]
        return (
            f"Temperature {values['temperature']:.3g}, margin {values['margin']:.2f}. One to one: loss "
            f"{now.loss['one-to-one']:.3f}, wrong pairs: {', '.join(wrong) or 'none'}. Each row alone: loss "
            f"{now.loss['batch-hard']:.3f}, wanted by more than one: {', '.join(twice) or 'nobody'}. "
            f"Moved: {', '.join(moved) or 'nothing'}."
        )


def draw_pairs(page: Page, now: Solved) -> Mark:
    """The photographs and their lines: thin ones one to one, wide blue ones beneath each row alone."""
    title = "" if page.row else "thin: one to one; wide and blue: each row alone"
    plane = page.plane("plane", (-1.8, 1.8), (-1.15, 1.35), title)
    for faces, at in zip(two_views(), (CIRCLES, now.points)):
        plane.photographs(at, faces, 0.3, hangs="bottom", up=8)
    for way, (wide, opacity) in LINES.items():
        share = now.shares[way].ravel()
        width = np.where(share > SEEN, wide * share, 0)
        ends = CIRCLES[PAIRS[0]], now.points[PAIRS[1]]
        lines = plane.segments(*ends, COLOURS[way], width, opacity=opacity)
    plane.dots(CIRCLES, INK, "●", 13)
    squares = plane.dots(now.points, INK, "■", 13)
    for name, point in zip(NAMES, now.points):
        squares.handle(name, point, f"{name} x", f"{name} y", label=f"{name} ■")
    return lines


def draw_shares(page: Page, way: str, shares: np.ndarray) -> Mark:
    """A table of shares (N, N), a row for each ●, the truth framed, the sums of the columns below."""
    beside = {} if page.row else dict(enumerate([*(f"{name} ●" for name in NAMES), "sum"]))
    table = page.plane(way, (-0.5, N - 0.5), (N + 0.5, -0.5), yticks=beside, room=(0, 20, 0, 0))
    table.text(0, 1, WAYS[way], COLOURS[way], anchor="start", rise="bottom", up=3, bold=True, within=True)
    cells = table.cells(shares)
    table.frames([(i, i) for i in range(N)], width=1.6)
    table.text(range(N), N, [f"{total:.1f}".removesuffix(".0") for total in shares.sum(0)], size="small")
    return cells
