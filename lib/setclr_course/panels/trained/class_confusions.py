"""Which photographs two encoders mistake for one another, and the patches that only one gets right."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setclr.data import ImageSet
from setclr.evaluation import knn
from setclr_course.kit.few_patches import few_patches, unlearned
from setclr_course.kit.palette import VERMILION
from setclr_course.kit.panel import Mark, Page, Panel, options, slider
from setclr_course.kit.tiles import tiles
from setclr_course.panels.trained.shades import draw_shades

SIDES = ("left", "right")
SHOWN = 5  # patches of a strip: on a phone their names have room


class Confused(NamedTuple):
    """What the two encoders make of all photographs, and of the chosen one."""

    matrices: list[np.ndarray]  # (classes, classes) of both
    alone: list[np.ndarray]  # the numbers of its patches that are right for one alone
    both: int


class class_confusions(Panel):
    """Two confusion matrices, and of one class the patches on which they differ.

    Args:
        predicted: labels (N,) of the test images by the name of the encoder that gave them; by default the
            vote of other patches, by pixels and by an untrained network.
        test: the images with their true labels.
    """

    least = flat = 0.88
    size, row_height = (9.2, 6.9), 3.3
    mosaic, row_mosaic = "left right; scale scale; alone_left alone_right", "left"
    heights = (446, 34, 150)

    def __init__(self, predicted: Mapping[str, ArrayLike] | None = None, test: ImageSet | None = None,
                 **initial: Any):  # fmt: skip
        if predicted is None or test is None:
            few = few_patches(16)
            test, found = ImageSet(few.images[1::2], few.labels[1::2], few.classes), unlearned(few.images[:])
            predicted = {name: knn(x[::2], few.labels[::2], x[1::2], 10) for name, x in found.items()}
        self.classes, self.labels, self.patches = test.classes, test.labels.numpy(), tiles(test.images[:])
        self.predicted = {name: np.asarray(labels) for name, labels in predicted.items()}
        names, last = list(predicted), len(self.classes) - 1
        self.knobs = {
            "photograph": slider("photograph", 0, 0, last, 1, {0: self.classes[0], last: self.classes[-1]}),
            "left": options("left", names),
            "right": options("right", names, names[-1]),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Confused:
        """Both matrices, and of the chosen photograph what each of the two has right alone."""
        chosen, found = values["photograph"], [self.predicted[values[side]] for side in SIDES]
        matrices = [confusions(self.labels, labels, len(self.classes)) for labels in found]
        one, two = ((self.labels == chosen) & (labels == chosen) for labels in found)
        alone = [np.flatnonzero(one & ~two), np.flatnonzero(two & ~one)]
        return Confused(matrices, alone, (one & two).sum())

    def draw(self, page: Page, values: dict, now: Confused) -> None:
        chosen, names = values["photograph"], [values[side] for side in SIDES]
        tables = [self.draw_matrix(page, side, values, matrix) for side, matrix in zip(SIDES, now.matrices)]
        for k, name in enumerate(self.classes):
            shares = dict.fromkeys(f"{of} {matrix[chosen, k]:.0%}" for of, matrix in zip(names, now.matrices))
            said = f"{self.classes[chosen]} taken for {name}: {', '.join(shares)}"
            page.link(said, *(table[chosen, k] for table in tables))
            if k != chosen:
                page.link(name, *(table[k, :] for table in tables), photograph=k)
        draw_shades(page, {0: "0%", 0.5: "50% of the row", 1: "100%"})
        for side, name, other, alone in zip(SIDES, names, names[::-1], now.alone):
            said = f"only {name} right ({len(alone)}); the other says"
            strip = page.plane(f"alone_{side}", (-0.5, SHOWN - 0.5), (-0.7, 0.5), said)
            shown, places = alone[:SHOWN], np.arange(len(alone[:SHOWN]))
            strip.photographs(np.column_stack([places, 0 * places]), self.patches[shown], 0.84)
            words = [self.classes[k] for k in self.predicted[other][shown]]
            strip.text(places, -0.45, words, size="small", rise="top")

    def draw_matrix(self, page: Page, side: str, values: dict, matrix: np.ndarray) -> Mark:
        n, chosen = len(self.classes), values["photograph"]
        title = f"{values[side]}: {(self.predicted[values[side]] == self.labels).mean():.0%} right"
        table = page.table(side, n, n, title, self.classes, self.classes, xlabel="is taken for", ylabel="is",
                           turn=90, room=(0, 0, 8, 0))  # fmt: skip
        cells = table.cells(matrix)
        row = table.boxes([-0.5, chosen - 0.5], [n - 0.5, chosen + 0.5], edge=VERMILION, width=2.5)
        if side == "left":
            row.handle("row", (n - 0.5, chosen), "photograph", along="y", label="the row")
        return cells

    def say(self, values: dict, now: Confused) -> str:
        chosen, one, two = values["photograph"], values["left"], values["right"]
        wrong = [favourite(matrix[chosen], chosen, self.classes) for matrix in now.matrices]
        return (
            f"Of {(self.labels == chosen).sum()} patches of {self.classes[chosen]} both have {now.both} "
            f"right, {one} alone {len(now.alone[0])}, {two} alone {len(now.alone[1])}. "
            f"{one} {wrong[0]}; {two} {wrong[1]}."
        )


def confusions(labels: np.ndarray, found: np.ndarray, count: int) -> np.ndarray:
    """How often (count, count) each class is taken for each, as shares of its images; 0 where it has none."""
    table = np.bincount(count * labels + found, minlength=count**2).reshape(count, count)
    return table / table.sum(1, keepdims=True).clip(1)


def favourite(row: np.ndarray, chosen: int, classes: Sequence[str]) -> str:
    """What a class is taken for most often when it is not taken for itself."""
    others = np.where(np.arange(len(row)) == chosen, 0, row)
    if not others.any():
        return "makes no mistake"
    return f"is wrong about {others.sum():.0%} of them and says {classes[int(others.argmax())]} most often"
