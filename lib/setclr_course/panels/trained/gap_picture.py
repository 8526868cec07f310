"""The gaps between one loss and all others as a still picture."""

import numpy as np

from setclr_course.kit.scene import Page
from setclr_course.kit.seeds import seed_rows
from setclr_course.kit.still import Picture, pictured
from setclr_course.panels.trained.comparison import Records, colour_of, gaps, pairs, ranked
from setclr_course.panels.trained.rulers import round_ones


def gap_picture(records: Records, to: str = "infonce", reach: float = 6) -> Picture:
    """The gap from one loss to every other, a dot for each seed; a mean within the grey is not kept by Holm's
    test of all pairs at 0.05. Of a loss with a gap beyond `reach` points the mean is written as a number."""
    found = {name: gap for name in ranked(records) if len(gap := gaps(records, name, to)) and name != to}
    needed = {frozenset(pair): gap for pair, gap in pairs(records)["needed"].items()}
    bands = np.array([needed[frozenset((name, to))] for name in found])
    means, ys = np.array([gap.mean() for gap in found.values()]), np.arange(len(found))

    far = np.array([np.abs(gap).max() > reach for gap in found.values()], bool)

    def draw(page: Page) -> str:
        title = "grey: not kept by Holm's test; a dot for each seed"
        label = f"linear probe: points above {to} with the same seed"
        plot = page.plot("gaps", (-reach, reach), (len(found) - 0.4, -0.6), title, label, frame="bottom",
                         xticks=round_ones((-reach, reach)), yticks=dict(enumerate(found)))  # fmt: skip
        half = np.nan_to_num(bands)
        plot.bars(ys, half, "#e4e4e4", base=-half, flat=True)
        plot.line([0, 0], [-0.6, len(found) - 0.4], width=1)
        near = [gap[: 0 if beyond else None] for gap, beyond in zip(found.values(), far)]
        seed_rows(plot, near, [colour_of(name) for name in found])
        numbers = [f"{mean:+.1f}" for mean in means[far]]
        plot.text(0.9 * reach * np.sign(means[far]), ys[far], numbers, bold=True)
        words = [f"{name} {mean:+.1f}{' (noise)' if abs(mean) <= band else ''}"
                 for name, mean, band in zip(found, means, bands)]  # fmt: skip
        return f"Mean gap to {to} with the same seeds: {', '.join(words)}."

    return pictured(draw, "gaps", (8.6, 1.2 + 0.27 * len(found)))
