"""One patch's list, its second view and its hardest negatives, and what three inner problems give each of
them: the sorting network, the sparsemax and the support-vector machine."""

from functools import lru_cache

import numpy as np
import torch
from matplotlib.collections import PolyCollection
from torch import Tensor
from torch.nn.functional import normalize

from setclr.inner import kernel, sparsemax, svm_dual, top_probability
from setclr_course.kit.few_patches import unlearned_pair
from setclr_course.kit.palette import BLUE, GREEN, GREY, VERMILION
from setclr_course.kit.tiles import tiles
from setclr_course.pixels.controls import log_slider, options, slider
from setclr_course.pixels.handles import Link, Mark, box
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare

NEGATIVES = 10
ROWS = ("cosine", "sorted to the top", "sparsemax", "weight α")
BANDWIDTH = 1.0
STEP = 1.5  # between the floors of two rows of bars


def anchor_list(embedded: dict[str, Tensor] | None = None, views: Tensor | None = None, **initial) -> Panel:
    """A batch seen from one anchor, a patch of the first view.

    Args:
        embedded: (2, N, E), embeddings of both views, N ≥ 6, by the name of the encoder; pixels and an
            untrained network by default.
        views: (2, N, C, H, W) uint8, the pictures.
    """
    if embedded is None or views is None:
        embedded, views = unlearned_pair()
    batches = {name: normalize(z.detach().double(), dim=-1) for name, z in embedded.items()}
    last = views.shape[1] - 1
    controls = {
        "anchor": slider("anchor", 0, 0, last, 1, {0: "0", last: str(last)}),
        "beta": log_slider("sorting β", 1, 0.1, 1000, 0.1, {1: "paper 1", 100: "100"}),
        "temperature": log_slider("sparsemax τ", 1, 0.01, 10, 0.1, {0.1: "0.1", 1: "SparseCLR: 1"}),
        "C": log_slider("bound C", 100, 0.1, 100, 0.1, {1: "1", 100: "paper 100"}),
        "loss": options("trained with", batches),
    }
    pictures = tiles(views.flatten(0, 1))
    return Panel(
        lambda figure, compact: build(figure, compact, batches, pictures), controls, (9.2, 5.0), initial, 3.4
    )


def build(figure, compact: bool, batches: dict[str, Tensor], pictures: np.ndarray) -> Drawing:
    upper, lower = figure.subplots(2, 1, height_ratios=[1, 4])
    strip, bars = draw_strip(upper, pictures, compact), draw_bars(lower, compact)
    now: list[np.ndarray] = []

    @lru_cache
    def solved(row: str, loss: str, anchor: int, value: float) -> np.ndarray:
        return SOLVE[row](batches[loss], anchor, value).numpy()

    def update(values: dict) -> str:
        loss, anchor = values["loss"], values["anchor"]
        settings = (0.0, values["beta"], values["temperature"], values["C"])
        rows = [solved(row, loss, anchor, value) for row, value in zip(ROWS, settings)]
        order = np.argsort(-rows[0], kind="stable")
        rank = int(np.flatnonzero(order == NEGATIVES)[0])
        strip.move(anchor, listed(batches[loss], anchor)[0].numpy()[order], rank)
        now[:] = [row[order] for row in rows]
        bars.move(now, rank)
        return sentence(values, rows, rank)

    return Drawing([*strip.artists, *bars.artists], update, links=lambda: links(upper, lower, now))


def links(strip, bars, rows: list[np.ndarray]) -> list[Link]:
    """A picture of the list with its bars, and their values."""

    def column(k: int) -> list[Mark]:
        return [box(strip, (k + 0.5, 0), (k + 1.5, 1)), box(bars, (k + 0.5, floor(3) - 0.1), (k + 1.5, 1.2))]

    return [
        Link(column(k), text=", ".join(f"{name} {row[k]:.2f}" for name, row in zip(ROWS, rows)))
        for k in range(NEGATIVES + 1)
    ]


def floor(row: int) -> float:
    """Where the bars of a row stand."""
    return -STEP * row


def sentence(values: dict, rows: list[np.ndarray], rank: int) -> str:
    cosine, top, sparse, alpha = rows
    return (
        f"{values['loss']}, anchor {values['anchor']}: its second view is number {rank + 1} of "
        f"{NEGATIVES + 1} in its list, at cosine {cosine[-1]:.2f}. At β = {values['beta']:.3g} it is sorted "
        f"to the top with probability {top[-1]:.2f}; at τ = {values['temperature']:.3g} the sparsemax gives "
        f"it {sparse[-1]:.2f} and something to {(sparse[:-1] > 0).sum()} negatives of the list; at C = "
        f"{values['C']:.3g} {(alpha > 0).sum()} of {NEGATIVES} negatives are support vectors, the "
        f"largest weight is {alpha.max():.3g}."
    )


