"""Still pictures of costs: over the batch (QARe, figure 3; MMCL, figure 3b), and the parts of a step."""

import numpy as np

from setclr.explore.costs.tables import Table, in_words
from setclr.explore.kit.png import Picture, still
from setclr.palette import BLUE, GREEN, GREY, LINES, ORANGE, SKY, VERMILION


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Heights in [0, 1] moved until they are `gap` apart, in their order."""
    order, moved = np.argsort(heights, kind="stable"), np.array(heights, float)
    for low, high in zip(order, order[1:]):
        moved[high] = max(moved[high], moved[low] + gap)
    top = 1.0
    for k in order[::-1]:
        moved[k] = top = min(moved[k], top)
        top -= gap
    return moved


def cost_lines(table: Table, unit: str, title: str, marked: tuple[str, ...] = ()) -> Picture:
    """Cost over N, both axes logarithmic, each line with its name at its end; those `marked` in colour."""
    sizes, names, height = list(next(iter(table.values()))), list(table), 4.2
    values = np.array([[row[N] for N in sizes] for row in table.values()])
    bottom, top = np.log(values.min() / 1.2), np.log(values.max() * 1.2)
    ends = (np.log(values[:, -1]) - bottom) / (top - bottom)
    placed = np.exp(bottom + spread(ends, 0.18 / height) * (top - bottom))
    colours = {name: colour for name, colour in zip(marked, LINES)}

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.set(xscale="log", yscale="log", ylabel=unit, title=title, ylim=np.exp([bottom, top]))
        axis.yaxis.set_major_formatter("{x:g}")
        label_sizes(axis, sizes)
        for name, row, y in zip(names, values, placed):
            colour, strong = colours.get(name, GREY), name in colours
            axis.plot(sizes, row, color=colour, linewidth=1 + strong, zorder=2 + strong)
            axis.annotate(
                name, (sizes[-1], row[-1]), (sizes[-1] * (sizes[-1] / sizes[0]) ** 0.08, y), va="center",
                fontsize=8, color="black", annotation_clip=False, weight="bold" if strong else None,
                arrowprops=dict(arrowstyle="-", color=colour, lw=0.6, relpos=(0, 0.5)),
            )  # fmt: skip
        said = (f"{name} {in_words(row[0])} to {in_words(row[-1])}" for name, row in zip(names, values))
        return f"{title}: {unit} at N = {sizes[0]} to {sizes[-1]}: {', '.join(said)}."

    return still(draw, (8, height))


def added_lines(table: Table, title: str, claims: dict[str, dict[int, float]]) -> Picture:
    """Per cent that a loss adds to a step, over N. `claims` of papers are stars, {words: {N: per cent}}."""
    sizes = list(next(iter(table.values())))
    high = max(*(max(row.values()) for row in [*table.values(), *claims.values()]), 1.0)
    low = min(0.0, *(min(row.values()) for row in table.values()))
    ends = np.array([(row[sizes[-1]] - low) / (high - low) for row in table.values()])
    placed = low + spread(ends, 0.06) * (high - low)
    plate = dict(facecolor="white", edgecolor="none", alpha=0.8, pad=1)

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.axhline(0, color=GREY, linewidth=1)
        axis.set(xscale="log", ylabel="% more than InfoNCE", title=title)
        axis.set_ylim(low - 0.05 * (high - low), high + 0.12 * (high - low))
        every = sorted({*sizes, *(N for row in claims.values() for N in row)})
        axis.set_xlim(every[0] / 1.15, every[-1] * (2 if every[-1] == sizes[-1] else 1.3))
        label_sizes(axis, every)
        for (name, row), y, colour, marker in zip(table.items(), placed, LINES, "os^Dv"):
            axis.plot(sizes, row.values(), marker=marker, color=colour)
            axis.text(sizes[-1] * 1.06, y, name, va="center", fontsize=9, bbox=plate)
        for words, row in claims.items():
            axis.plot(row.keys(), row.values(), "k*", markersize=11, markerfacecolor="white", zorder=4)
            for N, y in row.items():
                above = y + 0.05 * (high - low)
                axis.text(N, above, f"{words}: +{y:g} %", ha="center", fontsize=8, bbox=plate, zorder=3)
        said = (f"{name} {row[sizes[0]]:+.1f} to {row[sizes[-1]]:+.1f} %" for name, row in table.items())
        stars = [f"{words} +{y:g} % at {N}" for words, row in claims.items() for N, y in row.items()]
        papers = f"; as stars: {', '.join(stars)}" if stars else ""
        return f"{title}, N = {sizes[0]} to {sizes[-1]}: {', '.join(said)} more than InfoNCE{papers}."

    return still(draw, (8, 3.4))


def label_sizes(axis, sizes: list[int]) -> None:
    axis.set_xlabel("images N in a batch")
    axis.set_xticks(sizes, sizes, minor=False)
    axis.minorticks_off()


def step_picture(parts: dict[str, float], losses: dict[str, float], title: str) -> Picture:
    """A training step as a bar for every loss: the parts that all share, then the loss, in seconds."""

    def draw(figure) -> str:
        axis = figure.subplots()
        shared = sum(parts.values())
        for y, loss in enumerate(reversed(list(losses.values()))):
            left = 0.0
            colours = (ORANGE, SKY, BLUE, GREEN, VERMILION)
            for (part, seconds), colour in zip([*parts.items(), ("loss", loss)], colours):
                axis.barh(y, 1e3 * seconds, left=1e3 * left, color=colour, height=0.7)
                if y == len(losses) - 1 and seconds > 0.08 * shared:
                    axis.text(1e3 * (left + seconds / 2), y + 0.42, part, ha="center", fontsize=8)
                left += seconds
            axis.text(1e3 * left, y, f" loss {loss / left:.1%}", va="center", fontsize=9)
        longest = 1e3 * (shared + max(losses.values()))
        axis.set(xlim=(0, 1.17 * longest), xlabel="ms", ylim=(-0.6, len(losses)))
        axis.set_yticks(range(len(losses)), list(losses)[::-1])
        axis.set_title(title, pad=10)
        said = ", ".join(f"{name} {loss / (shared + loss):.1%}" for name, loss in losses.items())
        return f"{title}. What all losses share takes {1e3 * shared:.0f} ms; the loss's share is {said}."

    return still(draw, (8, 0.9 + 0.36 * len(losses)))
