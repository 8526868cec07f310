"""What the learning rate does to losses, as a still picture."""

from collections.abc import Mapping

from setclr.explore.kit.png import Picture, still
from setclr.explore.trained.comparison import colour_of
from setclr.palette import GREY


def rate_picture(found: Mapping[str, Mapping[float, float]], untrained: float, marked: float) -> Picture:
    """Accuracies (per cent) over the learning rate, a curve for each loss, its best value ringed.

    Args:
        found: {loss: {rate: accuracy}}, of the same rates.
        untrained: the accuracy before any step, drawn as a line.
        marked: the rate that is marked as the one of the records.
    """

    def draw(figure) -> str:
        axis, said = figure.subplots(), []
        rates = sorted(next(iter(found.values())))
        axis.set(
            xscale="log",
            xlabel="learning rate",
            ylabel="kNN accuracy, %",
            xlim=(rates[0] / 1.3, rates[-1] * 2.2),
        )
        axis.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axis.minorticks_off()
        axis.axvline(marked, color="#e4e4e4", linewidth=10, zorder=0)
        axis.axhline(untrained, color=GREY, linestyle="--", linewidth=1.2, zorder=0)
        axis.text(
            rates[-1] * 2.15, untrained, "untrained", color="#555555", ha="right", va="bottom", fontsize=9
        )
        for name, row in found.items():
            best, colour = max(row, key=row.__getitem__), colour_of(name.lower())
            axis.plot(rates, [row[rate] for rate in rates], "o-", color=colour)
            axis.plot([best], [row[best]], "o", color=colour, fillstyle="none", markersize=13)
            axis.text(rates[-1] * 1.08, row[rates[-1]], name, color=colour, va="center", weight="bold")
            said.append(f"{name} by {max(row.values()) - min(row.values()):.1f} points, best at {best:g}")
        low, high = axis.get_ylim()
        axis.set_ylim(low, high + 0.1 * (high - low))
        axis.text(
            marked, high + 0.03 * (high - low), "the records' rate", ha="center", fontsize=9, color="#555555"
        )
        sentence = f"The rate moves {'; '.join(said)}."
        axis.set_title(sentence.removesuffix("."), pad=10)
        return sentence

    return still(draw, (8, 3.8))
