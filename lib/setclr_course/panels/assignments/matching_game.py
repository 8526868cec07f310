"""Six photographs, seen twice: draw the lines between the views, as short as you can (QARe, eq. 2 and 3)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, two_views
from setclr_course.kit.inner import assignment
from setclr_course.kit.palette import GREY, INK, OF_LOSS, YELLOW
from setclr_course.kit.panel import Page, Panel, slider
from setclr_course.panels.assignments.things import distances, placed, places

N = len(NAMES)
CIRCLES = np.array([
    (-0.27425, -0.26496), (1.22698, -0.10013), (0.14025, 0.76963),
    (-1.32474, 0.41017), (0.56607, -0.38865), (-0.94655, -0.79113),
])  # fmt: skip
SQUARES = np.array([  # neither truth nor greed finds the shortest
    (0.32973, -0.9), (0.85155, 0.57343), (0.26329, -0.34685),
    (-1.49728, -0.11592), (1.35958, -0.72971), (-0.77405, -0.13709),
])  # fmt: skip
DISTANCE = distances(CIRCLES, SQUARES)  # (N, N): from each ● to each ■
TRUE, SHORTEST = np.arange(N), assignment(DISTANCE)
WIDE, TALL = 1.75, 1.25  # the ends move from −WIDE to WIDE and from −TALL to TALL
STOP = 0.17  # how far from the middle of its ■ a line ends that is dropped there, so that it can be taken
WAY = (CIRCLES[:, None] - SQUARES) / DISTANCE[:, :, None]
DROPS = np.round((SQUARES + STOP * WAY) / 0.05) * 0.05  # (N, N, 2): where each line ends at each ■
DEAREST = 14  # no six lines are longer


def length(columns: np.ndarray) -> float:
    return float(DISTANCE[np.arange(N), columns].sum())


class Lines(NamedTuple):
    """The reader's lines."""

    ends: np.ndarray  # (N, 2): where the line of each ● ends
    mine: np.ndarray  # (N,): the ■ that is nearest to this end
    long: float
    twice: list[str]  # who is taken more than once


class matching_game(Panel):
    """Lines from six ● to six ■ whose ends can be dragged, against the shortest one-to-one matching."""

    least = 0.85
    size, row_height = (9, 4.4), 2.9
    mosaic, widths, heights, row_mosaic = "plane table; plane bars", (1.7, 1), (2.6, 1), "plane"
    play = "shown"
    knobs = {
        "shown": slider("lines of the shortest", 0, 0, N, 1, {0: "none", N: "all"}),
        **places("line of {}", dict(zip(NAMES, DROPS[TRUE, TRUE].tolist())), WIDE, TALL),
    }

    def solve(self, values: dict) -> Lines:
        ends = placed(values, NAMES)
        mine = distances(ends, SQUARES).argmin(1)
        twice = [NAMES[j] for j in range(N) if (mine == j).sum() > 1]
        return Lines(ends, mine, length(mine), twice)

    def draw(self, page: Page, values: dict, now: Lines) -> None:
        title = f"● view 1, ■ view 2: your lines are {now.long:.2f} long"
        plane = page.plane("plane", (-WIDE, WIDE), (-TALL, 1.3), title)
        for faces, points in zip(two_views(), (CIRCLES, SQUARES)):
            plane.photographs(points, faces, 0.28, hangs="bottom", up=8)
        shown = np.arange(values["shown"])
        plane.segments(CIRCLES[shown], SQUARES[SHORTEST[shown]], YELLOW, 11, opacity=0.8)
        lines = plane.segments(CIRCLES, now.ends, INK, 2.8)
        threads = plane.segments(now.ends, SQUARES[now.mine], INK, 1.6, "dot")
        circles, squares = plane.dots(CIRCLES, INK, "●", 13), plane.dots(SQUARES, INK, "■", 13)
        ends = plane.dots(now.ends, INK, "●", 8)
        for i, name in enumerate(NAMES):
            ends.handle(
                name, now.ends[i], f"{name} x", f"{name} y", label=f"the line of {name}", snap=DROPS[i]
            )

        title, beside = "distance d of ● and ■: smaller is closer", {i: f"{NAMES[i]} ●" for i in range(N)}
        table = page.plane("table", (-0.5, 5.5), (5.5, -1.5), title, yticks=beside)
        table.photographs([(j, -1) for j in range(N)], two_views()[1], 0.8)
        cells = table.cells(DISTANCE, 2.8, 0, ".2f")
        table.frames(enumerate(now.mine), INK, 2.5)
        for i, j in np.ndindex(N, N):
            mine = [lines[i], threads[i]] if now.mine[i] == j else []
            said = f"● {NAMES[i]}, ■ {NAMES[j]}: d = {DISTANCE[i, j]:.2f}"
            page.link(said, cells[i, j], *mine, lit=[circles[i], squares[j]])
        self.draw_bars(page, now)

    def draw_bars(self, page: Page, now: Lines) -> None:
        """The length of the true pairs, of the reader's lines, and of the shortest matching."""
        true, best = length(TRUE), length(SHORTEST)
        beside = {0: f"shortest {best:.2f}", 1: f"your lines {now.long:.2f}", 2: f"true pairs {true:.2f}"}
        bars = page.plot("bars", (0, DEAREST), (-0.5, 2.5), yticks=beside, frame="")
        bars.bars([2, 1, 0], [true, now.long, best], [GREY, INK, YELLOW], 0.7, flat=True)
        bars.line([best, true], [0, 0], OF_LOSS["LinearAssignment"], 4)
        bars.text(true, 0, f"gap {round(true, 2) - round(best, 2):.2f} is the loss", anchor="start", right=5)

    def say(self, values: dict, now: Lines) -> str:
        true, best = length(TRUE), length(SHORTEST)
        if now.twice:
            state = f"taken more than once, so this is no matching: {', '.join(now.twice)}"
        elif now.long < best + 1e-9:
            state = "you have found the shortest"
        else:
            state = f"{round(now.long, 2) - round(best, 2):.2f} too long"
        hints = [f"{NAMES[i]} to {NAMES[SHORTEST[i]]}" for i in range(values["shown"])]
        return (
            f"Your lines are {now.long:.2f} long: {state}. The true pairs need {true:.2f}, the shortest "
            f"matching {best:.2f}, so the loss is {(true - best) / N:.3f} for each photograph. "
            f"Its lines: {', '.join(hints) or 'not shown'}."
        )
