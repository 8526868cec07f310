"""Clips on a map by their features, and the five nearest of one that is dragged to (MMCL, table 5)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from setclr.video import VideoSet, load_videos, to_pixels
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import GREEN, GREY, INK, OF_CLASS, PINE, SIGN_OF_CLASS, VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, Piece, options, slider

COUNT = 5
THINGS = ("motion", "photograph")


class Map(NamedTuple):
    """Features of all clips."""

    places: np.ndarray  # (N, 2): on the map, within ± 1
    nearest: list[list[int]]  # COUNT clips of each; none where its features are all 0 and point nowhere


class nearest_clips(Panel):
    """A map of clips, coloured by what they are, a ring round the query, and its five nearest by cosine.

    Args:
        features: (N, D) by name; by default some pixels of moving-patches and of its flow.
        videos: the N clips, labelled by "photograph" and "motion".
    """

    size, mosaic, widths, row_mosaic, in_sight = (9, 4.8), "map clips", (1, 1.4), "map", 2

    def __init__(
        self, features: Mapping[str, Tensor] | None = None, videos: VideoSet | None = None, **initial: Any
    ):
        if features is None or videos is None:
            videos, flow = (load_videos("moving-patches", "test", kind) for kind in ("rgb", "camera flow"))
            pixels, moved = videos.tensor[..., ::8, ::8], to_pixels(flow.tensor)[..., ::8, ::8]
            features = {"pixels": pixels.flatten(1), "true flow": moved.flatten(1)}
        self.maps = {name: map_of(np.asarray(x.detach().cpu(), np.float32)) for name, x in features.items()}
        self.labels = {thing: np.asarray(videos.labels[thing]) for thing in THINGS}
        self.classes = {thing: videos.classes[thing] for thing in THINGS}
        self.names = {thing: np.array(videos.classes[thing])[self.labels[thing]] for thing in THINGS}
        frames = np.asarray(videos.tensor).transpose(0, 2, 3, 4, 1)
        self.faces = frames[:, [0, frames.shape[1] // 2, -1]]
        self.knobs = {
            "features": options("features", features),
            "query": slider("query", len(videos) // 3, 0, len(videos) - 1, 1),
            "coloured by": options("coloured by", THINGS),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> list[int]:
        """The nearest of the query."""
        return self.maps[values["features"]].nearest[values["query"]]

    def draw(self, page: Page, values: dict, now: list[int]) -> None:
        places, query = self.maps[values["features"]].places, values["query"]
        named = self.classes[values["coloured by"]]
        below = 1.3 + 0.15 * -(-len(named) // 2)  # room for the words
        plane = page.plane("map", (-1.12, 1.12), (-below, 1.12), "clips: near where features are alike")
        plane.segments(places[query], places[now], GREY)
        ring = plane.dots(places[query], GREEN, size=22, edge="")
        ring.handle("query", places[query], to=nearest_to(places, query), label="the query")
        plane.dots(places[query], WHITE, size=16, edge="")
        colours, signs = np.divmod(self.labels[values["coloured by"]], len(SIGN_OF_CLASS))
        for k, name in enumerate(named):
            sign, colour = SIGN_OF_CLASS[k % len(SIGN_OF_CLASS)], OF_CLASS[k // len(SIGN_OF_CLASS)]
            at = k % 2 * 1.15 - 1.1, -1.27 - 0.15 * (k // 2)
            plane.text(*at, f"{sign} {name}", colour, "small", "start")
        dots: dict[int, Piece] = {}
        for number, sign in enumerate(SIGN_OF_CLASS):
            group = np.flatnonzero(signs == number)
            mark = plane.dots(places[group], [OF_CLASS[colour] for colour in colours[group]], sign, 8)
            dots |= {clip: mark[k] for k, clip in enumerate(group.tolist())}
        for clip, dot in dots.items():
            page.link(", ".join(self.names[thing][clip] for thing in THINGS), dot, query=clip)

        plot = page.plane("clips", (-0.1, 6.9), (6.9, -0.9), "the query, then its nearest")
        for k, clip in enumerate([query, *now]):
            x, y = 3.7 * (k % 2), 2.5 * (k // 2)
            frames = plot.photographs([(x + k + 0.5, y) for k in range(3)], self.faces[clip], 0.96)
            page.link(f"clip {clip}", frames, lit=[dots[clip]], query=clip)
            for thing, down, rise in (("photograph", -0.55, "bottom"), ("motion", 0.55, "top")):
                name, own = (self.names[thing][one] for one in (clip, query))
                colour = INK if k == 0 else PINE if name == own else VERMILION
                plot.text(x, y + down, name, colour, anchor="start", rise=rise)

    def say(self, values: dict, now: list[int]) -> str:
        motion, photograph = (self.names[thing][values["query"]] for thing in THINGS)
        alike = [(self.names[thing][now] == self.names[thing][values["query"]]).sum() for thing in THINGS]
        told = f"Of its {COUNT} nearest {alike[1]} have its photograph and {alike[0]} its motion."
        if not now:
            told = "They are all 0 and point nowhere, so nothing is nearest."
        return f"Clip {values['query']}, {photograph}, {motion}; features: {values['features']}. {told}"


def map_of(x: np.ndarray) -> Map:
    """The map of features (N, D), by their first two principal components, and who is nearest by cosine."""
    length = np.linalg.norm(x, axis=1)
    z = x / length[:, None].clip(1e-12)
    cosine = z @ z.T
    np.fill_diagonal(cosine, -np.inf)
    nearest = np.argsort(-cosine, axis=1, kind="stable")[:, :COUNT].tolist()
    points = length > 1e-5 * length.max()
    centred = z - z.mean(0, dtype=float)
    ways = np.linalg.svd(centred, full_matrices=False)[2][:2]
    ways *= np.sign(ways[[0, 1], np.abs(ways).argmax(1)])[:, None]
    places = centred @ ways.T
    return Map(places / np.abs(places).max(0), [row if there else [] for row, there in zip(nearest, points)])
