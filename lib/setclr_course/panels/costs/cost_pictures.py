"""Still pictures of costs over the batch (QARe, figure 3; MMCL, figure 3b)."""

from collections.abc import Iterable

import numpy as np

from setclr_course.costs import Middle
from setclr_course.kit.palette import GREY
from setclr_course.kit.png import Picture, still
from setclr_course.panels.costs.tables import Table, colour_of, in_words, spread

Added = dict[str, dict[int, Middle]]  # name of a loss, images N of a batch, per cent that it adds to a step
PLATE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}  # behind words that cross a line


def cost_lines(table: Table, unit: str, title: str, marked: tuple[str, ...] = ()) -> Picture:
    """Cost over N, both axes logarithmic, each line with its name at its end; those `marked` in colour."""
    sizes, names, height = list(next(iter(table.values()))), list(table), 4.2
    values = np.array([[row[N] for N in sizes] for row in table.values()])
    bottom, top = np.log(values.min() / 1.2), np.log(values.max() * 1.2)
    ends = (np.log(values[:, -1]) - bottom) / (top - bottom)
    placed = np.exp(bottom + spread(ends, 0.18 / height) * (top - bottom))

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.set(xscale="log", yscale="log", ylabel=unit, title=title, ylim=np.exp([bottom, top]))
        axis.yaxis.set_major_formatter("{x:g}")
        label_sizes(axis, sizes)
        for name, row, y in zip(names, values, placed):
            strong = name in marked
            colour = colour_of(name) if strong else GREY
            axis.plot(sizes, row, color=colour, linewidth=1 + strong, zorder=2 + strong)
            axis.annotate(
                name, (sizes[-1], row[-1]), (sizes[-1] * (sizes[-1] / sizes[0]) ** 0.08, y), va="center",
                fontsize=8, color="black", annotation_clip=False, weight="bold" if strong else None,
                arrowprops=dict(arrowstyle="-", color=colour, lw=0.6, relpos=(0, 0.5)),
            )  # fmt: skip
        said = (f"{name} {in_words(row[0])} to {in_words(row[-1])}" for name, row in zip(names, values))
        return f"{title}: {unit} at N = {sizes[0]} to {sizes[-1]}: {', '.join(said)}."

    return still(draw, (8, height))


def added_lines(added: Added, title: str, claims: dict[str, dict[int, float]]) -> Picture:
    """Per cent that a loss adds to a step, over N. `claims` of papers are stars, {words: {N: per cent}}."""
    sizes = list(next(iter(added.values())))
    highest = (found.high for row in added.values() for found in row.values())
    high = max(1.0, *highest, *(claim for row in claims.values() for claim in row.values()))
    low = min(0.0, *(found.low for row in added.values() for found in row.values()))
    ends = np.array([(row[sizes[-1]].median - low) / (high - low) for row in added.values()])
    placed = low + spread(ends, 0.08) * (high - low)

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.axhline(0, color=GREY, linewidth=1)
        axis.set(xscale="log", ylabel="% more than InfoNCE", title=title)
        axis.set_ylim(low - 0.05 * (high - low), high + 0.12 * (high - low))
        every = sorted({*sizes, *(N for row in claims.values() for N in row)})
        axis.set_xlim(every[0] / 1.15, every[-1] * (2 if every[-1] == sizes[-1] else 1.3))
        label_sizes(axis, every)
        for (name, row), y, marker in zip(added.items(), placed, "os^Dv"):
            middles = list(row.values())
            medians = [found.median for found in middles]
            reach = [
                [m - f.low for m, f in zip(medians, middles)],
                [f.high - m for m, f in zip(medians, middles)],
            ]
            axis.errorbar(sizes, medians, reach, marker=marker, color=colour_of(name), capsize=4,
                          linestyle="--" if "N×N" in name else "-")  # fmt: skip
            axis.text(sizes[-1] * 1.06, y, name, va="center", fontsize=9, bbox=PLATE)
        stars = draw_claims(axis, claims, 0.05 * (high - low))
        said = (
            f"{name} {row[sizes[0]].median:+.1f} to {row[sizes[-1]].median:+.1f} %"
            for name, row in added.items()
        )
        papers = f"; as stars: {', '.join(stars)}" if stars else ""
        return (
            f"{title}, N = {sizes[0]} to {sizes[-1]}: {', '.join(said)} more than InfoNCE by the "
            f"median of the steps; the bars hold half of them{papers}."
        )

    return still(draw, (8, 3.4))


def draw_claims(axis, claims: dict[str, dict[int, float]], above: float) -> list[str]:
    """Stars with words above them; returns what they say."""
    said = []
    for words, claimed in claims.items():
        axis.plot(claimed.keys(), claimed.values(), "k*", markersize=11, markerfacecolor="white", zorder=4)
        for N, y in claimed.items():
            axis.text(N, y + above, f"{words}: +{y:g} %", ha="center", fontsize=9, bbox=PLATE, zorder=3)
            said.append(f"{words} +{y:g} % at {N}")
    return said


def label_sizes(axis, sizes: Iterable[int]) -> None:
    """The sizes of a batch as the ticks of a logarithmic x axis."""
    axis.set_xlabel("images N in a batch")
    axis.set_xticks(list(sizes), list(sizes), minor=False)
    axis.minorticks_off()
