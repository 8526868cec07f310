"""One batch with a hub under the constraints U(1), U(a) and U(a, b), side by side (IOT-CL, figure 4)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.circle import RADII, unit
from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.handles import Circle
from setclr_course.kit.palette import BLUE, GREY, INK, SKY, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.couplings.fair_shares import LIGHT, MOST, constrained, loss_of, sum_bars

ANGLES = np.array([(345, 62, 132, 235), (5, 85, 108, 255)])  # degrees; ■1, the first of view 2, is the hub
N = ANGLES.shape[1]
NAMES = [view + str(image) for view in "●■" for image in range(1, N + 1)]
TRUE = np.arange(2 * N), np.roll(np.arange(2 * N), N)  # the cells of each point and its other view
FAMILY = {"total": "U(1)", "rows": "U(a)", "both": "U(a, b)"}
BRIGHT = 0.6  # M·P of the brightest cell
INSIDE = 0.5  # the radius at which the hub is drawn, so that it hides nobody
ABOVE, BESIDE = -0.8, 2 * N - 0.2  # where the bars of the columns and of the rows begin
HIGH, LONG = 0.9, 0.4  # of a cell: the bars of a fair share


class Couplings(NamedTuple):
    z: np.ndarray  # (2, 4, 2): the views
    shares: dict[str, np.ndarray]  # M·P (8, 8) by constraint, ● before ■


class constraint_family(Panel):
    """The couplings of two views of four images under three constraints, while one point gets in the way."""

    size, row_height = (9.4, 3.5), 3.9
    mosaic, widths = "plane total rows both", (0.8, 1, 1, 1)
    row_mosaic = "plane plane plane; total rows both"
    knobs = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.05, 5, marks={0.1: ".1", 0.5: "paper .5", 2: "2"}),
        "hub": slider("angle of ■1", 95, 0, 360, 5, {5: "at home", 95: "between 2 and 3", 245: "amid 4"}),
        "rounds": slider("rounds K of U(a, b)", 8, 1, 16, 1, {1: "1", 2: "2", 4: "4", 8: "paper 8"}),
    }

    def solve(self, values: dict) -> Couplings:
        angles = ANGLES.copy()
        angles[1, 0] = values["hub"]
        z = unit(angles)
        x = z.reshape(-1, 2)
        cost = 1 - x @ x.T + np.diag(np.full(2 * N, np.inf))
        return Couplings(z, constrained(cost, values["epsilon"], values["rounds"]))

    def draw(self, page: Page, values: dict, now: Couplings) -> None:
        draw_batch(page, now.z)
        bars = [draw_coupling(page, name, now.shares[name]) for name in FAMILY]
        for j, name in enumerate(NAMES):
            said = ", ".join(f"{FAMILY[way]} {shares[:, j].sum():.2f}" for way, shares in now.shares.items())
            page.link(f"{name} receives: {said}", *(bar[j] for bar in bars))

    def say(self, values: dict, now: Couplings) -> str:
        words = []
        for constraint, name in FAMILY.items():
            A, loss = now.shares[constraint], loss_of(now.shares[constraint][TRUE])
            words.append(
                f"{name}: loss {loss:.3f}, ■1 receives {A[:, N].sum():.3f} fair shares, {A[0, N]:.3f} of "
                f"them from its partner ●1, who receives {A[:, 0].sum():.3f}"
            )
        rounds = f"{values['rounds']} round{'s' * (values['rounds'] != 1)}"
        given = f"ε = {values['epsilon']:.3g}, ■1 at {values['hub']}°, {rounds} for U(a, b). "
        return given + "; ".join(words) + "."


def draw_batch(page: Page, z: np.ndarray) -> None:
    """All images on two circles, view 1 outside; ■1 further in, to be dragged."""
    words = f"cells: M·P, dark 0,\nbright {BRIGHT} and more\nframes: true matches\nblue: image 1"
    plane = page.plane("plane", (-1.4, 1.4), title="● view 1   ■ view 2", xlabel="" if page.row else words)
    x, y = unit(np.arange(0, 361, 4)).T
    for radius in RADII:
        plane.line(radius * x, radius * y, GREY, 0.7)
    one, two = RADII[0] * z[0], RADII[1] * z[1]
    two[0] = INSIDE * z[1, 0]
    plane.segments(one, two, [BLUE, GREY, GREY, GREY], 2)
    plane.dots(one, INK, "●", 11)
    plane.dots(two[1:], INK, "■", 11)
    plane.dots(two[0], INK, "■", 14).handle("hub", two[0], along=Circle(radius=INSIDE), label="■1")
    x, y = np.concatenate([1.24 * z[0], 0.22 * z[1, :1]]).T
    plane.text(x, y, ["1", "2", "3", "4", "■1"])


def draw_coupling(page: Page, name: str, shares: np.ndarray) -> Mark:
    """One matrix with its sums; the bars of the columns."""
    loss, received = f"loss {loss_of(shares[TRUE]):.2f}", shares[:, N].sum()
    title, below = f"{FAMILY[name]}, {loss}", f"■1 gets {received:.2f},\n{shares[0, N]:.2f} of it from ●1"
    if page.row:
        title, below = FAMILY[name], f"{loss}\n■1: {received:.2f}"
    ticks = {} if page.row else dict(enumerate(NAMES))
    plot = page.plane(
        name, (-0.5, BESIDE + MOST * LONG), (2 * N - 0.5, ABOVE - MOST * HIGH), title, xlabel=below,
        xticks=ticks, yticks=ticks,
    )  # fmt: skip
    plot.cells(shares, high=BRIGHT)
    plot.segments([(N - 0.5, -0.5), (-0.5, N - 0.5)], [(N - 0.5, 2 * N - 0.5), (2 * N - 0.5, N - 0.5)], LIGHT)
    plot.frames(zip(*TRUE), VERMILION, 1 if page.row else 1.5)
    sum_bars(plot, shares.sum(1), BESIDE, LONG, flat=True)
    return sum_bars(plot, shares.sum(0), ABOVE, -HIGH, [BLUE if name[1] == "1" else SKY for name in NAMES])
