"""One patch's list: its second view and its hardest negatives in order, and what three inner problems give
each of them: the sorting network, the sparsemax and the support-vector machine."""

from functools import lru_cache

import numpy as np
import torch
from matplotlib.collections import PolyCollection
from torch import Tensor
from torch.nn.functional import normalize

from setclr.explore.kit.few_patches import unlearned_pair
from setclr.explore.kit.panel import Drawing, Panel, log_slider, options, slider
from setclr.explore.kit.parts import bare
from setclr.explore.kit.tiles import tiles
from setclr.inner import kernel, sparsemax, svm_dual, top_probability
from setclr.palette import BLUE, GREEN, GREY, VERMILION

NEGATIVES = 10
ROWS = ("cosine", "sorted to the top", "sparsemax", "weight α")
BANDWIDTH = 1.0
STEP = 1.5  # between the floors of two rows of bars


def anchor_list(embedded: dict[str, Tensor] | None = None, views: Tensor | None = None, **initial) -> Panel:
    """A batch seen from one anchor, a patch of the first view.

    Args:
        embedded: (2, N, E), embeddings of both views, N ≥ 6, by the name of who made them; pixels and an
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
    places, size = np.arange(NEGATIVES + 2), 7 if compact else 9
    strip, axis = figure.subplots(2, 1, height_ratios=[1, 4])
    for part in (strip, axis):
        bare(part)
    side, extent = pictures.shape[1], (-0.5, len(places) - 0.5, 0, 1)
    canvas = np.full((side + 8, (side + 8) * len(places), 3), 255, np.uint8)
    image = strip.imshow(canvas, extent=extent, interpolation="nearest")
    strip.set(xlim=extent[:2], ylim=(0, 1.3))
    kind = {"ha": "center", "va": "bottom"}
    strip.text(0, 1.04, "" if compact else "anchor", fontsize=size, weight="bold", color=GREEN, **kind)
    second = strip.text(0, 1.04, "", fontsize=size, weight="bold", color=BLUE, **kind)
    axis.set(xlim=extent[:2], ylim=(STEP * (0.3 - len(ROWS)), 1.3))
    floors = -STEP * np.arange(len(ROWS))
    axis.hlines(floors, 0.5, extent[1], color=GREY, linewidth=0.8)
    for floor, row in zip(floors, ROWS):
        axis.text(0.4, floor + 0.2, row, ha="right", fontsize=size, weight="bold")
    left = np.tile(places[1:] - 0.3, len(ROWS))
    bars = axis.add_collection(PolyCollection([]))
    base = np.repeat(floors, NEGATIVES + 1)
    texts = [axis.text(x + 0.3, y, "", fontsize=6 if compact else 8, **kind) for x, y in zip(left, base)]

    @lru_cache
    def solved(row: str, loss: str, anchor: int, value: float) -> np.ndarray:
        return SOLVE[row](batches[loss], anchor, value).numpy()

    def update(values: dict) -> str:
        loss, anchor = values["loss"], values["anchor"]
        settings = (0.0, values["beta"], values["temperature"], values["C"])
        cosine, top, sparse, alpha = (solved(row, loss, anchor, x) for row, x in zip(ROWS, settings))
        order = np.argsort(-cosine, kind="stable")
        place = int(np.flatnonzero(order == NEGATIVES)[0])
        chosen = listed(batches[loss], anchor)[0].numpy()[order]
        fill(canvas, pictures[[anchor, *chosen]], [GREEN, *[BLUE if k == place else "" for k in places[:-1]]])
        image.set_data(canvas)
        second.set(x=place + 1, text="" if compact else "2nd view")
        shown = np.concatenate([x[order] for x in (cosine, top, sparse, alpha)])
        heights = np.concatenate([x[order] for x in (cosine, top, sparse, alpha / max(1.0, alpha.max()))])
        heights = heights.clip(min=0)
        x, y = np.stack([left, left, left + 0.6, left + 0.6]), np.stack([base, base + heights])
        bars.set_verts(np.stack([x, y[[0, 1, 1, 0]]], axis=-1).transpose(1, 0, 2))
        bars.set_facecolors([BLUE if k % len(order) == place else VERMILION for k in range(len(heights))])
        for text, value, foot, height in zip(texts, shown, base, heights):
            text.set(text=brief(value), y=foot + height + 0.03)
        return (
            f"{loss}, anchor {anchor}: its second view is number {place + 1} of {NEGATIVES + 1} in its list, "
            f"at cosine {cosine[-1]:.2f}. At β = {values['beta']:.3g} it is sorted to the top with "
            f"probability {top[-1]:.2f}; at τ = {values['temperature']:.3g} the sparsemax gives it "
            f"{sparse[-1]:.2f} and something to {(sparse[:-1] > 0).sum()} negatives of the list; at C = "
            f"{values['C']:.3g} {(alpha > 0).sum()} of {NEGATIVES} negatives are support vectors, the "
            f"largest weight is {alpha.max():.3g}."
        )

    return Drawing([image, second, bars, *texts], update)


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
    """Of all 2N − 1 candidates, so what the list gets may be less than 1."""
    column, similarity = listed(z, anchor)
    return sparsemax(similarity / temperature)[column]


def alpha_of(z: Tensor, anchor: int, C: float) -> Tensor:
    """Of the machine with the anchor on one side and the list's negatives on the other: the second view has
    none."""
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


def brief(value: float) -> str:
    """Two digits or so; nothing for 0."""
    if abs(value) < 5e-3:
        return ""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 9.995 else f"{value:.0f}"
