"""Graph recipes measured with several seeds: a record for each, and the table of all records."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from setclr.data.writing import replacing
from setclr.graphs.evaluation import svm_accuracy
from setclr.graphs.pretraining import GraphRun, graph_features, pretrain_graphs
from setclr.graphs.recipe import GRAPH_RECIPES, PRINTED, GraphRecipe
from setclr.graphs.sets import GraphSet, load_graphs
from setclr.reports.records import describe_machine, spread

LAST, BEST = "last epoch", "best epoch"


def graph_campaign(
    names: Sequence[str], seeds: Sequence[int], results: Path, root: str | Path, device: str, command: str
) -> Iterator[str]:
    """Train, measure and record these recipes with every seed; a line for each. A record that is there with
    these seeds stays. Raises ValueError where there is no seed, or a record is damaged; what
    `pretrain_graphs` does."""
    if not seeds:
        raise ValueError("seeds must be at least one, got none; --seeds 0 1 2 takes three")
    for name in names:
        path, recipe = results / f"{name}.json", GRAPH_RECIPES[name]
        wanted = {"recipe": recipe.to_dict(), "seeds": list(seeds)}
        if path.is_file():
            kept = read_graph_record(path)
            if {key: kept[key] for key in wanted} == wanted:
                yield f"{name}: is there"
                continue
        graphs = load_graphs(recipe.data, root)
        found = measured(recipe, seeds, graphs, device)
        with replacing(path) as file:
            said = wanted | found | {"evaluated_with": command}
            file.write((json.dumps(said, indent=1) + "\n").encode())
        yield f"{name}: {spread(found['accuracy_percent'][LAST])} %"


def measured(recipe: GraphRecipe, seeds: Sequence[int], graphs: GraphSet, device: str) -> dict:
    """Accuracies in per cent at the last epoch and at the best one, and after every epoch, of each seed. The
    seed is that of weights, views and folds."""
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
    """The record in a file. Raises ValueError where it is none that `graph_campaign` wrote."""
    try:
        found = json.loads(path.read_text())
        lengths = {len(found["accuracy_percent"][kind]) for kind in (LAST, BEST)} | {len(found["curves"])}
        GraphRecipe(**found["recipe"])
        if lengths != {len(found["seeds"])}:
            raise ValueError("it has not one result for each seed")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "remove it, and the command that made it makes it again"
        raise ValueError(f"{path.name} is damaged or no record of graphs ({error}); {remedy}") from error
    return found


def graph_results(folder: str | Path, data: str = "mutag") -> pd.DataFrame:
    """A row for each recipe of that set with a record: its loss, epochs, seeds, both accuracies as mean ±
    spread, and what the paper printed. Raises FileNotFoundError where there are no records."""
    rows = {}
    for name, recipe in GRAPH_RECIPES.items():
        path = Path(folder) / f"{name}.json"
        if recipe.data == data and path.is_file():
            found = read_graph_record(path)
            printed = str(PRINTED[name][1]).removeprefix("svm ") if name in PRINTED else "-"
            accuracies = {kind: spread(found["accuracy_percent"][kind]) for kind in (LAST, BEST)}
            what = {"loss": recipe.loss if recipe.epochs else "none: first weights", "printed": printed}
            rows[name] = what | accuracies | {"seeds": len(found["seeds"])}
    if not rows:
        raise FileNotFoundError(f"{folder}: no records of {data} there; setclr graphs {data} makes them")
    return pd.DataFrame.from_dict(rows, orient="index")
