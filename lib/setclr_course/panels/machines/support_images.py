"""One image against the others of a batch: its support vectors and their weights (MMCL, figure 4)."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.collections import LineCollection
from torch import Tensor
from torch.nn.functional import normalize

from setclr.inner import kernel, svm_dual
from setclr_course.kit.palette import BLUE, GREEN, VERMILION
from setclr_course.kit.tiles import tiles
from setclr_course.pixels.controls import log_slider, slider
from setclr_course.pixels.handles import Handle
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cell_outlines

FRAMES = {  # colour, width and dashes, and how solid the image is
    "query": (GREEN, 3.5, "solid", 255),
    "support": (BLUE, 1.8, "solid", 255),
    "at C": (BLUE, 3.5, "solid", 255),
    "none": (VERMILION, 0.8, (0, (3, 2)), 100),
}
WIDE, HIGH = 1.12, 1.34  # a tile's width and height, in widths of an image


class Shown(NamedTuple):
    """The batch's images."""

    pixels: np.ndarray  # (n, H, W, 3) uint8
    near: np.ndarray  # (n, n): cosines of the embeddings
    labels: np.ndarray  # (n,)


def support_images(
    features: Tensor | None = None, images: Tensor | None = None, labels: Tensor | None = None, **initial
) -> Panel:
    """A batch's images in the order of their weight against one of them, the query.

    Args:
        features: (n, D), embeddings of the images; a drawn batch by default.
        images: (n, C, H, W) uint8.
        labels: (n,): what the images show; only marks those of the query's own kind.
    """
    if features is None or images is None:
        features, images, labels = drawn_batch()
    labels = torch.arange(len(images)) if labels is None else labels
    if len(features) < 2:
        raise ValueError(f"features must be of at least 2 images, got {len(features)}")
    x = normalize(features.double(), dim=1)

    @lru_cache
    def weights(C: float, bandwidth: float) -> np.ndarray:
        return svm_dual(kernel(x, x, bandwidth=bandwidth), torch.arange(len(x)), C=C).alpha.numpy()

    controls = {
        "query": slider("query", 0, 0, len(x) - 1, 1),
        "bandwidth": log_slider(
            "bandwidth σ²", 1, 0.1, 10, 0.1, {0.1: "0.1", 1: "STL-10: 1", 5: "ImageNet: 5"}
        ),
        "C": log_slider("bound C", 100, 0.1, 100, 0.1, {0.1: "0.1", 1: "1", 100: "paper 100"}),
    }
    shown = Shown(tiles(images), (x @ x.T).numpy(), labels.numpy())
    return Panel(
        lambda figure, compact: build(figure, compact, weights, shown), controls, (9, 4.75), initial, 4.2
    )


def drawn_batch(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features (40, 16), images and labels of five shapes, eight times each, moved about and recoloured."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(40) % 5
    centres, noise, shifts, tints = (
        torch.rand(*size, generator=generator) for size in ((5, 16), (40, 16), (40, 2), (40, 3))
    )
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    y, x = y - 11 - 10 * shifts[:, 0, None, None], x - 11 - 10 * shifts[:, 1, None, None]
    far, wide = x.hypot(y), torch.maximum(x.abs(), y.abs())
    shapes = [far < 9, wide < 8, (far < 10) & (far > 5), (x.abs() < 3) | (y.abs() < 3), (x + y) % 8 < 4]
    shape = torch.stack(shapes)[labels, torch.arange(40)].unsqueeze(1)
    images = torch.where(shape, 100 + 155 * tints[..., None, None], 70 * tints.flip(1)[..., None, None])
    return centres[labels] - 0.5 + 1.2 * (noise - 0.5), images.byte(), labels


def build(figure, compact: bool, weights: Callable[[float, float], np.ndarray], images: Shown) -> Drawing:
    """The query and all others; or, compact, the query and those that weigh most."""
    n, columns = len(images.pixels), 4 if compact else 10
    shown = min(n, 16) if compact else n
    corners = np.stack([WIDE * (np.arange(shown) % columns), HIGH * (np.arange(shown) // columns)], axis=1)
    mosaic = draw_mosaic(figure.subplots(), images, columns, corners)
    order = np.arange(n)
    if not compact:
        figure.axes[0].set_title(
            "blue: support vectors with their α (thick: α = C)   dashed, pale: α = 0   green: drag it"
        )

    def update(values: dict) -> str:
        q, C = values["query"], values["C"]
        alpha = weights(C, values["bandwidth"])[q]
        own = (images.labels == images.labels[q]) & (np.arange(n) != q)
        order[:] = np.lexsort((-images.near[q], -alpha, np.arange(n) != q))
        mosaic.move(q, alpha, alpha >= C, own, order)
        support, at_bound = alpha > 0, (alpha >= C) & (np.arange(n) != q)
        return (
            f"Query {q}, σ² {values['bandwidth']:.3g}, C {C:.3g}: {support.sum()} of {n - 1} others are "
            f"support vectors, {at_bound.sum()} of them at the bound, the largest weight is "
            f"{alpha.max():.3g}. {(own & support).sum()} of the {support.sum()}, and {own.sum()} of all, are "
            f"of the query's own kind and hold {alpha[own].sum() / alpha.sum():.0%} of the weight."
        )

    def nearest_image(x: float, y: float) -> list[int]:
        return [int(order[np.square(corners - (x, y)).sum(1).argmin()])]

    query = Handle(figure.axes[0], ("query",), lambda _: corners[0], to=nearest_image, label="the query")
    return Drawing(mosaic.artists, update, {"query": query})


def draw_mosaic(axis, images: Shown, columns: int, corners: np.ndarray) -> Part:
    """The images in rows with a frame and a word each, in the order of their weights; moved by the query, all
    weights, who is at the bound, who of the query's kind, and the order."""
    side, shown = images.pixels.shape[1], len(corners)
    rows = -(-shown // columns)
    bare(axis)
    axis.set(xlim=(-0.5, columns * WIDE - 0.5), ylim=((rows - 1) * HIGH + 0.8, -0.62), aspect="equal")
    canvas = np.zeros((round(rows * HIGH * side), round(columns * WIDE * side), 4), np.uint8)
    extent = (-0.5, canvas.shape[1] / side - 0.5, canvas.shape[0] / side - 0.5, -0.5)
    mosaic = axis.imshow(canvas, extent=extent, interpolation="nearest")
    frames = axis.add_collection(LineCollection([cell_outlines([(0, 0)])[0] + at for at in corners]))
    words = [axis.text(x, y + 0.55, "", ha="center", va="top", fontsize=7.5) for x, y in corners]

    def move(q: int, alpha: np.ndarray, at_bound: np.ndarray, own: np.ndarray, order: np.ndarray) -> None:
        kind = np.where(at_bound, "at C", np.where(alpha > 0, "support", "none"))
        kind[q] = "query"
        canvas[..., 3] = 0
        for at, j, word in zip(corners, order, words):
            left, top = (at * side).round().astype(int)
            canvas[top : top + side, left : left + side, :3] = images.pixels[j]
            canvas[top : top + side, left : left + side, 3] = FRAMES[kind[j]][3]
            text = f"{alpha[j]:.2g}{' own' if own[j] else ''}" if alpha[j] > 0 else ""
            word.set(text="query" if j == q else text, weight="bold" if own[j] or j == q else "normal")
        mosaic.set_data(canvas)
        colours, widths, dashes, _ = zip(*(FRAMES[kind[j]] for j in order[:shown]))
        frames.set(colors=colours, linewidths=widths, linestyles=list(dashes))

    return Part([mosaic, frames, *words], move)
