"""What is said of the differences between losses: tests for pairs, Holm's correction, tables of records."""

import json

import numpy as np
import pytest
from conftest import a_record, numpy_shifted
from scipy import stats

from setclr.recipes import RECIPES
from setclr_course.search.comparing import means, pairs, read
from setclr_course.search.hyperparameters import grid
from setclr_course.search.searches import so_far
from setclr_course.search.statistics import holm, paired

# Student's sleep data (1908): hours gained by ten patients on two drugs.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_student_himself():
    """p and interval as R's t.test(paired = TRUE) prints them on its help page's data."""
    assert paired(FIRST, SECOND) == pytest.approx((-1.58, -2.4598858, -0.7001142, 0.002833), abs=5e-7)


def test_pairs_are_scipys_and_intervals_of_many_questions_bonferronis():
    drawn = numpy_shifted(1)
    for n in (2, 3, 5, 20):
        a, b = drawn.normal(60, 1, n), drawn.normal(61, 2, n)
        theirs = stats.ttest_rel(a, b)
        for questions in (1, 36):
            bounds = theirs.confidence_interval(1 - 0.1 / questions)
            wanted = (np.mean(a - b), bounds.low, bounds.high, theirs.pvalue)
            assert paired(a, b, 0.9, questions) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert paired([1.0, 2.0], [1.0, 2.0]) == (0, 0, 0, 1)
    assert paired([1.0, 2.0], [3.0, 4.0]) == (-2, -2, -2, 0)


def test_holm_by_hand():
    """Four values: the least times 4, the next times 3, and none below the one before it, none above 1."""
    assert holm([0.03, 0.01, 0.04, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1, 1] and holm([]).tolist() == []


def test_holm_rejects_what_the_step_down_procedure_does():
    """Holm 1979: go through the values from the least on, stop at the first above alpha / (number left)."""
    drawn = numpy_shifted(3)
    for alpha in (0.01, 0.05, 0.2):
        p = drawn.beta(0.3, 3, 36)
        rejected = np.zeros(36, dtype=bool)
        for left, index in zip(range(36, 0, -1), p.argsort()):
            if p[index] > alpha / left:
                break
            rejected[index] = True
        assert ((holm(p) <= alpha) == rejected).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: paired([1.0], [2.0]), r"a and b must be n >= 2 finite numbers each.* got shapes \(1,\)"),
        (lambda: paired([1.0, 2.0], [1.0]), r"got shapes \(2,\) and \(1,\)"),
        (lambda: paired([1.0, float("nan")], [1.0, 2.0]), "1 and 2 finite"),
        (lambda: paired([1.0, 2.0], [1.0, 3.0], level=95), "level must be"),
        (lambda: paired([1.0, 2.0], [1.0, 3.0], questions=0), "questions must be an integer >= 1, got 0"),
        (lambda: holm([0.5, float("nan")]), "p must be numbers from 0 to 1, got .*leave out"),
        (lambda: holm([1.5]), "p must be numbers from 0 to 1"),
        (lambda: holm([[0.5]]), "p must be numbers from 0 to 1"),
    ],
)
def test_what_cannot_be_tested_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def put(folder, name, seed, knn, linear=50.0, loss="InfoNCE(temperature=0.2)", lr=0.003, **more):
    recipe = RECIPES["compare-photo-infonce"].to_dict() | {"loss": loss, "seed": seed, "lr": lr}
    measured = {"untrained": {"knn": 30.0}, "trained": {"knn": knn, "linear": linear}} if knn else {}
    kept = a_record(recipe, accuracy_percent=measured, **more)
    (folder / f"{name}-seed{seed}.json").write_text(json.dumps(kept))


@pytest.fixture
def some(tmp_path):
    """a beats b by 1, 2 and 3 points and c by 10; b collapsed with seed 3, c diverged with seed 2."""
    for seed, b in enumerate((49.0, 48.0, 47.0, 30.0)):
        put(tmp_path, "a", seed, 50.0)
        put(tmp_path, "b", seed, b, linear=50.0 - seed, loss="InfoNCE() + 0.25 * QARe()")
    for seed in (0, 1):
        put(tmp_path, "c", seed, 40.0 + seed / 8, loss="GroCo(beta=4.0)")
    put(tmp_path, "c", 2, None, loss="GroCo(beta=4.0)", diverged="the loss became nan at step 3")
    return read(tmp_path)


