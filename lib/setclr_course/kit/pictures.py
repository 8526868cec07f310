"""Still pictures that the notebooks show beside the panels."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from setclr.checks import integer
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured
from setclr_course.kit.tiles import tiles


def image_grid(images: Tensor, columns: int, rows: Sequence[str], alt: str) -> Picture:
    """Square images (N, C, H, H) uint8 in rows of `columns`, each row named by a word of `rows`.

    Raises:
        ValueError: N is not columns times the number of rows.
    """
    if len(images) != integer("columns", columns, least=1) * len(rows):
        raise ValueError(f"images must be {columns} for each of the {len(rows)} rows, got {len(images)}")

    def draw(page: Page) -> str:
        table = page.table("grid", len(rows), columns, beside=rows)
        row, column = np.indices((len(rows), columns)).reshape(2, -1)
        table.photographs(np.column_stack([column, row]), tiles(images), 0.96)
        return alt

    return pictured(draw, "grid", (8, 0.3 + 6.6 * len(rows) / columns))
