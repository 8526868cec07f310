"""One patch's list, its second view and its hardest negatives, and what three inner problems give each of
them: the sorting network, the sparsemax and the support-vector machine."""

from typing import Any, NamedTuple

import numpy as np
from torch.nn.functional import normalize

from setclr_course.kit.controls import log_slider, options, slider
from setclr_course.kit.few_patches import unlearned_pair
from setclr_course.kit.inner import dual, rbf, sparsemax, top_probability
from setclr_course.kit.palette import BLUE, GREY, INK, VERMILION
from setclr_course.kit.panel import Panel
from setclr_course.kit.scene import Mark, Page, Plot
from setclr_course.kit.tiles import tiles

NEGATIVES = 10
ROWS = ("cosine", "sorted to the top", "sparsemax", "weight α")
STEP, HIGH = 1.75, 0.9  # between the floors of two rows of bars; the highest bar


class Listed(NamedTuple):
    pictures: np.ndarray  # (12,): the anchor, then its list, the nearest first
    rank: int  # of the second view in the list
    rows: np.ndarray  # (4, 11): of each of `ROWS` what everyone in the list gets


class anchor_list(Panel):
    """A batch seen from one anchor, a patch of the first view.

    Args:
        embedded: (2, N, E), embeddings of both views, N ≥ 6, by the name of the encoder; pixels and an
            untrained network by default.
        views: (2, N, C, H, W) uint8, the pictures.
    """

    size, row_height = (9, 5.4), 4.4

    def __init__(self, embedded: Any = None, views: Any = None, **initial: Any):
        if embedded is None:
            embedded, views = unlearned_pair()
        self.batches = {name: normalize(z.detach().double(), dim=-1).numpy() for name, z in embedded.items()}
        self.views, last = tiles(views.flatten(0, 1)), views.shape[1] - 1
        self.knobs = {
            "anchor": slider("anchor", 0, 0, last, 1, {0: "0", last: str(last)}),
            "beta": log_slider("sorting β", 1, 0.1, 1000, 0.1, {1: "paper 1", 100: "100"}),
            "temperature": log_slider("sparsemax τ", 1, 0.01, 10, 0.1, {0.1: "0.1", 1: "SparseCLR: 1"}),
            "C": log_slider("bound C", 100, 0.1, 100, 0.1, {1: "1", 100: "paper 100"}),
            "loss": options("trained with", self.batches),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Listed:
        points, anchor = np.concatenate(self.batches[values["loss"]]), values["anchor"]
        column, similarity = listed(points, anchor)
        machine = points[[anchor, *column[:-1]]]  # the anchor against the list's negatives
        rows = np.stack([
            similarity[column],
            top_probability(similarity[column], 1, values["beta"]),
            sparsemax(similarity / values["temperature"])[column],  # of all, so the list may get less than 1
            [*dual(rbf(machine, machine), values["C"]), 0],  # the second view has no weight
        ])  # fmt: skip
        order = np.argsort(-rows[0], kind="stable")
        rank = order.tolist().index(NEGATIVES)  # of the last column, the second view
        return Listed(np.array([anchor, *column[order]]), rank, rows[:, order])

    def draw(self, page: Page, values: dict, now: Listed) -> None:
        title = "★ an anchor's list, the nearest first: ✚ its second view, ✕ the hardest negatives"
        plot = page.plot("plot", (-0.6, NEGATIVES + 1.6), (-3 * STEP - 0.1, 3.1), "" if page.row else title,
                         frame="")  # fmt: skip
        places = np.arange(NEGATIVES + 2.0)
        second = places == 1 + now.rank
        for sign, which in (("★", places == 0), ("✚", second), ("✕", (places > 0) & ~second)):
            plot.dots([(x, 1.92) for x in places[which]], INK, sign, 14 if sign == "★" else 11)
        faces = plot.photographs([(x, 2.08) for x in places], self.views[now.pictures], 0.86, hangs="bottom",
                                 frame=np.where(second, BLUE, "").tolist())  # fmt: skip
        bars = [draw_row(plot, number, row, now.rank) for number, row in enumerate(now.rows)]
        for k, row in enumerate(now.rows.T):
            said = ", ".join(f"{name} {value:.2f}" for name, value in zip(ROWS, row))
            page.link(said, faces[k + 1], *(bar[k] for bar in bars))

    def say(self, values: dict, now: Listed) -> str:
        cosine, top, sparse, alpha = now.rows
        given = (sparse > 0).sum() - (sparse[now.rank] > 0)
        return (
            f"{values['loss']}, anchor {values['anchor']}: its second view is number {now.rank + 1} of "
            f"{NEGATIVES + 1} in its list, at cosine {cosine[now.rank]:.2f}. At β = {values['beta']:.3g} it "
            f"is sorted to the top with probability {top[now.rank]:.2f}; at τ = {values['temperature']:.3g} "
            f"the sparsemax gives it {sparse[now.rank]:.2f} and something to {given} "
            f"negatives of the list; at C = {values['C']:.3g} {(alpha > 0).sum()} of {NEGATIVES} negatives "
            f"are support vectors, the largest weight is {alpha.max():.3g}."
        )


def draw_row(plot: Plot, number: int, row: np.ndarray, rank: int) -> Mark:
    """A bar for everyone in the list, with its number."""
    foot, places = -STEP * number, np.arange(1.0, len(row) + 1)
    tops = foot + HIGH * (row / max(1.0, row.max())).clip(0)
    plot.text(0.5, foot + 1.2, ROWS[number], anchor="start", rise="bottom", bold=True)
    plot.line([0.5, len(row) + 0.5], [foot, foot], GREY, 0.8)
    colours = np.where(places == rank + 1, BLUE, VERMILION).tolist()
    plot.text(places, tops, [in_short(value) for value in row], colours, "small", rise="bottom")
    return plot.bars(places, tops, colours, 0.62, foot)


def listed(points: np.ndarray, anchor: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the hardest negatives, ascending, and of the second view, and all cosines (2N,), −inf for
    the anchor itself; points (2N, E) on the sphere, the second views last."""
    similarity, own = points @ points[anchor], len(points) // 2 + anchor
    similarity[anchor] = -np.inf
    nearest = similarity.argsort(kind="stable")
    return np.array([*nearest[nearest != own][-NEGATIVES:], own]), similarity


def in_short(value: float) -> str:
    """Two digits or so; nothing for 0."""
    said = f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 9.995 else f"{value:.0f}"
    return said.replace("-", "−") if abs(value) > 5e-3 else ""
