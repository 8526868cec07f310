"""Whom an anchor of a real batch looks at: the negatives with the largest shares."""

from collections.abc import Sequence

import torch
from torch import Tensor

from setclr_course.kit.palette import BLACK, GREEN, ORANGE
from setclr_course.kit.pictures import image_grid
from setclr_course.kit.still import Picture

MOST = 8  # negatives in a row
EDGE = 3  # pixels of a frame


def looked_at(views: Tensor, things: Tensor, weights: Tensor, anchors: Sequence[int]) -> Picture:
    """A row for each anchor: itself, its positive and its heaviest negatives, framed where they have weight.

    views: (2, N, 3, H, W) in [0, 1]. things: (N,), whose patch each is. weights: (2N, 2N), rows of anchors.
    Frames: black for the pair, green for a weight, orange where the negative is of the anchor's own thing.
    """
    _, N, _, height, width = views.shape
    labels, chosen = things.repeat(2), torch.tensor(anchors)
    pair = torch.stack([chosen, (chosen + N) % (2 * N)], dim=1)
    shares = weights[chosen].scatter(1, pair, -1)
    heaviest = shares.topk(MOST)
    shown = torch.cat([pair, heaviest.indices], dim=1)
    own = labels[heaviest.indices] == labels[chosen, None]
    kinds = torch.where(heaviest.values > 0, 1 + own.long(), 3)
    kinds = torch.cat([torch.zeros_like(pair), kinds], dim=1)
    colours = torch.tensor([list(bytes.fromhex(c[1:])) for c in (BLACK, GREEN, ORANGE, "#ffffff")])
    framed = colours.to(torch.uint8)[kinds.flatten(), :, None, None]
    framed = framed.repeat(1, 1, height + 2 * EDGE, width + 2 * EDGE)
    framed[:, :, EDGE:-EDGE, EDGE:-EDGE] = (views.flatten(0, 1)[shown.flatten()] * 255).byte()
    kept = (shares > 0).sum(1).tolist()
    rows = [f"{count} of {2 * N - 2}" for count in kept]
    false = int((own & (heaviest.values > 0)).sum())
    alt = (
        f"{len(anchors)} anchors with their positives in black frames and their heaviest negatives; "
        f"{', '.join(map(str, kept))} of {2 * N - 2} negatives have a share. {false} of the framed ones, in "
        "orange, are of the anchor's own photograph."
    )
    return image_grid(framed, 2 + MOST, rows, alt)
