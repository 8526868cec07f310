"""Whom an anchor of a real batch looks at: the negatives with the largest shares."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from setclr_course.kit.palette import BLUE, GREEN, ORANGE, WHITE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured
from setclr_course.kit.tiles import tiles

MOST = 8  # negatives in a row
COLOURS = (BLUE, GREEN, ORANGE, WHITE)  # of the pair, of a share, of a false negative's, of none


def looked_at(views: Tensor, things: Tensor, weights: Tensor, anchors: Sequence[int]) -> Picture:
    """A row for each anchor: itself, its positive and its heaviest negatives, framed where they have weight.

    views: (2, N, 3, H, W) in [0, 1]. things: (N,), whose patch each is. weights: (2N, 2N), rows of anchors.
    Frames: blue for the pair, green for a weight, orange where the negative is of the anchor's own thing.
    """
    N, labels, chosen = len(things), things.repeat(2), torch.tensor(anchors)
    pair = torch.stack([chosen, (chosen + N) % (2 * N)], dim=1)
    shares = weights[chosen].scatter(1, pair, -1)
    shown = torch.cat([pair, shares.topk(MOST).indices], dim=1)
    own, share = labels[shown] == labels[chosen, None], shares.gather(1, shown)
    kinds = torch.where(share > 0, 1 + own.long(), 3 * (share == 0))  # of COLOURS
    kept = (shares > 0).sum(1).tolist()
    rows = [f"{count} of {2 * N - 2}" for count in kept]
    false = int((kinds == 2).sum())
    alt = (
        f"{len(anchors)} anchors with their positives in blue frames and their heaviest negatives; "
        f"{', '.join(map(str, kept))} of {2 * N - 2} negatives have a share. {false} of the framed ones, in "
        "orange, are of the anchor's own photograph."
    )

    def draw(page: Page) -> str:
        table = page.table("grid", len(rows), 2 + MOST, beside=rows)
        at = np.argwhere(np.ones(shown.shape))[:, ::-1]
        table.photographs(at, tiles((views.flatten(0, 1)[shown.flatten()] * 255).byte()), 0.86)
        edges = [COLOURS[kind] for kind in kinds.flatten().tolist()]
        table.boxes(at - 0.45, at + 0.45, edge=edges, width=4)
        return alt

    return pictured(draw, "grid", (8, 0.3 + 6.6 * len(rows) / (2 + MOST)))
