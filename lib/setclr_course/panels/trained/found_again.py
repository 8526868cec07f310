"""A patch on its photograph, and the patch that an encoder finds most like it: where was that one cut?"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

from setclr.data import ImageSet
from setclr.data.patches import photo_windows, photograph
from setclr_course.kit.few_patches import unlearned
from setclr_course.kit.palette import GREEN, INK, VERMILION
from setclr_course.kit.tiles import decoded, tiles
from setclr_course.panels.trained.few_tinted import few_tinted
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, Mark, box
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

WIDE, HIGH = 360, 300  # of the paper on which a photograph lies
SHADE = 8  # grey levels that become one there, so that the picture is small
ALLOWED = ("all", "without overlap")
WALK = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])  # round a square of side 1


class Scene(NamedTuple):
    """What does not change."""

    labels: np.ndarray  # (n,), sorted; as many patches of each photograph
    classes: Sequence[str]
    patches: np.ndarray  # (n, H, W, 3) uint8
    windows: np.ndarray  # (n, 3): top, left and side on the paper
    shared: np.ndarray  # (n, n): the share of a patch's window that another one covers
    found: dict[str, dict[str, np.ndarray]]  # (n,): the nearest patch, by encoder and by what is allowed

    def patch(self, values: dict) -> int:
        return int(values["photograph"] * self.each + values["patch"])

    def best(self, values: dict) -> int:
        return int(self.found[values["encoder"]][values["neighbours"]][self.patch(values)])

    @property
    def each(self) -> int:
        return len(self.labels) // len(self.classes)


def found_again(features: dict[str, Tensor] | None = None, test: ImageSet | None = None, **initial) -> Panel:
    """One test patch and the most similar other one, each in a frame on its photograph.

    Args:
        features: (n, D) by encoder; pixels and an untrained network by default.
        test: the n patches: "photo-patches", split "test", or as many of its first ones of every photograph.
    """
    if features is None or test is None:
        test = few_tinted(20)
        features = unlearned(decoded(test))
    scene = scene_of(features, test)
    last = len(test.classes) - 1
    controls = {
        "neighbours": options("neighbours", ALLOWED),
        "photograph": slider("photograph", 5, 0, last, 1, {0: test.classes[0], last: test.classes[-1]}),
        "patch": slider("patch", 1, 0, scene.each - 1, 1),
        "encoder": options("as seen by", features),
    }
    return Panel(lambda figure, compact: build(figure, compact, scene), controls, (9, 4.2), initial, 3.4, 2)


def scene_of(features: dict[str, Tensor], test: ImageSet) -> Scene:
    labels, each = test.labels.numpy(), len(test) // len(test.classes)
    cut = np.concatenate([photo_windows(name, grey_of(name), "test")[:each] for name in test.classes])
    shared = np.where(labels[:, None] == labels, covered(cut), 0)
    found = {name: nearest_patches(x, shared) for name, x in features.items()}
    scale = np.array([scale_of(grey_of(name)) for name in test.classes])[labels]
    return Scene(labels, test.classes, tiles(decoded(test)), cut * scale[:, None], shared, found)


@cache
def grey_of(name: str) -> np.ndarray:
    return photograph(name)


def scale_of(grey: np.ndarray) -> float:
    return min(HIGH / grey.shape[0], WIDE / grey.shape[1])


@cache
def paper(name: str) -> np.ndarray:
    """A photograph on the paper, in its upper left corner and in few shades: (HIGH, WIDE) uint8."""
    grey = grey_of(name)
    size = np.floor(scale_of(grey) * np.array(grey.shape)).astype(int)
    white = np.full((HIGH, WIDE), 255, np.uint8)
    fine = np.asarray(Image.fromarray(grey).resize(size[::-1]))
    white[: size[0], : size[1]] = fine // SHADE * SHADE + SHADE // 2
    return white


def covered(windows: np.ndarray) -> np.ndarray:
    """(n, n): how much of each window (top, left, side) that another one covers, if they lie on one sheet."""
    top, left, side = windows.T
    both = [np.minimum(a[:, None] + side[:, None], a + side) - np.maximum(a[:, None], a) for a in (top, left)]
    return both[0].clip(min=0) * both[1].clip(min=0) / side[:, None] ** 2


def nearest_patches(features: Tensor, shared: np.ndarray) -> dict[str, np.ndarray]:
    """The most similar other patch of each, of all and of those that share no pixel with it."""
    unit = normalize(features.float(), dim=1)
    similarity = (unit @ unit.T).fill_diagonal_(-2)
    apart = similarity.masked_fill(torch.from_numpy(shared > 0), -2)
    return {name: table.argmax(1).numpy() for name, table in zip(ALLOWED, (similarity, apart))}


def build(figure, compact: bool, scene: Scene) -> Drawing:
    left, right = (figure.subplots(), None) if compact else figure.subplots(1, 2, width_ratios=(1.5, 1))
    sheet = draw_sheet(left, scene, compact)
    pair = None if right is None else draw_pair(right, scene)
    now: dict = {}

    def update(values: dict) -> str:
        now.update(values)
        sheet.move(values)
        if pair is not None:
            pair.move(values)
        return sentence(values, scene)

    def nearest_window(x: float, y: float) -> list[int]:
        mine = scene.windows[now["photograph"] * scene.each :][: scene.each]
        return [int(np.hypot(*(centre(mine) - [x, y]).T).argmin())]

    frame = Handle(
        left,
        ("patch",),
        lambda v: centre(scene.windows[scene.patch(v)]),
        to=nearest_window,
        label="the patch",
    )
    links = list if right is None else lambda: both_places(left, right, scene, now)
    return Drawing([*sheet.artists, *(pair.artists if pair else [])], update, {"patch": frame}, links)


def centre(windows: np.ndarray) -> np.ndarray:
    """(..., 2): x and y of the middle of windows (..., 3)."""
    return windows[..., 1::-1] + windows[..., 2:] / 2


def sentence(values: dict, scene: Scene) -> str:
    patch, best = scene.patch(values), scene.best(values)
    own, found = (scene.classes[scene.labels[k]] for k in (patch, best))
    table = scene.found[values["encoder"]][values["neighbours"]]
    share = scene.shared[patch, best]
    place = f"and shows {share:.0%} of the same piece" if share else "and shows no pixel of the same piece"
    which = "others" if values["neighbours"] == "all" else "others that share no pixel with it"
    right = (scene.labels[table] == scene.labels).mean()
    return (
        f"{values['encoder']}, patch {values['patch']} of {own}: of all {which} the most similar is of "
        f"{found}, {place}. So asked, {right:.0%} of {len(table)} patches find their own photograph."
    )


def draw_sheet(axis, scene: Scene, compact: bool) -> Part:
    """The photograph with the patch's frame, and the found one's where it is of the same photograph."""
    bare(axis)
    image = axis.imshow(
        np.zeros((HIGH, WIDE), np.uint8),
        cmap="gray",
        vmin=0,
        vmax=255,
        extent=(0, WIDE, HIGH, 0),
        interpolation="nearest",
    )
    edges = axis.add_collection(LineCollection([], linewidths=[4.5, 2.5]))
    axis.set(xlim=(0, WIDE), ylim=(HIGH, 0))
    heading = axis.text(0, -6, "", fontsize=9 if compact else 11, weight="bold", va="bottom", color=INK)

    def move(values: dict) -> None:
        patch, best = scene.patch(values), scene.best(values)
        image.set_data(paper(scene.classes[values["photograph"]]))
        framed = [patch, best] if scene.labels[best] == scene.labels[patch] else [patch]
        edges.set_segments([outline(scene.windows[k]) for k in framed])
        edges.set_color([GREEN, VERMILION][: len(framed)])
        table = scene.found[values["encoder"]][values["neighbours"]]
        share = (scene.labels[table] == scene.labels).mean()
        heading.set_text(f"{values['encoder']}, {values['neighbours']}: {share:.0%} find their photograph")

    return Part([image, edges, heading], move)


def outline(window: np.ndarray) -> np.ndarray:
    return WALK * window[2] + window[1::-1]


def draw_pair(axis, scene: Scene) -> Part:
    """The patch and the one that was found, as the encoder saw them."""
    bare(axis)
    axis.set(xlim=(0, 2.1), ylim=(1.35, -0.1), aspect="equal")
    blank = np.zeros((32, 32, 3), np.uint8)
    images = [axis.imshow(blank, extent=(x, x + 1, 1, 0), interpolation="nearest") for x in (0, 1.1)]
    axis.set(xlim=(-0.03, 2.13), ylim=(1.3, -0.12))
    for x, word, colour in ((0, "the patch", GREEN), (1.1, "most similar", VERMILION)):
        axis.text(x, -0.04, word, fontsize=10, weight="bold", color=colour)
        axis.plot(x + WALK[:, 0], WALK[:, 1], color=colour, linewidth=3)
    words = [axis.text(x, 1.05, "", fontsize=10, va="top", color=INK) for x in (0, 1.1)]

    def move(values: dict) -> None:
        for image, word, k in zip(images, words, (scene.patch(values), scene.best(values))):
            image.set_data(scene.patches[k])
            word.set_text(scene.classes[scene.labels[k]])

    return Part([*images, *words], move)


def both_places(left, right, scene: Scene, now: dict) -> list[Link]:
    """Each of the two patches, beside the photograph and on it."""
    patch, best = scene.patch(now), scene.best(now)
    shown = [(patch, 0.0), *([(best, 1.1)] if scene.labels[best] == scene.labels[patch] else [])]
    words = ("cut here", f"{scene.shared[patch, best]:.0%} of the patch is in it")
    return [
        Link([box(right, (x, 0), (x + 1, 1))], [framed(left, scene.windows[k])], word)
        for (k, x), word in zip(shown, words)
    ]


def framed(axis, window: np.ndarray) -> Mark:
    corners = outline(window)
    return box(axis, corners[0], corners[2])
