"""One anchor with two positives and eight negatives: how GroCo and InfoNCE pull, and GroCo's way from
similarities to a loss (GroCo, figures 1 and 2, eq. 1, 5 and 6)."""

from math import cos, hypot, sin
from typing import NamedTuple

import numpy as np

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.handles import Segment
from setclr_course.kit.palette import GREY, INK, OF_LOSS, ORANGE, PALE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.sorting.groups import K, Sorting, groco, info_nce
from setclr_course.panels.sorting.network import brief

NEGATIVES = (0.0, 0.5, -0.4, 0.25, -0.15, 0.38, -0.65, 0.12)  # similarities, in index order
POSITIVE = 0.6  # of a, which stays; b moves
N = len(NEGATIVES)
NAMES = [*(str(1 + sum(other > s for other in NEGATIVES)) for s in NEGATIVES), "a", "b"]  # 1: the hardest
DEGREES = np.deg2rad((175, 305, 140, 25, 335, 215, 50, 265, 70, 105))  # where they stand round the anchor
OUTWARD = np.stack([np.cos(DEGREES), np.sin(DEGREES)], axis=-1)
ASIDE = OUTWARD[:, ::-1] * [1, -1] * np.where(np.arange(N + K) == N + 1, -1, 1)[:, None]  # where names stand
TURN = np.linspace(0, 2 * np.pi, 41)
CIRCLE = np.stack([np.cos(TURN), np.sin(TURN)], 1)
BASE, HIGH = N + K + 4.1, 3.5  # of the bars: where they stand, and how long that of certainty is


class Loss(NamedTuple):
    """What a loss says of the ten."""

    name: str
    loss: float
    push: np.ndarray  # (10,): −∂loss/∂similarity
    said: str  # which share of it goes to points in the overlap
    points: np.ndarray  # who is in its list

    @property
    def pull(self) -> np.ndarray:
        """The push in units of the longest."""
        return self.push / np.abs(self.push).max()


class Order(NamedTuple):
    s: np.ndarray  # (10,): the negatives in index order, then the two positives: a, and b, which moves
    sorting: Sorting
    losses: list[Loss]


class group_order(Panel):
    """An anchor and its neighbours under both losses, with sliders for what these depend on."""

    size, row_height, row_mosaic = (9, 4.2), 3.9, "InfoNCE GroCo; list list"
    mosaic, widths = "InfoNCE GroCo list", (1.3, 1.3, 1)
    knobs = {
        "positive": slider("similarity of positive b", 0.2, -0.8, 0.95, 0.05),
        "beta": log_slider("inverse temperature β", 1, 0.1, 100, 0.1, {1: "paper 1", 8: "8"}),
        "negatives": slider("negatives in the list", N, 1, N, 1),
        "preorder": options("pre-ordering", ["on", "off"]),
        "temperature": log_slider("temperature τ", 0.5, 0.05, 5, 0.1, {0.5: "SimCLR .5", 0.1: ".1"}),
    }

    def solve(self, values: dict) -> Order:
        s = np.array([*NEGATIVES, POSITIVE, values["positive"]])
        beta, tau = values["beta"], values["temperature"]
        sorting = groco(s, beta, values["preorder"] == "on", values["negatives"])
        losses = [
            (f"InfoNCE, τ = {tau:.3g}", *info_nce(s, tau), np.arange(N + K)),
            (f"GroCo, β = {beta:.3g}", sorting.loss, sorting.push, sorting.points),
        ]
        return Order(s, sorting, [judged(s, *loss) for loss in losses])

    def draw(self, page: Page, values: dict, now: Order) -> None:
        dots = [draw_disc(page, name, now.s, loss) for name, loss in zip(("InfoNCE", "GroCo"), now.losses)]
        columns = draw_list(page, now.sorting)
        for i, name in enumerate(NAMES):
            near = 1 - now.s[i]
            pushes = ", ".join(f"{loss.name.split(',')[0]} {loss.push[i]:+.3g}" for loss in now.losses)
            bars = [columns[column] for column in np.flatnonzero(now.sorting.points == i)]
            signs = [negatives[i] if i < N else positives[i - N] for negatives, positives in dots]
            page.link(f"{name}: distance {near:.2f}, pulled by {pushes}", *signs, *bars)

    def say(self, values: dict, now: Order) -> str:
        nearer = (now.s[:-K] > now.s[-K:].min()).sum()
        said = [
            f"{loss.name}: loss {loss.loss:.3f}, {loss.said}, {(loss.pull[:-K] > 0.03).sum()} of the "
            "negatives pulled nearer"
            for loss in now.losses
        ]
        p = dict(zip((NAMES[i] for i in now.sorting.points), now.sorting.p))
        return (
            f"Positive b at similarity {values['positive']:.2f}: {nearer} of 8 negatives are "
            f"nearer than the farther positive. {'; '.join(said)}. With {values['negatives']} of the "
            f"negatives in the list and pre-ordering {values['preorder']}, the two top places get a with "
            f"probability {p['a']:.2f}, b with {p['b']:.2f} and the hardest negative with {p['1']:.2f}."
        )


