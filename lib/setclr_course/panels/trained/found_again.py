"""A patch on its photograph, and the patch that an encoder finds most like it: where was that one cut?"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from PIL import Image

from setclr.data import ImageSet
from setclr.data.patches import PHOTOGRAPHS, altered, cut, photo_windows, photograph
from setclr_course.kit.few_patches import unlearned
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import GREEN, PINE, VERMILION
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.kit.tiles import tiles
from setclr_course.panels.trained.coarse import coarse

ALLOWED = ("all", "without overlap")
LARGEST = (360, 300)  # width and height of a photograph as it is shown
KINDS = (("the patch", PINE, GREEN, 5, 0.0), ("most similar", VERMILION, VERMILION, 3, 1.1))


class Found(NamedTuple):
    """The patch and the most similar one, by their numbers."""

    pair: tuple[int, int]
    names: list[str]  # their photographs
    share: float  # how much of the patch the other one shows
    right: float  # the share of all patches that find their own photograph


class found_again(Panel):
    """One test patch and the most similar other one, each in a frame on its photograph.

    Args:
        features: (n, D) by encoder; pixels and an untrained network by default.
        test: the n patches: "photo-patches", split "test", or as many of its first ones of every photograph.
    """

    size, row_height = (9, 3.9), 3.4
    mosaic, widths, row_mosaic = "sheet pair", (1.35, 1), "sheet"
    in_sight = 2

    def __init__(self, features: Mapping[str, ArrayLike] | None = None, test: ImageSet | None = None,
                 **initial: Any):  # fmt: skip
        if features is None or test is None:
            test = few_tinted(20)
            features = unlearned(test.images[:])
        self.classes, self.labels, self.patches = test.classes, test.labels.numpy(), tiles(test.images[:])
        self.each, last = len(test) // len(self.classes), len(self.classes) - 1
        photographs = [photograph(name) for name in self.classes]
        self.sheets = [(paper(grey), grey.shape[::-1]) for grey in photographs]
        windows = [photo_windows(name, grey, "test") for name, grey in zip(self.classes, photographs)]
        self.windows = np.concatenate([some[: self.each] for some in windows])
        self.shared = np.where(self.labels[:, None] == self.labels, covered(self.windows), 0)
        self.found = {name: nearest_patches(x, self.shared) for name, x in features.items()}
        self.knobs = {
            "neighbours": options("neighbours", ALLOWED),
            "photograph": slider("photograph", 5, 0, last, 1, {0: self.classes[0], last: self.classes[-1]}),
            "patch": slider("patch", 1, 0, self.each - 1, 1),
            "encoder": options("as seen by", features),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Found:
        table = self.found[values["encoder"]][values["neighbours"]]
        patch = values["photograph"] * self.each + values["patch"]
        pair = patch, int(table[patch])
        right = (self.labels[table] == self.labels).mean()
        return Found(pair, [self.classes[self.labels[k]] for k in pair], self.shared[pair], right)

    def draw(self, page: Page, values: dict, now: Found) -> None:
        title = f"{values['encoder']}, {values['neighbours']}: {now.right:.0%} find their photograph"
        picture, (wide, high) = self.sheets[values["photograph"]]
        sheet = page.plane("sheet", (0, wide), (high, 0), title)
        sheet.picture(picture, (0, 0), (wide, high))
        pair = page.plane("pair", (-0.02, 2.12), (1.2, -0.2))
        told = ("cut here", f"{now.share:.0%} of the patch is in it")
        for k, name, said, (word, ink, colour, width, left) in zip(now.pair, now.names, told, KINDS):
            seen = pair.picture(self.patches[k], (left, 0), (left + 1, 1))
            pair.boxes([left, 0], [left + 1, 1], edge=colour, width=3)
            pair.text(left, -0.03, word, ink, anchor="start", rise="bottom", bold=True)
            pair.text(left, 1.04, name, anchor="start", rise="top")
            if name == now.names[0]:
                low, side = self.windows[k, 1::-1], self.windows[k, 2]
                page.link(said, seen, lit=[sheet.boxes(low, low + side, edge=colour, width=width)])
        windows = self.windows[self.labels == values["photograph"]]
        middles = windows[:, 1::-1] + windows[:, 2:] / 2
        place, to = middles[values["patch"]], nearest_to(middles, values["patch"])
        sheet.dots([place], GREEN).handle("patch", place, to=to, label="the patch")

    def say(self, values: dict, now: Found) -> str:
        which = "others" if values["neighbours"] == "all" else "others that share no pixel with it"
        piece = f"{now.share:.0%}" if now.share else "no pixel"
        return (
            f"{values['encoder']}, patch {values['patch']} of {now.names[0]}: of all {which} the most "
            f"similar is of {now.names[1]}, and shows {piece} of the same piece. So asked, {now.right:.0%} "
            f"of {len(self.labels)} patches find their own photograph."
        )


def few_tinted(each: int) -> ImageSet:
    """`each` tinted patches of every photograph, cut where the first test patches of "photo-patches" are."""
    images, rng = [], np.random.default_rng(7)
    for name in PHOTOGRAPHS:
        grey = photograph(name)
        windows = photo_windows(name, grey, "test")[:each]
        images += [altered(cut(grey, window), rng, offset=40) for window in windows]
    labels = torch.arange(len(PHOTOGRAPHS)).repeat_interleave(each)
    return ImageSet(torch.from_numpy(np.stack(images)), labels, tuple(PHOTOGRAPHS))


def paper(grey: np.ndarray) -> np.ndarray:
    """A photograph as it is shown, small and in few shades: (h, w, 3) uint8."""
    small = Image.fromarray(grey).convert("RGB")
    small.thumbnail(LARGEST)
    return coarse(np.asarray(small))


def covered(windows: np.ndarray) -> np.ndarray:
    """(n, n): how much of each window (top, left, side) that another one covers, if they lie on one sheet."""
    top, left, side = windows.T
    both = [np.minimum(a[:, None] + side[:, None], a + side) - np.maximum(a[:, None], a) for a in (top, left)]
    return both[0].clip(min=0) * both[1].clip(min=0) / side[:, None] ** 2


def nearest_patches(features: ArrayLike, shared: np.ndarray) -> dict[str, np.ndarray]:
    """The most similar other patch of each, of all and of those that share no pixel with it."""
    x = np.asarray(features, np.float32)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -2)
    return {name: (similarity - taken).argmax(1) for name, taken in zip(ALLOWED, (0, 3 * (shared > 0)))}
