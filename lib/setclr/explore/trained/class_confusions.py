"""Which photographs two encoders take for one another, and the patches that one gets right and the other
wrong."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from setclr.data import ImageSet
from setclr.evaluation import knn
from setclr.explore.kit.few_patches import few_patches, unlearned
from setclr.explore.kit.panel import Drawing, Panel, options, slider
from setclr.explore.kit.parts import bare, cells, frames
from setclr.explore.kit.tiles import decoded, tiles
from setclr.palette import BLACK, BLUE, VERMILION

SHOWN, SIDE, GAP = 8, 32, 6  # patches of a strip, pixels of one and between two
STEP = SIDE + GAP
ROW = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])  # outline of a row of one cell


def class_confusions(
    predicted: dict[str, Tensor] | None = None, test: ImageSet | None = None, **initial
) -> Panel:
    """Two confusion matrices, and of one class the patches on which they differ.

    Args:
        predicted: labels (N,) of the test images by the name of who gave them; pixels and an untrained
            network, by their neighbours among the other images, by default.
        test: the images with their true labels.
    """
    if predicted is None or test is None:
        test = few_patches(8)
        predicted = {name: by_neighbours(x, test.labels) for name, x in unlearned(decoded(test)).items()}
    names, last = list(predicted), len(test.classes) - 1
    controls = {
        "photograph": slider("photograph", 0, 0, last, 1, {0: test.classes[0], last: test.classes[-1]}),
        "left": options("left", names),
        "right": options("right", names, names[-1]),
    }
    found = {name: labels.numpy() for name, labels in predicted.items()}
    return Panel(
        lambda figure, compact: build(figure, compact, found, test), controls, (9.2, 6.1), initial, 3.7
    )


def by_neighbours(features: Tensor, labels: Tensor) -> Tensor:
    """The label of every other image by those of even number, and the other way round: (N,)."""
    even = torch.arange(len(labels)) % 2 == 0
    found = labels.clone()
    found[~even] = knn(features[even], labels[even], features[~even], k=3)
    found[even] = knn(features[~even], labels[~even], features[even], k=3)
    return found


def confusion(labels: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """Row: true class, column: predicted class; rows sum to 1."""
    counts = np.zeros((classes, classes))
    np.add.at(counts, (labels, predicted), 1)
    return counts / counts.sum(1, keepdims=True).clip(min=1)


def build(figure, compact: bool, predicted: dict[str, np.ndarray], test: ImageSet) -> Drawing:
    labels, classes, pictures = test.labels.numpy(), test.classes, tiles(decoded(test))
    sides = ["left"] if compact else ["left", "right"]
    if compact:
        axes, strips = [figure.subplots()], []
    else:
        upper, lower = figure.subfigures(2, 1, height_ratios=[2.2, 1])
        axes, strips = list(upper.subplots(1, 2)), [strip_of(axis) for axis in lower.subplots(1, 2)]
    matrices = {name: confusion(labels, found, len(classes)) for name, found in predicted.items()}
    drawn = [draw_matrix(axis, classes, compact) for axis in axes]
    artists = [a for mesh, frame, title in drawn for a in (mesh, frame, title)]
    artists += [a for image, words, heading in strips for a in (image, *words, heading)]

    def update(values: dict) -> str:
        chosen = values["photograph"]
        one, two = (predicted[values[side]] for side in ("left", "right"))
        for side, (mesh, frame, title) in zip(sides, drawn):
            matrix = matrices[values[side]]
            mesh.set_array(matrix)
            frame.set_segments([ROW * [len(classes), 1] + [-0.5, chosen - 0.5]])
            title.set_text(f"{values[side]}: {(predicted[values[side]] == labels).mean():.0%} right")
        mine = labels == chosen
        only = [mine & (one == labels) & (two != labels), mine & (two == labels) & (one != labels)]
        for side, other, which, (image, words, heading) in zip(("left", "right"), (two, one), only, strips):
            index = np.flatnonzero(which)[:SHOWN]
            fill(image, words, pictures[index], [classes[k] for k in other[index]])
            heading.set_text(f"right for {values[side]} alone ({which.sum()}); the other says")
        wrong = [favourite(matrices[values[side]][chosen], chosen, classes) for side in ("left", "right")]
        both = int((mine & (one == labels) & (two == labels)).sum())
        return (
            f"Of {mine.sum()} patches of {classes[chosen]} both have {both} right, {values['left']} alone "
            f"{only[0].sum()}, {values['right']} alone {only[1].sum()}. {values['left']} {wrong[0]}; "
            f"{values['right']} {wrong[1]}."
        )

    return Drawing(artists, update)


def favourite(row: np.ndarray, chosen: int, classes: Sequence[str]) -> str:
    """What a class is taken for most often when it is not taken for itself."""
    others = np.where(np.arange(len(row)) == chosen, 0, row)
    if not others.any():
        return "makes no mistake"
    return f"is wrong about {others.sum():.0%} of them and says {classes[others.argmax()]} most often"


def draw_matrix(axis, classes: Sequence[str], compact: bool) -> tuple:
    n = len(classes)
    mesh = cells(axis, n, n)
    size = 5 if compact else 7
    axis.set_yticks(range(n), classes, fontsize=size)
    axis.set_xticks(range(n), [""] * n if compact else classes, fontsize=size, rotation=90)
    axis.tick_params(length=0, pad=1)
    axis.set_ylabel("is", fontsize=size + 1)
    axis.set_xlabel("is taken for", fontsize=size + 1)
    title = axis.text(0, 1.02, "", transform=axis.transAxes, weight="bold", fontsize=9 if compact else 11)
    return mesh, frames(axis, [(0, 0)], VERMILION, 1.6), title


def strip_of(axis) -> tuple:
    """Room for a row of patches with a word under each, and a heading."""
    bare(axis)
    blank = np.full((STEP, SHOWN * STEP, 3), 255, np.uint8)
    image = axis.imshow(blank, interpolation="nearest")
    axis.set(xlim=(0, SHOWN * STEP), ylim=(STEP + 22, -16))
    kind = {"ha": "right", "va": "top", "fontsize": 7, "color": BLACK, "rotation": 35}
    words = [axis.text(k * STEP + STEP / 2 + 6, STEP + 1, "", **kind) for k in range(SHOWN)]
    heading = axis.text(0, -6, "", fontsize=8.5, color=BLUE, weight="bold")
    return image, words, heading


def fill(image, words: list, pictures: np.ndarray, names: list[str]) -> None:
    canvas = np.full((STEP, SHOWN * STEP, 3), 255, np.uint8)
    for k, picture in enumerate(pictures):
        canvas[GAP // 2 : GAP // 2 + SIDE, k * STEP + GAP // 2 : k * STEP + GAP // 2 + SIDE] = picture
    image.set_data(canvas)
    for word, name in zip(words, [*names, *[""] * SHOWN]):
        word.set_text(name)
