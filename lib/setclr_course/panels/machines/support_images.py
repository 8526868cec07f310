"""One image against the others of a batch: its support vectors and their weights (MMCL, figure 4)."""

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from setclr.evaluation import pixels
from setclr_course.kit.few_patches import few_patches
from setclr_course.kit.handles import nearest_to
from setclr_course.kit.inner import dual
from setclr_course.kit.palette import BLUE, GREEN, VERMILION, WHITE
from setclr_course.kit.panel import Page, Panel, Plot, log_slider, slider
from setclr_course.kit.tiles import tiles

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
        features: (n, D), embeddings of the images; the pixels of ten photographs' patches by default.
        images: (n, C, H, W) uint8.
        labels: (n,): what the images show; only marks those of the query's own kind.
    """

    size, row_height = (9, 4.75), 4.2
    mosaic, row_mosaic = "heavy light", "heavy"

    def __init__(self, features: Any = None, images: Any = None, labels: Any = None, **initial: Any):
        if features is None:
            patches = few_patches(4)
            images, labels = patches.images[:40], patches.labels[:40]
            features = pixels(images)
        x = np.asarray(features, float)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        self.near, self.pixels, self.labels = x @ x.T, tiles(images), np.asarray(labels)
        self.knobs = {
            "query": slider("query", 0, 0, len(x) - 1, 1),
            "bandwidth": log_slider("bandwidth σ²", 1, 0.1, 10, 0.1, {1: "paper 1", 5: "5"}),
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
        colours = np.select([query, alpha > 0], [GREEN, BLUE], VERMILION)
        faces = plane.photographs(at, list(self.pixels[order]), 1, frame=colours.tolist())
        none, thick = at[(alpha == 0) & ~query], query | (alpha >= values["C"])
        plane.boxes(none - WIDE / 2, none + WIDE / 2, WHITE, opacity=0.6)
        plane.boxes(at[thick] - 0.5, at[thick] + 0.5, edge=colours[thick].tolist(), width=5)
        words = ["query" if q else f"{a:.2g}" if a > 0 else "" for q, a in zip(query, alpha)]
        plane.text(at[:, 0], at[:, 1] + 0.52, words, size="small", rise="top", up=-2)
        x, y = (at[own & (alpha > 0)] - (0.44, 0.46)).T
        plane.text(x, y, ["own"] * len(x), size="small", anchor="start", rise="top", bold=True, halo=True)
        if query[0]:
            to = nearest_to(at, 0)
            faces.handle("query", at[0], to=lambda x, y: order[to(x, y)].tolist(), label="the query")
        for k, j in enumerate(order.tolist()):
            said = f"image {j}, the query" if query[k] else f"image {j}: weight {alpha[k]:.2g}"
            plane.page.link(f"{said}, of the query's own kind" if own[k] else said, faces[k], query=j)

    def say(self, values: dict, now: Batch) -> str:
        q, C, alpha, own = values["query"], values["C"], now.alpha, now.own
        support, at_bound = alpha > 0, alpha >= C
        return (
            f"Query {q}, σ² {values['bandwidth']:.3g}, C {C:.3g}: {support.sum()} of {len(alpha) - 1} others "
            f"are support vectors, {at_bound.sum()} of them at the bound, the largest weight is "
            f"{alpha.max():.3g}. Of {own.sum()} of the query's own kind {(own & support).sum()} are among "
            f"them; they hold {alpha[own].sum() / alpha.sum():.0%} of the weight."
        )
