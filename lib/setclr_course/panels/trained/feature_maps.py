"""Patches on a map made of an encoder's features: point at a dot and see the patch (GroCo, figure 7; IOT-CL,
figure 5a and 5b)."""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
import torch
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from PIL import Image
from scipy.linalg import orthogonal_procrustes
from torch import Tensor
from torch.nn import functional as F

from setclr.data import ImageSet
from setclr_course.kit.few_patches import few_patches, unlearned
from setclr_course.kit.palette import BLACK, BLUE, INK, OCHRE, PINE, PURPLE, VERMILION
from setclr_course.kit.tiles import decoded, tiles
from setclr_course.panels.trained.captions import captioned
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.panel import Drawing
from setclr_course.pixels.parts import Part, bare
from setclr_course.pixels.plotted import PlottedPanel

COLOURS, MARKERS = (BLUE, VERMILION, PINE, OCHRE, PURPLE, BLACK), "^vD"
SYMBOLS = {"^": "triangle-up", "v": "triangle-down", "D": "diamond"}  # plotly's names
SIGNS = {"^": "▲", "v": "▼", "D": "◆"}  # before a photograph's name on the plotly map
PALE = "#dcdcdc"
SIDE = 420  # pixels of the plotly map
LIT = ("all", "its photograph")
Maps = dict[str, dict[str, np.ndarray]]  # points (n, 2) in [-1, 1]² by encoder and perplexity


class Laid(NamedTuple):
    """A map."""

    points: np.ndarray  # (n, 2)
    nearest: np.ndarray  # (n,): the nearest other dot of each
    middles: np.ndarray  # (classes, 2): where the names stand


class Shown(NamedTuple):
    """What stands on the maps."""

    maps: dict[str, dict[str, Laid]]
    labels: np.ndarray  # (n,)
    classes: Sequence[str]
    patches: np.ndarray  # (n, H, W, 3) uint8

    def pair(self, values: dict) -> tuple[int, int]:
        """The dot that is pointed at, and the nearest to it."""
        laid = self.maps[values["encoder"]][values["perplexity"]]
        return values["patch"], int(laid.nearest[values["patch"]])

    def lit(self, values: dict) -> np.ndarray:
        """Which dots are lit: (n,) bool."""
        return (self.labels == self.labels[values["patch"]]) | (values["lit"] == "all")

    def name(self, patch: int) -> str:
        return self.classes[self.labels[patch]]


def feature_maps(maps: Maps | None = None, shown: ImageSet | None = None, **initial) -> PlottedPanel:
    """A t-SNE map with the patch that the reader points at beside it.

    Args:
        maps: what `maps_of` made; pixels and an untrained network by default.
        shown: the n patches that it was made of.
    """
    if maps is None or shown is None:
        shown = few_patches(5)
        maps = maps_of(unlearned(decoded(shown)), (4, 12, 30))
    labels, count = shown.labels.numpy(), len(shown.classes)
    laid = {
        name: {at: Laid(x, nearest_dot(x), middles(x, labels, count)) for at, x in of.items()}
        for name, of in maps.items()
    }
    things = Shown(laid, labels, shown.classes, tiles(decoded(shown)))
    last = len(labels) - 1
    controls = {
        "encoder": options("encoder", maps, list(maps)[-1]),
        "patch": slider("patch pointed at", 0, 0, last, 1),
        "lit": options("light up", LIT),
        "perplexity": options("perplexity", next(iter(maps.values()))),
    }
    return PlottedPanel(
        lambda figure, compact: build(figure, compact, things), controls, scene(things), LAYOUT,
        lambda values: traces(values, things), (8.4, 4.6), initial, pointed=lambda number: {"patch": number},
        beside=lambda values: beside(values, things), row_height=3.6, in_sight=3,
    )  # fmt: skip


