"""The training images of a run that are most alike to photographs of one's own: named, and drawn."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from setclr.checks import integer, printable
from setclr.data import ImageSet, Photographs
from setclr.data.folders import images_below
from setclr.evaluation import features, nearest
from setclr.experiments import Run
from setclr.experiments.kinds.image import side_of
from setclr.views.pixels import grey

ROWS = 24  # of a picture


class Neighbours(NamedTuple):
    """Of each query its nearest images, the most alike first."""

    names: list[str]  # of the queries
    queries: Tensor  # (Q, 3, S, S) uint8
    similar: Tensor  # (Q, k) cosines
    places: Tensor  # (Q, k) of the images
    images: ImageSet

    def lines(self) -> list[str]:
        """A line for each query: its nearest images by name, each with its cosine."""
        near = zip(self.names, self.similar.tolist(), self.places.tolist())
        return [
            f"{query}: {', '.join(f'{self.name(i)} {s:.2f}' for s, i in zip(*of))}" for query, *of in near
        ]

    def name(self, i: int) -> str:
        """The file of an image, or its number, and its class if it has one."""
        known, label = self.images.images, int(self.images.labels[i])
        file = printable(Path(known.path(i)).name) if isinstance(known, Photographs) else f"image {i}"
        return f"{self.images.classes[label]}/{file}" if label >= 0 else file

    def picture(self) -> Figure:
        """A row for each of the first queries (ROWS): itself, and its nearest images under their cosines."""
        rows, columns = min(len(self.names), ROWS), 1 + self.places.shape[1]
        figure = Figure((1.2 * columns, 1.4 * rows), layout="constrained")
        for axes, image, title in zip(figure.subplots(rows, columns, squeeze=False).flat, *self._shown()):
            axes.imshow(np.moveaxis(image.numpy(), 0, 2).squeeze(), cmap="gray")
            axes.set_title(title, fontsize=8)
            axes.set_axis_off()
        return figure

    def _shown(self) -> tuple[list[Tensor], list[str]]:
        images, titles = [], []
        for name, query, similar, index in zip(self.names[:ROWS], self.queries, self.similar, self.places):
            images += [query, *self.images.images[index]]
            titles += [Path(name).name, *(f"{s:.2f}" for s in similar.tolist())]
        return images, titles


def neighbours_of(run: Run, images: ImageSet, place: Path, k: int = 6) -> Neighbours:
    """The k images nearest to each photograph in a folder, or to one photograph, by cosines of features.

    Raises ValueError, naming the file or argument, if a photograph cannot be read or there are fewer than k
    images; FileNotFoundError if there is nothing there.
    """
    side = side_of(run)
    files = [str(place)] if place.is_file() else images_below(place)
    integer("k", k, least=1, most=len(images), hint=f"there are {len(images)} images")
    queries = Photographs(files, side)[:]
    if isinstance(images.images, Photographs):
        paths = [images.images.path(i) for i in range(len(images))]
        images = ImageSet(Photographs(paths, side), images.labels, images.classes)
    seen = grey(queries.float()).round().byte() if run.channels == 1 else queries
    bank, asked = features(run.encoder, images.images), features(run.encoder, seen)
    similar, index = nearest(bank, asked, k)
    names = [
        printable(Path(file).name if place.is_file() else Path(file).relative_to(place)) for file in files
    ]
    return Neighbours(names, queries, similar, index, images)
