"""One image against the others of a batch: its support vectors and their weights (MMCL, figure 4)."""

from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setclr_course.kit.controls import log_slider, slider
from setclr_course.kit.inner import dual
from setclr_course.kit.palette import BLUE, GREEN, VERMILION, WHITE
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Page, Plot

WIDE, HIGH = 1.12, 1.36  # a tile's width and height, in widths of an image
TITLES = ("blue: support vectors with their α; thick: α = C", "pale: α = 0; green: the query, drag it")


class Batch(NamedTuple):
    """The images as one query sees them."""

    alpha: np.ndarray  # (n,): 0 for the query itself
    own: np.ndarray  # (n,) bool: the others of its own kind
    order: np.ndarray  # (n,): the query, then by weight


class support_images(Panel):
    """A batch's images in the order of their weight against one of them, the query.

    Args:
        features: (n, D), embeddings of the images; a drawn batch by default.
        images: (n, C, H, W) uint8.
        labels: (n,): what the images show; only marks those of the query's own kind.
    """

    size, row_height = (9, 4.75), 4.2
    mosaic, row_mosaic = "heavy light", "heavy"

    def __init__(
        self,
        features: ArrayLike | None = None,
        images: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        **initial: Any,
    ):
        if features is None or images is None:
            features, images, labels = drawn_batch()
        x, pixels = np.asarray(features, float), np.asarray(images)
        if len(x) < 2:
            raise ValueError(f"features must be of at least 2 images, got {len(x)}")
        x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        self.near = x @ x.T
        self.labels = np.arange(len(x)) if labels is None else np.asarray(labels)
        self.pixels = np.broadcast_to(pixels, (len(x), 3, *pixels.shape[2:])).transpose(0, 2, 3, 1)
        self.knobs = {
            "query": slider("query", 0, 0, len(x) - 1, 1),
            "bandwidth": log_slider(
                "bandwidth σ²", 1, 0.1, 10, 0.1, {0.1: "0.1", 1: "STL-10: 1", 5: "ImageNet: 5"}
            ),
            "C": log_slider("bound C", 100, 0.1, 100, 0.1, {0.1: "0.1", 1: "1", 100: "paper 100"}),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Batch:
        q, places = values["query"], np.arange(len(self.near))
        pool = np.array([q, *places[places != q]])
        alpha = np.zeros(len(pool))
        kernel = np.exp((self.near - 1) / values["bandwidth"])  # rbf of unit vectors
        alpha[pool[1:]] = dual(kernel[np.ix_(pool, pool)], values["C"])
        own = (self.labels == self.labels[q]) & (places != q)
        return Batch(alpha, own, np.lexsort((-self.near[q], -alpha, places != q)))

    def draw(self, page: Page, values: dict, now: Batch) -> None:
        half = -(-len(now.order) // 2)
        columns, shown = (4, min(half, 16)) if page.row else (max(5, ceil(half**0.5)), half)
        places = np.arange(shown)
        at = np.stack([WIDE * (places % columns), HIGH * (places // columns)], axis=1)
        limits = (-0.55, columns * WIDE - 0.5), (at[-1, 1] + 0.85, -0.55)
        for name, title, order in zip(page.names, TITLES, (now.order[:shown], now.order[half:])):
            plane = page.plane(name, *limits, "" if page.row else title)
            self.draw_images(plane, at[: len(order)], order, values, now)

    def draw_images(self, plane: Plot, at: np.ndarray, order: np.ndarray, values: dict, now: Batch) -> None:
        """The images `order` with their middles `at`, framed by what their weights are."""
        alpha, own, query = now.alpha[order], now.own[order], order == values["query"]
        faces = plane.photographs(at, [self.pixels[j] for j in order], 1)
        none, full = (alpha == 0) & ~query, alpha >= values["C"]
        plane.boxes(at[none] - 0.5, at[none] + 0.5, WHITE, opacity=0.6)
        kinds = ((none, VERMILION, 1), (alpha > 0, BLUE, 2), (full, BLUE, 5), (query, GREEN, 5))
        for kind, colour, width in kinds:
            plane.boxes(at[kind] - 0.5, at[kind] + 0.5, edge=colour, width=width)
        words = ["query" if q else f"{a:.2g}" if a > 0 else "" for q, a in zip(query, alpha)]
        plane.text(at[:, 0], at[:, 1] + 0.52, words, size="small", rise="top", up=-2)
        marked = at[own & (alpha > 0)] - (0.44, 0.46)
        how: dict = {"anchor": "start", "rise": "top", "bold": True, "halo": True}
        plane.text(marked[:, 0], marked[:, 1], ["own"] * len(marked), size="small", **how)
        if query[0]:
            faces.handle("query", at[0], to=lambda x, y: [nearest(at, order, x, y)], label="the query")
        for k, j in enumerate(order.tolist()):
            said = f"image {j}, the query" if query[k] else f"image {j}: weight {alpha[k]:.2g}"
            plane.page.link(f"{said}, of the query's own kind" if own[k] else said, faces[k], query=j)

    def say(self, values: dict, now: Batch) -> str:
        q, C, alpha, own = values["query"], values["C"], now.alpha, now.own
        support, at_bound = alpha > 0, alpha >= C
        return (
            f"Query {q}, σ² {values['bandwidth']:.3g}, C {C:.3g}: {support.sum()} of {len(alpha) - 1} others "
            f"are support vectors, {at_bound.sum()} of them at the bound, the largest weight is "
            f"{alpha.max():.3g}. {(own & support).sum()} of the {support.sum()}, and {own.sum()} of all, are "
            f"of the query's own kind and hold {alpha[own].sum() / alpha.sum():.0%} of the weight."
        )


def nearest(at: np.ndarray, order: np.ndarray, x: float, y: float) -> int:
    """The image whose middle is nearest to a point."""
    return int(order[np.square(at - (x, y)).sum(1).argmin()])


def drawn_batch(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (40, 16), images and labels of five shapes, eight times each, moved about and recoloured."""
    from torch import Generator, rand

    generator = Generator().manual_seed(seed)
    labels = np.arange(40) % 5
    centres, noise, shifts, tints = (
        rand(*size, generator=generator).numpy() for size in ((5, 16), (40, 16), (40, 2), (40, 3))
    )
    y = np.arange(32)[:, None] - 11 - 10 * shifts[:, 0, None, None]
    x = np.arange(32) - 11 - 10 * shifts[:, 1, None, None]
    far, wide = np.hypot(x, y), np.maximum(np.abs(x), np.abs(y))
    bars = (np.abs(x) < 3) | (np.abs(y) < 3)
    shapes = np.stack([far < 9, wide < 8, (far < 10) & (far > 5), bars, (x + y) % 8 < 4])
    shape = shapes[labels, np.arange(40)][:, None]
    images = np.where(shape, 100 + 155 * tints[..., None, None], 70 * tints[:, ::-1, None, None])
    return centres[labels] - 0.5 + 1.2 * (noise - 0.5), images.astype(np.uint8), labels
