"""What a run is worth: a table that compares it with what has learned nothing, and data for pictures."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from setclr import data
from setclr.data import ImageSet
from setclr.evaluation.frozen import features, pixels
from setclr.evaluation.matching import matching_accuracy
from setclr.evaluation.neighbours import neighbours, vote
from setclr.evaluation.probes import linear_probe
from setclr.evaluation.retrieval import retrieval_at_1
from setclr.evaluation.transfers import accuracy
from setclr.evaluation.tuning import check_classes
from setclr.recipes.recipe import Recipe
from setclr.training.distributed import from_first, world
from setclr.training.run import Run, new_run
from setclr.views import augment, preset

K, TEMPERATURE = 10, 0.1  # of the column "knn"
NEIGHBOURS = (1, K, 20)
COLUMNS = ["knn k=1", "knn", "knn k=20", "linear", "retrieval@1", "matching"]
SHOWN, DRAWN, MATCHED = 10, 2000, 500  # test images with their neighbours, in the plane, matched


class Measured(NamedTuple):
    """All that is measured of one run, and the data of its pictures."""

    table: pd.DataFrame  # per cent; rows raw pixels, untrained, trained, projection
    predicted: Tensor  # (Q,) the class of every test image by its K nearest trained features
    shown: Tensor  # (n,) indices of test images, evenly over the classes
    nearest: Tensor  # (n, 8) indices of the training images nearest to them, the nearest first
    drawn: Tensor  # (m,) indices of test images
    points: Tensor  # (m, D) their trained features


class Worth(NamedTuple):
    numbers: dict[str, float]
    predicted: Tensor  # (Q,) with K neighbours
    nearest: Tensor  # (Q, max k) indices into the training images
    queries: Tensor  # (Q, D) the test images' features


def evaluate(run: Run, train: ImageSet, test: ImageSet, linear: bool = True) -> pd.DataFrame:
    """Accuracies in per cent: rows raw pixels, untrained, trained; columns knn (k=10, T=0.1) and linear.

    Raw pixels are centred in each channel; untrained is the same encoder with its first weights. Raw pixels
    have no linear probe, which is no baseline of the papers, and no row where the images are not in memory.

    Raises ValueError where the two sets have different classes, or there are fewer than 10 training images.
    Cost: memory for the features of one row, 4 · (N + Q) · D bytes.
    """
    check_classes(train, test)
    rows = {}
    for name, embed in feature_makers(run, train).items():
        probed = linear and name != "raw pixels"
        rows[name] = measure(embed, train, test, device_of(run), (K,), probed).numbers
    return pd.DataFrame.from_dict(rows, orient="index", columns=["knn", "linear"], dtype=float)


def evaluate_all(run: Run, train: ImageSet, test: ImageSet) -> Measured:
    """What `evaluate` gives, with more columns and a row.

    "knn k=1" and "knn k=20" vote likewise. "retrieval@1": the share of test images whose most similar other
    test image is of their class. "matching": `matching_accuracy` of two of the recipe's views of at most 500
    test images. The row "projection" has the output of the trained head as its features.

    Raises and costs what `evaluate` does, but needs 20 training images and one more pass through the encoder.
    """
    check_classes(train, test)
    generator = torch.Generator().manual_seed(0)
    shuffled = torch.randperm(len(test), generator=generator)
    grouped = shuffled[test.labels[shuffled].argsort(stable=True)]
    shown = grouped[torch.linspace(0, len(test) - 1, min(SHOWN, len(test))).long()]
    views = augmented_pairs(run.recipe, test.images[shuffled[:MATCHED]], generator)
    rows: dict[str, dict[str, float]] = {}
    kept: dict[str, Tensor] = {}
    makers = feature_makers(run, train)
    makers["projection"] = partial(features, nn.Sequential(run.encoder, run.head))
    for name, embed in makers.items():
        probed = name in ("untrained", "trained")
        numbers, predicted, nearest, queries = measure(embed, train, test, device_of(run), NEIGHBOURS, probed)
        rows[name] = {**numbers, "retrieval@1": 100 * retrieval_at_1(queries, test.labels),
                      "matching": 100 * matching_accuracy(embed(views[0]), embed(views[1]))}  # fmt: skip
        if name == "trained":
            kept = dict(predicted=predicted.cpu(), nearest=nearest[shown, :8].cpu(), drawn=shuffled[:DRAWN],
                        points=queries[shuffled[:DRAWN]].cpu())  # fmt: skip
        del queries
    table = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS, dtype=float)
    return Measured(table=table, shown=shown, **kept)


def feature_makers(run: Run, train: ImageSet) -> dict[str, Callable]:
    """Functions from images to features: pixels in memory, the encoder before and after training."""
    untrained = new_run(run.recipe, run.channels).encoder.to(device_of(run))
    makers: dict[str, Callable] = {"raw pixels": pixels} if train.source.in_memory else {}
    return makers | {"untrained": partial(features, untrained), "trained": partial(features, run.encoder)}


def measure(
    embed: Callable, train: ImageSet, test: ImageSet, device: torch.device, ks: tuple[int, ...], linear: bool
) -> Worth:
    """kNN accuracies with these k and, where `linear`, that of the linear probe, computed on the device."""
    bank, queries = (embed(split.images).to(device) for split in (train, test))
    labels = train.labels.to(device)
    similarity, nearest = neighbours(bank, labels, queries, max(ks))
    votes = {k: vote(similarity[:, :k], labels[nearest[:, :k]], TEMPERATURE) for k in ks}
    numbers = {"knn" if k == K else f"knn k={k}": accuracy(votes[k], test.labels) for k in ks}
    if linear:
        numbers["linear"] = accuracy(linear_probe(bank, labels, queries), test.labels)
    return Worth(numbers, votes[K], nearest, queries)


def augmented_pairs(recipe: Recipe, images: Tensor, generator: torch.Generator) -> Tensor:
    """The first two of the recipe's views of each image, (2, n, C, S, S) uint8."""
    return (255 * augment(images, preset(recipe.views, recipe.view_size, 2), generator)).round().byte()


def device_of(run: Run) -> torch.device:
    return next(run.encoder.parameters()).device


def labelled(recipe: Recipe, root: str | Path = "data") -> tuple[ImageSet, ImageSet]:
    """The labelled training and test images of a recipe's data set; files are resized to its views' side.

    With many processes the first makes or downloads them before the others load them.
    """
    files = recipe.data.startswith(data.FOLDER) or recipe.data in data.TREES
    size = recipe.size or (recipe.view_size if files else None)

    def load(split: str) -> ImageSet:
        return data.load(recipe.data, root, split, size)

    if world() > 1:
        from_first(lambda: len(load("train")) + len(load("test")))
    return load("train"), load("test")
