"""One patch of the left camera against those of the right one: whom does it take for its own? (QARe,
section 5.1)"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setclr_course.kit.handles import nearest_to
from setclr_course.kit.palette import GREEN, VERMILION
from setclr_course.kit.panel import Page, Panel, options, slider
from setclr_course.panels.assignments.things import cosines, given

if TYPE_CHECKING:
    from torch import Tensor

    from setclr_course.panels.assignments.things import Features

ROWS, COLUMNS, BEST = 4, 8, 8  # of the pool; right patches that are shown, in two rows
POOL = ROWS * COLUMNS
PLACES = np.indices((ROWS, COLUMNS)).reshape(2, -1).T[:, ::-1]  # (POOL, 2): x and y in the pool
LISTED = np.array([(place % 4, 1.4 * (place // 4)) for place in range(BEST)])


class Seen(NamedTuple):
    order: list[int]  # POOL right patches, the most similar to the query first
    similarity: np.ndarray  # (POOL,) theirs to the query
    missed: np.ndarray  # (POOL,) whether a left patch is most similar to another thing
    place: int  # of the true partner in the order


class who_is_it(Panel):
    """Thirty-two things seen twice, one of them in a frame that can be dragged.

    Args:
        features: by name, (n, D) of view 1 and (n, D) of view 2.
        patches: (2, n, C, H, W) uint8, the pictures.

    Raises:
        ValueError: there are fewer than 32 things.
    """

    size, row_height = (9, 3.5), 5.2
    mosaic, widths, row_mosaic = "pool best", (1.5, 1), "pool; best"
    in_sight = 2

    def __init__(self, features: "Features | None" = None, patches: "Tensor | None" = None, **initial: Any):
        features, faces = given(features, patches, POOL, 40)
        some = np.arange(POOL) * (faces.shape[1] - 1) // (POOL - 1)
        self.faces = faces[:, some]
        self.similarity = {name: cosines(a[some], b[some]) for name, (a, b) in features.items()}
        self.knobs = {
            "features": options("as seen by", features),
            "query": slider("left camera's patch", 17, 0, POOL - 1, 1),
        }
        super().__init__(**initial)

    def solve(self, values: dict) -> Seen:
        table, query = self.similarity[values["features"]], values["query"]
        order = np.argsort(-table[query], kind="stable").tolist()
        return Seen(order, table[query], table.argmax(1) != np.arange(POOL), 1 + order.index(query))

    def draw(self, page: Page, values: dict, now: Seen) -> None:
        query = values["query"]
        title, below = "left camera: drag the green frame", "?  the most similar patch is another thing"
        left = page.table("pool", ROWS, COLUMNS, title, xlabel=below)
        pool = left.photographs(PLACES, self.faces[0], 1)
        x, y = PLACES[now.missed].T
        left.text(x + 0.36, y - 0.34, ["?"] * len(x), VERMILION, "title", bold=True, halo=True)
        for j in range(POOL):
            page.link(f"patch {j}", pool[j], query=j)
        frame = left.frames([tuple(PLACES[query, ::-1])], GREEN, 5)
        frame.handle("query", PLACES[query], to=nearest_to(PLACES, query), label="the patch")

        right = page.plane("best", (-0.5, 3.5), (2.3, -0.5), "right camera: most similar first",
                           xlabel="green: the true partner")  # fmt: skip
        listed = now.order[:BEST] if now.place <= BEST else [*now.order[: BEST - 1], query]
        rims = [GREEN if j == query else "" for j in listed]
        best = right.photographs(LISTED, self.faces[1, listed], 0.86, frame=rims)
        words = [f"{now.similarity[j]:.2f}" + f"\nplace {now.place}" * (j == query) for j in listed]
        right.text(LISTED[:, 0], LISTED[:, 1] + 0.47, words, size="small", rise="top")
        for k, j in enumerate(listed):
            page.link(f"similarity {now.similarity[j]:.2f}", best[k], lit=[pool[j]])

    def say(self, values: dict, now: Seen) -> str:
        query = values["query"]
        return (
            f"As seen by {values['features']}: the true partner of patch {query} stands at place "
            f"{now.place} of {POOL}. Of all {POOL} patches {1 - now.missed.mean():.0%} have their "
            "partner in the first place."
        )
