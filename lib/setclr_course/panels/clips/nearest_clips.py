"""Clips on a map by their features, and the five nearest of one that is dragged to (MMCL, table 5)."""

from collections.abc import Mapping
from itertools import zip_longest

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor
from torch.nn.functional import normalize

from setclr.evaluation.neighbours import neighbours
from setclr.evaluation.videos import pointing
from setclr.video.sets import VideoSet
from setclr_course.kit.palette import GREEN, GREY, VERMILION
from setclr_course.panels.clips.made_up import filmed_hills
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

COUNT = 5
COLOURS = ("motion", "photograph")


def nearest_clips(
    features: Mapping[str, Tensor] | None = None, videos: VideoSet | None = None, **initial
) -> Panel:
    """A map of clips, coloured by what they are, a ring round the query, and its five nearest by cosine.

    Args:
        features: (N, D) by name; of made-up clips by default.
        videos: the N clips, labelled by "photograph" and "motion".

    Raises:
        ValueError: features are not as many as clips.
    """
    if features is None or videos is None:
        features, videos = made_up()
    for name, x in features.items():
        if len(x) != len(videos):
            raise ValueError(f"features[{name!r}] must be of {len(videos)} clips, got {tuple(x.shape)}")
    seen = Seen(features, videos)
    controls = {
        "features": options("features", features),
        "query": slider("query", len(videos) // 3, 0, len(videos) - 1, 1),
        "coloured by": options("coloured by", COLOURS),
    }
    return Panel(lambda figure, compact: build(figure, compact, seen), controls, (9, 4.2), initial, 3.6, 2)


def made_up() -> tuple[dict[str, Tensor], VideoSet]:
    videos = filmed_hills()[0].in_ram.repeat(12, 1, 1, 1, 1)
    labels = {"photograph": torch.arange(60) % 3, "motion": torch.arange(60) % 5}
    classes = {"photograph": ("a", "b", "c"), "motion": ("left", "down", "in", "right", "still")}
    generator = torch.Generator().manual_seed(4)
    noise = torch.randn(2, 60, 8, generator=generator)
    made = {
        name: torch.eye(8)[labels[name]] * 3 + noise[i] for i, name in enumerate(("photograph", "motion"))
    }
    return {f"that know the {name}": x for name, x in made.items()}, VideoSet(videos, labels, classes)


class Seen:
    """Places on the map, the nearest of every clip, and their middle frames."""

    def __init__(self, features: Mapping[str, Tensor], videos: VideoSet):
        self.videos, self.places, self.nearest, self.points = videos, {}, {}, {}
        for name, x in features.items():
            z = normalize(x.detach().float().cpu(), dim=1)
            self.places[name], self.points[name] = on_map(z), pointing(x)
            self.nearest[name] = neighbours(z, torch.zeros(len(z), dtype=torch.long), z, COUNT + 1)[1].numpy()
        middle = videos.in_ram.shape[2] // 2
        self.frames = videos.in_ram[:, :, [0, middle, -1]].permute(0, 2, 3, 4, 1).numpy()

    def others(self, features: str, query: int) -> list[int]:
        """Its nearest, without itself; none where its features are all 0, which point nowhere."""
        if not self.points[features][query]:
            return []
        return [int(i) for i in self.nearest[features][query] if i != query][:COUNT]

    def label(self, thing: str, i: int) -> str:
        return self.videos.classes[thing][int(self.videos.labels[thing][i])]


def on_map(z: Tensor) -> np.ndarray:
    """The first two principal components of (N, D), each within ± 1."""
    x = (z - z.mean(0)).double().numpy()
    v = np.linalg.svd(x, full_matrices=False)[2]
    v = v[:2] * np.where(v[:2][np.arange(2), np.abs(v[:2]).argmax(1)] < 0, -1, 1)[:, None]
    places = x @ v.T
    return places / np.abs(places).max(0)


def build(figure, compact: bool, seen: Seen) -> Drawing:
    if compact:
        left, axes = figure.subplots(), []
    else:
        grid = figure.add_gridspec(2, 5, width_ratios=(2.2, 0.1, 1, 1, 1))
        left = figure.add_subplot(grid[:, 0])
        axes = [figure.add_subplot(grid[i // 3, 2 + i % 3]) for i in range(COUNT + 1)]
    dots = draw_map(left, seen)
    shown = [draw_clip(axis) for axis in axes]
    now: dict = {}

    def update(values: dict) -> str:
        now.update(values)
        query = values["query"]
        others = seen.others(values["features"], query)
        dots.move(values, others)
        for part, i in zip_longest(shown, [query, *others][: len(shown)]):
            part.move(seen, i, query)
        return sentence(seen, values, others)

    def at(values: dict) -> np.ndarray:
        return seen.places[values["features"]][values["query"]]

    def to(x: float, y: float) -> list[int]:
        return [int(np.square(seen.places[now["features"]] - (x, y)).sum(1).argmin())]

    handles = {} if compact else {"query": Handle(left, ("query",), at, to=to, label="the query")}
    return Drawing([*dots.artists, *(a for part in shown for a in part.artists)], update, handles)


def draw_map(axis: Axes, seen: Seen) -> Part:
    bare(axis, (-1.12, 1.12))
    axis.set_title("drag the ring", fontsize=10)
    points = axis.scatter(np.zeros(len(seen.videos)), np.zeros(len(seen.videos)), s=16, linewidths=0)
    lines = [axis.plot([], [], color=GREY, linewidth=1, zorder=0)[0] for _ in range(COUNT)]
    ring = axis.plot([], [], "o", fillstyle="none", color=GREEN, markersize=15, markeredgewidth=3)[0]
    shades = {
        thing: matplotlib.colormaps["tab20"](seen.videos.labels[thing].numpy() % 20) for thing in COLOURS
    }

    def move(values: dict, others: list[int]) -> None:
        places = seen.places[values["features"]]
        points.set_offsets(places)
        points.set(facecolors=shades[values["coloured by"]])
        ring.set_data(*places[values["query"]][:, None])
        for one, i in zip_longest(lines, others):
            one.set_data(*(places[[values["query"], i]].T if i is not None else ([], [])))

    return Part([*lines, points, ring], move)


def draw_clip(axis: Axes) -> Part:
    """First, middle and last frame of a clip side by side, and what it is."""
    bare(axis)
    image = axis.imshow(np.zeros((32, 100, 3), dtype=np.uint8), interpolation="nearest")
    above = axis.set_title(" ", fontsize=9, in_layout=True)
    below = axis.text(
        0.5, -0.06, "", transform=axis.transAxes, fontsize=9, ha="center", va="top", in_layout=False
    )

    def move(seen: Seen, i: int | None, query: int) -> None:
        image.set_visible(i is not None)
        if i is None:
            above.set_text("")
            below.set_text("")
            return
        three = np.pad(seen.frames[i], ((0, 0), (0, 0), (0, 2), (0, 0)), constant_values=255)
        picture = three.transpose(1, 0, 2, 3).reshape(three.shape[1], -1, 3)
        image.set_data(picture)
        image.set_extent((0, picture.shape[1], picture.shape[0], 0))
        for text, thing in ((above, "photograph"), (below, "motion")):
            alike = seen.label(thing, i) == seen.label(thing, query)
            text.set(text=("query: " if i == query and text is above else "") + seen.label(thing, i))
            text.set_color("black" if i == query else GREEN if alike else VERMILION)

    return Part([image, above, below], move)


def sentence(seen: Seen, values: dict, others: list[int]) -> str:
    query = values["query"]
    alike = {
        thing: sum(seen.label(thing, i) == seen.label(thing, query) for i in others) for thing in COLOURS
    }
    told = (
        f"Of its {COUNT} nearest {alike['photograph']} have its photograph and {alike['motion']} its motion."
        if others
        else "They are all 0 and point nowhere, so nothing is nearest."
    )
    return (
        f"Clip {query}, {seen.label('photograph', query)}, {seen.label('motion', query)}; features: "
        f"{values['features']}. {told}"
    )
