"""Multi-crop on one photograph: where crops are cut, and what the encoder sees (GroCo, section 4.3)."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from torch import Tensor

from setclr import views
from setclr.data.patches import PHOTOGRAPHS
from setclr.seeding import seeded
from setclr.views import LOCAL_SCALE, View
from setclr_course.kit.palette import BLUE, ORANGE, VERMILION
from setclr_course.panels.trained.coarse import coarse
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

FULL, LOCAL, SIDES, GAP = 2, 6, (224, 96), 24
DRAWS = 8
AREAS = {
    "14 % (GroCo)": 0.14,
    "30 %": 0.3,
    "100 %": 1.0,
}  # the most of the photograph that a small crop shows
SEEN: dict[str, dict[str, Any]] = {
    "as the encoder sees them": {},
    "as they were cut": dict(jitter_p=0.0, grey=0.0, blur=0.0, solarise=0.0),
}
PAGE = (224 + GAP + 2 * (96 + GAP), 2 * 224 + GAP)  # height and width of the page of crops
COLOURS = (BLUE, VERMILION) + (ORANGE,) * LOCAL


class Crops(NamedTuple):
    """All draws of one choice of area and colours."""

    boxes: np.ndarray  # (DRAWS, 8, 4): top, left, height, width
    pixels: list[np.ndarray]  # of the full views and of the small crops: (V_g, DRAWS, S_g, S_g, 3) uint8


def multi_crop(photograph: Tensor | None = None, **initial) -> Panel:
    """The boxes of 2 full views and up to 6 small crops on a photograph, and the crops beside it.

    Args:
        photograph: (3, H, W) uint8; scikit-image's cat by default.
    """
    photograph = cat() if photograph is None else photograph
    seen = {(area, how): crops(photograph, area, how) for area in AREAS for how in SEEN}
    controls = {
        "draw": slider("draw number", 2, 0, DRAWS - 1, 1),
        "local": slider("small crops", LOCAL, 0, LOCAL, 1, {0: "none", LOCAL: "GroCo: 6"}),
        "area": options("small crops show up to", AREAS),
        "colours": options("colours", SEEN),
    }

    def draw(figure, compact: bool) -> Drawing:
        return build(figure, compact, photograph, seen)

    return Panel(draw, controls, (8.3, 3.8), initial, 4.4, 1, play="draw")


@lru_cache
def cat() -> Tensor:
    return torch.from_numpy(PHOTOGRAPHS["cat"]().copy()).permute(2, 0, 1)


def views_of(area: str, colours: str) -> tuple[View, ...]:
    """GroCo's 2 x 224 + 6 x 96 px, the small crops up to that area, with or without colours changed."""
    made = views.multi_crop("groco", FULL, LOCAL, *SIDES)
    small = replace(made[-1], scale=(LOCAL_SCALE[0], AREAS[area]))
    return tuple(replace(view, **SEEN[colours]) for view in (*made[:FULL], *[small] * LOCAL))


@lru_cache(maxsize=16)
def crops(photograph: Tensor, area: str, colours: str) -> Crops:
    """All draws of the photograph's views; draw number k is that of generator seeded(k)."""
    wanted = views_of(area, colours)
    draws = torch.cat([views.draw(wanted, 1, seeded(k)) for k in range(DRAWS)])
    boxes = views.boxes(wanted, draws, *photograph.shape[1:]).transpose(0, 1)
    groups = views.apply_all(photograph.expand(DRAWS, -1, -1, -1), wanted, draws)
    pixels = [(255 * x).round().byte().permute(0, 1, 3, 4, 2).numpy() for x in groups]
    return Crops(boxes.numpy(), pixels)


