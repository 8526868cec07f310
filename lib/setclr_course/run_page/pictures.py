"""The pictures of a run's page, each a PNG with a sentence that says what it shows.

matplotlib, of the extra "lab", is imported only to draw. Figures are made without pyplot, so none stays
open.
"""

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor
from torch.nn import functional as F

from setclr_course.kit.palette import BLACK, BLUE, GREEN, GREY, OCHRE, ORANGE, PURPLE, SKY, VERMILION, YELLOW

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, BLACK, YELLOW, GREY, OCHRE)
MARKERS = "osD^vXP<>*"
STYLE: Any = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 2}
STYLE["text.parse_math"] = False  # names of classes may hold a dollar sign
NUMBERED, NAMED = 20, 100  # most classes for numbers in cells, and for names of rows and columns
DPI = 160


class Illustration(NamedTuple):
    png: bytes
    alt: str
    width: float  # inches


def loss_curve(history: pd.DataFrame) -> Illustration:
    """The mean loss of each epoch."""
    first, last = history.loss.iloc[0], history.loss.iloc[-1]

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        axis.plot(history.epoch, history.loss, color=BLUE, marker="o" if len(history) < 40 else "", ms=4)
        axis.set(xlabel="epoch", ylabel="loss, mean of the epoch", xlim=(0, history.epoch.iloc[-1] + 0.5))
        axis.ticklabel_format(axis="y", useOffset=False)
        axis.locator_params(axis="x", integer=True)
        axis.grid(axis="y", alpha=0.3)

    alt = f"The loss over {len(history)} epochs: {first:.4g} in the first, {last:.4g} in the last"
    lowest = history.loss.idxmin()
    if history.loss.notna().any():
        alt += f", lowest ({history.loss[lowest]:.4g}) in epoch {history.epoch[lowest]}"
    return picture(draw, (7, 3), alt + ".")


def confusion_shares(truth: Tensor, predicted: Tensor, C: int) -> np.ndarray:
    """The share of each true class (row) predicted as each class (column), (C, C); NaN for empty classes."""
    from sklearn.metrics import confusion_matrix  # takes a second

    shares = confusion_matrix(truth, predicted, labels=range(C), normalize="true")
    shares[truth.bincount(minlength=C).numpy() == 0] = np.nan
    return shares


def confusion(shares: np.ndarray, classes: tuple[str, ...]) -> Illustration:
    """The matrix of `confusion_shares`: with numbers up to 20 classes, with names up to 100."""
    C = len(classes)
    side = max(4.0, min(10.0, 3 + 0.34 * C)) if C <= NUMBERED else 12.5

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        mesh = axis.imshow(shares, vmin=0, vmax=1, cmap="cividis", interpolation="nearest")
        axis.set(xlabel="predicted", ylabel="true")
        if C <= NAMED:
            size = min(9, 680 / C)
            axis.set_xticks(range(C), map(short, classes), rotation=90, fontsize=size)
            axis.set_yticks(range(C), map(short, classes), fontsize=size)
            axis.tick_params(length=0, pad=2)
        if C <= NUMBERED:
            for i, j in np.argwhere(shares >= 0.005):
                shade = "black" if shares[i, j] > 0.5 else "white"
                axis.text(j, i, f"{100 * shares[i, j]:.0f}", ha="center", va="center", color=shade, size=8)
        figure.colorbar(mesh, ax=axis, shrink=0.6, label="share of the true class")

    right = np.diag(shares)
    extremes = np.nanargmax(right), np.nanargmin(right)
    best, worst = (f"{classes[i]} ({100 * right[i]:.0f} %)" for i in extremes)
    alt = f"Confusion matrix of {C} classes, true by row and predicted by column. "
    alt += f"Recognised best: {best}; worst: {worst}."
    return picture(draw, (side + 1, side), alt)


def mistakes(shares: np.ndarray, classes: tuple[str, ...], most: int = 3) -> str:
    """A sentence on the most frequent mistakes: the largest shares off the diagonal."""
    off = np.nan_to_num(shares * (1 - np.eye(len(shares))))
    largest = np.argsort(-off, axis=None, kind="stable")[:most]
    pairs = [pair for pair in zip(*np.unravel_index(largest, off.shape)) if off[pair] > 0]
    said = [f"{classes[i]} for {classes[j]} ({100 * off[i, j]:.0f} %)" for i, j in pairs]
    return f"Most often taken: {', '.join(said)}." if said else "No image is taken for another class."


