"""A full view and a small crop of one photograph, moved by hand: what they share (GroCo, section 4.3)."""

from typing import Any, NamedTuple

import numpy as np

from setclr.data.patches import PHOTOGRAPHS
from setclr_course.kit.palette import BLUE, GREEN, ORANGE
from setclr_course.kit.panel import Mark, Page, Panel, slider
from setclr_course.panels.trained.coarse import coarse, greyed

SMALL = 0.09  # of the photograph's area, that of a mean small crop of GroCo
KINDS = {"full": ("full view, 224 px", BLUE), "small": ("small crop, 96 px", ORANGE)}


class Cut(NamedTuple):
    """Squares of the photograph, in its pixels."""

    low: dict[str, np.ndarray]  # (2,): the upper left corner of each of the two
    side: dict[str, float]
    common: np.ndarray  # (2, 2): the upper left and the lower right corner of what they share
    share: dict[str, float]  # how much of each square is in the other one


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
        photograph = PHOTOGRAPHS["cat"]() if photograph is None else photograph
        self.photograph, self.grey = coarse(photograph), greyed(photograph)
        self.sides = np.array(photograph.shape[1::-1], float)
        super().__init__(**initial)

    def solve(self, values: dict) -> Cut:
        shares = {"full": values["area"] / 100, "small": SMALL}
        side = {kind: (self.sides.prod() * share) ** 0.5 for kind, share in shares.items()}
        way = {kind: np.array([values[f"{kind} x"], values[f"{kind} y"]]) / 100 for kind in KINDS}
        low = {kind: way[kind] * (self.sides - side[kind]) for kind in KINDS}
        first = np.maximum(low["full"], low["small"])
        last = np.minimum(low["full"] + side["full"], low["small"] + side["small"])
        area = (last - first).clip(0).prod()
        return Cut(low, side, np.stack([first, last]), {kind: area / side[kind] ** 2 for kind in KINDS})

    def draw(self, page: Page, values: dict, now: Cut) -> None:
        share = now.share["small"]
        found = f"{share:.0%} of the small crop" if share else "nothing"
        photo = page.plane("photo", (0, self.sides[0]), (self.sides[1], 0), f"in both (green): {found}")
        photo.picture(self.grey, (0, 0), self.sides)
        marks = [self.draw_crop(page, kind, now) for kind in KINDS]
        if share:
            marks.append(photo.boxes(now.common[0], now.common[1], edge=GREEN, width=2))
            page.link(f"in both: {share:.0%} of the small crop", *marks)

    def draw_crop(self, page: Page, kind: str, now: Cut) -> Mark:
        """A square on the photograph and cut out, and the part of it that the other one has."""
        (name, colour), low, side = KINDS[kind], now.low[kind], now.side[kind]

        def to(x: float, y: float) -> list[float]:
            return (100 * (np.array([x, y]) - side / 2) / (self.sides - side)).tolist()

        page["photo"].boxes(low, low + side, edge=colour, width=3)
        knob = page["photo"].dots([low + side / 2], colour)
        knob.handle(kind, low + side / 2, f"{kind} x", f"{kind} y", to=to, label=name)
        (left, top), (right, bottom) = low, low + side
        plot = page.plane(kind, (left, right), (bottom, top), name)
        plot.picture(self.photograph, (0, 0), self.sides)
        plot.boxes(low, low + side, edge=colour, width=5)
        return plot.boxes(now.common[0], now.common[1], edge=GREEN if now.share[kind] else "", width=3)

    def say(self, values: dict, now: Cut) -> str:
        return (
            f"The full view shows {values['area']} % of the photograph, the small crop {SMALL:.0%}. The full "
            f"view holds {now.share['small']:.0%} of the small crop, and the small crop "
            f"{now.share['full']:.0%} of the full view."
        )
