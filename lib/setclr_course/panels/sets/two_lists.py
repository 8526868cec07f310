"""Two lists of bars: the order in which the sum of their products is largest, or smallest (QARe, eq. 7)."""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from ipywidgets import ValueWidget

from setclr_course.kit.palette import GREY, INK, PURPLE
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Handle, Link, box
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

FIRST = np.array([1, 2, 3, 5, 6])  # by size; it stands still
SECOND = np.array([1, 2, 4, 5, 7])
ORDERS = list(permutations(range(5)))  # which bar of the second list stands at which place
TOTALS = np.array([FIRST @ SECOND[list(order)] for order in ORDERS])
BEGIN = ORDERS.index((2, 4, 0, 3, 1))


def two_lists(**initial) -> Panel:
    """Two lists whose products are added up; the bars of the second can be dragged to other places."""
    controls = {"order": slider("arrangement no.", BEGIN, 0, len(ORDERS) - 1, 1)}
    return Panel(build, controls, (9, 4.2), initial, 3.6)


def build(figure, compact: bool) -> Drawing:
    *left, right = [figure.subplots()] if compact else figure.subplots(1, 2, width_ratios=(1.15, 1))
    parts = [draw_lists(right, compact), *(draw_totals(axis) for axis in left)]
    now: dict[str, Any] = {}

    def update(values: dict) -> str:
        now.update(order=ORDERS[values["order"]], total=int(TOTALS[values["order"]]))
        for part in parts:
            part.move(**now)
        return sentence(**now)

    def moved(bar: int, place: int) -> int:
        """The arrangement after a bar has changed places with the one at this place; beyond one end of the
        row is the other."""
        order = list(now["order"])
        here, there = order.index(bar), place % 5
        order[here], order[there] = order[there], order[here]
        return ORDERS.index(tuple(order))

    handles: dict[str, Handle] = {f"bar {SECOND[bar]}": swap(right, bar, moved, now) for bar in range(5)}
    artists = [artist for part in parts for artist in part.artists]
    return Drawing(artists, update, handles, lambda: links(right, now))


@dataclass(frozen=True)
class Swap(Handle):
    """A bar that goes from place to place; an arrow key is one place."""

    step: Any = None

    def nudged(self, controls: dict[str, ValueWidget], right: float, up: float) -> dict[str, Any]:
        return {"order": self.step(round(right + up))}


def swap(axis, bar: int, moved, now: dict) -> Handle:
    return Swap(
        axis, ("order",), lambda values: (ORDERS[values["order"]].index(bar), -SECOND[bar] / 2), "x",
        lambda x, _: [moved(bar, round(x))], f"bar {SECOND[bar]} of the second list",
        lambda steps: moved(bar, now["order"].index(bar) + steps),
    )  # fmt: skip


def links(axis, now: dict) -> list[Link]:
    """Each column: two bars and their product."""
    found = []
    for j, bar in enumerate(now["order"]):
        a, b = FIRST[j], SECOND[bar]
        found.append(Link([box(axis, (j - 0.38, -b), (j + 0.38, a))], text=f"{a} × {b} = {a * b}"))
    return found


def sentence(order: tuple[int, ...], total: int) -> str:
    products = " + ".join(f"{a} × {SECOND[bar]}" for a, bar in zip(FIRST, order))
    larger, smaller = (total < TOTALS).sum(), (total > TOTALS).sum()
    return f"{products} = {total}. Of 120 arrangements {larger} give more, {smaller} give less."


def draw_lists(axis, compact: bool) -> Part:
    """The first list upwards, the second downwards, and the products between the columns' ends."""
    bare(axis)
    axis.set(xlim=(-0.6 if compact else -0.9, 4.6), ylim=(-10.2, 8.2))
    bars = [axis.bar(range(5), FIRST, 0.76, color=GREY), axis.bar(range(5), np.zeros(5), 0.76, color=PURPLE)]
    axis.axhline(0, color="white", linewidth=2)
    size = 9 if compact else 11
    for j, a in enumerate(FIRST):
        axis.text(j, a + 0.15, str(a), ha="center", va="bottom", fontsize=size, weight="bold")
    below = [axis.text(j, 0, "", ha="center", va="top", fontsize=size, weight="bold") for j in range(5)]
    products = [axis.text(j, -10.1, "", ha="center", va="bottom", fontsize=size) for j in range(5)]
    if not compact:
        axis.set_title("each column is a product; move the lower bars")

    def move(order: tuple[int, ...], total: int) -> None:
        for j, bar in enumerate(order):
            bars[1][j].set_height(-SECOND[bar])
            below[j].set(y=-SECOND[bar] - 0.2, text=str(SECOND[bar]))
            products[j].set_text(f"= {FIRST[j] * SECOND[bar]}")

    return Part([*bars[1], *below, *products], move)


def draw_totals(axis) -> Part:
    """How often each total occurs, and where this arrangement is."""
    low, high = TOTALS.min(), TOTALS.max()
    edges = np.arange(low - 0.5, high + 1.5)
    axis.stairs(np.histogram(TOTALS, edges)[0], edges, fill=True, color="#cccccc")
    axis.set(xlim=(low - 5, high + 5), ylim=(0, 9), yticks=[], xlabel="sum of the products")
    axis.set_title("all 120 arrangements, yours in colour")
    axis.spines["left"].set_visible(False)
    line = axis.plot([], [], color=PURPLE, linewidth=3)[0]
    word = axis.text(0, 7.8, "", color=INK, ha="center", va="bottom", weight="bold", fontsize=13)

    def move(order: tuple[int, ...], total: int) -> None:
        line.set_data([total, total], [0, 7.7])
        word.set(x=total, text=str(total))

    return Part([line, word], move)
