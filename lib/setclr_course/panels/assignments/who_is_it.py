"""One patch of the left camera against those of the right one: whom does it take for its own? (QARe,
section 5.1)"""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.patheffects import withStroke
from torch import Tensor
from torch.nn.functional import normalize

from setclr_course.kit.palette import GREEN, GREY, INK, VERMILION
from setclr_course.kit.tiles import thumbnails
from setclr_course.panels.assignments.things import drawn_example
from setclr_course.pixels.controls import options, slider
from setclr_course.pixels.handles import Handle, Link, cell
from setclr_course.pixels.panel import Drawing, Panel
from setclr_course.pixels.parts import Part, bare, cell_outlines, frames

ROWS, COLUMNS, BEST = 4, 8, 8  # of the pool on the left; right patches that are shown
POOL = ROWS * COLUMNS
PATCH = 40  # pixels


class Shown(NamedTuple):
    """The pool, the same for all features."""

    patches: np.ndarray  # (2, POOL, PATCH, PATCH, 3) uint8
    similarity: dict[str, np.ndarray]  # (POOL, POOL): cosines of left (rows) and right patches, by features


def who_is_it(
    features: dict[str, tuple[Tensor, Tensor]] | None = None, patches: Tensor | None = None, **initial
) -> Panel:
    """Thirty-two things seen twice, one of them in a frame that can be dragged.

    Args:
        features: by name, (n, D) of view 1 and (n, D) of view 2.
        patches: (2, n, C, H, W) uint8, the pictures.

    Raises:
        ValueError: there are fewer than 32 things.
    """
    if features is None or patches is None:
        features, patches = drawn_example()
    if patches.shape[1] < POOL:
        raise ValueError(f"patches must show {POOL} things or more, got {patches.shape[1]}")
    some = torch.linspace(0, patches.shape[1] - 1, POOL).long()
    cosines = {name: cosine(a[some], b[some]) for name, (a, b) in features.items()}
    shown = Shown(np.stack([thumbnails(view[some], PATCH) for view in patches]), cosines)
    controls = {
        "features": options("as seen by", features),
        "query": slider("left camera's patch", 17, 0, POOL - 1, 1),
    }
    return Panel(lambda figure, compact: build(figure, compact, shown), controls, (9, 4.3), initial, 4.4, 2)


def cosine(a: Tensor, b: Tensor) -> np.ndarray:
    return (normalize(a.double(), dim=1) @ normalize(b.double(), dim=1).T).numpy(force=True)


def build(figure, compact: bool, shown: Shown) -> Drawing:
    left, right = figure.subplots(2, 1) if compact else figure.subplots(1, 2, width_ratios=(1.5, 1))
    pool, best = draw_pool(left, shown.patches[0]), draw_best(right, shown.patches[1])
    now: dict = {}

    def update(values: dict) -> str:
        query, similarity = values["query"], shown.similarity[values["features"]]
        order = np.argsort(-similarity[query], kind="stable")
        now.update(query=query, order=order, similarity=similarity)
        pool.move(query, similarity)
        best.move(query, order, similarity[query])
        rank = int((order == query).nonzero()[0][0]) + 1
        own = float((similarity.argmax(1) == np.arange(POOL)).mean())
        return (
            f"As seen by {values['features']}: the true partner of patch {query} stands at place {rank} of "
            f"{POOL}. Of all {POOL} patches {own:.0%} have their partner in the first place."
        )

    def nearest_patch(x: float, y: float) -> list[int]:
        row, column = np.clip(np.round([y, x]), 0, [ROWS - 1, COLUMNS - 1]).astype(int)
        return [int(row * COLUMNS + column)]

    query = Handle(
        left, ("query",), lambda v: divmod(v["query"], COLUMNS)[::-1], to=nearest_patch, label="the patch"
    )
    return Drawing([*pool.artists, *best.artists], update, {"query": query}, lambda: links(left, right, now))


def links(left, right, now: dict) -> list[Link]:
    """A patch of the right camera in the list, and its thing on the left."""
    return [
        Link(
            [cell(right, place // 2, place % 2)],
            [cell(left, *divmod(int(j), COLUMNS))],
            f"similarity {now['similarity'][now['query'], j]:.2f}",
        )
        for place, j in enumerate(listed(now["order"], now["query"]))
    ]


def listed(order: np.ndarray, query: int) -> np.ndarray:
    """The most similar right patches; the last gives way to the true partner where that is not among them."""
    best = order[:BEST].copy()
    best[-1] = best[-1] if query in best else query
    return best


def draw_pool(axis, patches: np.ndarray) -> Part:
    """The left camera's patches; a question mark on those whose partner is not in the first place."""
    bare(axis)
    tiles = patches.reshape(ROWS, COLUMNS, PATCH, PATCH, 3).transpose(0, 2, 1, 3, 4)
    axis.imshow(
        tiles.reshape(ROWS * PATCH, COLUMNS * PATCH, 3), extent=(-0.5, COLUMNS - 0.5, ROWS - 0.5, -0.5)
    )
    axis.set_title("left camera: drag the green frame", fontsize=10)
    axis.set_xlabel("?  the most similar patch is another thing", fontsize=9)
    frame = frames(axis, [(0, 0)], GREEN, 4)
    wrong = axis.plot([], [], linestyle="none", marker="$?$", color=VERMILION, markersize=11)[0]
    wrong.set_path_effects([withStroke(linewidth=3, foreground="white")])

    def move(query: int, similarity: np.ndarray) -> None:
        frame.set_segments(cell_outlines([divmod(query, COLUMNS)]))
        missed = (similarity.argmax(1) != np.arange(POOL)).nonzero()[0]
        wrong.set_data(missed % COLUMNS + 0.36, missed // COLUMNS - 0.36)

    return Part([frame, wrong], move)


def draw_best(axis, patches: np.ndarray) -> Part:
    """The right camera's patches that are most similar to the query, best first, and the true partner."""
    bare(axis)
    axis.set(xlim=(-0.6, 1.6), ylim=(BEST // 2 - 0.3, -0.6), aspect="equal")
    axis.set_title("right camera: most similar first", fontsize=10)
    places = [divmod(place, 2) for place in range(BEST)]
    images = [axis.imshow(patches[0], extent=(c - 0.4, c + 0.4, r + 0.34, r - 0.46)) for r, c in places]
    axis.set(xlim=(-0.6, 1.6), ylim=(BEST // 2 - 0.3, -0.6))
    words = [axis.text(c, r + 0.36, "", ha="center", va="top", fontsize=8, color=INK) for r, c in places]
    corners = np.array([[-0.4, -0.46], [0.4, -0.46], [0.4, 0.34], [-0.4, 0.34], [-0.4, -0.46]])
    rims = frames(axis, places, GREY, 3)
    rims.set_segments([corners + [c, r] for r, c in places])

    def move(query: int, order: np.ndarray, similarity: np.ndarray) -> None:
        best = listed(order, query)
        for image, word, j in zip(images, words, best):
            image.set_data(patches[j])
            place = int((order == j).nonzero()[0][0]) + 1
            word.set_text(f"{similarity[j]:.2f}" + f" partner, place {place}" * bool(j == query))
        rims.set_color([GREEN if j == query else "white" for j in best])

    return Part([*images, rims, *words], move)
