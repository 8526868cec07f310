"""Tables of what losses cost by the size of the batch, and their lines (QARe, figure 3; MMCL, figure 3b)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

from setclr_course.kit.controls import Slider, log_slider
from setclr_course.kit.layout import wide
from setclr_course.kit.palette import GREY, INK, OF_LOSS, PURPLE, WHITE
from setclr_course.kit.scene import Mark, Page, Piece, Plot
from setclr_course.kit.still import Picture, pictured

Table = Mapping[str, Mapping[int, Any]]  # by loss and by images N of a batch: a cost, or `quartiles`
Stars = Sequence[tuple[int, float]]  # images N of a batch, and what a paper states there
GAP, TOP = 0.05, 0.95  # between words, and where the highest may stand: shares of a plot's height


def cost_lines(table: Table, unit: str, title: str, log: str = "x y", stars: Stars = ()) -> Picture:
    """Costs over N. The axis of costs is logarithmic, or even with log = "x": per cent may be 0 or less."""
    sizes, costs = list(next(iter(table.values()))), middles(table)[:, 1]

    def draw(page: Page) -> str:
        plot = lines_plot(page, "costs", title, unit, table, list(table), log, stars)
        if log == "x":
            plot.line([plot.about["x"][0], sizes[-1]], 0, GREY, 1)
        draw_lines(plot, table, list(table))
        plot.dots(stars, WHITE, "★", 13, INK)
        for N, y in stars:
            plot.text(N, y, f"paper: {y:+g} %", size="small", rise="bottom", up=8, halo=True)
        said = [f"{name} {in_words(row[0])} to {in_words(row[-1])}" for name, row in zip(table, costs)]
        printed = "; in the paper " * bool(stars) + ", ".join(f"{y:+g} at {N}" for N, y in stars)
        return f"{title}: {unit} at N = {sizes[0]} to {sizes[-1]}: {', '.join(said)}{printed}."

    return pictured(draw, "costs", (8, 4.2))


def lines_plot(
    page: Page, name: str, title: str, unit: str, table: Table, words: Sequence[str], log: str = "x y",
    stars: Stars = (),
) -> Plot:  # fmt: skip
    """A plot that holds a table and the stars, with room at the right for words beside the lines' ends."""
    first, *_, last = sizes = next(iter(table.values()))
    costs = [*middles(table).flat, *(y for _, y in stars)]
    low, high = min(costs), max(costs)
    right = max([last * (last / first) ** 0.1, *(1.3 * N for N, _ in stars)])
    room = (0, 0, round(wide(words)) - 12 if right < last * (last / first) ** 0.35 else 0, 0)
    if log == "x":
        low, free = min(low, 0), 0.08 * (high - min(low, 0))
        y, ticks = (low - free, high + free), MaxNLocator(7, steps=(1, 2, 5, 10)).tick_values(low, high)
    else:
        free = (high / low) ** 0.08
        y, ticks = (low / free, high * free), LogLocator(subs=(1, 3)).tick_values(low, high)
    below, places = "images N in a batch", sorted({*sizes, *(N for N, _ in stars)})
    levels = [level for level in ticks if y[0] <= level <= y[1]]
    return page.plot(name, (first / 1.1, right), y, title, below, unit, places, levels, log=log, room=room)


def draw_lines(plot: Plot, table: Table, words: Sequence[str], thick: str = "") -> list[tuple[Mark, Piece]]:
    """A line for each row of a table, a pale band for half of its runs, and words beside its end.

    Hollow dots are of a form of a loss; what stands beside a loss is dashed. Returns each row's line and
    words, for links.
    """
    first, *_, last = sizes = list(next(iter(table.values())))
    costs, colours, lines = middles(table), [colour_of(name) for name in table], []
    for name, colour, (low, middle, high) in zip(table, colours, costs):
        dash = "dash" if is_term(name) or "N×N" in name else ""
        plot.area([[*zip(sizes, low), *zip(sizes[::-1], high[::-1])]], colour, 0.25)
        lines.append(plot.line(sizes, middle, colour, 4 if name == thick else 2, dash))
        plot.dots([*zip(sizes, middle)], WHITE if " " in name else colour, size=6, edge=colour)
    ends, start = costs[:, 1, -1], last * (last / first) ** 0.06
    heights = apart(plot, ends)
    plot.segments([(last, y) for y in ends], [(start, y) for y in heights], colours, 1)
    beside = plot.text([start] * len(words), heights, words, size="small", anchor="start", right=3)
    return [(line, beside[k]) for k, line in enumerate(lines)]


def apart(plot: Plot, values: np.ndarray) -> np.ndarray:
    """Heights near these values, in their order, where words do not lie on one another."""
    scaled, back = (np.array, np.array) if plot.about["log"] == "x" else (np.log, np.exp)
    low, high = scaled(plot.about["y"])
    shares = (scaled(values) - low) / (high - low)
    order, steps = np.argsort(shares, kind="stable"), GAP * np.arange(len(shares))
    upwards = np.maximum.accumulate(shares[order] - steps) + steps
    shares[order] = np.minimum(upwards, TOP - steps[::-1])
    return back(low + (high - low) * shares)


def quartiles(runs: Any) -> np.ndarray:
    """Half of the runs lie between the first and the last number; between them is the median."""
    return np.quantile(runs, (0.25, 0.5, 0.75))


def middles(table: Table) -> np.ndarray:
    """(losses, 3, sizes): the quartiles; a single cost is all three."""
    found = [[np.broadcast_to(cost, 3) for cost in row.values()] for row in table.values()]
    return np.swapaxes(found, 1, 2)


def batch_slider(sizes: Sequence[int], start: int) -> Slider:
    """A slider from one measured batch to the next, each twice the one before."""
    marks: dict[float, str] = {N: str(N) for N in sizes}
    return log_slider("images N in a batch", start, sizes[0], sizes[-1], np.log10(2), marks)


def nearest(sizes: Iterable[int], N: float) -> int:
    """The measured batch that is nearest to N."""
    return min(sizes, key=lambda size: abs(size - N))


def in_words(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def is_term(name: str) -> bool:
    """Whether that is a regulariser, which stands beside a loss and never alone."""
    return name.startswith("QARe")


def colour_of(name: str) -> str:
    """That of the loss which a form such as "MMCL exact" or "InfoNCE + QARe" belongs to."""
    return PURPLE if "QARe" in name else OF_LOSS.get(name.split(",")[0].split(" ")[0], GREY)
