"""The same patches on two maps, each by the features of another encoder: what lies together there (GroCo,
figure 7; IOT-CL, figure 5a and 5b)."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.font_manager import findfont
from PIL import Image, ImageDraw, ImageFont
from scipy.linalg import orthogonal_procrustes
from sklearn.manifold import TSNE
from torch import Tensor
from torch.nn import functional as F

from setclr.data import ImageSet
from setclr.explore.kit.controls import options, slider
from setclr.explore.kit.few_patches import few_patches, icons, unlearned
from setclr.explore.kit.panel import Drawing, Panel
from setclr.explore.kit.parts import Part, bare
from setclr.explore.kit.tiles import decoded
from setclr.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION

COLOURS, MARKERS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, BLACK), "o^s"
PALE = (0.86, 0.86, 0.86, 1.0)
ICON, LETTERS, CANVAS = 28, 11, 540  # pixels of a photograph, its name's, and of a map's side
FRAMED, EDGE = ICON + 4, 2  # a photograph with its frame, the white round letters
Maps = dict[str, dict[str, np.ndarray]]  # points (n, 2) in [-1, 1]² by encoder and perplexity


def feature_maps(maps: Maps | None = None, shown: ImageSet | None = None, **initial) -> Panel:
    """Two t-SNE maps side by side, with each class's photograph in the middle of its patches.

    Args:
        maps: what `maps_of` made; pixels and an untrained network by default.
        shown: the patches of `photo-patches` that it was made of.
    """
    if maps is None or shown is None:
        shown = few_patches(5)
        maps = maps_of(unlearned(decoded(shown)), (4, 12, 30))
    names, labels = list(maps), shown.labels.numpy()
    last = len(shown.classes)
    controls = {
        "left": options("left map", names),
        "right": options("right map", names, names[-1]),
        "photograph": slider("photograph", 0, 0, last, 1, {0: "all", last: shown.classes[-1]}),
        "perplexity": options("perplexity", maps[names[0]]),
    }
    return Panel(
        lambda figure, compact: build(figure, compact, maps, labels, shown.classes),
        controls, (9.2, 4.8), initial, 3.7,
    )  # fmt: skip


def maps_of(features: dict[str, Tensor], perplexities: Sequence[int]) -> Maps:
    """t-SNE of the directions of each encoder's features (n, D), at each perplexity.

    Nothing says which way up a map is: each is turned and mirrored to lie on the first as well as it can.
    """
    made: Maps = {}
    reference = None
    for name, found in features.items():
        x, made[name] = F.normalize(found.float(), dim=1).numpy(), {}
        for perplexity in perplexities:
            tsne = TSNE(2, perplexity=perplexity, init="pca", max_iter=500, random_state=0)
            points = tsne.fit_transform(x + 0)
            points = (points - points.mean(0)) / points.std()
            reference = points if reference is None else reference
            points = points @ orthogonal_procrustes(points, reference)[0]
            low, high = points.min(0), points.max(0)
            made[name][str(perplexity)] = (2 * points - low - high) / (high - low)
    return made


def same_nearest(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Which points have a nearest other point of their own class."""
    x = torch.from_numpy(points).double()[None]
    distance = torch.cdist(x, x)[0].fill_diagonal_(torch.inf)
    return labels[distance.argmin(1).numpy()] == labels


def build(figure, compact: bool, maps: Maps, labels: np.ndarray, classes: Sequence[str]) -> Drawing:
    axes = [figure.subplots()] if compact else list(figure.subplots(1, 2))
    sides = ["left"] if compact else ["left", "right"]
    planes = [draw_map(axis, labels, classes, compact) for axis in axes]
    count = np.bincount(labels, minlength=len(classes))

    def update(values: dict) -> str:
        chosen, parts = values["photograph"] - 1, []
        for side, plane in zip(sides, planes):
            points = maps[values[side]][values["perplexity"]]
            same = same_nearest(points, labels)
            plane.move(points, chosen, f"{values[side]}: {same.mean():.0%}")
            own = same[labels == chosen]
            parts.append(f"on the map of {values[side]} {(own if chosen >= 0 else same).mean():.0%}")
        who = f"the {count[chosen]} patches of {classes[chosen]}" if chosen >= 0 else f"{len(labels)} patches"
        return (
            f"Of {who} a patch of the same photograph is the nearest at perplexity {values['perplexity']} "
            f"for: {', '.join(parts)}."
        )

    return Drawing([artist for plane in planes for artist in plane.artists], update)


