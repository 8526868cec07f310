"""A picture, which way its surfaces face, and what is read of that from an encoder (MMCL, table 1).

A point that can be dragged says how far off the read-out is there.
"""

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from setclr_course.kit.palette import VERMILION
from setclr_course.papers.normals import NormalMaps, angular_errors
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

WORST = 90.0  # degrees, where the colours end


def normal_map(
    maps: NormalMaps | None = None, predicted: Mapping[str, Tensor] | None = None, **initial
) -> Panel:
    """The first image of the maps, its normals, and those that were read off, with their errors.

    Args:
        maps: images with true normals; a made-up ball by default.
        predicted: by name, unit normals (N, 3, H, W) of these images; the ball's with noise by default.

    Raises:
        ValueError: a prediction has another size than the maps.
    """
    if maps is None or predicted is None:
        maps, predicted = ball()
    seen = Seen(maps, predicted)
    high, wide = seen.valid.shape
    controls = {
        "features": options("read from", predicted),
        "right": slider("point, to the right", round(0.55 * wide), 0, wide - 1, 1),
        "down": slider("point, downwards", round(0.6 * high), 0, high - 1, 1),
    }
    return Panel(lambda figure, compact: build(figure, compact, seen), controls, (9, 4.1), initial, 3.0, 1)


def ball(side: int = 64) -> tuple[NormalMaps, dict[str, Tensor]]:
    """A ball before a wall, and its normals with a little noise and with much."""
    y, x = torch.meshgrid(*[torch.linspace(-1.3, 1.3, side)] * 2, indexing="ij")
    z = (1 - x * x - y * y).clamp(min=0).sqrt()
    on = x * x + y * y < 1
    normals = torch.where(on, torch.stack([x, y, -z]), torch.tensor([0.0, 0, -1])[:, None, None])[None]
    shade = (128 - 100 * (normals[:, :1] + normals[:, 1:2]) / 2).round().byte().expand(-1, 3, -1, -1)
    noise = torch.randn(normals.shape, generator=torch.Generator().manual_seed(1))
    read = {
        name: torch.nn.functional.normalize(normals + much * noise, dim=1)
        for name, much in (("little noise", 0.2), ("much noise", 1.0))
    }
    return NormalMaps(shade, normals, torch.ones(1, side, side, dtype=torch.bool)), read


class Seen:
    """The image, the colours of its normals, and of each prediction colours, angles and their median."""

    def __init__(self, maps: NormalMaps, predicted: Mapping[str, Tensor]):
        self.image = smaller(maps.images[0].movedim(0, -1).numpy())
        self.valid = maps.valid[0].numpy()
        self.true = smaller(colours(maps.normals[0].numpy(), self.valid))
        known = np.ones_like(self.valid)
        self.read = {name: smaller(colours(x[0].numpy(), known)) for name, x in predicted.items()}
        self.errors: dict[str, np.ndarray] = {}
        self.median: dict[str, float] = {}
        for name, x in predicted.items():
            angles = angular_errors(x, maps)
            self.median[name] = float(angles.median())
            self.errors[name] = np.full(self.valid.shape, np.nan)
            self.errors[name][self.valid] = angles[: int(self.valid.sum())].numpy()


def smaller(picture: np.ndarray) -> np.ndarray:
    """Every second row and column, from 200 rows on: as many pixels as are drawn."""
    return picture[::2, ::2] if len(picture) >= 200 else picture


def colours(normals: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(H, W, 3) in [0, 1]: red to the right, green upwards, blue towards the reader; white where unknown."""
    shown = (1 + normals * np.array([1, -1, -1])[:, None, None]) / 2
    return np.where(valid[..., None], shown.transpose(1, 2, 0), 1.0)


def build(figure, compact: bool, seen: Seen) -> Drawing:
    axes = list(figure.subplots(1, 2 if compact else 4).flat)
    still = [] if compact else [("drag the point", seen.image), ("true: which way it faces", seen.true)]
    for axis, (title, picture) in zip(axes, still):
        draw_picture(axis, picture, title)
    first = next(iter(seen.read))
    read = draw_picture(axes[-2], seen.read[first], "read off")
    wrong = draw_picture(axes[-1], smaller(seen.errors[first]), "off by")
    wrong.set(cmap="cividis", clim=(0, WORST))
    for image in (image for axis in axes for image in axis.images):
        image.set_extent((-0.5, seen.valid.shape[1] - 0.5, seen.valid.shape[0] - 0.5, -0.5))
    if not compact:
        draw_key(axes[1])
        bar = figure.colorbar(wrong, ax=axes, location="bottom", shrink=0.3, aspect=30, ticks=[0, 45, 90])
        bar.ax.set_xlabel("off by so many degrees (smaller is closer); white: not known", fontsize=9)
    points = draw_points(axes)

    def update(values: dict) -> str:
        name, x, y = values["features"], values["right"], values["down"]
        read.set_data(seen.read[name])
        wrong.set_data(smaller(seen.errors[name]))
        points.move(x, y)
        there = seen.errors[name][y, x]
        known = "the true direction is not known" if np.isnan(there) else f"off by {there:.0f} degrees"
        return (
            f"Normals read from {name}: at column {x}, row {y} {known}. Over all known pixels the median is "
            f"{seen.median[name]:.1f} degrees."
        )

    handles = (
        {} if compact else {"point": Handle(axes[0], ("right", "down"), lambda v: (v["right"], v["down"]))}
    )
    return Drawing([read, wrong, *points.artists], update, handles)


def draw_picture(axis: Axes, picture: np.ndarray, title: str):
    bare(axis)
    axis.set_title(title, fontsize=10)
    return axis.imshow(picture, interpolation="nearest")


def draw_key(axis: Axes) -> None:
    """A small ball in the colours of the directions, in the lower left corner."""
    y, x = np.mgrid[-1:1:40j, -1:1:40j]
    inside = x * x + y * y < 1
    z = -np.sqrt(np.clip(1 - x * x - y * y, 0, 1))
    picture = np.dstack([colours(np.stack([x, y, z]), inside), inside])
    inset = axis.inset_axes((0.02, 0.02, 0.25, 0.25), anchor="SW")
    inset.imshow(picture)
    inset.axis("off")


def draw_points(axes: list[Axes]) -> Part:
    """A ring at the same place of every picture."""
    rings = [
        axis.plot([], [], "o", fillstyle="none", color=colour, markersize=size, markeredgewidth=width)[0]
        for axis in axes
        for colour, size, width in (("white", 11, 4), (VERMILION, 11, 2))
    ]

    def move(x: int, y: int) -> None:
        for ring in rings:
            ring.set_data([x], [y])

    return Part(rings, move)
