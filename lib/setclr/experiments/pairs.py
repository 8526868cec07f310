"""Runs on pairs: the best epoch on validation pairs, and how many test pairs are matched (QARe, table 1)."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from torch import Tensor, nn

from setclr import data
from setclr.data import ImageSet
from setclr.evaluation.frozen import features, pixels
from setclr.evaluation.matching import matching_accuracy
from setclr.experiments.run import Run, untrained
from setclr.recipes.image import ImageRecipe


def best_epoch(recipe: ImageRecipe, root: str | Path = "data") -> Callable[[Run], dict | None] | None:
    """A function that `pretrain` calls after every epoch of a recipe on pairs; None for other data.

    It adds the column "matching" to the history, per cent on the validation pairs. It keeps the weights
    of the first epoch with the highest value.
    """
    if not data.known(recipe.data).mirror:
        return None
    loaded: list[Tensor] = []

    def judge(run: Run) -> dict | None:
        if not run.rows:
            return None
        if not loaded:
            train = data.load(recipe.data, root, "train", recipe.size)
            loaded.append(data.split_pairs(data.two_views(train))[1])
        found = matched(nn.Sequential(run.encoder, run.head), loaded[0], shared=False)
        if found > max((row["matching"] for row in run.rows[:-1]), default=-1.0):
            run.keep()
        return {"matching": found}

    return judge


def evaluate_pairs(run: Run, test: ImageSet) -> pd.DataFrame:
    """Per cent of the test pairs that are matched: rows raw pixels, untrained, trained; column "matching".

    Distances are Euclidean, between the head's outputs, and between pixels centred in each channel.
    """
    first, pairs = untrained(run), data.two_views(test)
    a, b = map(pixels, pairs)
    rows = {"raw pixels": 100 * matching_accuracy(a, b, "euclidean")}
    for name, of in (("untrained", first), ("trained", run)):
        if of:
            rows[name] = matched(nn.Sequential(of.encoder, of.head), pairs)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["matching"])


def matched(network: nn.Module, pairs: Tensor, shared: bool = True) -> float:
    """Per cent of pairs (2, n, C, H, W) that are matched by Euclidean distances of the network's outputs."""
    a, b = (features(network, view, shared=shared) for view in pairs)
    return 100 * matching_accuracy(a, b, "euclidean")