def draw_map(axis, labels: np.ndarray, classes: Sequence[str], compact: bool) -> Part:
    """Points by colour and marker, photographs with their names over them, a title; moved by the points, the
    chosen class (−1: all) and the title."""
    bare(axis, (-1.08, 1.08), (-1.08, 1.22))
    heading = axis.text(-1.05, 1.11, "", weight="bold", fontsize=9 if compact else 11)
    groups = [np.flatnonzero(labels % len(MARKERS) == m) for m in range(len(MARKERS))]
    size = 7 if compact else 15
    dots = [axis.scatter([], [], s=size, marker=marker, linewidths=0) for marker in MARKERS]
    canvas = np.zeros((CANVAS, CANVAS, 4), np.uint8)
    over = axis.imshow(canvas, extent=(-1.08, 1.08, -1.08, 1.08), interpolation="nearest", zorder=4)
    words = [""] * len(classes) if compact else classes  # too small to be read in a row
    small = [labelled(label, icon, word) for label, (icon, word) in enumerate(zip(icons(ICON), words))]
    colours = np.array([to_rgba(label) for label in labels])

    def move(points: np.ndarray, chosen: int, title: str) -> None:
        heading.set_text(title)
        shown = colours if chosen < 0 else np.where((labels == chosen)[:, None], colours, PALE)
        for group, scatter in zip(groups, dots):
            scatter.set_offsets(points[group])
            scatter.set_facecolors(shown[group])
        canvas[:] = 0
        visible = range(labels.max() + 1) if chosen < 0 else [chosen]
        middles = [(middle(points[labels == k]) * [1, -1] + 1.08) / 2.16 * CANVAS for k in visible]
        for rows in (slice(FRAMED), slice(FRAMED, None)):  # no photograph over a name
            for label, (x, y) in zip(visible, middles):
                stamp(canvas, small[label], int(x), int(y), rows)
        over.set_data(canvas)

    return Part([*dots, over, heading], move)


def labelled(label: int, icon: np.ndarray, name: str) -> np.ndarray:
    """A photograph in a frame of its class's colour with its name below, (h, w, 4) uint8."""
    colour = tuple(int(255 * c) for c in to_rgba(label))
    font = ImageFont.truetype(findfont("DejaVu Sans"), LETTERS)
    width = int(font.getlength(name)) + 2 + 2 * EDGE
    image = Image.new("RGBA", (max(FRAMED, width), FRAMED + LETTERS + 3 + 2 * EDGE))
    left = (image.width - FRAMED) // 2
    image.paste(colour, (left, 0, left + FRAMED, FRAMED))
    image.paste(Image.fromarray(icon), (left + 2, 2))
    at = (image.width / 2, FRAMED + EDGE)
    ImageDraw.Draw(image).text(at, name, "black", font, anchor="ma", stroke_width=EDGE, stroke_fill="white")
    return np.asarray(image)


def stamp(canvas: np.ndarray, tile: np.ndarray, x: int, y: int, rows: slice) -> None:
    """Put these rows of the tile on the canvas, its photograph's middle as near to x, y as there is room."""
    height, width = tile.shape[:2]
    top = np.clip(y - ICON // 2 - 2, 0, CANVAS - height)
    left = np.clip(x - width // 2, 0, CANVAS - width)
    under, tile = canvas[top : top + height, left : left + width][rows], tile[rows]
    under[:] = np.where(tile[..., 3:] > under[..., 3:] // 2, tile, under)


def middle(points: np.ndarray) -> np.ndarray:
    """The point with the least total distance to the others, which lies among them even in two heaps."""
    return points[np.linalg.norm(points[:, None] - points, axis=-1).sum(1).argmin()]


def to_rgba(label: int) -> tuple[float, ...]:
    colour = COLOURS[label // len(MARKERS) % len(COLOURS)]
    return (*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)), 1.0)
