"""The papers' figures in small: their recipes, and the table of their records."""

import json
from dataclasses import asdict, replace

import coverage_page
import numpy as np
import pandas as pd
import pytest
from conftest import a_record
from notebook_tools import FOLDER
from scipy import stats

from setclr import losses
from setclr.recipes import PUBLISHED, RECIPES
from setclr.recipes.registry import protocol_of
from setclr_course.papers.figures import FIGURES, frame, printed

RESULTS = coverage_page.RESULTS
EPOCHS = 10
SMALL_RECIPES = {name: recipe for name, recipe in RECIPES.items() if name.startswith("small-")}
ROWS = {  # as many as the paper has; of curves as many points as are taken here
    "qare-figure2": 16, "mmcl-figure3a": 6, "mmcl-figure3c": 12, "mmcl-table6": 3, "mmcl-table7": 12,
    "groco-table7": 4, "groco-table8c": 3,
    "groco-table8d": 2, "groco-table9a": 6, "groco-table9b": 2, "groco-table9c": 8, "groco-table9d": 3,
    "groco-table9e": 2, "groco-table9f": 2, "iot-table1": 6, "iot-table3": 6,
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
        assert list(table.index) == list(figure.rows) * title.startswith(("groco", "iot", "mmcl-table7"))
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


def test_the_rows_are_what_their_names_say():
    def recipe(figure, row):
        return SMALL_RECIPES[FIGURES[figure].rows[row]]

    assert [float(row) for row in FIGURES["qare-figure2"].rows] == [i / 8 for i in range(16)]
    assert "1.125 * QARe()" in recipe("qare-figure2", "1.125").loss
    bounds = [losses.parse(recipe("mmcl-figure3a", row).loss).C for row in FIGURES["mmcl-figure3a"].rows]
    assert bounds == [0.01, 0.1, 1, 10, 100, float("inf")]
    for row in FIGURES["mmcl-figure3c"].rows:
        one = recipe("mmcl-figure3c", row)
        assert f"{one.epochs}ep" in row and one.schedule == "constant"  # a part of the longer run
    assert recipe("groco-table9b", "2x32+6x14").epochs == 8 * EPOCHS
    assert recipe("groco-table8d", "false-negatives").images_per_class == 16
    for one in (recipe("groco-table9a", "infonce+top10"), RECIPES["groco-table9a-infonce+top10"]):
        assert round(losses.parse(one.loss).keep * (2 * one.batch - 2)) == 10
    assert FIGURES["groco-table9d"].rows["dimension64"] == FIGURES["groco-table7"].rows["groco"]
    named = {"small-groco-table7-groco": "setclr-projection", "small-qare-figure2-0.5": "setclr"}
    assert {name: protocol_of(name) for name in named} == named


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


def measured(figure, column):
    """(seeds, rows)"""
    return frame(figure, RESULTS).pivot(index="seed", columns="row", values=column)


def gap(figure, row, base, column, others=0, larger=0):
    """The mean difference of two rows, its t, and Student's p, times the questions that Holm's test has left:
    of `others` beside this one, less those with a smaller p."""
    runs = measured(figure, column)
    t = stats.ttest_rel(runs[row], runs[base])
    return (runs[row] - runs[base]).mean(), abs(t.statistic), (1 + others - larger) * t.pvalue


def test_what_the_pages_say_of_these_runs_is_recorded():
    names = ("12_pretrain_imagenet", "careful/11_pretrain_cifar", "careful/13_what_was_learned")
    page, careful11, careful13 = (
        " ".join(" ".join("".join(cell["source"]) for cell in written["cells"]).split())
        for written in (json.loads((FOLDER / f"{name}.ipynb").read_text()) for name in names)
    )
    knn, linear = (gap("groco-table9b", "2x32+6x14", "2x32", column) for column in ("knn", "linear"))
    assert f"*cost* {-knn[0]:.1f} points by neighbours and {-linear[0]:.1f} by the probe" in page
    assert f"p is {2 * knn[2]:.4f} and {linear[2]:.4f}" in page, "Holm's test of two"
    theirs = printed("groco-table9b").diff().iloc[1]
    assert f"bring {theirs['knn']:.1f} points by twenty" in page and f"and {theirs['linear']:.1f} by" in page
    batch = gap("groco-table8c", "batch128", "batch32", "knn", others=1)
    assert f"128 patches is {batch[0]:.0f} points better than one of 32" in page and batch[2] <= 0.05
    ring = "groco-groco-views-10ep"
    twice = gap("groco-table9c", "groco-groco-views-20ep", ring, "knn", others=6)
    longer = gap("groco-table9c", "groco-groco-views-40ep", ring, "knn", others=6, larger=1)
    assert f"bring {longer[0]:.0f} points by neighbours" in page
    assert f"p after Holm is {longer[2]:.3f}" in page
    assert f"bring {twice[0]:.1f} points" in page and f"(p = {twice[2]:.3f})" in page

    pairs = [(f"{loss}+top10+stop-gradient", f"{loss}+top10") for loss in ("groco", "infonce")]
    (points, t, p), (rival, _, _) = (
        np.transpose([gap("groco-table9a", *pair, c, others=4, larger=1) for c in ("knn", "linear")])
        for pair in pairs
    )
    assert "falls by {:.0f} points, by the linear probe by {:.0f},".format(*rival) in careful11
    assert "falls by {:.0f} and {:.0f} points".format(*points) in careful11
    assert "with {:.1f} and {:.1f}.".format(*t) in careful11 and f"instead of {p[0]:.3f}" in careful11
    ends, (learnt, failed) = measured("groco-table9a", "knn").mean(), map(list, zip(*pairs))
    assert "they end at {:.0f} and {:.0f} %".format(*ends[failed]) in careful11
    assert "they reach {:.0f} and {:.0f}.".format(*ends[learnt]) in careful11

    narrow = [gap("groco-table9d", "dimension64", "dimension4", column)[0] for column in ("knn", "linear")]
    assert "costs {:.0f} and {:.0f} points".format(*narrow) in careful13
    middle = gap("groco-table9d", "dimension64", "dimension16", "knn")
    assert f"costs {middle[0]:.1f} by kNN, which the test just keeps (p = {middle[2]:.3f})" in careful13
    same = gap("groco-table8d", "regular", "false-negatives", "knn")
    assert f"cost {same[0]:.1f} points by kNN (p = {same[2]:.3f})" in careful13


def keep(folder, name, seed, measured, **changes):
    recipe = replace(SMALL_RECIPES[name], seed=seed, **changes).to_dict()
    result = {"accuracy_percent": {"trained": measured}} if measured else {"diverged": "the loss became nan"}
    kept = a_record(recipe, accuracy_percent={}) | result
    (folder / f"{name}-seed{seed}.json").write_text(json.dumps(kept))
