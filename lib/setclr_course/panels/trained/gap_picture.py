"""The gaps between one loss and all others as a still picture."""

import numpy as np

from setclr_course.kit.palette import BLUE, VERMILION
from setclr_course.kit.png import Picture, still
from setclr_course.panels.trained.comparison import Records, gaps, pairs, ranked


def gap_picture(records: Records, to: str = "infonce", reach: float = 6) -> Picture:
    """The gap from one loss to every other, a dot for each seed; a mean within the grey is not kept by Holm's
    test of all pairs at 0.05. Means beyond `reach` points are written as numbers."""
    names = [name for name in ranked(records) if name != to and len(gaps(records, name, to))]
    needed = {frozenset(pair): gap for pair, gap in pairs(records)["needed"].items()}

    def draw(figure) -> str:
        axis, words = figure.subplots(), []
        axis.axvline(0, color="black", linewidth=1)
        for y, name in enumerate(names):
            gap = gaps(records, name, to)
            mean, band = gap.mean(), needed[frozenset((name, to))]
            axis.barh(y, 2 * np.nan_to_num(band), 0.8, -np.nan_to_num(band), color="#e4e4e4", zorder=0)
            axis.plot([mean, mean], [y - 0.35, y + 0.35], color=VERMILION, linewidth=2.5)
            axis.plot(gap, [y] * len(gap), "o", color=BLUE, markersize=5)
            if abs(mean) > reach:
                x = np.sign(mean) * 0.9 * reach
                axis.text(x, y, f"{mean:+.1f}", va="center", ha="center", color=VERMILION)
            words.append(f"{name} {mean:+.1f}{' (noise)' if abs(mean) <= band else ''}")
        axis.set(xlim=(-reach, reach), ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)),
                 yticklabels=names, xlabel=f"linear probe: points above {to} with the same seed")  # fmt: skip
        return f"Mean gap to {to} with the same seeds: {', '.join(words)}."

    return still(draw, (8.6, 1 + 0.27 * len(names)))
