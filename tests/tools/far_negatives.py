"""Does it pay to leave far negatives alone? Three short trainings each, against all negatives and against
the nearest ones. Page 03 shows what they come to. A minute each.

python tests/tools/far_negatives.py data/results/far/negatives.json
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

from setclr import data, pretrain
from setclr.evaluation import features
from setclr.recipes import RECIPES
from setclr_course.panels.trained.film import vote

LOSS = "HardNegatives(temperature=0.5, keep={})"
RECIPE = replace(RECIPES["compare-photo-infonce"], lr=3e-3, epochs=10)


def accuracy(keep: float, seed: int) -> float:
    """Per cent of the test patches that ten neighbours name right, trained on that part of the negatives."""
    run = pretrain(replace(RECIPE, loss=LOSS.format(keep), seed=seed), root="data", device="cpu")
    train, test = (data.load("photo-patches", "data", split) for split in ("train", "test"))
    return round(100 * vote(*(features(run.encoder, part.images) for part in (train, test)), train, test), 2)


if __name__ == "__main__":
    torch.set_num_threads(1)
    knn = {keep: [accuracy(keep, seed) for seed in (0, 1, 2)] for keep in (1.0, 0.25, 0.1)}
    found = {"command": f"python tests/tools/far_negatives.py {sys.argv[1]}", "device": "CPU, 1 thread",
             "loss": LOSS, "epochs": RECIPE.epochs, "data": RECIPE.data, "pixels": "original",
             "torch": torch.__version__, "knn": knn}  # fmt: skip
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")