def maps_of(features: dict[str, Tensor], perplexities: Sequence[int]) -> Maps:
    """t-SNE of the directions of each encoder's features (n, D), at each perplexity.

    Nothing says which way up a map is: each is turned and mirrored to lie on the first as well as it can.
    """
    from sklearn.manifold import TSNE  # takes a second

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


def nearest_dot(points: np.ndarray) -> np.ndarray:
    """The nearest other point of each of (n, 2)."""
    x = torch.from_numpy(points).double()[None]
    return torch.cdist(x, x)[0].fill_diagonal_(torch.inf).argmin(1).numpy()


def middle(points: np.ndarray) -> np.ndarray:
    """The point with the least total distance to the others, which lies among them even in two heaps."""
    return points[np.linalg.norm(points[:, None] - points, axis=-1).sum(1).argmin()]


def middles(points: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """The middle of each class's points; beyond the map where a class has none."""
    groups = [points[labels == k] for k in range(count)]
    return apart(np.stack([middle(group) if len(group) else np.full(2, 9.0) for group in groups]))


def apart(places: np.ndarray, wide: float = 0.3, high: float = 0.085, rounds: int = 200) -> np.ndarray:
    """Places (n, 2) of words, moved up and down until no two are nearer than a word is wide and high."""
    places = places.copy()
    places[:, 1] += 1e-4 * np.arange(len(places))  # two at one place go apart too
    for _ in range(rounds):
        dx, dy = (places[:, None] - places).transpose(2, 0, 1)
        near = (np.abs(dx) < wide) & (np.abs(dy) < high)
        np.fill_diagonal(near, False)
        if not near.any():
            break
        places[:, 1] += 0.3 * np.where(near, np.sign(dy) * (high - np.abs(dy)), 0).sum(1)
    return places


def colour_of(label: int) -> str:
    return COLOURS[label // len(MARKERS) % len(COLOURS)]


def scene(things: Shown) -> list[go.Scatter]:
    """The dots; rings round the one that is pointed at and the nearest; the names."""
    symbols = [SYMBOLS[MARKERS[k % len(MARKERS)]] for k in things.labels]
    names = [things.classes[k] for k in things.labels]
    marker = {"size": 8, "symbol": symbols, "line": {"width": 0}}
    dots = go.Scatter(mode="markers", marker=marker, text=names, hoverinfo="text")
    ring = {"size": 17, "symbol": "circle-open", "line": {"width": 2.5}, "color": INK}
    rings = go.Scatter(mode="lines+markers", marker=ring, line={"color": INK, "width": 1.5}, hoverinfo="skip")
    font = {"size": 12, "color": INK, "shadow": ",".join(["0 0 3px white"] * 4)}
    signed = [f'<span style="color:{colour_of(k)}">{SIGNS[MARKERS[k % len(MARKERS)]]}</span> {name}'
              for k, name in enumerate(things.classes)]  # fmt: skip
    words = go.Scatter(mode="text", text=signed, textfont=font, hoverinfo="skip")
    return [dots, rings, words]


EDGE = {"visible": False, "range": [-1.12, 1.12], "fixedrange": True}
LAYOUT = {
    "width": SIDE,
    "height": SIDE,
    "xaxis": EDGE,
    "yaxis": EDGE,
    "hovermode": "closest",
    "dragmode": False,
}


def traces(values: dict, things: Shown) -> list[dict]:
    laid = things.maps[values["encoder"]][values["perplexity"]]
    return [
        xy(laid.points) | {"marker": {"color": colours(values, things)}},
        xy(laid.points[list(things.pair(values))]),
        xy(laid.middles),
    ]


def xy(points: np.ndarray) -> dict:
    return {"x": points[:, 0], "y": points[:, 1]}


def colours(values: dict, things: Shown) -> list[str]:
    return [colour_of(k) if on else PALE for k, on in zip(things.labels, things.lit(values))]


def pair_of(values: dict, things: Shown, scale: float = 1.0) -> np.ndarray:
    """The patch that is pointed at over the one of the nearest dot, with their names, (h, w, 3) uint8."""
    said = ("you point at: ", "nearest dot: ")
    both = zip(things.pair(values), said)
    return np.concatenate(
        [captioned(things.patches[k], word + things.name(k), 150, scale) for k, word in both]
    )


def beside(values: dict, things: Shown) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pair_of(values, things)).save(stream, "png", compress_level=1)
    return stream.getvalue()


def build(figure, compact: bool, things: Shown) -> Drawing:
    axis = figure.subplots()
    axis.set_anchor("C" if compact else "W")
    plane, pictures = draw_map(axis, things, compact), []
    if not compact:
        pictures = [figure.figimage(np.zeros((4, 4, 3)), 750, 60)]  # as it is, without an axes to resample it
        draw_legend(figure, things)

    def update(values: dict) -> str:
        plane.move(values)
        for picture in pictures:
            picture.set_data(pair_of(values, things, 1.2))
        return sentence(values, things)

    return Drawing([*plane.artists, *pictures], update)


def sentence(values: dict, things: Shown) -> str:
    labels, (patch, other) = things.labels, things.pair(values)
    same = labels[things.maps[values["encoder"]][values["perplexity"]].nearest] == labels
    which = things.lit(values)
    who = f"all {len(labels)} patches"
    if values["lit"] != "all":
        who = f"the {which.sum()} patches of {things.name(patch)}"
    return (
        f"Map of {values['encoder']} at perplexity {values['perplexity']}: patch {patch} is of "
        f"{things.name(patch)}, the nearest dot of {things.name(other)}. Of {who} "
        f"{same[which].mean():.0%} have a dot of their own photograph nearest."
    )


def draw_map(axis, things: Shown, compact: bool) -> Part:
    """The twin of the plotly map."""
    bare(axis, (-1.12, 1.12), (-1.12, 1.24))
    heading = axis.text(-1.1, 1.17, "", fontsize=8 if compact else 11, weight="bold")
    own, pale = to_rgba_array([colour_of(k) for k in things.labels]), to_rgba(PALE)
    groups = [np.flatnonzero(things.labels % len(MARKERS) == m) for m in range(len(MARKERS))]
    dots = [axis.scatter([], [], s=12 if compact else 22, marker=marker, linewidths=0) for marker in MARKERS]
    pair = axis.plot([], [], "o-", color=INK, mfc="none", markersize=12, mew=2, linewidth=1.2)[0]
    words = [] if compact else [label(axis, name) for name in things.classes]

    def move(values: dict) -> None:
        laid = things.maps[values["encoder"]][values["perplexity"]]
        colour = np.where(things.lit(values)[:, None], own, pale)
        for group, scatter in zip(groups, dots):
            scatter.set_offsets(laid.points[group])
            scatter.set_facecolors(colour[group])
        pair.set_data(*laid.points[list(things.pair(values))].T)
        for word, at in zip(words, laid.middles):
            word.set_position(at)
        same = things.labels[laid.nearest] == things.labels
        whose = "" if compact else f"{values['encoder']}: "
        heading.set_text(f"{whose}{same.mean():.0%} have their photograph nearest")

    return Part([*dots, pair, *words, heading], move)


def draw_legend(figure, things: Shown) -> None:
    """The colour and the marker of each photograph, between the map and the patches."""
    own = [Line2D([], [], linestyle="", marker=MARKERS[k % len(MARKERS)], color=colour_of(k), label=name)
           for k, name in enumerate(things.classes)]  # fmt: skip
    how = {"fontsize": 9, "frameon": False, "handletextpad": 0.2, "labelspacing": 0.55}
    figure.legend(handles=own, loc="center", bbox_to_anchor=(0.64, 0.5), **how)


def label(axis, name: str):
    """A photograph's name, on white, to be read among dots."""
    text = axis.text(0, 0, name, ha="center", va="center", fontsize=8.5, color=INK, clip_on=True)
    text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    return text
