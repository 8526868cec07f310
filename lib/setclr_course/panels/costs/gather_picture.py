"""What many processes see of a batch: each its own part, or, after a gather, all of it."""

import numpy as np
import torch
from torch import Tensor

from setclr.losses.base import SetLoss
from setclr_course.kit.palette import VERMILION
from setclr_course.kit.scene import Page
from setclr_course.kit.still import Picture, pictured


def gather_picture(z: Tensor, loss: SetLoss, processes: int = 2) -> Picture:
    """The assignments of `loss` for embeddings z (V, N, E) shared out among processes: without a gather, a
    block for each process, and with it, one whole matrix. Rows and columns stand process by process."""
    V, N, _ = z.shape
    share = N // processes
    order = (torch.arange(N).repeat(V) // share).argsort(stable=True)
    whole = loss.assignment(z)[order][:, order].numpy()
    alone = [loss.assignment(part).numpy() for part in z.split(share, dim=1)]
    image = (order % N).numpy()
    positives = np.argwhere((image[:, None] == image) & ~np.eye(V * N, dtype=bool))
    seen, pairs = processes * V * share * (V * share - 1), V * N * (V * N - 1)

    def draw(page: Page) -> str:
        middles = {V * share * (p + 0.5) - 0.5: f"process {p}" for p in range(processes)}
        side = -0.5, V * N - 0.5
        for name, title, below, blocks in (
            ("alone", "each process alone", "empty: no process sees this pair", alone),
            ("whole", "after the gather", "frames: views of one image (positives)", [whole]),
        ):
            plot = page.plane(name, side, side[::-1], title, xlabel=below, xticks=middles, yticks=middles)
            for p, block in enumerate(blocks):
                plot.cells(block, at=(p * V * share, p * V * share))
            plot.frames(positives, VERMILION, 1.2)
        return (
            f"{V} views of {N} images on {processes} processes, row anchor, column candidate, positives in "
            f"frames, bright a large share. Alone the processes see {seen} of {pairs} pairs and the rest is "
            "empty; after the gather they see all."
        )

    return pictured(draw, "alone whole", (8, 4.1))
