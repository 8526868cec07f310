"""Five things in a plane, seen twice and matched: the loss is by how much the true matching costs more than
the best one (QARe, section 3.3, eq. 2, 3, 9 and 12)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import slider
from setclr_course.kit.inner import assignment
from setclr_course.kit.palette import GREY, INK, MIST, SKY, VERMILION, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.assignments.things import distances, draw_numbered, random_things

N, MOVED = 5, 2  # ■3 is the one that is moved
SEED = 39637  # of draw 0, where no symbol hides a line
TRUE = np.arange(N)
DEAREST = 1.5  # no matching costs more


class Matched(NamedTuple):
    things: np.ndarray  # (2, N, 2)
    S_m: np.ndarray  # (N, N): what each pair costs, with the margin
    columns: np.ndarray  # (3, N): the ■ of each ● in the true matching, in the best one, and each row alone
    costs: np.ndarray  # (3,) of these per thing


def five_things(x: float, y: float, seed: int) -> np.ndarray:
    """(2, 5, 2): a draw with ■3 put at (x, y)."""
    things = random_things(SEED + seed, N)
    things[1, MOVED] = x, y
    return things


class assignment_plane(Panel):
    """The plane, its cost matrix and three matchings: the true one, the best one, and every row's choice."""

    size, row_height = (9, 5.2), 5.8
    mosaic, widths, heights = "plane cost; bars bars", (1.6, 1), (3.3, 1.2)
    row_mosaic = "plane; " * 3 + "cost; " * 3 + "bars"
    knobs = {
        "x": slider("x of ■3", 0.2, -1.5, 1.5, 0.05),
        "y": slider("y of ■3", -0.3, -0.9, 0.9, 0.05),
        "margin": slider("margin m", 0.0, 0.0, 0.6, 0.05, {0: "none", 0.5: "Triplet .5"}),
        "seed": slider("another draw", 0, 0, 9, 1),
    }

    def solve(self, values: dict) -> Matched:
        things = five_things(values["x"], values["y"], values["seed"])
        S_m = distances(*things) + values["margin"] * np.eye(N)
        columns = np.stack([TRUE, assignment(S_m), S_m.argmin(1)])
        return Matched(things, S_m, columns, S_m[TRUE, columns].mean(1))

    def draw(self, page: Page, values: dict, now: Matched) -> None:
        circles, squares = self.draw_plane(page, now)
        cells = self.draw_table(page, now)
        for i, j in np.ndindex(N, N):
            page.link(f"●{i + 1}, ■{j + 1}: {now.S_m[i, j]:.2f}", cells[i, j], lit=[circles[i], squares[j]])
        self.draw_bars(page, now, values["margin"])

    def draw_plane(self, page: Page, now: Matched) -> tuple[Mark, Mark]:
        title = "● view 1 and ■ view 2: who belongs to whom?"
        below = "blue: best matching, dashed where wrong · thin: true pairs"
        if page.row:
            title = below = ""
        plane = page.plane("plane", (-1.66, 1.66), (-1.06, 1.06), title, xlabel=below)
        one, two = now.things
        best, right = two[now.columns[1]], now.columns[1] == TRUE
        plane.segments(one, two, GREY, 1.2)
        plane.segments(one[right], best[right], SKY, 3.5)
        plane.segments(one[~right], best[~right], VERMILION, 3.5, "dash")
        fills = [MIST if i == MOVED else WHITE for i in TRUE]
        circles, squares = draw_numbered(plane, now.things, fills)
        squares.handle("square", two[MOVED], "x", "y", label="■3")
        return circles, squares

    def draw_table(self, page: Page, now: Matched) -> Mark:
        """The costs, with frames round the best matching and where it misses the truth."""
        title, said = "what each pair costs", "thin frame: true but missed · ○ the row's cheapest"
        if page.row:
            title = said = ""
        beside, below = ([f"{sign}{i + 1}" for i in TRUE] for sign in "●■")
        table = page.table("cost", N, N, title, beside, below, xlabel=said)
        cells = table.cells(now.S_m, 0, 2.5, ".1f" if page.row else ".2f", down=True)
        right = now.columns[1] == TRUE
        for colour, width in ((WHITE, 3.5), (INK, 1.5)):
            table.frames([(i, i) for i in TRUE[~right]], colour, width)
        table.frames(enumerate(now.columns[1]), [SKY if r else VERMILION for r in right], 3)
        table.dots(np.stack([now.columns[2] + 0.33, TRUE - 0.33], 1), WHITE, size=8, edge=INK)
        return cells

    def draw_bars(self, page: Page, now: Matched, margin: float) -> None:
        """Costs per thing, pair by pair: the true matching on top, then the best one, then each row alone."""
        true, best, alone = now.costs
        beside = {2: f"true pairs cost {true:.3f}", 1: f"best: loss {true - best:.3f}",
                  0: f"each row: loss {true - alone:.3f}"}  # fmt: skip
        title = "" if page.row else "cost per thing: the gap is the loss (orange: wrong, pale: margin)"
        bars = page.plot("bars", (0, DEAREST), (-0.5, 2.5), title, yticks=beside, frame="")
        right = now.columns == TRUE
        paid = np.stack([now.S_m[TRUE, now.columns] - margin * right, margin * right], 2).reshape(3, -1) / N
        kinds = np.stack([np.where(right, SKY, VERMILION), np.full(right.shape, MIST)], 2)
        for level, widths, colours in zip((2, 1, 0), paid, kinds):
            ends = widths.cumsum()
            low, high = (np.full(2 * N, level + side) for side in (-0.36, 0.36))
            one, two = np.stack([ends - widths, low], 1), np.stack([ends, high], 1)
            bars.boxes(one, two, colours.ravel().tolist(), WHITE)
        bars.line([true, true], [-0.5, 2.5], INK, 1.2)
        bars.segments([(best, 1), (alone, 0)], [(true, 1), (true, 0)], INK, 4)

    def say(self, values: dict, now: Matched) -> str:
        true, best, alone = now.costs
        wrong = [f"●{i + 1}–■{j + 1}" for i, j in enumerate(now.columns[1]) if i != j]
        taken, times = np.unique(now.columns[2], return_counts=True)
        twice = [f"■{j + 1}" for j in taken[times > 1]]
        place = f"({values['x']:.2f}, {values['y']:.2f})"
        return (
            f"Draw {values['seed']}, ■3 at {place}, margin {values['margin']:.2f}: the true matching costs "
            f"{true:.3f} per thing, the best one {best:.3f}, so the loss is {true - best:.3f}; "
            f"wrong pairs of the best: {', '.join(wrong) or 'none'}. Each row alone costs {alone:.3f}, loss "
            f"{true - alone:.3f}; wanted by more than one row: {', '.join(twice) or 'none'}."
        )
