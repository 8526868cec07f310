"""The pictures of a run's page: scenes, and below each a sentence that says what it shows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch.nn import functional as F

from setclr_course.kit.layout import SIGNS
from setclr_course.kit.palette import BLUE, GREY, LINES, OCHRE, VERMILION, WHITE, YELLOW
from setclr_course.kit.scene import Mark, Page, Plot
from setclr_course.kit.still import RAMP, Picture, pictured
from setclr_course.kit.tiles import thumbnails, tiles

COLOURS = (*LINES, YELLOW, GREY, OCHRE)
NUMBERED, NAMED = 20, 60  # most classes for numbers in cells, and for names of rows and columns
WIDE = 8.9  # inches across the page
SIDE = 128  # most pixels across of a photograph


def loss_curve(history: pd.DataFrame) -> Picture:
    """The mean loss of each epoch."""
    epochs, losses = history.epoch.to_numpy(), history.loss.to_numpy(float)
    known = losses[np.isfinite(losses)]

    def draw(page: Page) -> str:
        low, high = (known.min(), known.max()) if len(known) else (0, 1)
        free = 0.06 * (high - low) or 0.5
        y, right = (low - free, high + free), epochs[-1] + 0.5
        across = [k for k in MaxNLocator(9, integer=True).tick_values(0, right) if 0 <= k <= right]
        up = [level for level in MaxNLocator(5).tick_values(*y) if y[0] <= level <= y[1]]
        words = ("epoch", "loss, mean of the epoch")
        plot = page.plot("loss", (0, right), y, "", *words, xticks=across, yticks=up)
        plot.line(epochs, losses, BLUE)
        dots = plot.dots(np.stack([epochs, losses], 1), BLUE, size=7 if len(epochs) < 40 else 2, edge="")
        for k, (epoch, loss) in enumerate(zip(epochs, losses)):
            page.link(f"epoch {epoch}: loss {loss:.4g}", dots[k])
        first, last = losses[[0, -1]]
        said = f"The loss over {len(losses)} epochs: {first:.4g} in the first, {last:.4g} in the last"
        if len(known):
            lowest = np.nanargmin(losses)
            said += f", lowest ({losses[lowest]:.4g}) in epoch {epochs[lowest]}"
        return said + "."

    return pictured(draw, "loss", (WIDE, 3.2))


def spreads(history: pd.DataFrame) -> Picture:
    """How many dimensions the embeddings fill after each epoch, and how far they spread in them."""
    epochs, titles = history.epoch.to_numpy(), {"rank": "effective rank", "std": "spread, 1 on a sphere"}
    right = epochs[-1] + 0.5

    def draw(page: Page) -> str:
        across = [k for k in MaxNLocator(5, integer=True).tick_values(0, right) if 0 <= k <= right]
        for name, title in titles.items():
            y = history[name].to_numpy(float)
            top = 1.1 * y.max() or 1
            up = [level for level in MaxNLocator(5).tick_values(0, top) if level <= top]
            plot = page.plot(name, (0, right), (0, top), title, "epoch", xticks=across, yticks=up)
            plot.line(epochs, y, BLUE)
            plot.dots(np.stack([epochs, y], 1), BLUE, size=7 if len(epochs) < 40 else 2, edge="")
        rank, std = history[[*titles]].iloc[-1]
        return f"After epoch {epochs[-1]} embeddings fill {rank:.3g} dimensions; their spread is {std:.2g}."

    return pictured(draw, "rank std", (WIDE, 2.8))


def seen_views(views: np.ndarray) -> Picture:
    """Pictures of the views (V, w, side, side, 3) of w things, those of a thing below one another."""
    V, w = views.shape[:2]

    def draw(page: Page) -> str:
        table = page.table("views", V, w, beside=[f"view {v + 1}" for v in range(V)])
        rows, columns = np.indices((V, w)).reshape(2, -1)
        table.photographs(np.stack([columns, rows], 1), views.reshape(-1, *views.shape[2:]), 0.9)
        return f"{V} views of {w} things, a column each, as the encoder sees them."

    return pictured(draw, "views", (min(WIDE, 1.2 * w + 0.8), (min(WIDE, 1.2 * w + 0.8) - 0.8) / w * V + 0.2))


def alike(shown: np.ndarray, near: np.ndarray, similar: np.ndarray, names: Sequence[str] = ()) -> Picture:
    """Pictures of n things (n, side, side, 3), each beside the nearest to it (n, k, …) and their cosines."""
    n, k = similar.shape

    def draw(page: Page) -> str:
        table = page.table("rows", n, k + 1, beside=[short(name) for name in names])
        rows, columns = np.indices((n, k)).reshape(2, -1)
        table.photographs(np.stack([0 * np.arange(n), np.arange(n) - 0.1], 1), shown, 0.8)
        table.photographs(np.stack([columns + 1, rows - 0.1], 1), near.reshape(-1, *near.shape[2:]), 0.8)
        table.text(columns + 1, rows + 0.34, [f"{s:.2f}" for s in similar.flat], size="small", rise="top")
        return f"{n} things, a row each, with the {k} nearest to each under their cosines."

    return pictured(draw, "rows", (WIDE, 0.98 * WIDE / (k + 1) * n + 0.2))


def confusion_shares(truth: Tensor, predicted: Tensor, C: int) -> np.ndarray:
    """The share of each true class (row) predicted as each class (column), (C, C); NaN for empty classes."""
    from sklearn.metrics import confusion_matrix  # takes a second

    shares = confusion_matrix(truth, predicted, labels=range(C), normalize="true")
    shares[truth.bincount(minlength=C).numpy() == 0] = np.nan
    return shares


def confusion(shares: np.ndarray, classes: tuple[str, ...]) -> Picture:
    """The matrix of `confusion_shares`: with numbers up to 20 classes, with names up to 60."""
    C, known = len(classes), np.nan_to_num(shares)
    names = [short(name) for name in classes] if C <= NAMED else []

    def draw(page: Page) -> str:
        how: dict = {"xlabel": "predicted", "ylabel": "true", "turn": 90 if names else 0}
        table = page.table("matrix", C, C, "", names, names, room=(0, 0, 8, 0), **how)
        if C > NAMED:  # a million cells would be too many to be drawn one by one
            pixels = RAMP[(known * (len(RAMP) - 1)).round().astype(int)]
            table.picture(pixels, (-0.5, -0.5), (C - 0.5, C - 0.5), smooth=C > 96 * WIDE)
        else:
            words = np.array([f"{100 * x:.0f}" if x >= 0.005 else "" for x in known.flat])
            cells = table.cells(known, words=words if C <= NUMBERED else None)
            for i, j in np.argwhere(known >= 0.005):
                page.link(f"{classes[i]} taken for {classes[j]}: {known[i, j]:.0%}", cells[i, j])
        right = np.diag(shares)
        extremes = np.nanargmax(right), np.nanargmin(right)
        best, worst = (f"{classes[i]} ({100 * right[i]:.0f} %)" for i in extremes)
        said = f"Confusion matrix of {C} classes, true by row and predicted by column, the bluer the more."
        return f"{said} Recognised best: {best}; worst: {worst}."

    side = WIDE if C > NUMBERED else max(4.0, min(WIDE, 2.5 + 0.34 * C))
    return pictured(draw, "matrix", (side, side))


def mistakes(shares: np.ndarray, classes: tuple[str, ...], most: int = 3) -> str:
    """A sentence on the most frequent mistakes: the largest shares off the diagonal."""
    off = np.nan_to_num(shares * (1 - np.eye(len(shares))))
    largest = np.argsort(-off, axis=None, kind="stable")[:most]
    pairs = [pair for pair in zip(*np.unravel_index(largest, off.shape)) if off[pair] > 0]
    said = [f"{classes[i]} for {classes[j]} ({100 * off[i, j]:.0f} %)" for i, j in pairs]
    return f"Most often taken: {', '.join(said)}." if said else "No image is taken for another class."


def by_tsne(points: Tensor) -> np.ndarray:
    """Places (m, 2) in the plane of features (m, D), scaled to length 1."""
    from sklearn.manifold import TSNE

    z = F.normalize(points.float(), dim=1).numpy()
    return TSNE(perplexity=perplexity(len(z)), init="random", random_state=0).fit_transform(z)


def field(page: Page, xy: np.ndarray) -> Plot:
    """A plot with room for these points."""
    low, high = xy.min(0), xy.max(0)
    (left, bottom), (right, top) = low - 0.04 * (high - low) - 1e-3, high + 0.04 * (high - low) + 1e-3
    return page.plot("plane", (left, right), (bottom, top), frame="")


def photo_map(points: Tensor, labels: Tensor, shown: np.ndarray) -> Picture | None:
    """Features (m, D) in the plane, coloured by their labels (m,), -1 for none, and pictures of the first of
    them; None for fewer than 5."""
    if len(points) < 5:
        return None
    xy = by_tsne(points)
    colours = [COLOURS[k % len(COLOURS)] if k >= 0 else GREY for k in labels.tolist()]

    def draw(page: Page) -> str:
        plot = field(page, xy)
        plot.dots(xy, colours, size=6, edge="")
        plot.photographs(xy[: len(shown)], shown, 0.045 * float(np.ptp(xy[:, 0])))
        return f"{len(xy)} things in the plane by t-SNE, {len(shown)} of them with their pictures."

    return pictured(draw, "plane", (WIDE, 6.2))


def plane(points: Tensor, labels: Tensor, classes: tuple[str, ...]) -> Picture | None:
    """Features (m, D), scaled to length 1, drawn in the plane by t-SNE; None for fewer than 5.

    Up to ten classes have a colour and a sign of their own, up to eighty a pair of both. The name of one of
    few stands in the middle of its points.
    """
    if len(points) < 5:
        return None
    xy, there = by_tsne(points), labels.unique().tolist()

    def draw(page: Page) -> str:
        plot = field(page, xy)
        beside = draw_key(page, there, classes) if len(there) <= NUMBERED else []
        for k, label in enumerate(there):
            dots = draw_class(plot, xy[(labels == label).numpy()], label, 9)
            page.link(classes[label], dots, *beside[k : k + 1])
        if len(there) <= NAMED:
            x, y = np.transpose([np.median(xy[(labels == label).numpy()], axis=0) for label in there])
            plot.text(x, y, [short(classes[label]) for label in there], size="small", halo=True)
        return f"{len(xy)} test images of {len(there)} classes in the plane by t-SNE, coloured by class."

    if len(there) <= NUMBERED:
        return pictured(draw, "plane key", (WIDE, 6.2), (4.6, 1))
    return pictured(draw, "plane", (WIDE, 6.2))


def draw_class(plot: Plot, points: np.ndarray, label: int, size: float) -> Mark:
    """The dots of a class, in its colour and sign."""
    turn, colour = divmod(label, len(COLOURS))
    sign = [*SIGNS][(colour + turn) % len(SIGNS)]
    return plot.dots(points, COLOURS[colour], sign, size, WHITE)


def draw_key(page: Page, labels: Sequence[int], classes: tuple[str, ...]) -> list[Mark]:
    """What the signs mean, below one another; the marks of the signs."""
    key = page.plot("key", (0, 10), (NUMBERED, -0.5), frame="")
    key.text(1.3, np.arange(len(labels)) + 0.5, [short(classes[label]) for label in labels], anchor="start")
    return [draw_class(key, np.array([[0.6, k + 0.5]]), label, 11) for k, label in enumerate(labels)]


def perplexity(points: int) -> float:
    """The perplexity of the t-SNE of that many points: 30, or the most that they allow."""
    return min(30.0, (points - 1) / 3)


def nearest(
    shown: Tensor, labels: Tensor, found: Tensor, theirs: Tensor, classes: tuple[str, ...]
) -> Picture:
    """Test images, each next to the training images nearest to it; frames show whether the classes agree.

    `shown` (n, C, H, W) uint8 are the test images, with `labels` (n,). `found` (n, k, C, H, W) are their
    neighbours, nearest first, with the labels `theirs` (n, k).
    """
    n, k = theirs.shape
    right = (theirs == labels[:, None]).numpy()

    def draw(page: Page) -> str:
        table = page.table("rows", n, k + 1, beside=[short(classes[label]) for label in labels])
        rows, columns = np.indices((n, k)).reshape(2, -1)
        table.photographs(np.stack([0 * np.arange(n), np.arange(n) - 0.1], 1), pixels(shown), 0.8)
        frame = [BLUE if good else VERMILION for good in right.flat]
        where = np.stack([columns + 1, rows - 0.1], 1)
        photographs = table.photographs(where, pixels(found.flatten(0, 1)), 0.8, frame=frame)
        names = [classes[label] for label in theirs.flatten()]
        words = ["✓" if good else f"✗ {short(name, 10)}" for good, name in zip(right.flat, names)]
        table.text(columns + 1, rows + 0.34, words, size="small", rise="top")
        for one, name in enumerate(names):
            page.link(f"number {columns[one] + 1}: {name}", photographs[one])
        return (
            f"{n} test images, a row each, with the {k} training images nearest to it. {right.sum()} of "
            f"{right.size} neighbours are of the same class, {right[:, 0].sum()} of {n} nearest ones."
        )

    return pictured(draw, "rows", (WIDE, 0.9 * n + 0.2))


def pixels(images: Tensor) -> np.ndarray:
    """Images (N, C, H, W) uint8 as (N, side, side, 3) uint8, made smaller where they are large."""
    return tiles(images) if max(images.shape[2:]) <= SIDE else thumbnails(images, SIDE)


def short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
