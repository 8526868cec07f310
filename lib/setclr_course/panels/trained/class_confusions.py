"""Which photographs two encoders mistake for one another, and the patches that only one gets right."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from setclr.data import ImageSet
from setclr.evaluation import knn
from setclr_course.kit.few_patches import few_patches, unlearned
from setclr_course.kit.palette import BLACK, BLUE, VERMILION
from setclr_course.kit.tiles import decoded, tiles
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, cell
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cells, frames

SHOWN, SIDE, GAP = 6, 32, 6  # patches of a strip, pixels of one and between two
STEP = SIDE + GAP
SIDES = ("left", "right")
ROW = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])  # outline of a row of one cell


def class_confusions(
    predicted: dict[str, Tensor] | None = None, test: ImageSet | None = None, **initial
) -> Panel:
    """Two confusion matrices, and of one class the patches on which they differ.

    Args:
        predicted: labels (N,) of the test images by the name of the encoder that gave them; by default those
            of the nearest neighbours among the other images, by pixels and by an untrained network.
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
        lambda figure, compact: build(figure, compact, found, test), controls, (9.2, 6.3), initial, 3.7
    )


def by_neighbours(features: Tensor, labels: Tensor) -> Tensor:
    """The label of every other image by those of even number, and the other way round: (N,)."""
    even = torch.arange(len(labels)) % 2 == 0
    found = labels.clone()
    found[~even] = knn(features[even], labels[even], features[~even], k=3)
    found[even] = knn(features[~even], labels[~even], features[even], k=3)
    return found


def build(figure, compact: bool, predicted: dict[str, np.ndarray], test: ImageSet) -> Drawing:
    from sklearn.metrics import confusion_matrix  # takes a second

    labels, pictures = test.labels.numpy(), tiles(decoded(test))
    every = range(len(test.classes))
    matrices = {
        name: confusion_matrix(labels, found, labels=every, normalize="true")
        for name, found in predicted.items()
    }
    axes, strips = [figure.subplots()] if compact else [], []
    if not compact:
        upper, lower = figure.subfigures(2, 1, height_ratios=[3.2, 1])
        axes, strips = list(upper.subplots(1, 2)), [draw_strip(axis) for axis in lower.subplots(1, 2)]
    drawn = [draw_matrix(axis, test.classes, compact) for axis in axes]
    if not compact:
        upper.colorbar(drawn[0].artists[0], ax=axes, shrink=0.5, label="share of the row")
    now: dict = {}

    def update(values: dict) -> str:
        now.update(values)
        chosen, names = values["photograph"], [values[side] for side in SIDES]
        for name, matrix in zip(names, drawn):
            right = (predicted[name] == labels).mean()
            matrix.move(matrices[name], chosen, f"{name}: {right:.0%} right")
        mine = labels == chosen
        right = [predicted[name] == labels for name in names]
        alone = [mine & right[0] & ~right[1], mine & right[1] & ~right[0]]
        for name, other, which, strip in zip(names, names[::-1], alone, strips):
            index = np.flatnonzero(which)[:SHOWN]
            said = [test.classes[k] for k in predicted[other][index]]
            strip.move(pictures[index], said, f"right for {name} alone ({which.sum()}); the other says")
        rows = [matrices[name][chosen] for name in names]
        return sentence(names, chosen, test.classes, rows, [mine, mine & right[0] & right[1], *alone])

    end = len(test.classes) - 0.5
    row = Handle(axes[0], ("photograph",), lambda v: (end, v["photograph"]), along="y", label="the row")
    moving = [artist for part in (*drawn, *strips) for artist in part.artists]
    return Drawing(moving, update, {"row": row}, lambda: links(axes, now, matrices, test.classes))


def links(axes: list, now: dict, matrices: dict[str, np.ndarray], classes: Sequence[str]) -> list[Link]:
    """The cells of the chosen row, in both matrices."""
    chosen = now["photograph"]
    rows = {now[side]: matrices[now[side]][chosen] for side in SIDES}
    return [
        Link(
            [cell(axis, chosen, k) for axis in axes],
            text=f"{classes[chosen]} taken for {name}: "
            + ", ".join(f"{encoder} {row[k]:.0%}" for encoder, row in rows.items()),
        )
        for k, name in enumerate(classes)
    ]


def sentence(
    names: list[str], chosen: int, classes: Sequence[str], rows: list[np.ndarray], which: list[np.ndarray]
) -> str:
    """`rows` are those of the chosen class in both matrices; `which` says of all images if they are of it,
    right for both, and right for one alone."""
    total, both, *alone = (part.sum() for part in which)
    wrong = [favourite(row, chosen, classes) for row in rows]
    return (
        f"Of {total} patches of {classes[chosen]} both have {both} right, {names[0]} alone {alone[0]}, "
        f"{names[1]} alone {alone[1]}. {names[0]} {wrong[0]}; {names[1]} {wrong[1]}."
    )


def favourite(row: np.ndarray, chosen: int, classes: Sequence[str]) -> str:
    """What a class is taken for most often when it is not taken for itself."""
    others = np.where(np.arange(len(row)) == chosen, 0, row)
    if not others.any():
        return "makes no mistake"
    return f"is wrong about {others.sum():.0%} of them and says {classes[int(others.argmax())]} most often"


def draw_matrix(axis, classes: Sequence[str], compact: bool) -> Part:
    """A confusion matrix, moved by its values, the class whose row is framed, and a title."""
    n = len(classes)
    mesh = cells(axis, n, n)
    size = 5 if compact else 8
    axis.set_yticks(range(n), classes, fontsize=size)
    axis.set_xticks(range(n), [""] * n if compact else classes, fontsize=size, rotation=90)
    axis.tick_params(length=0, pad=1)
    axis.set_ylabel("is", fontsize=size + 1)
    axis.set_xlabel("is taken for", fontsize=size + 1)
    heading = axis.text(0, 1.02, "", transform=axis.transAxes, weight="bold", fontsize=9 if compact else 11)
    frame = frames(axis, [(0, 0)], VERMILION, 1.6)

    def move(matrix: np.ndarray, chosen: int, title: str) -> None:
        mesh.set_array(matrix)
        frame.set_segments([ROW * [n, 1] + [-0.5, chosen - 0.5]])
        heading.set_text(title)

    return Part([mesh, frame, heading], move)


def draw_strip(axis) -> Part:
    """A row of patches with a word under each, and a heading; moved by pictures, words and the heading."""
    bare(axis)
    blank = np.full((STEP, SHOWN * STEP, 3), 255, np.uint8)
    image = axis.imshow(blank, interpolation="nearest")
    axis.set(xlim=(0, SHOWN * STEP), ylim=(STEP + 10, -12))
    kind = {"ha": "center", "va": "top", "fontsize": 8, "color": BLACK}
    words = [axis.text((k + 0.5) * STEP, STEP - 1, "", **kind) for k in range(SHOWN)]
    heading = axis.text(0, -3, "", fontsize=9, color=BLUE, weight="bold")

    def move(pictures: np.ndarray, names: list[str], title: str) -> None:
        canvas = blank.copy()
        for k, picture in enumerate(pictures):
            canvas[GAP // 2 : GAP // 2 + SIDE, k * STEP + GAP // 2 : k * STEP + GAP // 2 + SIDE] = picture
        image.set_data(canvas)
        for word, name in zip(words, [*names, *[""] * SHOWN]):
            word.set_text(name)
        heading.set_text(title)

    return Part([image, *words, heading], move)
