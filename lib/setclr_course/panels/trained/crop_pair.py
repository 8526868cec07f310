"""A full view and a small crop of one photograph, moved by hand: what they share (GroCo, section 4.3)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from setclr_course.kit.controls import slider
from setclr_course.kit.palette import BLUE, GREEN, ORANGE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.trained.coarse import coarse

SMALL = 0.09  # of the photograph's area, that of a mean small crop of GroCo
COLOURS = {"full": BLUE, "small": ORANGE}
NAMES = {"full": "full view, 224 px", "small": "small crop, 96 px"}


class Cut(NamedTuple):
    """Squares of the photograph, in its pixels."""

    low: dict[str, np.ndarray]  # (2,): the upper left corner of each of the two
    side: dict[str, float]
    common: np.ndarray  # (2, 2): the upper left and the lower right corner of what they share
    area: float  # of that

    def share(self, kind: str) -> float:
        """How much of this square is in the other one."""
        return self.area / self.side[kind] ** 2


class crop_pair(Panel):
    """Two squares on a photograph, what is cut out of them, and the part that they have in common.

    Args:
        photograph: (H, W, 3) uint8; scikit-image's cat by default.
    """

    size, row_height = (8.5, 4.21), 4.4
    mosaic, row_mosaic = "photo full; photo small", "photo photo photo; full full small"
    widths, heights = (566, 234), (258, 130)  # the crops in the pixels that the encoder gets
    in_sight = 1
    knobs = {
        "area": slider("the full view shows, %", 30, 14, 60, 2, {14: "least in GroCo"}),
        "small x": slider("small crop, left to right, %", 34, 0, 100, 1),
        "small y": slider("small crop, top to bottom, %", 25, 0, 100, 1),
        "full x": slider("full view, left to right, %", 80, 0, 100, 1),
        "full y": slider("full view, top to bottom, %", 60, 0, 100, 1),
    }

    def __init__(self, photograph: np.ndarray | None = None, **initial: Any):
        if photograph is None:
            from setclr.data.patches import PHOTOGRAPHS

            photograph = PHOTOGRAPHS["cat"]()
        self.photograph = coarse(photograph)
        self.grey = np.repeat(coarse(photograph.mean(2, keepdims=True)), 3, axis=2)
        self.sides = np.array(photograph.shape[1::-1], float)
        super().__init__(**initial)

    def solve(self, values: dict) -> Cut:
        side = {kind: (self.sides.prod() * share) ** 0.5
                for kind, share in (("full", values["area"] / 100), ("small", SMALL))}  # fmt: skip
        low = {
            kind: np.array([values[f"{kind} x"], values[f"{kind} y"]]) / 100 * (self.sides - side[kind])
            for kind in NAMES
        }
        first = np.maximum(low["full"], low["small"])
        last = np.minimum(*(low[kind] + side[kind] for kind in NAMES))
        return Cut(low, side, np.stack([first, last]), (last - first).clip(0).prod())

    def draw(self, page: Page, values: dict, now: Cut) -> None:
        share = now.share("small")
        found = f"{share:.0%} of the small crop" if share else "nothing"
        photo = page.plane("photo", (0, self.sides[0]), (self.sides[1], 0), f"in both (green): {found}")
        photo.picture(self.grey, (0, 0), self.sides)
        for kind, colour in COLOURS.items():
            photo.boxes(now.low[kind], now.low[kind] + now.side[kind], edge=colour, width=3)
            middle = now.low[kind] + now.side[kind] / 2
            knob, moves = photo.dots([middle], colour), (f"{kind} x", f"{kind} y")
            knob.handle(kind, middle, *moves, to=self.way(now.side[kind]), label=NAMES[kind])
        marks = [self.crop(page, kind, now) for kind in NAMES]
        if share:
            marks.append(photo.boxes(now.common[0], now.common[1], edge=GREEN, width=2))
            page.link(f"in both: {share:.0%} of the small crop", *marks)

    def way(self, side: float) -> Callable[[float, float], list[float]]:
        """How far along its way a square is, in percent, by its middle."""
        return lambda x, y: (100 * (np.array([x, y]) - side / 2) / (self.sides - side)).tolist()

    def crop(self, page: Page, kind: str, now: Cut) -> Mark:
        """A square cut out, and the part of it that the other one has."""
        (left, top), side = now.low[kind], now.side[kind]
        plot = page.plane(kind, (left, left + side), (top + side, top), NAMES[kind])
        plot.picture(self.photograph, (0, 0), self.sides)
        plot.boxes(now.low[kind], now.low[kind] + side, edge=COLOURS[kind], width=5)
        return plot.boxes(now.common[0], now.common[1], edge=GREEN if now.area else "", width=3)

    def say(self, values: dict, now: Cut) -> str:
        small, full = (f"{values[f'{kind} x']}, {values[f'{kind} y']} %" for kind in ("small", "full"))
        return (
            f"The full view, at {full} of its way, shows {values['area']} % of the photograph, the small "
            f"crop, at {small}, {SMALL:.0%}. Of the small crop {now.share('small'):.0%} is in the full view, "
            f"of the full view {now.share('full'):.0%} in the small crop."
        )
