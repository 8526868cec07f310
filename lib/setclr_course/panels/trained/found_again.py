"""A patch on its photograph, and the patch that an encoder finds most like it: where was that one cut?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from setclr_course.kit.controls import options, slider
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import GREEN, PINE, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page
from setclr_course.panels.trained.similar import ALLOWED, nearest_patches

if TYPE_CHECKING:
    from setclr.data import ImageSet

WIDE, HIGH = 360, 300  # of the paper on which a photograph lies
SHADE = 8  # grey levels that become one there, so that the picture is small
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

    def __init__(
        self, features: Mapping[str, ArrayLike] | None = None, test: "ImageSet | None" = None, **initial: Any
    ):
        from setclr.data.patches import photo_windows, photograph
        from setclr_course.kit.tiles import decoded, tiles

        if features is None or test is None:
            from setclr_course.kit.few_patches import unlearned
            from setclr_course.panels.trained.few_tinted import few_tinted

            test = few_tinted(20)
            features = unlearned(test.images[:])
        self.classes, self.labels, self.patches = test.classes, test.labels.numpy(), tiles(decoded(test))
        self.each, last = len(test) // len(self.classes), len(self.classes) - 1
        self.papers, windows, scaled = [], [], []
        for name in self.classes:
            grey = photograph(name)
            scale = min(HIGH / grey.shape[0], WIDE / grey.shape[1])
            self.papers.append(paper(grey, scale))
            windows.append(photo_windows(name, grey, "test")[: self.each])
            scaled.append(scale * windows[-1])
        self.windows = np.concatenate(scaled)
        same = self.labels[:, None] == self.labels
        self.shared = np.where(same, covered(np.concatenate(windows)), 0)
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
        sheet = page.plane("sheet", (0, WIDE), (HIGH, 0), title)
        picture = self.papers[values["photograph"]]
        sheet.picture(picture, (0, 0), picture.shape[1::-1])
        pair = page.plane("pair", (-0.02, 2.12), (1.2, -0.2))
        told = ("cut here", f"{now.share:.0%} of the patch is in it")
        for k, name, said, (word, ink, colour, width, left) in zip(now.pair, now.names, told, KINDS):
            seen = pair.picture(self.patches[k], (left, 0), (left + 1, 1))
            pair.boxes([left, 0], [left + 1, 1], edge=colour, width=3)
            pair.text(left, -0.03, word, ink, anchor="start", rise="bottom", bold=True)
            pair.text(left, 1.04, name, anchor="start", rise="top")
            if name == now.names[0]:
                low, side = self.windows[k, 1::-1], self.windows[k, 2]
                frame = sheet.boxes(low, low + side, edge=colour, width=width)
                page.link(said, seen, lit=[frame])
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


def paper(grey: np.ndarray, scale: float) -> np.ndarray:
    """A photograph as it is shown, in few shades: (h, w, 3) uint8."""
    high, wide = (int(scale * length) for length in grey.shape)
    small = np.asarray(Image.fromarray(grey).resize((wide, high))) // SHADE * SHADE + SHADE // 2
    return np.repeat(small[..., None], 3, axis=2)


def covered(windows: np.ndarray) -> np.ndarray:
    """(n, n): how much of each window (top, left, side) that another one covers, if they lie on one sheet."""
    top, left, side = windows.T
    both = [np.minimum(a[:, None] + side[:, None], a + side) - np.maximum(a[:, None], a) for a in (top, left)]
    return both[0].clip(min=0) * both[1].clip(min=0) / side[:, None] ** 2
