"""Two lists of bars: the order in which the sum of their products is largest, or smallest (QARe, eq. 7)."""

from itertools import permutations

import numpy as np

from setclr_course.kit.palette import GREY, INK, PALE, PURPLE, WHITE
from setclr_course.kit.panel import Page, Panel, slider

FIRST = (1, 2, 3, 5, 6)  # by size; it stands still
SECOND = (1, 2, 4, 5, 7)
ORDERS = list(permutations(SECOND))  # the second list, place by place
TOTALS = np.array(ORDERS) @ FIRST
EDGES = np.arange(TOTALS.min() - 0.5, TOTALS.max() + 1)
HEIGHTS = np.histogram(TOTALS, EDGES)[0]
BEGIN = ORDERS.index((4, 7, 1, 5, 2))


class two_lists(Panel):
    """Two lists whose products are added up; the bars of the second can be dragged to other places."""

    size, row_height = (9, 4.2), 4.6
    mosaic, widths, row_mosaic = "totals lists", (1.15, 1), "totals; lists"
    knobs = {"order": slider("arrangement no.", BEGIN, 0, len(ORDERS) - 1, 1)}

    def solve(self, values: dict) -> int:
        """The sum of the products."""
        return int(TOTALS[values["order"]])

    def draw(self, page: Page, values: dict, total: int) -> None:
        title = "all 120 arrangements, yours in colour"
        ticks: dict = {"xticks": range(50, 90, 10), "frame": "bottom"}
        totals = page.plot("totals", (41, 88), (0, 10), title, "sum of the products", **ticks)
        totals.steps(HEIGHTS, EDGES, PALE)
        totals.line([total, total], [0, 9.2], PURPLE, 3)
        totals.text(total, 9.25, str(total), INK, "title", rise="bottom", bold=True)

        order, places = ORDERS[values["order"]], range(5)
        title = f"the sum is {total}" if page.row else "each column is a product; move the lower bars"
        lists = page.plot("lists", (-0.5, 4.5), (-11, 7.4), title, frame="")
        upper = lists.bars(places, FIRST, GREY, 0.76)
        lower = lists.bars(places, [-bar for bar in order], PURPLE, 0.76)
        lists.line([-0.5, 4.5], 0, WHITE, 2)
        lists.text(places, FIRST, list(map(str, FIRST)), rise="bottom", up=2, bold=True)
        lists.text(places, [-bar for bar in order], list(map(str, order)), rise="top", up=-3, bold=True)
        for place, (a, b) in enumerate(zip(FIRST, order)):
            lists.text(place, -10.9, f"= {a * b}", rise="bottom")
            page.link(f"{a} × {b} = {a * b}", upper[place], lower[place])

            def to(x: float, y: float, bar: int = b) -> list[int]:
                return [ORDERS.index(moved(order, bar, round(x)))]

            how: dict = {"along": "x", "ends": (0, 4), "step": 1, "to": to}
            lower.handle(f"bar {b}", (place, -b / 2), "order", label=f"bar {b} of the second list", **how)

    def say(self, values: dict, total: int) -> str:
        products = " + ".join(f"{a} × {b}" for a, b in zip(FIRST, ORDERS[values["order"]]))
        larger, smaller = int((total < TOTALS).sum()), int((total > TOTALS).sum())
        more, less = (f"{n} give{'s' * (n == 1)}" for n in (larger, smaller))
        return f"{products} = {total}. Of 120 arrangements {more} more, {less} less."


def moved(order: tuple[int, ...], bar: int, place: int) -> tuple[int, ...]:
    """The order after a bar has gone to this place, or to the end before it; the others close up."""
    others = [other for other in order if other != bar]
    others.insert(min(max(place, 0), 4), bar)
    return tuple(others)
