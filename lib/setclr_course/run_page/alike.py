"""The training images of a run that are most alike to photographs of one's own: named, and drawn."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from setclr.checks import integer, printable
from setclr.data import ImageSet, Photographs
from setclr.data.folders import images_below
from setclr.evaluation import features, nearest
from setclr.experiments import Run
from setclr.experiments.kinds.image import side_of
from setclr.views.pixels import grey
from setclr_course.kit.still import Picture
from setclr_course.run_page.pictures import alike
from setclr_course.run_page.things import faces

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

    def picture(self) -> Picture:
        """A row for each of the first queries (ROWS): itself, and its nearest images above their cosines."""
        places, side = self.places[:ROWS], 96
        near = faces(self.images.images[places.flatten()], side).reshape(*places.shape, side, side, 3)
        return alike(faces(self.queries[:ROWS], side), near, self.similar[:ROWS].numpy(), self.names[:ROWS])


def neighbours_of(
    run: Run, images: ImageSet, place: Path, k: int = 6, size: int | None = None
) -> Neighbours:  # fmt: skip
    """The k images nearest to each photograph in a folder, or to one photograph, by cosines of features.

    Raises ValueError, naming the file or argument, if a photograph cannot be read or there are fewer than k
    images; FileNotFoundError if there is nothing there.
    """
    side = side_of(run) if size is None else size
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
