"""What lies in data/: every checkpoint and every record of a result is one that this version reads."""

import json
from pathlib import Path

import pytest
import torch

from setclr.evaluation import features
from setclr.experiments import load_run
from setclr.experiments.graph_campaigns import read_graph_record
from setclr.recipes import DEFAULTS, RECIPES, ImageRecipe
from setclr.recipes.recipe import renamed

DATA = Path(__file__).resolve().parent.parent / "data"
CHECKPOINTS = sorted(DATA.glob("checkpoints/*/checkpoint.pt"))
RECORDS = sorted(DATA.glob("results/*.json"))


def test_there_are_some():
    assert CHECKPOINTS and RECORDS


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda p: p.parent.name)
def test_a_checkpoint_loads_and_embeds(path):
    run = load_run(path.parent)
    assert run.finished and len(run.history) == run.recipe.epochs
    images = torch.randint(0, 256, (2, run.channels, 32, 32), dtype=torch.uint8)
    assert features(run.encoder, images).isfinite().all()


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.stem)
def test_a_record_holds_a_recipe_of_this_version(path):
    record = json.loads(path.read_text())
    recipe = ImageRecipe.from_dict(record["recipe"])
    assert recipe.to_dict() == {**DEFAULTS, **renamed(record["recipe"])}
    assert set(record["accuracy_percent"]) >= {"untrained", "trained"}
    assert len(record["history"]) == record["epochs"] <= recipe.epochs


OF_GRAPHS = sorted(DATA.glob("results/graphs/*.json"))


def test_the_whole_mutag_column_is_recorded():
    assert {path.stem for path in OF_GRAPHS} >= {n for n, one in RECIPES.items() if one.data == "mutag"}


@pytest.mark.parametrize("path", OF_GRAPHS, ids=lambda p: p.stem)
def test_a_record_of_graphs_is_of_this_versions_recipe_and_five_seeds(path):
    record = read_graph_record(path)
    assert record["recipe"] == RECIPES[path.stem].to_dict()
    assert record["seeds"] == [0, 1, 2, 3, 4]
    assert all(len(curve) == max(record["epochs"], 1) for curve in record["curves"])
    assert record["accuracy_percent"]["last epoch"] == [curve[-1] for curve in record["curves"]]
