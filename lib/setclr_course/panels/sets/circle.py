"""The circle that the panels on sets draw, once for each view, with the two views of a batch on it."""

import numpy as np
from matplotlib.collections import LineCollection

from setclr_course.kit.palette import BLUE, GREY, OCHRE, ORANGE
from setclr_course.pixels.circle import RADII, as_drawn
from setclr_course.pixels.parts import Part, bare


def draw_circle(axis, title: str, size: int) -> Part:
    """Both circles; what moves are the points of views z (2, N, 2) and the links of the pairs."""
    bare(axis, (-1.15, 1.15))
    axis.set_title(title, fontsize=size + 1, loc="center")
    name_views(axis, size)
    around = np.linspace(0, 2 * np.pi, 120)
    for radius in RADII:
        axis.plot(radius * np.cos(around), radius * np.sin(around), color=GREY, linewidth=0.6, zorder=0)
    links = axis.add_collection(LineCollection([], colors=GREY, linewidths=1.3))
    dots = [
        axis.scatter([], [], c=colour, marker=m, s=40, zorder=3) for m, colour in (("o", BLUE), ("s", ORANGE))
    ]

    def move(z: np.ndarray) -> None:
        points = as_drawn(z)
        links.set_segments(points.swapaxes(0, 1))
        for view, scatter in zip(points, dots):
            scatter.set_offsets(view)

    return Part([links, *dots], move)


def name_views(axis, size: int) -> None:
    """Below the axes, which point is of which view, in the views' colours."""
    for x, word, colour, side in ((0.48, "● view 1", BLUE, "right"), (0.52, "■ view 2", OCHRE, "left")):
        axis.text(x, -0.02, word, color=colour, fontsize=size, ha=side, va="top", transform=axis.transAxes)
