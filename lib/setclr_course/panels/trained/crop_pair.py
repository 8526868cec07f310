"""A full view and a small crop of one photograph, moved by hand: what they share (GroCo, section 4.3)."""

from functools import partial

import numpy as np
from matplotlib.collections import LineCollection
from PIL import Image

from setclr.data.patches import PHOTOGRAPHS
from setclr_course.kit.palette import BLUE, GREEN, OCHRE, ORANGE
from setclr_course.panels.trained.coarse import coarse
from setclr_course.pixels.controls import slider
from setclr_course.pixels.handles import Handle, Link, box
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

SIDES = {"full": 224, "small": 96}  # pixels of what the encoder gets
SMALL = 0.09  # of the photograph's area, that of a mean small crop of GroCo
LINES = {"full": BLUE, "small": ORANGE}
WORDS = {"full": BLUE, "small": OCHRE}  # dark enough to be read on white
LEFT = {"full": 0, "small": SIDES["full"] + 30}  # of the two crops on their sheet
NAMES = {"full": "full view, 224 px", "small": "small crop, 96 px"}

Box = tuple[float, float, float]  # left, top, side


def crop_pair(photograph: np.ndarray | None = None, **initial) -> Panel:
    """Two squares on a photograph, what is cut out of them, and the part that they have in common.

    Args:
        photograph: (H, W, 3) uint8; scikit-image's cat by default.
    """
    photograph = PHOTOGRAPHS["cat"]() if photograph is None else photograph
    controls = {
        "area": slider("the full view shows, %", 30, 14, 60, 2, {14: "least in GroCo"}),
        "small x": slider("small crop, left to right, %", 34, 0, 100, 1),
        "small y": slider("small crop, top to bottom, %", 25, 0, 100, 1),
        "full x": slider("full view, left to right, %", 80, 0, 100, 1),
        "full y": slider("full view, top to bottom, %", 60, 0, 100, 1),
    }
    return Panel(partial(build, photograph=photograph), controls, (9, 3.7), initial, 4.4, 1)


def box_of(kind: str, values: dict, shape: tuple[int, ...]) -> Box:
    """A square of its share of the area; its controls say how far it is along the way that it has."""
    height, width = shape[:2]
    side = (height * width * (values["area"] / 100 if kind == "full" else SMALL)) ** 0.5
    return values[f"{kind} x"] / 100 * (width - side), values[f"{kind} y"] / 100 * (height - side), side


def shared(one: Box, two: Box) -> np.ndarray:
    """Left, top, right, bottom of what two squares have in common; all 0 where that is nothing."""
    low = np.maximum(one[:2], two[:2])
    high = np.minimum(np.add(one[:2], one[2]), np.add(two[:2], two[2]))
    return np.concatenate([low, high]) if (high > low).all() else np.zeros(4)


def build(figure, compact: bool, photograph: np.ndarray) -> Drawing:
    upper, lower = figure.subplots(2, 1) if compact else figure.subplots(1, 2, width_ratios=[1.25, 1])
    boxes, sheet = draw_boxes(upper, photograph), draw_sheet(lower, photograph)
    now: dict = {}

    def update(values: dict) -> str:
        full, small = (box_of(kind, values, photograph.shape) for kind in NAMES)
        common = shared(full, small)
        area = (common[2] - common[0]) * (common[3] - common[1])
        now.update(values, full=full, small=small, common=common, share=area / small[2] ** 2)
        boxes.move(now)
        sheet.move(now)
        small_at, full_at = (f"{values[f'{kind} x']}, {values[f'{kind} y']} %" for kind in ("small", "full"))
        return (
            f"The full view, at {full_at} of its way, shows {values['area']} % of the photograph, the small "
            f"crop, at {small_at}, {SMALL:.0%}. Of the small crop {now['share']:.0%} is in the full view, of "
            f"the full view {area / full[2] ** 2:.0%} in the small crop."
        )

    handles = {kind: handle(upper, kind, photograph.shape, now) for kind in ("full", "small")}
    return Drawing([*boxes.artists, *sheet.artists], update, handles, lambda: links(upper, lower, now))


