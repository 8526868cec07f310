"""One patch's list, its second view and its hardest negatives, and what three inner problems give each of
them: the sorting network, the sparsemax and the support-vector machine."""

from typing import Any, NamedTuple

import numpy as np
from torch.nn.functional import normalize

from setclr_course.kit.few_patches import unlearned_pair
from setclr_course.kit.inner import dual, rbf, sparsemax, top_probability
from setclr_course.kit.palette import BLUE, VERMILION
from setclr_course.kit.panel import Page, Panel, log_slider, options, slider
from setclr_course.kit.tiles import tiles

NEGATIVES = 10
ROWS = ("cosine", "sorted to the top", "sparsemax", "weight α")


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
    mosaic, heights = "list; cosine; sorted; sparsemax; weight", (1.4, 1, 1, 1, 1)

    def __init__(self, embedded: Any = None, views: Any = None, **initial: Any):
        if embedded is None:
            embedded, views = unlearned_pair()
        self.batches = {name: normalize(z.detach().double(), dim=-1).numpy() for name, z in embedded.items()}
        self.views, last = tiles(views.flatten(0, 1)), views.shape[1] - 1
        self.knobs = {
            "anchor": slider("anchor", 0, 0, last, 1, {0: "0", last: str(last)}),
            "beta": log_slider("sorting β", 1, 0.1, 1000, 0.1, {1: "paper 1", 100: "100"}),
            "temperature": log_slider("sparsemax τ", 1, 0.01, 10, 0.1, {1: "SparseCLR: 1"}),
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
        places, x = np.arange(NEGATIVES + 2), (-0.6, NEGATIVES + 1.6)
        second = places == 1 + now.rank
        signs = np.where(second, "✚", np.where(places, "✕", "★")).tolist()
        ticks: dict = {"xticks": dict(enumerate(signs)), "frame": ""}
        listed = page.plot("list", x, (0, 1), title, **ticks)
        frames, points = np.where(second, BLUE, "").tolist(), [(float(place), 0.03) for place in places]
        faces = listed.photographs(points, self.views[now.pictures], 0.86, hangs="bottom", frame=frames)
        bars, colours = [], np.where(second, BLUE, VERMILION)[1:].tolist()
        for name, said, row in zip(self.mosaic.split("; ")[1:], ROWS, now.rows):
            plot = page.plot(name, x, (0, 1.25 * max(1, row.max())), said, frame="bottom")
            words = [in_short(value) for value in row]
            plot.text(places[1:], row.clip(0), words, colours, "small", rise="bottom")
            bars.append(plot.bars(places[1:], row.clip(0), colours, 0.62))
        for k, row in enumerate(now.rows.T):
            said = ", ".join(f"{name} {value:.2f}" for name, value in zip(ROWS, row))
            page.link(said, faces[k + 1], *(bar[k] for bar in bars))

    def say(self, values: dict, now: Listed) -> str:
        cosine, top, sparse, alpha = now.rows
        beta, tau, C = (self.knobs[name].read(values[name]) for name in ("beta", "temperature", "C"))
        given = (sparse > 0).sum() - (sparse[now.rank] > 0)
        return (
            f"{values['loss']}, anchor {values['anchor']}: its second view is number {now.rank + 1} of "
            f"{NEGATIVES + 1} in its list, at cosine {cosine[now.rank]:.2f}. At β = {beta} it is sorted "
            f"to the top with probability {top[now.rank]:.2f}; at τ = {tau} the sparsemax gives it "
            f"{sparse[now.rank]:.2f} and something to {given} negatives of the list; at C = {C} "
            f"{(alpha > 0).sum()} of {NEGATIVES} negatives are support vectors, the largest weight is "
            f"{alpha.max():.3g}."
        )


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
    return said if abs(value) > 5e-3 else ""
