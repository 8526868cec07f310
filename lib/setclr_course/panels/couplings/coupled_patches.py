"""Two views of a dozen patches coupled by what an encoder makes of them: the matching, with its pictures."""

from math import log10

import numpy as np
from torch import Tensor
from torch.nn.functional import normalize

from setclr.inner import sinkhorn
from setclr_course.kit.few_patches import unlearned_pair
from setclr_course.kit.palette import BLACK, SKY, VERMILION
from setclr_course.kit.tiles import tiles
from setclr_course.panels.couplings.fair_shares import MOST
from setclr_course.pixels.controls import log_slider, options
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import bare, cells, frames

ROUNDS = 100
CONSTRAINTS = ("rows", "both")
LISTED = 8  # mistakes


def coupled_patches(
    embedded: dict[str, Tensor] | None = None, views: Tensor | None = None, **initial
) -> Panel:
    """The coupling of the first views with the second ones, every row fair or every column too.

    Args:
        embedded: (2, N, E), embeddings of both views, by the name of the encoder; pixels and an untrained
            network by default.
        views: (2, N, C, H, W) uint8, the pictures.
    """
    if embedded is None or views is None:
        embedded, views = unlearned_pair()
    cost = {name: cost_of(z) for name, z in embedded.items()}
    controls = {
        "epsilon": log_slider("smoothing ε", 0.5, 0.005, 5, 0.1, {0.05: ".05", 0.5: "paper .5"}),
        "constraint": options("fair sums", CONSTRAINTS),
        "loss": options("trained with", cost),
    }
    pictures = [tiles(view) for view in views]
    return Panel(
        lambda figure, compact: build(figure, compact, cost, pictures), controls, (9, 5.2), initial, 3.7
    )


def cost_of(z: Tensor) -> Tensor:
    """1 − cosine of (2, N, E): (N, N) float64."""
    a, b = normalize(z.detach().double(), dim=-1)
    return 1 - a @ b.T


def coupling(cost: Tensor, epsilon: float, constraint: str) -> np.ndarray:
    """N·P: rows sum to 1; with "both" the columns too, as nearly as Sinkhorn's rounds make them."""
    if constraint == "rows":
        return (-cost / epsilon).softmax(1).numpy()
    return len(cost) * sinkhorn(cost, epsilon, ROUNDS).P.numpy()


def build(figure, compact: bool, cost: dict[str, Tensor], pictures: list[np.ndarray]) -> Drawing:
    n = len(pictures[0])
    matrix, right = (figure.subplots(), None) if compact else figure.subplots(1, 2, width_ratios=[2, 1])
    mesh, own, wrong = draw_matrix(matrix, pictures, compact)
    moving = [mesh, own, wrong]
    if not compact:
        columns, note = draw_sums(matrix, n)
        image, shares = draw_mistakes(right, n)
        moving += [columns, note, image, *shares]

    def update(values: dict) -> str:
        name, epsilon, constraint = values["loss"], values["epsilon"], values["constraint"]
        P = coupling(cost[name], epsilon, constraint)
        mesh.set_array(np.log10(P.clip(0.1 / n, 1)))
        best = P.argmax(1)
        off = np.flatnonzero(best != np.arange(n))
        wrong.set_data(best[off], off)
        received = P.sum(0)
        if not compact:
            columns.set_data(received.clip(max=MOST))
            note.set_text(f"second views receive {received.min():.2f} to {received.max():.2f} fair shares")
            rows = [np.stack([pictures[0][i], pictures[1][best[i]], pictures[1][i]]) for i in off[:LISTED]]
            image.set_data(mistakes(rows, pictures[0].shape[1]))
            words = [f"{P[i, best[i]]:.0%} : {P[i, i]:.0%}" for i in off[:LISTED]]
            for text, word in zip(shares, [*words, *[""] * LISTED]):
                text.set_text(word)
        return (
            f"{name}, ε = {epsilon:.3g}, fair {constraint}: {n - len(off)} of {n} patches give their largest "
            f"share to their own second view, all of them together {P.trace() / n:.0%} of their mass; second "
            f"views receive between {received.min():.2f} and {received.max():.2f} fair shares."
        )

    return Drawing(moving, update)


def draw_matrix(axis, pictures: list[np.ndarray], compact: bool) -> tuple:
    """Cells, with the first views left of the rows and the second ones under the columns; dark is a tenth of
    an even share or less, bright is all."""
    n = len(pictures[0])
    mesh = cells(axis, n, n, 0, -1 - log10(n))
    own = frames(axis, [(i, i) for i in range(n)], "white", 1)
    wrong = axis.plot([], [], "x", color=VERMILION, markersize=6 if compact else 9, mew=2.5)[0]
    wrong.set_label("wrong")
    bare(axis)
    edge = np.arange(n)[:, None] + [-0.46, 0.46]
    for (top, bottom), first, second in zip(edge, *pictures):
        axis.imshow(first, extent=(-1.6, -0.68, bottom, top), interpolation="nearest", zorder=3)
        axis.imshow(second, extent=(top, bottom, n + 0.6, n - 0.32), interpolation="nearest", zorder=3)
    axis.set(xlim=(-1.7, n - 0.5), ylim=(n + 0.7, -0.5), aspect="equal")
    return mesh, own, wrong


def draw_sums(matrix, n: int) -> tuple:
    """Bars over the columns show what each second view receives; the line is a fair share."""
    bars = matrix.inset_axes((1.2 / (n + 1.2), 1.01, n / (n + 1.2), 0.13))
    columns = bars.stairs(np.ones(n), np.arange(n + 1), fill=True, color=SKY)
    bars.axhline(1, color=BLACK, linewidth=0.8)
    bare(bars)
    bars.set(xlim=(0, n), ylim=(0, MOST))
    bars.set_title(" ", fontsize=9)  # room for the note
    return columns, bars.text(0, 1, "", transform=bars.transAxes, fontsize=9, va="bottom")


def draw_mistakes(axis, n: int) -> tuple:
    """The list of patches that prefer another's second view."""
    bare(axis)
    image = axis.imshow(mistakes([], 32), extent=(0, 3, LISTED, 0), interpolation="nearest")
    axis.set(xlim=(0, 4.4), ylim=(LISTED, -0.9))
    for x, word in enumerate(("patch", "takes", "own", "shares")):
        axis.text(x + 0.5, -0.1, word, ha="center", va="bottom", fontsize=9, weight="bold")
    kind = {"ha": "left", "va": "center", "fontsize": 9}
    return image, [axis.text(3.15, i + 0.5, "", **kind) for i in range(LISTED)]


def mistakes(rows: list[np.ndarray], side: int) -> np.ndarray:
    """Rows of three pictures on white, (LISTED · (side + 4), 3 · (side + 4), 3) uint8."""
    canvas = np.full((LISTED, side + 4, 3, side + 4, 3), 255, np.uint8)
    for i, row in enumerate(rows):
        canvas[i, 2:-2, :, 2:-2] = row.transpose(1, 0, 2, 3)
    return canvas.reshape(LISTED * (side + 4), 3 * (side + 4), 3)
