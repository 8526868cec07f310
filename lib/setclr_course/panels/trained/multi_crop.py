"""Multi-crop on one photograph: where crops are cut, and what the encoder sees (GroCo, section 4.3)."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import BLUE, OCHRE, ORANGE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.trained.coarse import coarse
from setclr_course.panels.trained.crop_draws import AREAS, DRAWS, FULL, LOCAL, SEEN, SIDES, cat, crops

if TYPE_CHECKING:
    from torch import Tensor

SHEET = (484, 508)  # pixels on which the crops lie, full views above, small ones below
PLACES = [(0, 0), (260, 0)] + [(194 * (k % 3), 260 + 132 * (k // 3)) for k in range(LOCAL)]
SIZES = [SIDES[0]] * FULL + [SIDES[1]] * LOCAL
SHARP = 2 / 3  # of a crop's pixels are shown, as many as there is room for
COLOURS, INKS = ([BLUE, VERMILION, *[last] * LOCAL] for last in (ORANGE, OCHRE))
WIDE, HIGH = 13, 21  # of a number, in pixels of the photograph


class Shown(NamedTuple):
    """One draw: the full views, then the small crops."""

    boxes: np.ndarray  # (v, 4): top, left, height, width
    numbers: np.ndarray  # (v, 2): where their numbers stand on the photograph
    crops: list[np.ndarray]


class multi_crop(Panel):
    """The boxes of 2 full views and up to 6 small crops on a photograph, and the crops beside it.

    Args:
        photograph: (3, H, W) uint8; scikit-image's cat by default.
    """

    size, row_height = (8.7, 3.75), 5
    mosaic, row_mosaic = "photo crops", "photo; crops"
    widths = (484, 334)
    in_sight, play = 1, "draw"
    knobs = {
        "draw": slider("draw number", 2, 0, DRAWS - 1, 1),
        "local": slider("small crops", LOCAL, 0, LOCAL, 1, {0: "none", LOCAL: "GroCo: 6"}),
        "area": options("small crops show up to", AREAS),
        "colours": options("colours", SEEN),
    }

    def __init__(self, photograph: "Tensor | None" = None, **initial: Any):
        photograph = cat() if photograph is None else photograph
        self.photograph = coarse(photograph.permute(1, 2, 0).numpy())
        self.grey = np.repeat(coarse(self.photograph.mean(2, keepdims=True)), 3, axis=2)
        self.boxes, self.crops = {}, {}
        for choice in [(area, how) for area in AREAS for how in SEEN]:
            found = crops(photograph, *choice)
            each = [crop for group in found.pixels for crop in group]  # (DRAWS, S, S, 3) for each view
            self.boxes[choice] = found.boxes
            self.crops[choice] = [[shrunk(crop[draw]) for crop in each] for draw in range(DRAWS)]
        super().__init__(**initial)

    def solve(self, values: dict) -> Shown:
        choice, draw, count = (values["area"], values["colours"]), values["draw"], FULL + values["local"]
        boxes = self.boxes[choice][draw, :count]
        return Shown(boxes, apart(boxes), self.crops[choice][draw][:count])

    def draw(self, page: Page, values: dict, now: Shown) -> None:
        high, wide = self.photograph.shape[:2]
        photo = page.plane("photo", (0, wide), (high, 0), "where the crops are cut")
        photo.picture(self.grey if page.row else self.photograph, (0, 0), (wide, high))
        corners, count = now.boxes[:, 1::-1], len(now.boxes)
        boxes = photo.boxes(corners, corners + now.boxes[:, :1:-1], edge=COLOURS[:count], width=2.5)
        words = [str(v + 1) for v in range(count)]
        x, y = now.numbers.T
        photo.text(x, y, words, INKS, "small", bold=True, halo=True)
        sheet = page.plane("crops", (0, SHEET[0]), (SHEET[1], 0), "the crops, in their proportions")
        for v, (crop, side, (left, top)) in enumerate(zip(now.crops, SIZES, PLACES)):
            picture = sheet.picture(crop, (left, top), (left + side, top + side))
            sheet.text(left, top + side, words[v], INKS[v], "small", "start", "top", bold=True)
            page.link(f"crop {words[v]}", boxes[v], picture)

    def say(self, values: dict, now: Shown) -> str:
        one, two, *rest = 100 * now.boxes[:, 2] * now.boxes[:, 3] / self.photograph[..., 0].size
        small, most = "no small crops", f"up to {values['area'].split(' (')[0]}"
        if len(rest) == 1:
            small = f"the small crop, {most}, shows {rest[0]:.0f} %"
        elif rest:
            small = f"the small crops, {most}, show {min(rest):.0f} to {max(rest):.0f} %"
        once = FULL * SIDES[0] ** 2
        total = once + len(rest) * SIDES[1] ** 2
        return (
            f"Draw {values['draw']}, crops {values['colours']}: the full views show {one:.0f} and "
            f"{two:.0f} % of the photograph, {small}. {len(now.boxes)} views have {total:,} pixels, "
            f"{total / once:.2f} times those of the two full views."
        )


def shrunk(crop: np.ndarray) -> np.ndarray:
    """A crop as sharp as it is shown, in few shades."""
    side = round(SHARP * len(crop))
    return coarse(np.asarray(Image.fromarray(crop).resize((side, side), Image.Resampling.BILINEAR)))


def apart(boxes: np.ndarray) -> np.ndarray:
    """Places (v, 2) in corners of the boxes (v, 4), the upper left one where no earlier place is near."""
    found: list[np.ndarray] = []
    for top, left, height, width in boxes:
        xs, ys = ((low + inset, low + long - inset) for low, long, inset in
                  ((left, width, WIDE / 2), (top, height, HIGH / 2)))  # fmt: skip
        corners = np.array([(x, y) for y in ys for x in xs])
        free = [c for c in corners if all((np.abs(c - other) > (WIDE, HIGH)).any() for other in found)]
        found.append([*free, corners[0]][0])
    return np.array(found)
