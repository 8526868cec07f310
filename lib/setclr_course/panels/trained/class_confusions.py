"""Which photographs two encoders mistake for one another, and the patches that only one gets right."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import options, slider
from setclr_course.kit.palette import VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page
from setclr_course.panels.trained.shades import draw_shades
from setclr_course.panels.trained.similar import nearest_patches

if TYPE_CHECKING:
    from setclr.data import ImageSet

SHOWN = 6  # patches of a strip


class Confused(NamedTuple):
    """What the two encoders make of the chosen photograph."""

    rows: list[np.ndarray]  # (classes,): of it in both matrices
    alone: list[np.ndarray]  # the numbers of its patches that are right for one alone
    total: int
    both: int


class class_confusions(Panel):
    """Two confusion matrices, and of one class the patches on which they differ.

    Args:
        predicted: labels (N,) of the test images by the name of the encoder that gave them; by default that
            of the most similar other image, by pixels and by an untrained network.
        test: the images with their true labels.
    """

    size, row_height = (9.2, 6.9), 3.3
    mosaic, row_mosaic = "left right; scale scale; alone_left alone_right", "left"
    heights = (446, 34, 150)

    def __init__(
        self, predicted: Mapping[str, ArrayLike] | None = None, test: "ImageSet | None" = None, **initial: Any
    ):
        from setclr_course.kit.few_patches import few_patches, unlearned
        from setclr_course.kit.tiles import decoded, tiles

        if predicted is None or test is None:
            test = few_patches(8)
            of = unlearned(test.images[:])
            predicted = {name: test.labels[nearest_patches(x, np.zeros(1))["all"]] for name, x in of.items()}
        self.classes, self.labels, self.patches = test.classes, test.labels.numpy(), tiles(decoded(test))
        self.predicted = {name: np.asarray(labels) for name, labels in predicted.items()}
        count = len(self.classes)
        self.matrices = {name: confusions(self.labels, x, count) for name, x in self.predicted.items()}
        names = list(predicted)
        ends: dict[float, str] = {0: self.classes[0], count - 1: self.classes[-1]}
        self.knobs = {
            "photograph": slider("photograph", 0, 0, count - 1, 1, ends),
            "left": options("left", names),
            "right": options("right", names, names[-1]),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Confused:
        names, chosen = [values["left"], values["right"]], values["photograph"]
        mine = self.labels == chosen
        one, two = (mine & (self.predicted[name] == chosen) for name in names)
        alone = [np.flatnonzero(one & ~two), np.flatnonzero(two & ~one)]
        return Confused([self.matrices[name][chosen] for name in names], alone, mine.sum(), (one & two).sum())

    def draw(self, page: Page, values: dict, now: Confused) -> None:
        chosen, names = values["photograph"], [values["left"], values["right"]]
        left, right = (self.draw_matrix(page, side, values[side], chosen) for side in ("left", "right"))
        for k, name in enumerate(self.classes):
            shares = dict.fromkeys(f"{encoder} {row[k]:.0%}" for encoder, row in zip(names, now.rows))
            said = f"{self.classes[chosen]} taken for {name}: {', '.join(shares)}"
            page.link(said, left[chosen, k], right[chosen, k])
            if k != chosen:
                page.link(name, left[k, :], right[k, :], photograph=k)
        draw_shades(page, {0: "0%", 0.5: "50% of the row", 1: "100%"})
        for side, name, other, alone in zip(("left", "right"), names, names[::-1], now.alone):
            said = f"right for {name} alone ({len(alone)}); the other says"
            strip = page.plane(f"alone_{side}", (-0.5, SHOWN - 0.5), (-0.85, 0.5), said)
            shown, places = alone[:SHOWN], np.arange(len(alone[:SHOWN]))
            strip.photographs(np.column_stack([places, 0 * places]), self.patches[shown], 0.84)
            words = [self.classes[k] for k in self.predicted[other][shown]]
            strip.text(places, -0.45, words, size="small", rise="top")

    def draw_matrix(self, page: Page, side: str, name: str, chosen: int) -> Mark:
        n, right = len(self.classes), (self.predicted[name] == self.labels).mean()
        table = page.table(
            side, n, n, f"{name}: {right:.0%} right", self.classes, self.classes, xlabel="is taken for",
            ylabel="is", turn=90,
        )  # fmt: skip
        cells = table.cells(self.matrices[name])
        row = table.boxes([-0.5, chosen - 0.5], [n - 0.5, chosen + 0.5], edge=VERMILION, width=2.5)
        if side == "left":
            row.handle("row", (n - 0.5, chosen), "photograph", along="y", label="the row")
        return cells

    def say(self, values: dict, now: Confused) -> str:
        chosen, one, two = values["photograph"], values["left"], values["right"]
        wrong = [favourite(row, chosen, self.classes) for row in now.rows]
        return (
            f"Of {now.total} patches of {self.classes[chosen]} both have {now.both} right, {one} alone "
            f"{len(now.alone[0])}, {two} alone {len(now.alone[1])}. {one} {wrong[0]}; {two} {wrong[1]}."
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