def corners() -> list[tuple[int, int]]:
    """Top and left of each crop on the page: the full views in a row, below them small crops, three a row."""
    full = [(0, v * (SIDES[0] + GAP)) for v in range(FULL)]
    row, column = SIDES[1] + GAP, (PAGE[1] - SIDES[1]) // 2
    return full + [(SIDES[0] + GAP + row * (k // 3), column * (k % 3)) for k in range(LOCAL)]


def build(figure, compact: bool, photograph: Tensor, seen: dict[tuple[str, str], Crops]) -> Drawing:
    """The photograph with its boxes, and the page of crops; compact, one above the other, the former grey."""
    upper, lower = figure.subplots(2, 1) if compact else figure.subplots(1, 2, width_ratios=[1.3, 1])
    boxes, page = draw_boxes(upper, photograph, grey=compact), draw_crops(lower)
    if not compact:
        upper.set_title("where the crops are cut")
        lower.set_title("the crops, in their true proportions")

    def update(values: dict) -> str:
        found, draw = seen[values["area"], values["colours"]], values["draw"]
        number = FULL + values["local"]
        boxes.move(found.boxes[draw], number)
        page.move([crop for group in found.pixels for crop in group[:, draw]], number)
        return sentence(values, found.boxes[draw], photograph[0].numel())

    lines, *words = boxes.artists
    picture, *names = page.artists
    return Drawing([lines, picture, *words, *names], update)


def draw_boxes(axis, photograph: Tensor, grey: bool) -> Part:
    """The photograph with an outline and a number for each crop; moved by boxes (8, 4) and how many show."""
    still = photograph.permute(1, 2, 0).numpy()
    if grey:
        shades = coarse(still.mean(2).astype(int))
        axis.imshow(shades, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    else:
        axis.imshow(coarse(still), interpolation="nearest")
    bare(axis)
    axis.set(xlim=(-4, still.shape[1] + 3), ylim=(still.shape[0] + 3, -4))
    widths = [3] * FULL + [1.8] * LOCAL
    lines = axis.add_collection(LineCollection([], colors=COLOURS, linewidths=widths, zorder=3))
    words = []
    for v, colour in enumerate(COLOURS):
        plate = dict(boxstyle="square,pad=0.15", linewidth=0, facecolor=colour)
        ink = "black" if colour == ORANGE else "white"
        words.append(axis.text(0, 0, f"{v + 1}", color=ink, fontsize=8, va="top", bbox=plate))

    def move(boxes: np.ndarray, number: int) -> None:
        outlines = []
        for v, (top, left, height, width) in enumerate(boxes):
            right, bottom = left + width, top + height
            outlines.append([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)])
            words[v].set(x=left, y=top, visible=v < number)
        lines.set_segments(np.array(outlines[:number]))

    return Part([lines, *words], move)


def draw_crops(axis) -> Part:
    """The page with a number below each crop; moved by the crops and how many show."""
    bare(axis)
    canvas = np.full((*PAGE, 3), 255, np.uint8)
    picture = axis.imshow(canvas, interpolation="nearest")
    names = [
        axis.text(left, top + SIDES[v >= FULL] + 3, f"{v + 1}", fontsize=8, va="top")
        for v, (top, left) in enumerate(corners())
    ]

    def move(crops: list[np.ndarray], number: int) -> None:
        canvas[:] = 255
        for v, ((top, left), crop) in enumerate(zip(corners(), crops)):
            names[v].set_visible(v < number)
            if v < number:
                canvas[top : top + len(crop), left : left + len(crop)] = coarse(crop)
        picture.set_data(canvas)

    return Part([picture, *names], move)


def sentence(values: dict, boxes: np.ndarray, photograph: int) -> str:
    shown = 100 * boxes[:, 2] * boxes[:, 3] / photograph
    local, total = values["local"], FULL * SIDES[0] ** 2 + values["local"] * SIDES[1] ** 2
    small = "no small crops"
    if local:
        low, high = (f"{share:.0f}" for share in np.sort(shown[FULL : FULL + local])[[0, -1]])
        most = f"up to {values['area'].split(' (')[0]}"
        show = f"crops, {most}, show {low} to {high} %" if local > 1 else f"crop, {most}, shows {low} %"
        small = f"the small {show}"
    return (
        f"Draw {values['draw']}, crops {values['colours']}: the full views show {shown[0]:.0f} and "
        f"{shown[1]:.0f} % of the photograph, {small}. {FULL + local} views have {total:,} pixels, "
        f"{total / (FULL * SIDES[0] ** 2):.2f} times those of the two full views."
    )
