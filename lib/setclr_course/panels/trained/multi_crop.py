"""Multi-crop on one photograph: where crops are cut, and what the encoder sees (GroCo, section 4.3)."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from setclr import views
from setclr.data.patches import PHOTOGRAPHS
from setclr.seeding import seeded
from setclr_course.kit.palette import BLUE, OCHRE, ORANGE, VERMILION
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.panels.trained.coarse import coarse, greyed

FULL, LOCAL, SIDES, DRAWS = 2, 6, (224, 96), 8
SEEN: dict[str, dict[str, Any]] = {
    "as the encoder sees them": {},
    "as they were cut": {"jitter_p": 0.0, "grey": 0.0, "blur": 0.0, "solarise": 0.0},
}
SHEET = (484, 530)  # pixels on which the crops lie, full views above, small ones below
PLACES = [(0, 0), (260, 0)] + [(194 * (k % 3), 264 + 142 * (k // 3)) for k in range(LOCAL)]
SIZES = [SIDES[0]] * FULL + [SIDES[1]] * LOCAL
SHARP = 1 / 2  # of a crop's pixels are shown; with more of them a first visit to a draw is slow
COLOURS, INKS = ([BLUE, VERMILION, *[last] * LOCAL] for last in (ORANGE, OCHRE))
WORDS = [str(v + 1) for v in range(FULL + LOCAL)]
LETTER = np.array([13, 21])  # width and height of a number, in pixels of the photograph


class Crops(NamedTuple):
    """One draw: the full views, then the small crops."""

    boxes: np.ndarray  # (v, 4): top, left, height, width
    pixels: list[np.ndarray]  # (S, S, 3) uint8 for each


class multi_crop(Panel):
    """The boxes of 2 full views and 6 small crops on a photograph, and the crops beside it.

    Args:
        photograph: (H, W, 3) uint8; scikit-image's cat by default.
    """

    size, row_height = (8.7, 3.75), 5
    mosaic, row_mosaic = "photo crops", "photo; crops"
    widths = (484, 334)
    in_sight, play = 1, "draw"
    knobs = {"draw": slider("draw number", 2, 0, DRAWS - 1, 1), "colours": options("colours", SEEN)}

    def __init__(self, photograph: np.ndarray | None = None, **initial: Any):
        photograph = PHOTOGRAPHS["cat"]() if photograph is None else photograph
        self.photograph = greyed(photograph)
        self.draws = {how: [shrunk(now) for now in crops(photograph, how)] for how in SEEN}
        super().__init__(**initial)

    def solve(self, values: dict) -> Crops:
        return self.draws[values["colours"]][values["draw"]]

    def draw(self, page: Page, values: dict, now: Crops) -> None:
        high, wide = self.photograph.shape[:2]
        photo = page.plane("photo", (0, wide), (high, 0), "where the crops are cut")
        photo.picture(self.photograph, (0, 0), (wide, high))
        corners = now.boxes[:, 1::-1]
        boxes = photo.boxes(corners, corners + now.boxes[:, :1:-1], edge=COLOURS, width=2.5)
        x, y = apart(now.boxes).T
        photo.text(x, y, WORDS, INKS, "small", bold=True, halo=True)
        sheet = page.plane("crops", (0, SHEET[0]), (SHEET[1], 0), "the crops, in their proportions")
        for v, (crop, side, (left, top)) in enumerate(zip(now.pixels, SIZES, PLACES)):
            picture = sheet.picture(crop, (left, top), (left + side, top + side))
            sheet.text(left, top + side, WORDS[v], INKS[v], "small", "start", "top", up=-3, bold=True)
            page.link(f"crop {WORDS[v]}", boxes[v], picture)

    def say(self, values: dict, now: Crops) -> str:
        one, two, *rest = 100 * now.boxes[:, 2] * now.boxes[:, 3] / self.photograph[..., 0].size
        once, total = (sum(side**2 for side in some) for some in (SIZES[:FULL], SIZES))
        return (
            f"Draw {values['draw']}, crops {values['colours']}: the full views show {one:.0f} and "
            f"{two:.0f} % of the photograph, the small crops {min(rest):.0f} to {max(rest):.0f} %. All views "
            f"have {total:,} pixels, {total / once:.2f} times those of the two full views."
        )


def crops(photograph: np.ndarray, colours: str) -> list[Crops]:
    """All draws of GroCo's 2 x 224 + 6 x 96 px, with or without colours changed; draw number k is that of
    generator seeded(k)."""
    made = views.multi_crop("groco", FULL, LOCAL, *SIDES)
    wanted = tuple(replace(view, **SEEN[colours]) for view in made)
    draws = torch.cat([views.draw(wanted, 1, seeded(k)) for k in range(DRAWS)])
    images = torch.from_numpy(photograph.copy()).permute(2, 0, 1)
    boxes = views.boxes(wanted, draws, *photograph.shape[:2]).transpose(0, 1).numpy()
    groups = views.apply_all(images.expand(DRAWS, -1, -1, -1), wanted, draws)
    pixels = [(255 * x).round().byte().permute(0, 1, 3, 4, 2).numpy() for x in groups]
    return [Crops(boxes[k], [view[k] for group in pixels for view in group]) for k in range(DRAWS)]


def shrunk(now: Crops) -> Crops:
    """The crops as sharp as they are shown, in few shades."""
    small = [Image.fromarray(crop).resize([round(SHARP * len(crop))] * 2) for crop in now.pixels]
    return Crops(now.boxes, [coarse(np.asarray(crop)) for crop in small])


def apart(boxes: np.ndarray) -> np.ndarray:
    """Places (v, 2) in corners of the boxes (v, 4), the upper left one where no earlier place is near."""
    found: list[np.ndarray] = []
    for low, size in zip(boxes[:, 1::-1], boxes[:, :1:-1]):
        corners = low + LETTER / 2 + [(0, 0), (1, 0), (0, 1), (1, 1)] * (size - LETTER)
        free = [c for c in corners if all((np.abs(c - other) > LETTER).any() for other in found)]
        found.append([*free, corners[0]][0])
    return np.array(found)
