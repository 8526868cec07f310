"""What the colours of a table mean."""

from collections.abc import Mapping

import numpy as np

from setclr_course.kit.scene import SHADES, Page


def draw_shades(page: Page, words: Mapping[float, str], below: str = "") -> None:
    """All shades in a plot "scale", with words at these shares of their way, and others below them."""
    ticks = {share * (SHADES - 1): word for share, word in words.items()}
    x = (-0.7 * SHADES, 1.7 * SHADES)
    scale = page.plot("scale", x, (-0.5, 0.5), frame="", xticks=ticks, xlabel=below)
    scale.cells(np.linspace(0, 1, SHADES)[None])