def test_records_are_read_and_collapses_seen(some):
    assert some.shape == (11, 9) and list(some["name"]) == ["a"] * 4 + ["b"] * 4 + ["c"] * 3
    assert some.query("collapsed")[["name", "seed", "diverged"]].values.tolist() == [
        ["b", 3, False], ["c", 2, True],
    ]  # fmt: skip
    assert some.iloc[-1][["hyperparameter", "value", "lr"]].tolist() == ["beta", 4.0, 0.003]
    assert some.iloc[4][["hyperparameter", "value"]].tolist() == ["weight", 0.25]
    assert np.isnan(some.iloc[-1]["knn"])


def test_means_leave_collapsed_runs_out(some):
    table = means(some)
    assert table["learnt"].tolist() == [4, 3, 2] and table["collapsed"].tolist() == [0, 1, 1]
    assert table.loc["b", ["knn", "knn ±", "linear", "linear ±"]].tolist() == [48, 1, 49, 1]
    assert table.loc["a", "knn ±"] == 0


def test_all_pairs_are_compared_over_the_seeds_that_both_learnt_with(some):
    table = pairs(some).set_index(["metric", "a", "b"])
    assert table["seeds"].tolist() == [3, 2, 2] * 2
    wanted = paired([50.0] * 3, [49.0, 48.0, 47.0], questions=3)
    found = table.loc[("knn", "a", "b"), ["difference", "low", "high", "p"]]
    assert found.tolist() == pytest.approx(wanted)
    for metric in ("knn", "linear"):
        assert table.loc[metric, "holm"].tolist() == pytest.approx(holm(table.loc[metric, "p"]).tolist())


def test_a_loss_that_never_learnt_is_in_no_pair_and_one_loss_has_none(some):
    others = some.assign(collapsed=some["collapsed"] | (some["name"] == "b"))
    table = pairs(others)
    assert table[["metric", "a", "b"]].values.tolist() == [["knn", "a", "c"], ["linear", "a", "c"]]
    assert np.isnan(means(others).loc["b", "knn"]) and means(others).loc["b", "collapsed"] == 4
    assert pairs(some[some["name"] == "a"]).empty


def test_a_folder_without_records_and_losses_without_a_knob_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="setclr search FILTER makes some"):
        read(tmp_path)
    put(tmp_path, "x", 0, 50.0, loss="Triplet()")
    with pytest.raises(ValueError, match="loss must be one of 'InfoNCE'"):
        read(tmp_path)


def test_a_search_claims_nothing_before_its_final_runs_are_there(tmp_path):
    """Two losses of 20 trials, 5 final runs and 2 more seeds of 5 knobs each: 70 runs."""
    names = ("compare-photo-infonce", "compare-photo-groco")
    recipes = {name: RECIPES[name] for name in names}
    none = "0 of 70 runs are recorded, of the final ones 0 of 10: no claim yet"
    assert so_far(recipes, range(5), tmp_path) == none
    titles = ("lr0.003-temperature0.2", "lr0.003-beta4")
    best = {name: grid(recipes[name])[title] for name, title in zip(names, titles)}
    for name, one in best.items():
        (tmp_path / "trials" / name).mkdir(parents=True)
        for title, other in grid(recipes[name]).items():
            put(tmp_path / "trials" / name, title, 0, 40.0 + (other == one), loss=other.loss, lr=other.lr)
    for seed in range(5):
        put(tmp_path, names[0], seed, 50.0 + seed / 8, loss=best[names[0]].loss)
        put(tmp_path, names[1], seed, 53.0, loss=best[names[1]].loss, lr=0.01)  # not the chosen rate
        put(tmp_path, "compare-photo-mmcl-inv", seed, 30.5)  # not asked for
    begun = "45 of 70 runs are recorded, of the final ones 5 of 10: no claim yet"
    assert so_far(recipes, range(5), tmp_path) == begun
    for seed in range(5):
        put(tmp_path, names[1], seed, 53.0, linear=50.0 + (-1) ** seed, loss=best[names[1]].loss)
    said = so_far(recipes, range(5), tmp_path).splitlines()
    assert said[0] == "50 of 70 runs are recorded" and "mmcl" not in "".join(said)
    assert said[3].split()[:3] == [names[0], "0.003", "temperature"], "the rate is not rounded away"
    assert "knn: Holm's test keeps 1 of 1 pairs" in said and "linear: Holm's test keeps 0 of 1 pairs" in said
    found = pairs(read(tmp_path).query("name in @recipes")).iloc[0]
    wanted = f"{found.difference:+.1f} points, {found.low:+.1f} to {found.high:+.1f}"
    assert f"  {names[1]} less {names[0]}: {wanted}" in said and found.difference == 2.75