def handle(axis, kind: str, shape: tuple[int, ...], now: dict) -> Handle:
    """The middle of a square."""

    def middle(values: dict) -> tuple[float, float]:
        left, top, side = box_of(kind, values, shape)
        return left + side / 2, top + side / 2

    def moved(x: float, y: float) -> list[float]:
        side, (height, width) = now[kind][2], shape[:2]
        return [100 * (at - side / 2) / (room - side) for at, room in ((x, width), (y, height))]

    return Handle(axis, (f"{kind} x", f"{kind} y"), middle, to=moved, label=NAMES[kind])


def links(upper, lower, now: dict) -> list[Link]:
    """The common part, on the photograph and in both crops."""
    left, top, right, bottom = now["common"]
    if right == left:
        return []
    marks = [box(upper, (left, top), (right, bottom))]
    for kind in NAMES:
        x, y, right, bottom = on_sheet(kind, now)
        marks.append(box(lower, (x, y), (right, bottom)))
    return [Link(marks, text=f"in both: {now['share']:.0%} of the small crop")]


def on_sheet(kind: str, now: dict) -> np.ndarray:
    """Left, top, right, bottom of the common part in a crop, on the sheet."""
    left, top, side = now[kind]
    scale = SIDES[kind] / side
    return (now["common"] - [left, top] * 2) * scale + [LEFT[kind], 0] * 2


def outline(left: float, top: float, right: float, bottom: float) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]


def draw_boxes(axis, photograph: np.ndarray) -> Part:
    """The photograph, grey, with the two squares; moved by what `build` knows now."""
    bare(axis)
    axis.imshow(coarse(photograph.mean(2).astype(int)), "gray", vmin=0, vmax=255, interpolation="nearest")
    height, width = photograph.shape[:2]
    axis.set(xlim=(-4, width + 3), ylim=(height + 3, -4))
    title = axis.set_title("", fontsize=10)
    lines = axis.add_collection(LineCollection([], colors=[*LINES.values(), GREEN], linewidths=[3, 3, 2]))

    def move(now: dict) -> None:
        squares = [outline(x, y, x + side, y + side) for x, y, side in (now["full"], now["small"])]
        lines.set_segments([*squares, outline(*now["common"])])
        found = f"{now['share']:.0%} of the small crop" if now["share"] else "nothing"
        title.set_text(f"in both (green): {found}")

    return Part([lines, title], move)


def draw_sheet(axis, photograph: np.ndarray) -> Part:
    """The two crops as the encoder gets them, in their true proportions."""
    bare(axis)
    image = Image.fromarray(photograph)
    pictures = []
    for kind, side in SIDES.items():
        extent = (LEFT[kind], LEFT[kind] + side, side, 0)
        pictures.append(
            axis.imshow(np.full((side, side, 3), 255, np.uint8), extent=extent, interpolation="nearest")
        )
        axis.text(LEFT[kind], side + 6, NAMES[kind], color=WORDS[kind], fontsize=8.5, va="top")
    axis.set(xlim=(-4, LEFT["small"] + SIDES["small"] + 24), ylim=(SIDES["full"] + 26, -4), aspect="equal")
    axis.set_title("what the encoder gets", fontsize=10)
    lines = axis.add_collection(LineCollection([], colors=GREEN, linewidths=2))

    def move(now: dict) -> None:
        for picture, (kind, side) in zip(pictures, SIDES.items()):
            left, top, size = now[kind]
            cut = image.resize((side, side), Image.Resampling.BILINEAR, (left, top, left + size, top + size))
            picture.set_data(coarse(np.asarray(cut)))
        lines.set_segments([outline(*on_sheet(kind, now)) for kind in NAMES] if now["share"] else [])

    return Part([*pictures, lines], move)
