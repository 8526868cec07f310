"""The gaps between one loss and all others as a still picture."""

import numpy as np

from setclr.explore.kit.png import Picture, still
from setclr.explore.trained.comparison import Records, deviation, gaps, ranked
from setclr.palette import BLUE, VERMILION


def gap_picture(records: Records, to: str = "infonce", reach: float = 6) -> Picture:
    """The gap from one loss to every other, a dot for each seed; a mean within the grey may be noise.
    Means beyond `reach` points are written as numbers."""
    names = [name for name in ranked(records) if name != to and len(gaps(records, name, to))]
    r = deviation(records, within=True)

    def draw(figure) -> str:
        axis, words = figure.subplots(), []
        axis.axvline(0, color="black", linewidth=1)
        for y, name in enumerate(names):
            gap = gaps(records, name, to)
            mean, needed = gap.mean(), 2 * r * (2 / len(gap)) ** 0.5
            axis.barh(y, 2 * np.nan_to_num(needed), 0.8, -np.nan_to_num(needed), color="#e4e4e4", zorder=0)
            axis.plot([mean, mean], [y - 0.35, y + 0.35], color=VERMILION, linewidth=2.5)
            axis.plot(gap, [y] * len(gap), "o", color=BLUE, markersize=5)
            if abs(mean) > reach:
                x = np.sign(mean) * 0.9 * reach
                axis.text(x, y, f"{mean:+.1f}", va="center", ha="center", color=VERMILION)
            words.append(f"{name} {mean:+.1f}{' (noise)' if abs(mean) <= needed else ''}")
        axis.set(xlim=(-reach, reach), ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)),
                 yticklabels=names, xlabel=f"linear probe: points above {to} with the same seed")  # fmt: skip
        return f"Mean gap to {to} with the same seeds: {', '.join(words)}."

    return still(draw, (8.6, 1 + 0.27 * len(names)))
