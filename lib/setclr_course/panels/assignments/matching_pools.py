"""Two views of many things, matched in pools of 8 to 512: which partner each patch gets, and how often the
right one (QARe, section 5.1)."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional as F

from setclr_course.kit.palette import BLUE, GREEN, GREY, OCHRE, ORANGE, VERMILION
from setclr_course.kit.tiles import thumbnails
from setclr_course.panels.assignments.things import drawn_example
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

SIZES = (8, 16, 32, 64, 128, 256, 512)  # things in a pool
PAGES = 8  # pools that a mean is taken over
ROWS, COLUMNS = 8, 2  # of pairs
SHOWN = ROWS * COLUMNS
PATCH, GAP = 44, 22  # pixels of a patch, and between two
CELL = 3 * (PATCH + GAP) + GAP, PATCH + 12  # width and height: left patch, the one it got, the true one
WAYS = ("one to one", "nearest")


class MatchedPool(NamedTuple):
    """What one way of matching makes of one pool."""

    pool: np.ndarray  # (P,) things
    got: np.ndarray  # (P,) for each, the thing whose second view it gets

    @property
    def right(self) -> np.ndarray:
        return self.pool == self.got


def matching_pools(
    features: dict[str, tuple[Tensor, Tensor]] | None = None, patches: Tensor | None = None, **initial
) -> Panel:
    """Pools of things matched by features, with sliders for the pool's size and for which pool is shown.

    Args:
        features: by name, (n, D) of view 1 and (n, D) of view 2; the first name is the baseline, in grey.
        patches: (2, n, C, H, W) uint8, the pictures.

    Without arguments it shows made-up patches, embedded by two noisy encoders.

    Raises:
        ValueError: there are fewer than 16 things.
    """
    if features is None or patches is None:
        features, patches = drawn_example()
    n = patches.shape[1]
    if n < SIZES[1]:
        raise ValueError(f"patches must show {SIZES[1]} things or more, got {n}")
    sizes = [size for size in SIZES if size <= n]
    found = {name: solved(a, b, sizes) for name, (a, b) in features.items()}
    small = np.stack([thumbnails(view, PATCH) for view in patches])
    start = min(128, sizes[-1])
    marks: dict[float, str] = {size: str(size) for size in (sizes[0], start, sizes[-1])}
    controls = {
        "pool": log_slider("things in the pool", start, sizes[0], sizes[-1], np.log10(2), marks),
        "page": slider("which pool", 1, 1, PAGES, 1),
        "features": options("features", features, list(features)[-1]),
        "matching": options("matching", WAYS),
    }
    return Panel(
        lambda figure, compact: build(figure, compact, found, small), controls, (9.4, 4.7), initial, 4.4
    )


def solved(a: Tensor, b: Tensor, sizes: list[int]) -> dict[tuple, MatchedPool]:
    """Every pool that the sliders can ask for, by (way, size, page).

    The larger pool of a page holds the smaller one: rivals join, nobody leaves.
    """
    similarity = (F.normalize(a.double(), dim=1) @ F.normalize(b.double(), dim=1).T).numpy(force=True)
    order = np.random.default_rng(0).permutation(len(similarity))
    found = {}
    for size in sizes:
        for page in range(PAGES):
            pool = np.take(order, page * len(order) // PAGES + np.arange(size), mode="wrap")
            part = similarity[np.ix_(pool, pool)]
            found["one to one", size, page] = MatchedPool(pool, pool[linear_sum_assignment(-part)[1]])
            found["nearest", size, page] = MatchedPool(pool, pool[part.argmax(1)])
    return found


def accuracy(found: dict[tuple, MatchedPool], way: str, size: int) -> float:
    """Per cent, the mean over the pages."""
    return 100 * float(np.mean([found[way, size, page].right.mean() for page in range(PAGES)]))


def build(figure, compact: bool, found: dict, small: np.ndarray) -> Drawing:
    left, right = (figure, None) if compact else figure.subfigures(1, 2, width_ratios=[1, 1.15])
    page = draw_page(left.subplots(), small, compact)
    sizes = sorted({size for pools in found.values() for _, size, _ in pools})
    means = {name: {way: [accuracy(f, way, s) for s in sizes] for way in WAYS} for name, f in found.items()}
    curves = draw_curves(right.subplots(), sizes, next(iter(means.items()))) if right else None

    def update(values: dict) -> str:
        name, way = values["features"], values["matching"]
        at = int(np.abs(np.log(np.array(sizes) / values["pool"])).argmin())
        pool = found[name][way, sizes[at], values["page"] - 1]
        everywhere = "" if curves else f"\nmean of {PAGES} pools: {means[name][way][at]:.0f} %"
        page.move(pool, everywhere)
        if curves:
            curves.move(means[name], at, way)
        return sentence(values, pool, *(means[name][w][at] for w in WAYS))

    return Drawing([*page.artists, *(curves.artists if curves else [])], update)


def sentence(values: dict, pool: MatchedPool, best: float, other: float) -> str:
    return (
        f"{values['features']}, matched {values['matching']}, pool {values['page']} with {len(pool.pool)} "
        f"things: {pool.right[:SHOWN].sum()} of the {len(pool.pool[:SHOWN])} shown get their own other view. "
        f"Mean over {PAGES} pools: one to one {best:.1f} %, nearest {other:.1f} %, so one to one is worth "
        f"{best - other:+.1f} points."
    )


def draw_page(axis, small: np.ndarray, compact: bool) -> Part:
    """The page of pairs with a mark between the two of each, moved by a pool and by words for below."""
    bare(axis)
    picture = axis.imshow(page_of([], small), interpolation="nearest")
    for column in range(COLUMNS):
        for k, word in enumerate(("view 1", "gets", "true one")):
            x = corner(column)[0] + PATCH / 2 + k * (PATCH + GAP)
            axis.text(x, -4, word, ha="center", fontsize=7 if compact else 8, color="#555555")
    marks = [
        axis.plot([], [], linestyle="none", marker=marker, color=colour, markersize=7)[0]
        for marker, colour in (("$\u2713$", GREEN), ("$\u2717$", VERMILION))
    ]
    axis.set_xlabel(" \n " if compact else " ", fontsize=9)  # room for the count
    count = axis.text(0.5, -0.02, "", transform=axis.transAxes, ha="center", va="top", fontsize=9)
    count.set_in_layout(False)

    def move(pool: MatchedPool, below: str) -> None:
        right = pool.right[:SHOWN]
        picture.set_data(page_of(list(zip(pool.pool, pool.got))[:SHOWN], small))
        for mark, which in zip(marks, (right, ~right)):
            mark.set_data(*between_patches(which.nonzero()[0]))
        count.set_text(f"{right.sum()} of the {len(right)} shown are right{below}")

    return Part([picture, *marks, count], move)


def draw_curves(axis, sizes: list[int], baseline: tuple[str, dict]) -> Part:
    """Accuracy over the pool's size, a line for each way; moved by the means of the features, by the place of
    the size and by the way that the page shows."""
    axis.set_xscale("log", base=2)
    axis.set(xlim=(sizes[0] / 1.15, sizes[-1] * 1.15), ylim=(0, 103), xticks=sizes, xticklabels=sizes)
    axis.minorticks_off()
    axis.set(xlabel="things in the pool", title=f"% matched rightly, mean over {PAGES} pools")
    inside = {"transform": axis.transAxes}
    name, y = baseline
    axis.plot(sizes, y[WAYS[0]], color=GREY, linewidth=1.2, linestyle=":")
    axis.text(0.03, 0.04, f"···  {name}, one to one", color="#555555", **inside)
    lines, dots, words = [], [], []
    styles = ((0.22, "-", "o", BLUE, BLUE), (0.13, "--", "s", ORANGE, OCHRE))
    for height, style, marker, colour, ink in styles:
        lines.append(axis.plot([], [], style, color=colour)[0])
        dots.append(axis.plot([], [], marker, color=colour, markeredgecolor="black")[0])
        words.append(axis.text(0.1, height, "", color=ink, weight="bold", **inside))
        axis.plot(0.055, height + 0.02, marker, color=colour, **inside)

    def move(means: dict[str, list[float]], at: int, way: str) -> None:
        for (curve, y), line, dot, word in zip(means.items(), lines, dots, words):
            line.set_data(sizes, y)
            dot.set_data([sizes[at]], [y[at]])
            dot.set_markersize(11 if curve == way else 6)
            word.set_text(f"{curve}: {y[at]:.0f} %" + ", at the left" * (curve == way))

    return Part([*lines, *dots, *words], move)


def corner(cell: int) -> tuple[int, int]:
    """Left and top pixel of a cell of the page."""
    width, height = CELL
    return (cell % COLUMNS) * width + GAP // 2, (cell // COLUMNS) * height + 6


def between_patches(cells: np.ndarray) -> tuple[list, list]:
    """Points x and y between the left patch and the one it got."""
    corners = [corner(cell) for cell in cells]
    return [x + PATCH + GAP / 2 for x, _ in corners], [y + PATCH / 2 for _, y in corners]


def page_of(pairs: list[tuple[int, int]], small: np.ndarray) -> np.ndarray:
    """The page as pixels: for each (thing, thing got) the left patch, the framed right patch that it got
    and, where that is wrong, the true one."""
    canvas = np.full((ROWS * CELL[1], COLUMNS * CELL[0] - GAP, 3), 255, np.uint8)
    for cell, (thing, got) in enumerate(pairs):
        (x, y), frame = corner(cell), (0, 158, 115) if thing == got else (213, 94, 0)
        canvas[y : y + PATCH, x : x + PATCH] = small[0, thing]
        x += PATCH + GAP
        canvas[y - 3 : y + PATCH + 3, x - 3 : x + PATCH + 3] = frame
        canvas[y : y + PATCH, x : x + PATCH] = small[1, got]
        if thing != got:
            x += PATCH + GAP
            canvas[y : y + PATCH, x : x + PATCH] = small[1, thing]
    return canvas
