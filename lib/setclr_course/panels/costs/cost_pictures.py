"""Still pictures of costs over the batch (QARe, figure 3; MMCL, figure 3b)."""

from collections.abc import Iterable

import numpy as np

from setclr_course.costs import Middle
from setclr_course.kit.palette import GREY, INK, WHITE
from setclr_course.kit.scene import Page, Plot
from setclr_course.kit.still import Picture, pictured
from setclr_course.panels.costs.tables import Table, colour_of, in_words, limits, rungs, spread

Added = dict[str, dict[int, Middle]]  # name of a loss, images N of a batch, per cent that it adds to a step


def cost_lines(table: Table, unit: str, title: str, marked: tuple[str, ...] = ()) -> Picture:
    """Cost over N, both axes logarithmic, each line with its name at its end; those `marked` in colour."""
    sizes, values = list(next(iter(table.values()))), np.array([list(row.values()) for row in table.values()])
    low, high = limits(table)

    def draw(page: Page) -> str:
        x = sizes[0], sizes[-1] * (sizes[-1] / sizes[0]) ** 0.3
        below, ticks = "images N in a batch", {N: str(N) for N in sizes}
        plot = page.plot("costs", x, (low, high), title, below, unit, ticks, rungs(low, high), log="x y")
        for name, row in zip(table, values):
            plot.line(sizes, row, colour_of(name) if name in marked else GREY, 1 + 1.5 * (name in marked))
        heights = np.log(values[:, -1] / low) / np.log(high / low)
        names_beside(plot, table, sizes, values[:, -1], low * (high / low) ** spread(heights, 0.055), marked)
        said = (f"{name} {in_words(row[0])} to {in_words(row[-1])}" for name, row in zip(table, values))
        return f"{title}: {unit} at N = {sizes[0]} to {sizes[-1]}: {', '.join(said)}."

    return pictured(draw, "costs", (8, 4.2))


def added_lines(added: Added, title: str, claims: dict[str, dict[int, float]]) -> Picture:
    """Per cent that a loss adds to a step, over N. `claims` of papers are stars, {words: {N: per cent}}."""
    sizes = list(next(iter(added.values())))
    claimed = [(N, y, words) for words, row in claims.items() for N, y in row.items()]
    every = [x for row in added.values() for found in row.values() for x in (found.low, found.high)]
    low, high = min(0.0, *every), max(1.0, *every, *(y for _, y, _ in claimed))
    low, high = low - 0.05 * (high - low), high + 0.12 * (high - low)

    def draw(page: Page) -> str:
        places = sorted({*sizes, *(N for N, _, _ in claimed)})
        tick = 10.0 ** np.floor(np.log10((high - low) / 2))
        levels = tick * np.arange(int(low / tick), high / tick, 1 + (high - low) // (8 * tick))
        x = places[0] / 1.15, max(places[-1] * 1.3, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.35)
        plot = page.plot("added", x, (low, high), title, "images N in a batch", "% more than InfoNCE",
                         {N: str(N) for N in places}, levels, log="x")  # fmt: skip
        plot.line(plot.about["x"], [0, 0], GREY, 1)
        for (name, row), sign in zip(added.items(), "●■▲◆▼"):
            medians = np.array([(N, found.median) for N, found in row.items()])
            reach = [[(N, found.low), (N, found.high)] for N, found in row.items()]
            low_ends, high_ends = np.swapaxes(reach, 0, 1)
            plot.segments(low_ends, high_ends, colour_of(name), 1.5)
            plot.line(medians[:, 0], medians[:, 1], colour_of(name), dash="dash" if "N×N" in name else "")
            plot.dots(medians, colour_of(name), sign, 8)
        ends = np.array([row[sizes[-1]].median for row in added.values()])
        heights = low + (high - low) * spread((ends - low) / (high - low), 0.08)
        names_beside(plot, added, sizes, ends, heights)
        for N, y, words in claimed:
            plot.dots([N, y], WHITE, "★", 13, INK)
            plot.text(N, y, f"{words}: +{y:g} %", size="small", rise="bottom", up=8, halo=True)
        said = (
            f"{name} {row[sizes[0]].median:+.1f} to {row[sizes[-1]].median:+.1f} %"
            for name, row in added.items()
        )
        stars = "; as stars: " + ", ".join(f"{words} +{y:g} % at {N}" for N, y, words in claimed)
        return (
            f"{title}, N = {sizes[0]} to {sizes[-1]}: {', '.join(said)} more than InfoNCE by the "
            f"median of the steps; the bars hold half of them{stars * bool(claimed)}."
        )

    return pictured(draw, "added", (8, 3.4))


def names_beside(
    plot: Plot,
    names: Iterable[str],
    sizes: list[int],
    ends: np.ndarray,
    heights: np.ndarray,
    marked: tuple[str, ...] = (),
) -> None:
    """The names of lines beside their right ends, moved apart to these heights."""
    last = sizes[-1]
    start = last * (last / sizes[0]) ** 0.05
    for name, end, y in zip(names, ends, heights):
        plot.line([1.01 * last, start], [end, y], GREY, 1)
        plot.text(start, y, name, size="small", anchor="start", right=3, bold=name in marked)
