"""What lies in data/: every checkpoint and every record of a result is one that this version reads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from setclr.evaluation import features
from setclr.experiments import load_run
from setclr.recipes import RECIPES, Recipe
from setclr.recipes.recipe import renamed
from setclr_course.papers.tables import of_seeds

DATA = Path(__file__).resolve().parent.parent / "data"
CHECKPOINTS = sorted(DATA.glob("checkpoints/*/checkpoint.pt"))
RECORDS = sorted(DATA.glob("results/*.json"))


ROWS = {"untrained", "trained"}  # those of videos were made before records were of one seed


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
    recipe = Recipe.from_dict(record["recipe"])
    assert recipe.to_dict() == {"kind": "image", **recipe.defaults(), **renamed(record["recipe"])}
    assert set(record["accuracy_percent"]) >= ({"trained"} if recipe.kind == "video" else ROWS)
    assert recipe.kind == "video" or len(record["history"]) == record["epochs"] <= recipe.epochs


@pytest.mark.parametrize("name", [n for n in RECIPES if RECIPES[n].data in ("mutag", "moving-patches")])
def test_the_columns_of_mutag_and_moving_patches_are_recorded(name):
    records = of_seeds(DATA / "results", name)
    assert list(records) == ([0, 1, 2, 3, 4] if RECIPES[name].data == "mutag" else [0, 1, 2])
    for seed, record in records.items():
        assert Recipe.from_dict(record["recipe"]) == replace(RECIPES[name], seed=seed)
        if RECIPES[name].kind == "graph":
            curve = [row["svm"] for row in record["history"]]
            assert len(curve) == record["epochs"] == RECIPES[name].epochs
            assert not curve or curve[-1] == pytest.approx(
                record["accuracy_percent"]["trained"]["svm"], abs=0.006
            )
