"""Rows of results: a dot for each seed, and a thick line at their mean."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.palette import BLACK
from setclr_course.kit.scene import Piece, Plot


def seed_rows(plot: Plot, found: Sequence[ArrayLike], colours: Sequence[str]) -> list[tuple[Piece, Piece]]:
    """Row k, at y = k, has the numbers (seeds,) of found[k]; a single one has no mean.

    Returns, for links: the dots of each row, and its mean.
    """
    rows = [np.asarray(numbers, float) for numbers in found]
    which = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    beside = np.concatenate([np.linspace(-0.18, 0.18, len(row)) * (len(row) > 1) for row in rows])
    points = np.column_stack([np.concatenate(rows), which + beside])
    dots = plot.dots(points, [colours[k] for k in which.tolist()], size=7, opacity=0.85)
    several = np.array([k for k, row in enumerate(rows) if len(row) > 1], int)
    means = np.array([[rows[k].mean(), k] for k in several]).reshape(-1, 2)
    lines = plot.segments(means - [0, 0.3], means + [0, 0.3], BLACK, 3)
    return [(dots[which == k], lines[several == k]) for k in range(len(rows))]
