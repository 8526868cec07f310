"""DeepCluster with what QARe's own program does to its images, trained beside the recipe, which does not.

    python tests/tools/deepcluster_program.py data/unpacked/cifar10 50 data/results/deepcluster/program

The program crops and flips an image, normalises its colours and makes bytes of them, which wraps most of them
around (a negative number comes out bright); then it crops and flips once more. Its clusters are those of
images that were cropped and flipped once. This trains the row's recipe so, on that folder of images and for
that many epochs, with three seeds, and records it as `setclr campaign` does; a run with a record is skipped.
"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from setclr import views
from setclr.experiments import campaign
from setclr.experiments import run as of_runs
from setclr.models import NORMALISED
from setclr.recipes import RECIPES
from setclr.seeding import seeded
from setclr.training.trainer import Trainer

ROW = "qare-table2-conv4-cifar10-deepcluster"
SEEDS = (0, 1, 2)


def wrapped(x: Tensor) -> Tensor:
    """Images (N, 3, H, W) in [0, 1] as bytes, after CIFAR-10's colours were normalised: `to_pil_image` of it
    multiplies by 255, cuts off the fraction and keeps the last eight bits."""
    mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in NORMALISED["cifar10"])
    return ((x - mean) / deviation * 255).int().remainder(256).to(torch.uint8)


def cropped(x: Tensor, some: tuple[views.View, ...], *key: int) -> Tensor:
    """Images (N, 3, H, W) uint8, cropped and flipped once more, in [0, 1]."""
    return views.augment(x, some, seeded(*key))[0]


class AsProgram(Trainer):
    """The trainer with the program's images."""

    def epoch(self) -> Iterator[None]:
        epoch, whole = self.step // self.steps, self.source.images.images
        parts = enumerate(whole.split(500))
        once = [cropped(part, self.source.views, self.batches.seed, epoch, 0, i) for i, part in parts]
        self.task.images = (255 * torch.cat(once)).round().to(torch.uint8)
        yield from super().epoch()

    def _view_batches(self) -> Iterator[list[Tensor]]:
        for (once,) in super()._view_batches():
            key = (self.batches.seed, self.step, 0, 0, 0)
            yield [cropped(wrapped(once.squeeze(0)), self.source.views, *key).unsqueeze(0)]


if __name__ == "__main__":
    folder, epochs, results = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    recipe = replace(RECIPES[ROW], data=f"folder:{folder}", epochs=epochs)
    command = shlex.join(["python", "tests/tools/deepcluster_program.py", *sys.argv[1:]])
    of_runs.Trainer = AsProgram  # what a recipe is trained by
    told = {"pixels": "JPEG q75", "command": command, "compiled": True}
    for line in campaign({ROW: recipe}, SEEDS, Path("data/runs/deepcluster-program"), results, **told):
        print(line, flush=True)
