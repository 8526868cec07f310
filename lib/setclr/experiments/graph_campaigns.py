"""Train and measure graph recipes with several seeds, a record for each recipe."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from setclr.evaluation.svm import svm_accuracy
from setclr.experiments.records import describe_machine, spread
from setclr.experiments.seeded import read_seeded, seeded_campaign
from setclr.graphs.pretraining import GraphRun, graph_features, pretrain_graphs
from setclr.graphs.sets import GraphSet, load_graphs
from setclr.recipes.graph import GraphRecipe

LAST, BEST = "last epoch", "best epoch"


def graph_campaign(
    recipes: Mapping[str, GraphRecipe], seeds: Sequence[int], results: Path, root: str | Path, device: str,
    command: str,
) -> Iterator[str]:  # fmt: skip
    """Train, measure and record these recipes with every seed; yields a line for each (`seeded_campaign`).

    Raises the errors of `seeded_campaign` and of `pretrain_graphs`.
    """

    def found(recipe: GraphRecipe) -> dict:
        return measured(recipe, seeds, load_graphs(recipe.data, root), device)

    def told(found: dict) -> str:
        return f"{spread(found['accuracy_percent'][LAST])} %"

    return seeded_campaign(recipes, seeds, results, command, found, read_graph_record, told)


def measured(recipe: GraphRecipe, seeds: Sequence[int], graphs: GraphSet, device: str) -> dict:
    """The results of a recipe for its record: accuracies in per cent, a number for each seed.

    They are the accuracies at the last epoch, at the best one, and after every epoch (`curves`). The
    seed is that of weights, views and folds.
    """
    curves, seconds, machine = [], 0.0, {}
    for seed in seeds:

        def accuracy(run: GraphRun, seed: int = seed) -> dict:
            found = svm_accuracy(graph_features(run.encoder, graphs), graphs.labels, seed)
            return {"svm": round(found, 2)}

        run = pretrain_graphs(replace(recipe, seed=seed), graphs, device=device, on_epoch=accuracy)
        curves.append([row["svm"] for row in run.rows] or [accuracy(run)["svm"]])
        seconds += sum(row["seconds"] for row in run.rows)
        machine = describe_machine(run.encoder)
    return {
        "accuracy_percent": {LAST: [x[-1] for x in curves], BEST: [max(x) for x in curves]},
        "epochs": recipe.epochs, "graphs": len(graphs), "protocol": "SVM, ten folds, C chosen inside each",
        "training_seconds": round(seconds, 1), "machine": machine, "curves": curves,
    }  # fmt: skip


def read_graph_record(path: Path) -> dict:
    """The record in a file. Raises ValueError if it is not one that `graph_campaign` wrote."""

    def of_seeds(found: dict) -> list[list]:
        return [found["accuracy_percent"][LAST], found["accuracy_percent"][BEST], found["curves"]]

    return read_seeded(path, "graphs", GraphRecipe, of_seeds)