def judged(s: np.ndarray, name: str, loss: float, push: np.ndarray, points: np.ndarray) -> Loss:
    """How much of the push goes to the overlap, from the nearest negative to the farther positive."""
    near, far = s[:-K].max(), s[-K:].min()
    share = np.abs(push[(s <= near) & (s >= far)]).sum() / np.abs(push).sum()
    said = f"{share:.0%} of the push in the overlap" if far < near else "no overlap"
    return Loss(name, loss, push, said, points)


def draw_disc(page: Page, name: str, s: np.ndarray, now: Loss) -> tuple[Mark, Mark]:
    """The anchor in the middle, the others at their distance 1 − s from it, and where a loss pushes them."""
    below = f"{now.said}\nloss {now.loss:.3f}, longest arrow {np.abs(now.push).max():.3g}"
    if page.row:
        below = now.said.replace("of the push in the", "in")
    disc = page.plane(name, (-1.95, 1.95), title=now.name, xlabel=below)
    near, far = 1 - s[:-K].max(), 1 - s[-K:].min()
    if far > near:
        disc.area([far * CIRCLE, near * CIRCLE[::-1]], ORANGE, 0.3)
    for distance in (0.5, 1, 1.5):
        disc.line(distance * CIRCLE[:, 0], distance * CIRCLE[:, 1], PALE, 0.8)
    disc.dots([0, 0], INK, "★", 12 if page.row else 15)
    at = OUTWARD * (1 - s)[:, None]
    moved = (np.abs(now.pull) >= 0.03)[:, None]
    starts = at - moved * 0.14 * np.sign(now.pull)[:, None] * OUTWARD
    disc.arrows(starts, starts - moved * 0.5 * now.pull[:, None] * OUTWARD, OF_LOSS[name], 2)
    colours = [INK if i in now.points else GREY for i in range(N + K)]
    negatives = disc.dots(at[:-K], colours[:-K], "✕", 8 if page.row else 11)
    positives = disc.dots(at[-K:], colours[-K:], "✚", 9 if page.row else 13)
    if not page.row:
        names = at + 0.21 * ASIDE
        disc.text(names[:, 0], names[:, 1], NAMES, size="small", halo=True)
    turn = DEGREES[-1]
    way = Segment((0.05 * cos(turn), 0.05 * sin(turn)), (1.8 * cos(turn), 1.8 * sin(turn)))
    positives.handle(
        f"b, {name}", at[-1], "positive", along=way, to=lambda x, y: [1 - hypot(x, y)], label="b"
    )
    return negatives, positives


def draw_list(page: Page, now: Sorting) -> Mark:
    """GroCo's list, its matrix P with the last K rows framed, and their sum p. Returns the bars of p."""
    n, m = N + K, len(now.points)
    columns, top = np.arange(n - m, n), n - 1.2 if page.row else n - m - 1
    y = (BASE + 1.4, top - 0.6 if page.row else -1.7)
    plot = page.plane("list", (-0.7, n - 0.3), y, "" if page.row else "GroCo's list, and P below it")
    if not page.row:
        plot.cells(now.P, at=(n - m, n - m))
        plot.boxes([n - m - 0.5, n - K - 0.5], [n - 0.5, n - 0.5], edge=OF_LOSS["GroCo"], width=2.5)
    heads = [f"{'✕' if i < N else '✚'}{NAMES[i]}" for i in now.points]
    plot.text(columns, top, heads, size="small")
    bars = plot.boxes(
        np.stack([columns - 0.36, np.full(m, BASE)], 1),
        np.stack([columns + 0.36, BASE - HIGH * now.p], 1),
        OF_LOSS["GroCo"],
    )
    truth = BASE - HIGH * (now.points >= N)
    plot.segments(np.stack([columns - 0.45, truth], 1), np.stack([columns + 0.45, truth], 1), INK, 2)
    plot.text(n - K - 0.6, BASE - HIGH, "truth", size="small", anchor="end")
    plot.text(columns, BASE + 0.5, [brief(p) for p in now.p], size="small")
    words = "p: share of the top places" if page.row else "p: sum of the framed rows"
    plot.text(n - 0.5, BASE + 1, words, size="small", anchor="end", rise="top")
    return bars
