"""Graphs: two augmentations of each, a GIN, and a support-vector machine, as in GraphCL."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from torch import nn

from setclr.checks import choice
from setclr.data.sets import held_out_mask
from setclr.evaluation.protocols import OWN
from setclr.evaluation.svm import FOLDS, svm_accuracy, svm_held_out
from setclr.experiments.run import Run, beside_untrained
from setclr.experiments.tables import SPLITS
from setclr.graphs import GIN, GraphSet, GraphViews, graph_features, graph_head, load_graphs
from setclr.recipes.graph import GraphRecipe
from setclr.training.distributed import from_first, world

SVM = "svm"


def load(recipe: GraphRecipe, root: str | Path, given: GraphSet | None = None) -> GraphSet:
    if given is None and world() > 1:
        from_first(lambda: len(load_graphs(recipe.data, root)))
    return given or load_graphs(recipe.data, root)


def channels(data: GraphSet) -> int:
    return data.features


def models(recipe: GraphRecipe, channels: int) -> tuple[nn.Module, nn.Module]:
    encoder = GIN(channels, recipe.width, recipe.layers)
    return encoder, graph_head(encoder.out, recipe.last_norm)


def source(recipe: GraphRecipe, data: GraphSet) -> GraphViews:
    return GraphViews(data, (recipe.first, recipe.second), recipe.ratio)


def watch(recipe: GraphRecipe, root: str | Path) -> Callable[[Run], dict | None] | None:
    """The accuracy of the SVM after every epoch, as GraphCL's program prints it. None where it cannot be
    measured: without labels, or with a class of fewer graphs than folds."""
    graphs = load_graphs(recipe.data, root)
    if graphs.labels.min() < 0 or graphs.labels.unique(return_counts=True)[1].min() < FOLDS:
        return None
    return lambda run: accuracies(run, graphs, graphs) if run.rows else None


def labelled(
    recipe: GraphRecipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
) -> tuple[GraphSet, GraphSet]:
    """For "test" all graphs, twice: the SVM is measured by cross-validation. Otherwise four fifths of each
    class, and a fifth, drawn by a fixed seed."""
    choice("split", split, SPLITS)
    graphs = load_graphs(recipe.data, root)
    if graphs.labels.min() < 0:
        raise ValueError(f"graphs must have labels to be measured, got none in {recipe.data}; give each a y")
    if split == "test":
        return graphs, graphs
    held = held_out_mask(graphs.labels)
    return graphs.subset(~held), graphs.subset(held)


def evaluate(
    run: Run, train: GraphSet, test: GraphSet, linear: bool = True, protocol: str = OWN
) -> pd.DataFrame:
    """The accuracy of an SVM on the features: rows untrained (unless encoder and head are your own), trained;
    column "svm".

    If both sets are one, it is the mean over ten folds (`evaluation.svm_accuracy`); otherwise the SVM is
    fitted to `train` and measured on `test`. The seed of the folds is the recipe's. The papers measure graphs
    so too, and `protocol` is not used.
    """
    return beside_untrained(run, accuracies, train, test)


def accuracies(run: Run, train: GraphSet, test: GraphSet) -> dict[str, float]:
    x = graph_features(run.encoder, train)
    if train is test:
        return {SVM: svm_accuracy(x, train.labels, run.recipe.seed % 2**32)}
    return {SVM: svm_held_out(x, train.labels, graph_features(run.encoder, test), test.labels)}


def embed(
    run: Run, place: Path, size: int | None, batch: int, skip_damaged: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """`place` is the name of a set, a .pt file, or a folder of a set's text files."""
    if size is not None or skip_damaged:
        raise ValueError(f"size and skip_damaged must be left out for graphs, got {size}, {skip_damaged}")
    graphs = load_graphs(f"tu:{place}" if place.is_dir() else str(place))
    if graphs.features != run.channels:
        got = f"{graphs.features} in {place}"
        raise ValueError(f"nodes must have {run.channels} features, as in training, got {got}")
    found = graph_features(run.encoder, graphs, batch).cpu().numpy()
    return found, np.array([f"graph {i}" for i in range(len(graphs))])
