"""Photographs that ride on dots of a matplotlib axes."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from PIL import Image

from setclr_course.pixels.parts import Part


def riders(axis: Axes, faces: np.ndarray, size: float, lift: float = 0.0) -> Part:
    """Photographs (n, side, side, 3) that ride on dots, upright also where an axis points downwards: squares
    of `size` in data units, their edges of least y `lift` above the points (n, 2) that `move` takes; those at
    nan are not seen."""
    shown = Riders(axis, faces, size, lift)
    axis.add_artist(shown)
    return Part([shown], shown.move)


class Riders(Artist):
    """Photographs at points, made as large as they are drawn once, and not at every event."""

    zorder = 4

    def __init__(self, axis: Axes, faces: np.ndarray, size: float, lift: float):
        super().__init__()
        self.set_in_layout(False)
        self.on, self.lift = axis, lift
        self.width, self.height = axis_units(axis, size)
        self.faces = [Image.fromarray(face) for face in faces]
        self.points = np.full((len(faces), 2), np.nan)
        self._drawn: dict[tuple[int, int], list[np.ndarray]] = {}

    def move(self, points: np.ndarray) -> None:
        self.points = np.array(points, dtype=float)

    def draw(self, renderer) -> None:
        if not self.get_visible():
            return
        edge = self.points + (-self.width / 2, self.lift)
        ends = edge, edge + (self.width, self.height)
        corners = np.sort([self.on.transData.transform(end) for end in ends], axis=0)
        gc = renderer.new_gc()
        gc.set_clip_rectangle(self.on.bbox)
        for index in np.isfinite(self.points[:, 0]).nonzero()[0]:
            (left, bottom), (right, top) = corners[:, index]
            shape = max(1, round(right - left)), max(1, round(top - bottom))
            renderer.draw_image(gc, round(left), round(bottom), self._sized(shape)[index])
        gc.restore()

    def _sized(self, shape: tuple[int, int]) -> list[np.ndarray]:
        """The photographs as RGBA, the lowest row first, with so many pixels across and up."""
        if shape not in self._drawn:
            small = (face.convert("RGBA").resize(shape, Image.Resampling.BILINEAR) for face in self.faces)
            self._drawn = {shape: [np.flipud(np.asarray(face)).copy() for face in small]}
        return self._drawn[shape]


def axis_units(axis: Axes, size: float) -> tuple[float, float]:
    """Width and height in data units of what looks square and is `size` wide."""
    if axis.get_aspect() == 1.0:
        return size, size
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    per_x, per_y = abs(right - left) / axis.bbox.width, abs(high - low) / axis.bbox.height
    return size, size * per_y / per_x
