"""What many processes see of a batch: each its own part, or, after a gather, all of it."""

import numpy as np
import torch
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from setclr.losses.base import SetLoss
from setclr_course.kit.palette import GREY, VERMILION
from setclr_course.kit.png import Picture, still


def gather_picture(z: Tensor, loss: SetLoss, processes: int = 2) -> Picture:
    """The assignments of `loss` for embeddings z (V, N, E) shared out among processes: without a gather, a
    block for each process, and with it, one whole matrix. Rows and columns stand process by process."""
    V, N, _ = z.shape
    share = N // processes
    owner = torch.arange(N).repeat(V) // share
    order = owner.argsort(stable=True)
    whole = loss.assignment(z)[order][:, order].numpy()
    alone = np.full((V * N, V * N), np.nan)
    for p, part in enumerate(z.split(share, dim=1)):
        block = slice(p * V * share, (p + 1) * V * share)
        alone[block, block] = loss.assignment(part).numpy()
    seen, pairs = processes * V * share * (V * share - 1), V * N * (V * N - 1)

    def draw(figure) -> str:
        axes = figure.subplots(1, 2)
        for axis, matrix, title in zip(axes, (alone, whole), ("each process alone", "after the gather")):
            shades = axis.imshow(matrix, vmin=0, vmax=1)
            axis.set_title(title)
            middle = [V * share * (p + 0.5) - 0.5 for p in range(processes)]
            names = [f"process {p}" for p in range(processes)]
            axis.set_xticks(middle, names)
            axis.set_yticks(middle, names, rotation=90, va="center")
            axis.tick_params(length=0)
            for a, c in np.ndindex(V * N, V * N):
                if a != c and order[a] % N == order[c] % N:
                    axis.add_patch(
                        Rectangle((c - 0.5, a - 0.5), 1, 1, fill=False, edgecolor=VERMILION, lw=1.2)
                    )
        bar = figure.colorbar(shades, ax=axes, shrink=0.8, label="share that the row's view gives")
        bar.set_ticks([0, 0.5, 1])
        frame = Patch(facecolor="none", edgecolor=VERMILION, label="frame: views of one image (positives)")
        blank = Patch(facecolor="white", edgecolor=GREY, label="white: no process sees this pair")
        figure.legend(handles=[frame, blank], loc="outside lower center", ncols=2, fontsize=9, frameon=False)
        return (
            f"{V} views of {N} images on {processes} processes, row anchor, column candidate, positives in "
            f"frames, bright a large share. Alone the processes see {seen} of {pairs} pairs and the rest is "
            "blank; after the gather they see all."
        )

    return still(draw, (8, 3.8))
