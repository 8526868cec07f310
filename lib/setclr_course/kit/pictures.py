"""Still pictures that the notebooks show beside the panels."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from setclr.checks import integer
from setclr_course.kit.png import Picture, bare, still
from setclr_course.kit.tiles import tiles


def image_grid(images: Tensor, columns: int, rows: Sequence[str], alt: str) -> Picture:
    """Images (N, C, H, W) uint8 in rows of `columns`, each row named by a word of `rows`.

    Raises:
        ValueError: N is not columns times the number of rows.
    """
    if len(images) != integer("columns", columns, least=1) * len(rows):
        raise ValueError(f"images must be {columns} for each of the {len(rows)} rows, got {len(images)}")
    height, width = images.shape[2:]
    grid = tiles(images).reshape(len(rows), columns, height, width, 3)
    grid = np.pad(grid, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=255)
    grid = grid.transpose(0, 2, 1, 3, 4).reshape(len(rows) * (height + 2), columns * (width + 2), 3)

    def draw(figure) -> str:
        axis = figure.subplots()
        axis.imshow(grid, interpolation="nearest")
        bare(axis)
        axis.set_yticks((height + 2) * (np.arange(len(rows)) + 0.5), rows)
        axis.tick_params(length=0)
        return alt

    return still(draw, (8, 0.3 + 6.6 * len(rows) / columns))
