"""An anchor, two positives and five negatives on a line: whom GroCo and InfoNCE push, and who gets the first
places (GroCo, figures 1 and 2, eq. 1, 5 and 6)."""

from typing import NamedTuple

import numpy as np

from setclr_course.kit.cast import NAMES, photographs, two_views
from setclr_course.kit.palette import BLUE, DUSK, GREY, INK, MIST, OCHRE, ORANGE
from setclr_course.kit.panel import Mark, Page, Panel, Piece, log_slider, options, slider
from setclr_course.panels.sorting.five import beside, spread
from setclr_course.panels.sorting.groups import K, Sorting, groco, info_nce
from setclr_course.panels.sorting.network import brief

WHO = (*NAMES[1:], "cat a", "cat b")  # the negatives in index order, then the positives
N = len(WHO) - K
START = (0.5, 1.0, 1.2, 0.8, 1.45, 0.35, 0.65)  # distances 1 − s; the coffee is the hardest negative
END = 1.9
LONGEST = 0.16  # of the arrows, in distances
FACE, ROOM = 0.14, 0.17  # of a photograph, and from one to the next
X = (-0.1, END + 0.18)


class Pushed(NamedTuple):
    d: np.ndarray  # (7,): the distances, in the order of WHO
    groco: Sorting
    info_nce: np.ndarray  # (7,): −∂loss/∂similarity: above 0 it pulls


class first_places(Panel):
    """Drag any of the seven; arrows show where two losses push them, bars who gets the first two places."""

    size, row_height, mosaic, heights = (9, 4.6), 3.2, "line; chances", (1.25, 1)
    knobs = {
        "beta": log_slider("steepness β", 8, 0.8, 80, 0.1, {8: "8", 80: "80"}),
        "preorder": options("pre-ordering", ["on", "off"]),
        "temperature": log_slider("temperature τ of InfoNCE", 0.5, 0.05, 5, 0.1, {0.5: ".5", 0.1: ".1"}),
        **{name: slider(f"{name}, distance", at, 0.1, END, 0.05) for name, at in zip(WHO, START)},
    }

    def solve(self, values: dict) -> Pushed:
        d = np.array([values[name] for name in WHO])
        sorting = groco(1 - d, values["beta"], values["preorder"] == "on")
        return Pushed(d, sorting, info_nce(1 - d, values["temperature"]))

    def draw(self, page: Page, values: dict, now: Pushed) -> None:
        above = spread(now.d, 0.19 if page.row else ROOM, 0.15, END + 0.1)  # of faces, numbers
        signs, shown = draw_line(page, now, above)
        title, chance, ticks = "chance of a first place", now.groco.chance, {0: "✕ 0", 1: "✚ 1"}
        chances = page.plot("chances", X, (-0.2, 1.05), title, yticks=ticks, frame="", room=(33, 0, 0, 0))
        chances.line(X, 0, INK, 1)
        numbers = chances.text(spread(now.d, 0.17), -0.12, [brief(p) for p in chance], DUSK, "small")
        bars = chances.bars(now.d, chance, ORANGE, 0.05)
        for i, (name, d, p) in enumerate(zip(WHO, now.d, chance)):
            signs[i].handle(name, (d, 0), along="x")
            said = f"{name}: d = {d:.2f}, a first place with {p:.3f}"
            page.link(said, signs[i], shown[i], bars[i], numbers[i])

    def say(self, values: dict, now: Pushed) -> str:
        d, p = now.d, now.groco.chance
        inside = (d >= d[:N].min()) & (d <= d[N:].max())  # from the nearest negative to the farther positive
        shares = [np.abs(push[inside]).sum() / np.abs(push).sum() for push in (now.groco.push, now.info_nce)]
        hardest = int(d[:N].argmin())
        where = f"{inside.sum()} of the seven overlap" if inside.any() else "Nobody overlaps"
        return (
            f"β = {values['beta']:.3g}, pre-ordering {values['preorder']}. {where}; GroCo spends "
            f"{shares[0]:.0%} of its push on them, InfoNCE {shares[1]:.0%}. The hardest negative, "
            f"{WHO[hardest]} at {d[hardest]:.2f}, gets a first place with {p[hardest]:.2f}, the positives at "
            f"{d[-2]:.2f} and {d[-1]:.2f} with {p[-2]:.2f} and {p[-1]:.2f}. "
            f"GroCo's loss is {now.groco.loss:.3f}."
        )


def draw_line(page: Page, now: Pushed, above: np.ndarray) -> tuple[list[Piece], Mark]:
    """The anchor at 0, the seven with their photographs, and each loss's arrows in units of its longest.

    Returns the signs and the photographs.
    """
    title = "" if page.row else "how each loss pushes, and where ✚ and ✕ overlap"
    line = page.plot("line", X, (-1.3, 1), title, frame="", room=(60, 0, 0, 0))
    low, high = now.d[:N].min(), now.d[N:].max()
    line.boxes([low, -0.18], [max(low, high), 0.18], MIST)
    line.line([0, END], 0, GREY, 1)
    line.dots([0, 0], INK, "★", 17)
    line.text(-0.1, -0.22, "distance from ★", size="small", anchor="start", rise="top")
    at = beside(now.d, 0)
    line.segments(at, beside(above, 0.22), GREY, 0.8)
    one, two = two_views()
    faces = np.concatenate([one[1:], two[:1], photographs()[:1], one[:1]])
    shown = line.photographs(beside([*above, 0], 0.25), faces, FACE, "bottom")
    crosses, plus = line.dots(at[:N], INK, "✕", 12), line.dots(at[N:], INK, "✚", 14)
    for y, push, colour in ((-0.55, now.groco.push, ORANGE), (-1.02, now.info_nce, BLUE)):
        share = -push / np.abs(push).max()
        flight = np.where(np.abs(share) < 0.05, 0, LONGEST * share)
        heights = [y - 0.2] * N + [y] * K  # ✚ above ✕
        line.arrows(beside(now.d, heights), beside(now.d + flight, heights), colour, 2.6)
    line.text(X[0], [-0.65, -1.12], ["GroCo", "InfoNCE"], (OCHRE, BLUE), anchor="end", right=-6, bold=True)
    return [*(crosses[i] for i in range(N)), *(plus[i] for i in range(K))], shown
