"""Still tables of a batch: which views must find which, and what many processes see of it."""

import numpy as np
import torch
from torch import Tensor

from setclr.losses.base import SetLoss
from setclr_course.kit.palette import VERMILION, WHITE
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured


def positives_picture(allowed: Tensor, full: int) -> Picture:
    """A table of the views of an image, row who looks, column who is to be found.

    Args:
        allowed: (V, V) of bool, [v, u]: is u a positive of v?
        full: so many views, the first, are full ones.
    """
    V, pairs = len(allowed), int(allowed.sum())

    def draw(page: Page) -> str:
        names = [f"full {v + 1}" if v < full else f"small {v - full + 1}" for v in range(V)]
        title = "each row's view has to find the blue ones"
        table = page.table("views", V, V, title, beside=names, below=names, turn=45)
        table.cells(allowed.float().numpy(), words=np.where(np.eye(V), "self", ""))
        table.frames(np.ndindex(V, V), WHITE, 1)
        return f"{pairs} of {V * (V - 1)} ordered pairs of views are pulled together: all find the full ones."

    return pictured(draw, "views", (4.6, 4.4))


def gather_picture(z: Tensor, loss: SetLoss, processes: int = 2) -> Picture:
    """The assignments of `loss` for embeddings z (V, N, E) shared out among processes: without a gather, a
    block for each process, and with it, one whole matrix. Rows and columns stand process by process."""
    V, N, _ = z.shape
    share, own, every = N // processes, V * N // processes, V * N  # images, points of a process; all points
    order = (torch.arange(N).repeat(V) // share).argsort(stable=True)
    image = (order % N).numpy()
    positives = np.argwhere((image[:, None] == image) & ~np.eye(every, dtype=bool))
    alone = [loss.assignment(part) for part in z.split(share, dim=1)]
    whole = [loss.assignment(z)[order][:, order]]

    def draw(page: Page) -> str:
        ticks = {own * (p + 0.5) - 0.5: f"process {p}" for p in range(processes)}
        titles = "alone: nobody sees the empty pairs", "after the gather"
        for name, title, blocks in zip(("alone", "whole"), titles, (alone, whole)):
            plot = page.plane(name, (-0.5, every - 0.5), (every - 0.5, -0.5), title,
                              xlabel="frames: views of one image", xticks=ticks, yticks=ticks)  # fmt: skip
            for p, block in enumerate(blocks):
                plot.cells(block.numpy(), at=(p * own, p * own))
            plot.frames(positives, VERMILION, 1.2)
        return (
            f"{V} views of {N} images on {processes} processes, row anchor, column candidate, positives in "
            f"frames, bluer a larger share. Alone the processes see {processes * own * (own - 1)} of "
            f"{every * (every - 1)} pairs and the rest is empty; after the gather they see all."
        )

    return pictured(draw, "alone whole", (8, 4.1))
