"""A picture, which way its surfaces face, and what is read of that from an encoder (MMCL, table 1).

A point that can be dragged says how far off the read-out is there.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from setclr_course.kit.palette import VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.panels.trained.shades import draw_shades
from setclr_course.papers.normals import NormalMaps, angular_errors

WORST = 90.0  # degrees, where the colours end
RING = 0.04 * np.exp(2j * np.pi * np.linspace(0, 1, 33))


class normal_map(Panel):
    """The first image of the maps, its normals, and those that were read off, with their errors.

    Args:
        maps: images with true normals; a made-up ball by default.
        predicted: by name, unit normals (N, 3, H, W) of these images; the ball's with noise by default.

    Raises:
        ValueError: a prediction has another size than the maps.
    """

    size, row_height = (7.9, 3.55), 2.9
    mosaic, row_mosaic = "image true read wrong; scale scale scale scale", "read wrong"
    heights = (262, 60)
    in_sight = 1

    def __init__(self, maps: NormalMaps | None = None, predicted: Mapping[str, Tensor] | None = None,
                 **initial: Any):  # fmt: skip
        from matplotlib import colormaps

        if maps is None or predicted is None:
            maps, predicted = made_up()
        valid = maps.valid[0].numpy()
        self.high, self.wide = valid.shape
        self.image = smaller(maps.images[0].movedim(0, -1).numpy())
        self.true = smaller(colours(maps.normals[0].numpy(), valid))
        self.key = ball_of_colours()
        self.shown, self.errors, self.median = {}, {}, {}
        for name, normals in predicted.items():
            angles = angular_errors(normals, maps)
            errors = np.full(valid.shape, np.nan)
            errors[valid] = angles[: valid.sum()].numpy()
            shades = np.where(valid[..., None], colormaps["cividis"](errors / WORST)[..., :3], 1)
            read = colours(normals[0].numpy(), np.ones_like(valid))
            self.shown[name] = smaller(read), smaller((255 * shades).astype(np.uint8))
            self.errors[name], self.median[name] = errors, float(angles.median())
        self.knobs = {
            "features": options("read from", predicted),
            "right": slider("point, to the right", round(0.55 * self.wide), 0, self.wide - 1, 1),
            "down": slider("point, downwards", round(0.6 * self.high), 0, self.high - 1, 1),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> float:
        """How many degrees off it is at the point; nan where that is not known."""
        return float(self.errors[values["features"]][values["down"], values["right"]])

    def draw(self, page: Page, values: dict, now: float) -> None:
        name, point = values["features"], np.array([values["right"], values["down"]])
        far = f"off by {now:.0f}°" if now == now else "not known here"
        corner, ring = np.array([self.wide, self.high]) - 0.5, complex(*point) + RING * self.wide
        for plot, title, picture in zip(("image", "true", "read", "wrong"),
                                        ("the photograph", "true normals", "read from features", far),
                                        (self.image, self.true, *self.shown[name])):  # fmt: skip
            plane = page.plane(plot, (-0.5, corner[0]), (corner[1], -0.5), title)
            plane.picture(picture, (-0.5, -0.5), corner)
            plane.line(ring.real, ring.imag, WHITE, 5)
            grip = plane.line(ring.real, ring.imag, VERMILION, 2.5)
            if plot == "image":
                grip.handle("point", point, "right", "down", label="the point")
        low = corner[1] - 0.02 * self.wide
        page["true"].picture(self.key, (0, low - 0.25 * self.wide), (0.25 * self.wide, low))
        said = f"median {self.median[name]:.0f}°; white: not known"
        draw_shades(page, {0: "0°", 0.5: "off by 45°", 1: "90°"}, said)

    def say(self, values: dict, now: float) -> str:
        name = values["features"]
        known = f"off by {now:.0f} degrees" if now == now else "the true direction is not known"
        return (
            f"Normals read from {name}: at column {values['right']}, row {values['down']} {known}. Over all "
            f"known pixels the median is {self.median[name]:.1f} degrees."
        )


def smaller(picture: np.ndarray) -> np.ndarray:
    """Every second row and column, from 200 rows on: as many pixels as are drawn."""
    return picture[::2, ::2] if len(picture) >= 200 else picture


def colours(normals: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8: red to the right, green upwards, blue towards the reader; white where unknown."""
    shown = (1 + normals * np.array([1, -1, -1])[:, None, None]) / 2
    return (255 * np.where(valid[..., None], shown.transpose(1, 2, 0).clip(0, 1), 1)).astype(np.uint8)


def ball_of_colours() -> np.ndarray:
    """What the colours mean: a small ball, (40, 40, 4) uint8, with nothing round it."""
    normals, inside = ball(40, 1)
    return np.dstack([colours(normals, inside), 255 * inside.astype(np.uint8)])


def ball(side: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Normals (3, side, side) of a ball of radius 1 before a wall, seen from -reach to reach; where it is."""
    y, x = np.mgrid[-reach : reach : side * 1j, -reach : reach : side * 1j]
    inside = x * x + y * y < 1
    return np.stack([x * inside, y * inside, -np.sqrt(1 - (x * x + y * y) * inside)]), inside


def made_up(side: int = 64) -> tuple[NormalMaps, dict[str, Tensor]]:
    """A ball before a wall, and its normals as if they had been read off with little noise and with much."""
    normals = torch.from_numpy(ball(side, 1.3)[0]).float()[None]
    shade = (128 - 50 * normals[:, :1] - 50 * normals[:, 1:2]).round().byte().expand(-1, 3, -1, -1)
    noise = torch.randn(normals.shape, generator=torch.Generator().manual_seed(1))
    read = {
        f"{word} noise": normalize(normals + much * noise) for word, much in (("little", 0.2), ("much", 1))
    }
    return NormalMaps(shade, normals, torch.ones(1, side, side, dtype=torch.bool)), read
