"""Patches on a map made of an encoder's features: point at a dot and see the patch (GroCo, figure 7; IOT-CL,
figure 5a and 5b)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.nn.functional import normalize

from setclr.data import ImageSet
from setclr_course.kit.few_patches import few_patches, unlearned
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import INK, OF_CLASS, SIGN_OF_CLASS, VERMILION
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.kit.tiles import tiles
from setclr_course.panels.trained.coarse import coarse

KINDS = ((1.25, "nearest dot", INK), (0.0, "you point at", VERMILION))  # the patches beside the map
EDGE = 1.12  # of the map; its dots reach from -1 to 1
RING = 0.06 * np.exp(2j * np.pi * np.linspace(0, 1, 33))
Maps = dict[str, dict[str, np.ndarray]]  # points (n, 2) in [-1, 1]² by encoder and perplexity


class Pointed(NamedTuple):
    """A map, and what is pointed at on it."""

    points: np.ndarray  # (n, 2)
    pair: list[int]  # the dot that is pointed at, and the nearest to it
    same: np.ndarray  # (n,) bool: the nearest dot is of its own photograph


class feature_maps(Panel):
    """A t-SNE map with the patch that the reader points at beside it.

    Args:
        maps: what `maps_of` made; pixels and an untrained network by default.
        shown: the n patches that it was made of.
    """

    size, row_height = (8.6, 4.6), 3.6
    mosaic, widths, row_mosaic = "map patches legend", (4.2, 1.9, 1.1), "map"
    in_sight = 2

    def __init__(self, maps: Maps | None = None, shown: ImageSet | None = None, **initial: Any):
        if maps is None or shown is None:
            shown = few_patches(5)
            maps = maps_of(unlearned(shown.images[:]), (4, 12, 30))
        self.maps, self.labels, self.classes = maps, shown.labels.numpy(), shown.classes
        self.names = [self.classes[label] for label in self.labels]
        self.patches = coarse(tiles(shown.images[:]))  # or a saved picture has no colours left for the dots
        self.knobs = {
            "encoder": options("encoder", maps, list(maps)[-1]),
            "patch": slider("patch pointed at", 0, 0, len(self.labels) - 1, 1),
            "perplexity": options("perplexity", next(iter(maps.values()))),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Pointed:
        patch, points = values["patch"], self.maps[values["encoder"]][values["perplexity"]]
        nearest = nearest_dot(points)
        return Pointed(points, [patch, int(nearest[patch])], self.labels[nearest] == self.labels)

    def draw(self, page: Page, values: dict, now: Pointed) -> None:
        plane = page.plane("map", (-EDGE, EDGE), title=f"{now.same.mean():.0%} have their photograph nearest")
        pair = page.plane("patches", (-0.02, 1.02), (2.42, -0.02))
        legend = page.plot("legend", (0, 1), (len(self.classes), -1), frame="")
        for kind, name in enumerate(self.classes):
            mine = np.flatnonzero(self.labels == kind)
            colour = OF_CLASS[kind // len(SIGN_OF_CLASS) % len(OF_CLASS)]
            sign = SIGN_OF_CLASS[kind % len(SIGN_OF_CLASS)]
            dots = plane.dots(now.points[mine], colour, sign, 9)
            key = legend.dots([(0, kind)], colour, sign)
            legend.text(0, kind, name, anchor="start", right=12)
            for number, patch in enumerate(mine.tolist()):
                page.link(name, dots[number], lit=[key, dots], patch=patch)
            page.link(name, key, lit=[dots])
        ends = now.points[now.pair]
        plane.segments(ends[0], ends[1])
        for k, place, (low, said, colour) in zip(now.pair[::-1], ends[::-1], KINDS):
            ring = plane.line(place[0] + RING.real, place[1] + RING.imag, colour, 2.5)
            pair.picture(self.patches[k], (0, low), (1, low + 1))
            pair.boxes([0, low], [1, low + 1], edge=colour, width=3)
            pair.text(0, low + 1.03, f"{said}: {self.names[k]}", colour, anchor="start", rise="top")
        ring.handle("patch", ends[0], to=nearest_to(now.points, now.pair[0]), label="the patch pointed at")

    def say(self, values: dict, now: Pointed) -> str:
        patch, other = now.pair
        return (
            f"Map of {values['encoder']} at perplexity {values['perplexity']}: patch {patch} is of "
            f"{self.names[patch]}, the nearest dot of {self.names[other]}. Of all "
            f"{len(self.labels)} patches {now.same.mean():.0%} have a dot of their own photograph nearest."
        )


def maps_of(features: dict[str, Tensor], perplexities: Sequence[int]) -> Maps:
    """t-SNE of the directions of each encoder's features (n, D), at each perplexity.

    Nothing says which way up a map is: each is turned and mirrored to lie on the first as well as it can.
    """
    from sklearn.manifold import TSNE  # takes a second

    made: Maps = {}
    reference = None
    for name, found in features.items():
        x, made[name] = normalize(found.float(), dim=1).numpy(), {}
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
    far = cdist(points, points)
    np.fill_diagonal(far, np.inf)
    return far.argmin(1)
