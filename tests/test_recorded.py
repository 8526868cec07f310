"""What lies in data/: every checkpoint and every record of a result is one that this version reads."""

import ast
import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from notebook_tools import FOLDER

from setclr.evaluation import features
from setclr.experiments import load_run
from setclr.experiments.records import spread
from setclr.recipes import RECIPES, Recipe
from setclr.recipes.recipe import renamed
from setclr_course.papers.folds import folded
from setclr_course.papers.tables import of_seeds
from setclr_course.search.statistics import paired

DATA = Path(__file__).resolve().parent.parent / "data"
CHECKPOINTS = sorted(DATA.glob("checkpoints/*/checkpoint.pt"))
RECORDS = sorted(DATA.glob("results/*.json"))
assert CHECKPOINTS and RECORDS


ROWS = {"untrained", "trained"}  # those of videos were made before records were of one seed


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


# Cells that print what records hold and nothing else, with those that they need before them.
SAVED = {
    "01_five_numbers": "c03 harm",
    "03_sparse_support": "c03 harm",
    "09_matching_views": "c03 c13b",
    "careful/10_pretrain_small": "pretrain_small-03 pretrain_small-19",
    "11_pretrain_cifar": "c03 c05 c07 c09 c10 c12 c13b c14 c15b c19b 166ae29f",
    "careful/11_pretrain_cifar": "03 05 07 09 11 07bf7624 d24fbd53 15 18 20 20a 31",
    "12_pretrain_imagenet": "c03 c16 c17",
    "careful/12_pretrain_imagenet": "k03 k30",
    "careful/13_what_was_learned": "c03 ef06ac05 39b94407",
    "15_molecules": "cell03 cell22",
    "16_what_moves": "cell03 cell22",
}


@pytest.mark.parametrize("page", SAVED)
def test_what_is_saved_is_what_the_records_say(page, monkeypatch):
    """A page saved before its records were made anew would show other numbers than the records."""
    path = next(FOLDER.glob(f"{page}.ipynb"))
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    monkeypatch.chdir(path.parent)
    names: dict = {}
    exec(next(c.source for c in cells.values() if "parameters" in c.metadata.get("tags", [])), names)
    for word in SAVED[page].split():
        cell = next(cell for key, cell in cells.items() if key == word or key == f"pretrain_cifar-{word}")
        assert ran(cell.source, names) == saved(cell)


def ran(source: str, names: dict) -> str:
    """What a cell prints, and the table that it ends with."""
    *lines, last = ast.parse(source).body
    table = isinstance(last, ast.Expr) and not ast.unparse(last).startswith(("print", "predict", "panel"))
    lines += [] if table else [last]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if table else None
    shown = value._repr_html_() if isinstance(value, pd.DataFrame | folded) else ""
    return printed.getvalue() + shown


def saved(cell) -> str:
    texts = [out.text for out in cell.outputs if out.output_type == "stream"]
    shown = [out.get("data", {}).get("text/html", "") for out in cell.outputs]
    return "".join(texts + [text for text in shown if "<table" in text])


def test_the_table_of_two_cameras_is_the_recorded_one():
    page = (DATA.parent / "site/text/results.md").read_text()
    rows = json.loads((DATA / "results/matching/seeds.json").read_text())["rows"]
    for words, first in (("as they come", "none"), ("normalised", "image")):
        for name in ("Triplet", "InfoNCE", "NTLogistic", "SparseCLR"):
            kept = [rows[f"{name}{more}, normalised {first}"] for more in ("", " + QARe")]
            alone, both = (np.array(row["matched_percent"]) for row in kept)
            gain = paired(both, alone, questions=8)
            said = f"| {gain.difference:+.1f} ({gain.low:+.1f} to {gain.high:+.1f}) |".replace("-", "−")
            assert (
                f"| {words} | {name} | {spread(alone)} | {spread(both)} {said}" in page and len(alone) == 10
            )