def draw_strip(axis, pictures: np.ndarray, compact: bool) -> Part:
    """The anchor's picture and its list's; moved by the anchor, the list and the second view's rank."""
    bare(axis)
    side, shown = pictures.shape[1], NEGATIVES + 2
    canvas = np.full((side + 8, (side + 8) * shown, 3), 255, np.uint8)
    image = axis.imshow(canvas, extent=(-0.5, shown - 0.5, 0, 1), interpolation="nearest")
    axis.set(xlim=(-0.5, shown - 0.5), ylim=(0, 1.3))
    kind = {"ha": "center", "va": "bottom", "fontsize": 7 if compact else 9, "weight": "bold"}
    axis.text(0, 1.04, "" if compact else "anchor", color=GREEN, **kind)
    second = axis.text(0, 1.04, "", color=BLUE, **kind)

    def move(anchor: int, chosen: np.ndarray, rank: int) -> None:
        edges = [GREEN, *[BLUE if k == rank else "" for k in range(len(chosen))]]
        fill(canvas, pictures[[anchor, *chosen]], edges)
        image.set_data(canvas)
        second.set(x=rank + 1, text="" if compact else "2nd view")

    return Part([image, second], move)


def draw_bars(axis, compact: bool) -> Part:
    """A row of bars for each quantity, with numbers on the second view's and on the largest other; moved by
    their values (11,), in the order of the pictures, and by the second view's rank."""
    bare(axis)
    shown, size = NEGATIVES + 1, 7 if compact else 9
    axis.set(xlim=(-0.5, shown + 0.5), ylim=(STEP * (0.3 - len(ROWS)), 1.3))
    floors = np.array([floor(row) for row in range(len(ROWS))])
    axis.hlines(floors, 0.5, shown + 0.5, color=GREY, linewidth=0.8)
    for foot, row in zip(floors, ROWS):
        axis.text(0.4, foot + 0.2, row, ha="right", fontsize=size, weight="bold")
    left, base = np.tile(np.arange(1, shown + 1) - 0.3, len(ROWS)), np.repeat(floors, shown)
    bars = axis.add_collection(PolyCollection([]))
    kind = {"ha": "center", "va": "bottom", "fontsize": 7 if compact else 9}
    texts = [[axis.text(0, 0, "", color=colour, **kind) for colour in (BLUE, VERMILION)] for _ in ROWS]

    def move(rows: list[np.ndarray], rank: int) -> None:
        *shares, alpha = rows
        heights = np.concatenate([*shares, alpha / max(1.0, alpha.max())]).clip(min=0)
        x, y = np.stack([left, left, left + 0.6, left + 0.6]), np.stack([base, base + heights])
        bars.set_verts(np.stack([x, y[[0, 1, 1, 0]]], axis=-1).transpose(1, 0, 2))
        bars.set_facecolors([BLUE if k % shown == rank else VERMILION for k in range(len(heights))])
        for number, (row, pair) in enumerate(zip(rows, texts)):
            hardest = int(np.where(np.arange(shown) == rank, -np.inf, row).argmax())
            for text, k in zip(pair, (rank, hardest)):
                top = floor(number) + heights[number * shown + k] + 0.03
                text.set(text=in_short(row[k]), x=k + 1, y=top)

    return Part([bars, *[text for pair in texts for text in pair]], move)


def listed(z: Tensor, anchor: int) -> tuple[Tensor, Tensor]:
    """Columns of the hardest negatives, ascending, and of the second view, and all cosines (2N,), −inf for
    the anchor itself; z (2, N, E) on the sphere."""
    n = z.shape[1]
    similarity = z.flatten(0, 1) @ z[0, anchor]
    similarity[anchor] = -torch.inf
    negatives = similarity.clone()
    negatives[n + anchor] = -torch.inf
    hardest = negatives.topk(NEGATIVES).indices.flip(0)
    return torch.cat([hardest, torch.tensor([n + anchor])]), similarity


def cosine_of(z: Tensor, anchor: int, _: float) -> Tensor:
    column, similarity = listed(z, anchor)
    return similarity[column]


def top_of(z: Tensor, anchor: int, beta: float) -> Tensor:
    """GroCo's p."""
    return top_probability(cosine_of(z, anchor, 0), 1, beta)


def sparse_of(z: Tensor, anchor: int, temperature: float) -> Tensor:
    """Shares among all 2N − 1 candidates, so what the list gets may be less than 1."""
    column, similarity = listed(z, anchor)
    return sparsemax(similarity / temperature)[column]


def alpha_of(z: Tensor, anchor: int, C: float) -> Tensor:
    """The weights in the machine of the anchor against the list's negatives; the second view has none."""
    negatives = z.flatten(0, 1)[listed(z, anchor)[0][:-1]]
    points = torch.cat([z[0, [anchor]], negatives])
    alpha = svm_dual(kernel(points, points, bandwidth=BANDWIDTH), torch.tensor([0]), C=C).alpha[0]
    return torch.cat([alpha[1:], alpha.new_zeros(1)])


SOLVE = dict(zip(ROWS, (cosine_of, top_of, sparse_of, alpha_of)))


def fill(canvas: np.ndarray, pictures: np.ndarray, edges: list[str]) -> None:
    """Pictures side by side, with an edge where there is a colour."""
    side = pictures.shape[1]
    canvas[:] = 255
    for k, (picture, edge) in enumerate(zip(pictures, edges)):
        x = (side + 8) * k
        if edge:
            canvas[1 : side + 7, x + 1 : x + side + 7] = [int(edge[i : i + 2], 16) for i in (1, 3, 5)]
        canvas[4 : side + 4, x + 4 : x + side + 4] = picture


def in_short(value: float) -> str:
    """Two digits or so; nothing for 0."""
    if abs(value) < 5e-3:
        return ""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 9.995 else f"{value:.0f}"
