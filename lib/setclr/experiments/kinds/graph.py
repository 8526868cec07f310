"""Graphs: two augmentations of each, a GIN, and a support-vector machine, as in GraphCL."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from setclr.evaluation.protocols import OWN
from setclr.evaluation.svm import FOLDS, svm_accuracy, svm_held_out
from setclr.experiments.kinds import split_of
from setclr.experiments.run import Features, OnEpoch, Run, beside_untrained
from setclr.graphs import GIN, GraphSet, GraphViews, graph_features, graph_head, load_graphs
from setclr.recipes.graph import GraphRecipe

SVM = "svm"


def load(recipe: GraphRecipe, root: str | Path) -> GraphSet:
    return load_graphs(recipe.data, root)


def as_set(data: GraphSet | Sequence) -> GraphSet:
    """The set, also of a list of PyTorch Geometric's `Data`."""
    return data if isinstance(data, GraphSet) else GraphSet(data)


def channels(data: GraphSet | Sequence) -> int:
    return as_set(data).features


def models(recipe: GraphRecipe, channels: int) -> tuple[nn.Module, nn.Module]:
    encoder = GIN(channels, recipe.width, recipe.layers)
    return encoder, graph_head(encoder.out, recipe.last_norm)


def source(recipe: GraphRecipe, data: GraphSet | Sequence) -> GraphViews:
    return GraphViews(as_set(data), (recipe.first, recipe.second), recipe.ratio)


def watch(recipe: GraphRecipe, root: str | Path) -> OnEpoch | None:
    """The accuracy of the SVM after every epoch, as GraphCL's program prints it. None where it cannot be
    measured: without labels, or with a class of fewer graphs than folds."""
    graphs = load_graphs(recipe.data, root)
    if not graphs.classes or graphs.labels.unique(return_counts=True)[1].min() < FOLDS:
        return None
    return lambda run: accuracies(run, graphs, graphs) if run.rows else None


def labelled(
    recipe: GraphRecipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
) -> tuple[GraphSet, GraphSet]:
    """For "test" all graphs, twice: the SVM is measured by cross-validation. Otherwise two parts of them."""
    graphs = load_graphs(recipe.data, root)
    return split_of(split, graphs, graphs.labels, lambda: graphs)


def accuracies(run: Run, train: GraphSet, test: GraphSet) -> dict[str, float]:
    """The accuracy of an SVM on the features, "svm". The papers measure graphs so too.

    If both sets are one, it is the mean over ten folds (`evaluation.svm_accuracy`); otherwise the SVM is
    fitted to `train` and measured on `test`. The seed of the folds is the recipe's.
    """
    x = graph_features(run.encoder, train)
    if train is test:
        return {SVM: svm_accuracy(x, train.labels, run.recipe.seed % 2**32)}
    return {SVM: svm_held_out(x, train.labels, graph_features(run.encoder, test), test.labels)}


evaluate = partial(beside_untrained, accuracies)


def embed(run: Run, place: Path, size: int | None, batch: int, skip_damaged: bool = False) -> Features:
    """`place` is the name of a set, a .pt file, or a folder of a set's text files."""
    if size is not None or skip_damaged:
        raise ValueError(f"size and skip_damaged must be left out for graphs, got {size}, {skip_damaged}")
    graphs = load_graphs(f"tu:{place}" if place.is_dir() else str(place))
    if graphs.features != run.channels:
        got = f"{graphs.features} in {place}"
        raise ValueError(f"nodes must have {run.channels} features, as in training, got {got}")
    features = graph_features(run.encoder, graphs, batch).cpu().numpy()
    return features, np.array([f"graph {i}" for i in range(len(graphs))])
