"""Which of the views of one image must find which, as a small table."""

import numpy as np
from torch import Tensor

from setclr_course.kit.palette import WHITE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured


def positives_picture(allowed: Tensor, full: int) -> Picture:
    """A table of the views of an image, row who looks, column who is to be found.

    Args:
        allowed: (V, V) of bool, [v, u]: is u a positive of v?
        full: so many views, the first, are full ones.
    """
    V, pairs = len(allowed), int(allowed.sum())

    def draw(page: Page) -> str:
        names = [f"full {v + 1}" if v < full else f"small {v - full + 1}" for v in range(V)]
        title = "each row's view has to find the bright ones"
        table = page.table("views", V, V, title, beside=names, below=names, turn=45)
        table.cells(allowed.float().numpy(), words=np.where(np.eye(V), "self", ""))
        table.frames(np.ndindex(V, V), WHITE, 1)
        return f"{pairs} of {V * (V - 1)} ordered pairs of views are pulled together: all find the full ones."

    return pictured(draw, "views", (4.6, 4.4))
