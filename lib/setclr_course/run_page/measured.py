"""The measurements on the page of a run: more columns than `evaluate` has, and the data of its pictures."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from setclr.data import ImageSet
from setclr.evaluation.neighbours import matching_accuracy, retrieval_at_1
from setclr.evaluation.protocols import OWN, protocol_named
from setclr.experiments.kinds.image import check_classes, embedder, encoders, measure
from setclr.experiments.run import Run
from setclr.recipes.image import ImageRecipe
from setclr.views import augment, preset
from setclr_course.run_page.seen import Seen, look

PAGE = replace(protocol_named(OWN), ks=(1, 10, 20))
COLUMNS = [*PAGE.columns, "retrieval@1", "matching"]
K = 10  # neighbours of the column "knn" and of the pictures
SHOWN, DRAWN, MATCHED = 10, 2000, 500  # test images shown with neighbours, drawn in the plane, matched
HEADINGS = dict(zip(COLUMNS, (("kNN", "k = 1"), ("kNN", f"k = {K}"), ("kNN", "k = 20"), ("linear", "probe"),
                              ("retrieval", "@1"), ("matching", "of views"))))  # fmt: skip


class Measured(NamedTuple):
    """The measurements of one run, and the data of its pictures."""

    table: pd.DataFrame  # per cent; rows raw pixels, untrained, trained, projection
    predicted: Tensor  # (Q,) the class of every test image by its K nearest trained features
    shown: Tensor  # (n,) indices of test images, evenly over the classes
    nearest: Tensor  # (n, 8) indices of the training images nearest to them, the nearest first
    drawn: Tensor  # (m,) indices of test images
    points: Tensor  # (m, D) their trained features


def evaluate_all(run: Run, train: Any, test: Any, root: str | Path = "data") -> Measured | Seen:
    """What the page of a run shows. Of all but labelled images it is what `seen.look` finds; of these the
    accuracies of `evaluate` by the project's own protocol, with more columns and one more row.

    "knn1" and "knn20" are the same vote with k = 1 and k = 20. "retrieval@1" is the share of test images
    whose most similar other test image is of their class. "matching" is `matching_accuracy` of two of the
    recipe's views of at most 500 test images. The row "projection" has the output of the trained head as
    its features.

    Raises and costs what `evaluate` does, but needs 20 training images and one more pass through the
    encoder.
    """
    if not isinstance(train, ImageSet) or not (train.classes or test.classes):
        return look(run, train, test, root)
    check_classes(train, test)
    generator = torch.Generator().manual_seed(0)
    shuffled = torch.randperm(len(test), generator=generator)
    grouped = shuffled[test.labels[shuffled].argsort(stable=True)]
    shown = grouped[torch.linspace(0, len(test) - 1, min(SHOWN, len(test))).long()]
    views = augmented_pairs(run.recipe, test.images[shuffled[:MATCHED]], generator)
    rows: dict[str, dict[str, float]] = {}
    kept: dict[str, Tensor] = {}
    more = {"projection": nn.Sequential(run.encoder, run.head)}
    for name, encoder in (encoders(run, train, PAGE) | more).items():
        found = measure(encoder, train, test, run.device, PAGE, name in ("untrained", "trained"))
        embed = embedder(encoder)
        rows[name] = {**found.numbers, "retrieval@1": 100 * retrieval_at_1(found.queries, test.labels),
                      "matching": 100 * matching_accuracy(embed(views[0]), embed(views[1]))}  # fmt: skip
        if name == "trained":
            kept = dict(predicted=found.labels[K].cpu(), nearest=found.nearest[shown, :8].cpu(),
                        drawn=shuffled[:DRAWN], points=found.queries[shuffled[:DRAWN]].cpu())  # fmt: skip
        del found
    table = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS, dtype=float)
    return Measured(table=table, shown=shown, **kept)


def augmented_pairs(recipe: ImageRecipe, images: Tensor, generator: torch.Generator) -> Tensor:
    """The first two of the recipe's views of each image, (2, n, C, S, S) uint8."""
    return (255 * augment(images, preset(recipe.views, recipe.view_size, 2), generator)).round().byte()
