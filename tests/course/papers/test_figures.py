"""The papers' figures in small: their recipes, and the table of their records."""

import json
from dataclasses import asdict, replace

import coverage_page
import numpy as np
import pandas as pd
import pytest
from conftest import a_record

from setclr.recipes import PUBLISHED, RECIPES
from setclr_course.papers.figures import FIGURES, frame, printed

RESULTS = coverage_page.RESULTS
SMALL_RECIPES = {name: recipe for name, recipe in RECIPES.items() if name.startswith("small-")}
ROWS = {  # as many as the paper has; of curves as many points as are taken here
    "qare-figure2": 16, "mmcl-figure3a": 6, "mmcl-figure3c": 12, "groco-table7": 4, "groco-table8c": 3,
    "groco-table8d": 2, "groco-table9a": 6, "groco-table9b": 2, "groco-table9c": 8, "groco-table9d": 3,
    "groco-table9e": 2, "groco-table9f": 2,
}  # fmt: skip


def test_every_row_is_a_named_recipe_and_no_recipe_has_two_names():
    assert {name: len(figure.rows) for name, figure in FIGURES.items()} == ROWS
    shown = {name for figure in FIGURES.values() for name in figure.rows.values()}
    assert shown == set(SMALL_RECIPES) <= set(RECIPES)
    assert len(set(SMALL_RECIPES.values())) == len(SMALL_RECIPES)
    assert {(one.data, one.encoder) for one in SMALL_RECIPES.values()} == {("photo-patches", "conv4")}
    assert not set(SMALL_RECIPES) & set(PUBLISHED)


@pytest.mark.parametrize("table", ["7", "8c", "8d", "9a", "9b", "9c", "9d", "9e"])
def test_a_tables_rows_differ_in_what_the_papers_rows_differ_in(table):
    """Of GroCo's tables, whose rows are recipes: the fields that vary are the same, small and large."""
    large = [RECIPES[name] for name in PUBLISHED if name.startswith(f"groco-table{table}-")]
    small = [SMALL_RECIPES[name] for name in FIGURES[f"groco-table{table}"].rows.values()]
    assert len(large) == len(small)
    of_a_run_of_its_length = {"lr", "warmup", "weight_decay", "optimiser", "lr_batch", "local_size"}
    of_the_rival_at_large = {"9a": {"embedding", "views"}, "9c": {"embedding"}}.get(table, set())
    assert varying(large) - of_a_run_of_its_length - of_the_rival_at_large == varying(small)


def test_the_papers_numbers_stand_beside_the_rows_that_mirror_theirs():
    for title, figure in FIGURES.items():
        table = printed(title)
        assert list(table.index) == (list(figure.rows) if "groco" in title else [])
        for row, name in figure.printed.items():
            small, large = SMALL_RECIPES[figure.rows[row]], RECIPES[name]
            loss, theirs = small.parsed_loss, large.parsed_loss
            assert type(loss) is type(theirs), row
            assert small.views == large.views or small.views == "photo"
            numbers = {key.removesuffix("20"): number for key, number in PUBLISHED[name].numbers.items()}
            ours = table.loc[row, ["knn", "linear"]].dropna().to_dict()
            assert ours == {key: numbers[key] for key in ("knn", "linear") if key in numbers}
    assert printed("groco-table9f")["knn-projection"].to_dict() == {"simclr": 42.3, "groco": 57.3}
    assert printed("groco-table9a")["knn"].isna().sum() == 2, "of unstable runs nothing is printed"


def varying(recipes):
    fields = [asdict(recipe) for recipe in recipes]
    return {key for key in fields[0] if len({str(some[key]) for some in fields}) > 1}


def test_the_frame_has_a_line_for_every_record_of_todays_recipes(tmp_path):
    assert list(frame("groco-table9e", tmp_path).columns) == ["row", "seed", "knn", "linear"]
    strongest, random = FIGURES["groco-table9e"].rows.values()
    ours, other = {"knn": 60.0, "linear": 61.5}, {"knn": 40.0, "linear": 41.5}
    keep(tmp_path, strongest, 1, ours | {"knn-projection": 55.0})
    keep(tmp_path, strongest, 0, ours)
    keep(tmp_path, random, 0, other)
    keep(tmp_path, random, 1, other, lr=0.5)  # of another recipe
    keep(tmp_path, random, 2, None)  # diverged
    rows = [("strongest-negatives", 0, 60.0, 61.5, np.nan), ("strongest-negatives", 1, 60.0, 61.5, 55.0),
            ("random-negatives", 0, 40.0, 41.5, np.nan), ("random-negatives", 2, *[np.nan] * 3)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["row", "seed", "knn", "linear", "knn-projection"])
    pd.testing.assert_frame_equal(frame("groco-table9e", tmp_path), table)
    with pytest.raises(ValueError, match="figure must be one of .*groco-table9f"):
        frame("groco-table9z", tmp_path)


def keep(folder, name, seed, measured, **changes):
    recipe = replace(SMALL_RECIPES[name], seed=seed, **changes).to_dict()
    result = {"accuracy_percent": {"trained": measured}} if measured else {"diverged": "the loss became nan"}
    kept = a_record(recipe, accuracy_percent={}) | result
    (folder / f"{name}-seed{seed}.json").write_text(json.dumps(kept))