def plane(points: Tensor, labels: Tensor, classes: tuple[str, ...]) -> Illustration | None:
    """Features (m, D), scaled to length 1, drawn in the plane by t-SNE; None for fewer than 5.

    Up to ten classes have a colour and a marker of their own, up to a hundred a pair of both. A class's
    name stands in the middle of its points.
    """
    if len(points) < 5:
        return None
    from sklearn.manifold import TSNE

    x = F.normalize(points.float(), dim=1).numpy()
    xy = TSNE(perplexity=perplexity(len(x)), init="random", random_state=0).fit_transform(x)
    few, there = len(classes) <= NUMBERED, labels.unique().tolist()

    def draw(figure: Any) -> None:
        from matplotlib.patheffects import withStroke

        axis, halo = figure.subplots(), [withStroke(linewidth=2.5, foreground="white")]
        for label in there:
            here = xy[(labels == label).numpy()]
            turn, colour = divmod(label, len(COLOURS))
            axis.scatter(*here.T, s=22, marker=MARKERS[(colour + turn) % len(MARKERS)], color=COLOURS[colour],
                         linewidths=0.4, edgecolors="white", label=short(classes[label]))  # fmt: skip
        for label in there:
            middle = np.median(xy[(labels == label).numpy()], axis=0)
            axis.annotate(short(classes[label]), middle, (0, 0 if few else 5), textcoords="offset points",
                          size=9 if few else 6, ha="center", va="center", path_effects=halo)  # fmt: skip
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        if few:
            axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=9)

    alt = f"{len(x)} test images of {len(there)} classes in the plane by t-SNE, coloured by class."
    return picture(draw, (8.8, 6.2 if few else 8), alt)


def perplexity(points: int) -> float:
    """The perplexity of the t-SNE of that many points: 30, or the most that they allow."""
    return min(30.0, (points - 1) / 3)


def nearest(
    shown: Tensor, labels: Tensor, found: Tensor, theirs: Tensor, classes: tuple[str, ...]
) -> Illustration:
    """Test images, each next to the training images nearest to it; frames show whether the classes agree.

    `shown` (n, C, H, W) uint8 are the test images, with `labels` (n,). `found` (n, k, C, H, W) are their
    neighbours, nearest first, with the labels `theirs` (n, k).
    """
    n, k = theirs.shape
    right = theirs == labels[:, None]

    def draw(figure: Any) -> None:
        from matplotlib.patches import Rectangle

        axis = figure.subplots()
        for i in range(n):
            show_image(axis, shown[i], 0, i)
            axis.text(-0.1, 1.3 * i + 0.5, short(classes[labels[i]]), ha="right", va="center", size=10)
            for j in range(k):
                show_image(axis, found[i, j], j + 1.4, i)
                good = bool(right[i, j])
                frame = dict(edgecolor=BLUE) if good else dict(edgecolor=VERMILION, linestyle=(0, (3, 2)))
                axis.add_patch(Rectangle((j + 1.4, 1.3 * i), 0.9, 0.9, fill=False, linewidth=2.2, **frame))
                said = "✓" if good else f"✗ {short(classes[theirs[i, j]], 11)}"
                size = min(9, 75 / len(said))
                axis.text(j + 1.85, 1.3 * i + 1.04, said, ha="center", va="center", size=size)
        axis.set_anchor("N")
        axis.set(xlim=(-0.1, k + 1.4), ylim=(1.3 * n - 0.1, -0.1), aspect="equal", xticks=[], yticks=[])
        axis.spines[:].set_visible(False)

    alt = f"{n} test images, a row each, with the {k} training images nearest to it. {int(right.sum())} of "
    alt += f"{right.numel()} neighbours are of the same class, {int(right[:, 0].sum())} of {n} nearest ones."
    return picture(draw, (k + 1.9, 1.3 * n), alt, 0.9)


def show_image(axis: Any, image: Tensor, x: float, row: int) -> None:
    """Draw an image (C, H, W) uint8 in a square of side 0.9 at x in this row."""
    pixels = image.expand(3, -1, -1).permute(1, 2, 0).numpy()
    how = "nearest" if max(pixels.shape) <= 64 else "antialiased"
    axis.imshow(pixels, extent=(x, x + 0.9, 1.3 * row + 0.9, 1.3 * row), interpolation=how)


def picture(draw: Callable, size: tuple[float, float], alt: str, scale: float = 1.0) -> Illustration:
    """The picture that `draw` draws on a figure of this size in inches, times `scale`."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(scale * size[0], scale * size[1]), layout="constrained")
        draw(figure)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=DPI, facecolor="white")
    return Illustration(file.getvalue(), alt, scale * size[0])


def short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
