"""Sums of a coupling as bars, in fair shares (IOT-CL, figure 4)."""

import numpy as np

from setclr_course.kit.palette import INK, SKY, WHITE
from setclr_course.kit.scene import Mark, Plot, Words

MOST = 3.0  # fair shares: a bar ends there, with a gap across it
GAP = (2.5, 2.7)  # fair shares: where the gap begins and ends


def sum_bars(
    plot: Plot, sums: np.ndarray, base: float, unit: float, colour: Words = SKY, flat: bool = False,
    wide: float = 1.0, words: str = "",
) -> Mark:  # fmt: skip
    """Bars for sums (n,) in fair shares, each `unit` long, from `base` on; a fair share has a line.

    flat: to the right, beside rows. words: with the sums, in this format.
    """
    at, turn, ends = np.arange(len(sums)), -1 if flat else 1, base + unit * sums.clip(max=MOST)

    def points(x: np.ndarray, y: np.ndarray | float) -> np.ndarray:
        return np.stack(np.broadcast_arrays(x, y), 1)[:, ::turn]

    def across(x: np.ndarray, half: float, low: float, high: float, ink: str, width: float) -> None:
        plot.segments(points(x - half, base + unit * low), points(x + half, base + unit * high), ink, width)

    bars = plot.bars(at, ends, colour, wide, base, flat=flat)
    across(at[sums > MOST], 0.5 * wide, *GAP, WHITE, 3)
    across(at, 0.625 * wide, 1, 1, WHITE, 3)  # so that the line is seen on pale bars, too
    across(at, 0.625 * wide, 1, 1, INK, 1)
    if words:
        x, y = points(at, base + unit * sums.clip(1, MOST)).T
        how: dict = {"anchor": "start", "right": 4} if flat else {"rise": "bottom", "up": 2}
        plot.text(x, y, [format(one, words).removeprefix("0") for one in sums], size="small", **how)
    return bars
