"""Two views of many things, matched in pools of 8 to 512: which partner each patch gets, and how often the
right one (QARe, section 5.1)."""

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from setclr_course.kit.palette import BLUE, DUSK, GREEN, GREY, OCHRE, ORANGE, PINE, VERMILION
from setclr_course.kit.panel import Page, Panel, log_slider, options, slider
from setclr_course.panels.assignments.things import cosines, given

if TYPE_CHECKING:
    from torch import Tensor

    from setclr_course.panels.assignments.things import Features

SIZES = (8, 16, 32, 64, 128, 256, 512)  # things in a pool
PAGES = 8  # pools that a mean is taken over
ROWS, COLUMNS = 8, 2  # of pairs that are shown
SHOWN = ROWS * COLUMNS
BESIDE, WIDE, HIGH = 1.5, 4.75, 1.27  # in patches: from one to the next, to the next column, to the next row
WAYS = ("one to one", "nearest")
STYLES = dict(zip(WAYS, (("●", "", BLUE, BLUE), ("■", "dash", ORANGE, OCHRE))))


class Shown(NamedTuple):
    pool: np.ndarray  # (P,) things
    got: np.ndarray  # (P,) for each, the thing whose second view it gets
    means: dict[str, list[float]]  # per cent, by way and size
    at: int  # the number of the size
    right: np.ndarray  # of the pairs that are shown


class matching_pools(Panel):
    """Pools of things matched by features, with sliders for the pool's size and for which pool is shown.

    Args:
        features: by name, (n, D) of view 1 and (n, D) of view 2; the first name is the baseline, in grey.
        patches: (2, n, C, H, W) uint8, the pictures.

    Without arguments it shows made-up patches, embedded by two noisy encoders.

    Raises:
        ValueError: there are fewer than 16 things.
    """

    size, row_height = (9.4, 4.7), 4.4
    mosaic, widths, row_mosaic = "page curves", (1, 1.15), "page"

    def __init__(self, features: "Features | None" = None, patches: "Tensor | None" = None, **initial: Any):
        features, self.faces = given(features, patches, SIZES[1], 44)
        self.sizes = [size for size in SIZES if size <= self.faces.shape[1]]
        self.found = {name: solved(a, b, self.sizes) for name, (a, b) in features.items()}
        self.means = {
            name: {way: [accuracy(found, way, size) for size in self.sizes] for way in WAYS}
            for name, found in self.found.items()
        }
        low, start, high = self.sizes[0], min(128, self.sizes[-1]), self.sizes[-1]
        marks: dict[float, str] = {size: str(size) for size in (low, start, high)}
        self.knobs = {
            "pool": log_slider("things in the pool", start, low, high, np.log10(2), marks),
            "page": slider("which pool", 1, 1, PAGES, 1),
            "features": options("features", features, list(features)[-1]),
            "matching": options("matching", WAYS),
        }
        if "normalised pixels" in features:
            self.also = [{"features": "normalised pixels", "pool": low}]  # page 09 asks for it
        super().__init__(**initial)

    def solve(self, values: dict) -> Shown:
        at, name = self.knobs["pool"].number(values["pool"]), values["features"]
        pool, got = self.found[name][values["matching"], self.sizes[at], values["page"] - 1]
        return Shown(pool, got, self.means[name], at, (pool == got)[:SHOWN])

    def draw(self, page: Page, values: dict, now: Shown) -> None:
        """The patches of the pool, what each gets, and where that is wrong the true one; and the curves."""
        way = values["matching"]
        below = f"{now.right.sum()} of the {len(now.right)} shown are right"
        below += f"\nmean of {PAGES} pools: {now.means[way][now.at]:.0f} %" * page.row
        plane = page.plane("page", (-0.6, WIDE + 3.6), (ROWS * HIGH - 0.6, -1.1), xlabel=below)
        heads = [column * WIDE + k * BESIDE for column in range(COLUMNS) for k in range(3)]
        plane.text(heads, -0.65, ["view 1", "gets", "true"] * COLUMNS, DUSK, "small", rise="bottom")
        number = np.arange(len(now.right))
        here = np.stack([number % COLUMNS * WIDE, number // COLUMNS * HIGH], 1)
        pool, wrong = now.pool[:SHOWN], ~now.right
        plane.photographs(here, self.faces[0, pool], 1)
        frame = [GREEN if right else VERMILION for right in now.right]
        plane.photographs(here + (BESIDE, 0), self.faces[1, now.got[:SHOWN]], 1, frame=frame)
        plane.photographs((here + (2 * BESIDE, 0))[wrong], self.faces[1, pool[wrong]], 1)
        signs, colours = np.where(wrong, "✗", "✓").tolist(), np.where(wrong, VERMILION, PINE).tolist()
        plane.text(here[:, 0] + BESIDE / 2, here[:, 1], signs, colours, "title", bold=True)
        self.draw_curves(page, way, now)

    def draw_curves(self, page: Page, way: str, now: Shown) -> None:
        """Accuracy over the pool's size, a line for each way, and for the baseline."""
        ends = self.sizes[0] / 1.15, self.sizes[-1] * 1.15
        title = f"% matched rightly, mean over {PAGES} pools"
        plot = page.plot("curves", ends, (0, 103), title, "things in the pool", xticks=self.sizes,
                         yticks=range(0, 101, 20), log="x")  # fmt: skip
        name, means = next(iter(self.means.items()))
        plot.line(self.sizes, means[WAYS[0]], GREY, 1.6, "dot")
        words = []
        for curve, (sign, dash, colour, ink) in STYLES.items():
            y = now.means[curve]
            plot.line(self.sizes, y, colour, 2.5, dash)
            plot.dots((self.sizes[now.at], y[now.at]), colour, sign, 15 if curve == way else 9)
            words.append((f"{sign} {curve}: {y[now.at]:.0f} %" + ", shown" * (curve == way), ink))
        plot.key(*words, (f"···  {name}, one to one", DUSK), where="bottom left")

    def say(self, values: dict, now: Shown) -> str:
        best, other = (now.means[way][now.at] for way in WAYS)
        return (
            f"{values['features']}, matched {values['matching']}, pool {values['page']} with "
            f"{len(now.pool)} things: {now.right.sum()} of the {len(now.right)} shown get their own "
            f"other view. Mean over {PAGES} pools: one to one {best:.1f} %, nearest {other:.1f} %, so one to "
            f"one is worth {best - other:+.1f} points."
        )


def solved(a: "Tensor", b: "Tensor", sizes: list[int]) -> dict[tuple, tuple[np.ndarray, np.ndarray]]:
    """Every pool that the sliders can ask for, by (way, size, page): its things, and what each gets.

    The larger pool of a page holds the smaller one: rivals join, nobody leaves. The second views stand in
    another order than the first ones, so that ties match nobody with itself.
    """
    similarity = cosines(a, b)
    order = np.random.default_rng(0).permutation(len(similarity))
    found = {}
    for size, page in product(sizes, range(PAGES)):
        pool = np.take(order, page * len(order) // PAGES + np.arange(size), mode="wrap")
        part = similarity[np.ix_(pool, others := np.sort(pool))]
        found["one to one", size, page] = pool, others[linear_sum_assignment(-part)[1]]
        found["nearest", size, page] = pool, others[part.argmax(1)]
    return found


def accuracy(found: dict[tuple, tuple[np.ndarray, np.ndarray]], way: str, size: int) -> float:
    """Per cent, the mean over the pages."""
    return 100 * float(np.mean([np.equal(*found[way, size, page]).mean() for page in range(PAGES)]))
