"""Records, searches and figures of papers: what is read and drawn, and Student's and Holm's tests by seed."""

import json
from copy import deepcopy
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import a_record, numpy_shifted
from scipy import stats

from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr_course import panels
from setclr_course.kit.controls import minus
from setclr_course.kit.palette import WHITE
from setclr_course.panels.trained import comparison, knob_curves, paired_gaps
from setclr_course.panels.trained.comparison import accuracies, deviation, made_up, pairs, ranked, read
from setclr_course.panels.trained.short_trainings import BETAS, TEMPERATURES, Outcome, outcome
from setclr_course.search import comparing
from setclr_course.search.statistics import holm

both_measures = pytest.mark.parametrize("measure, column", [("linear probe", "linear"), ("kNN", "knn")])


def keep(folder, name: str, seed: int, of: dict | None = None, **fields):
    """Write a record whose recipe has these fields, and which has itself those `of`."""
    recipe = {"loss": name, "seed": seed, "data": "cifar10", **fields}
    record = a_record(recipe, **made_up()["made-up loss A"][seed % 2]) | (of or {})
    (folder / f"compare-conv4-{name}-seed{seed}.json").write_text(json.dumps(record))


@pytest.fixture
def folder(tmp_path):
    for name, seed in (("iot-both-uniform", 0), ("iot-both-uniform", 12), ("infonce+qare", 0)):
        keep(tmp_path, name, seed)
    return tmp_path


def test_records_are_read_by_loss_and_seed_and_what_an_older_one_lacks_has_its_default(folder):
    """The precision is the one that was used: a campaign gives later seeds what the machine chose first."""
    keep(folder, "groco", 0, {"precision": "float32"}, queue=0, precision="auto")
    records = read(folder)
    seeds = {name: sorted(runs) for name, runs in records.items()}
    assert seeds == {"groco": [0], "infonce+qare": [0], "iot-both-uniform": [0, 12]}
    panel = panels.recorded_curves(records, row=1 + ranked(records).index("infonce+qare"), epoch=10)
    assert panel.alt.startswith("infonce+qare, after epoch 10 of 10")
    with pytest.raises(FileNotFoundError, match="no other-.*campaign makes them"):
        read(folder, "other-")


@pytest.mark.parametrize("field, fields, of", [
    ("lr", {"lr": 0.5}, {}), ("images", {}, {"images": {"train": 10000, "test": 10000}}),
    ("precision", {}, {"precision": "bf16"}),
])  # fmt: skip
def test_records_that_cannot_be_compared_are_refused(folder, field, fields, of):
    keep(folder, "groco", 0, of, **fields)
    with pytest.raises(ValueError, match=f"compare-conv4-.*-seed0.json differs .* in {field}$"):
        read(folder)


# Curves


def test_the_part_behind_knows_neither_unit_nor_zero():
    values = np.array([5.0, 4.0, 4.5, 3.0])
    np.testing.assert_allclose(comparison.progress(values), [0, 0.5, 0.25, 1])
    np.testing.assert_allclose(comparison.progress(-7 * values + 100), comparison.progress(values))
    assert (comparison.progress(np.ones(3)) == 0).all()


@both_measures
def test_the_race_draws_the_records(measure, column):
    records, name = made_up(), "made-up loss B"
    panel = panels.recorded_curves(records, row=2, epoch=4, measure=measure)
    falls = {n: map(comparison.losses, runs.values()) for n, runs in records.items()}
    behind = {n: np.mean([*map(comparison.progress, each)], 0) for n, each in falls.items()}
    curves = panel.scene["plots"][0]
    line = next(mark for mark in curves["marks"] if mark.get("width") == 2.6)
    assert line["x"] == [1, 2, 3, 4] and line["y"] == pytest.approx(behind[name][:4], rel=1e-5)
    assert curves["title"] == f"{max(behind, key=lambda n: behind[n][3])} has fallen most"
    means = [np.mean(accuracies(records[n], "trained", column)) for n in ranked(records)]
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.heights, [behind[n][3] for n in ranked(records)])
    assert now.seeds[1] == accuracies(records[name], "trained", column)
    assert panel.alt.endswith("number 2.") and means == sorted(means, reverse=True)


# Means, gaps and noise


def probed(*rows: tuple[str, int, float]) -> dict:
    """Records with these linear probes, by loss and seed."""
    found = {}
    for name, seed, linear in rows:
        made = made_up()["made-up loss A"][0]
        made["accuracy_percent"]["trained"]["linear"] = linear
        found.setdefault(name, {})[seed] = made
    return found


def left(x: np.ndarray) -> np.ndarray:
    """Of accuracies (losses, seeds): without what losses and seeds add."""
    return x - x.mean(0) - x.mean(1, keepdims=True) + x.mean()


def test_what_a_seed_adds_to_all_losses_alike_is_no_noise_between_them():
    variances = np.var([accuracies(runs, "trained", "linear") for runs in made_up().values()], axis=1, ddof=1)
    assert deviation(made_up()) == pytest.approx(variances.mean() ** 0.5)
    rng = numpy_shifted(0)
    noisy = [(name, seed, 3 * seed + rng.normal()) for name in "abcdefgh" for seed in range(3)]
    x = np.array([value for *_, value in noisy]).reshape(8, 3)
    assert deviation(probed(*noisy), within=True) == pytest.approx(((left(x) ** 2).sum() / 14) ** 0.5)
    for one in (("b", 0, 41.0), ("a", 1, 42.0)):  # the noise is unknown
        assert np.isnan(deviation(probed(("a", 0, 40.0), one), within=True))


def test_losses_are_compared_over_the_seeds_that_both_have_and_pairs_over_those_that_all_have():
    records = probed(("a", 0, 40.0), ("a", 1, 50.0), ("b", 1, 51.0), ("b", 2, 70.0), ("c", 5, 1.0))
    np.testing.assert_allclose(comparison.gaps(records, "b", "a"), [1])
    assert len(comparison.gaps(records, "c", "a")) == len(comparison.gaps(records, "missing", "a")) == 0
    with pytest.raises(ValueError, match="records must share a seed"):
        comparison.common_seeds(records)
    common = comparison.common_seeds({n: records[n] for n in "ab"})
    assert {n: list(runs) for n, runs in common.items()} == {"a": [1], "b": [1]}
    table = pairs(probed(*((name, seed, 5 * seed) for name in "ab" for seed in range(3)), ("c", 1, 8)))
    assert table["gap"].tolist() == pytest.approx([3, 3, 0])


def test_pairs_are_judged_by_student_and_holm():
    """Three equal losses and one far off, three seeds: t with (4 - 1) (3 - 1) degrees of freedom."""
    x = np.array([[40.0], [40.0], [40.0], [60.0]]) + 2 * np.arange(3) + numpy_shifted(2).normal(size=(4, 3))
    table = pairs(probed(*((name, k, x[i, k]) for i, name in enumerate("abcd") for k in range(3))))
    error = ((left(x) ** 2).sum() / 6 * 2 / 3) ** 0.5
    assert table["p"].tolist() == pytest.approx((2 * stats.t.sf(table["gap"].abs() / error, 6)).tolist())
    assert table["holm"].tolist() == pytest.approx(holm(table["p"]).tolist())
    once = pairs(probed(("a", 0, 40.0), ("b", 0, 41.0)))
    assert once["gap"].tolist() == [1] and once[["p", "holm"]].isna().all(axis=None)


@both_measures
def test_holms_steps_keep_what_holm_keeps_and_a_loss_with_a_collapsed_run_is_set_apart(measure, column):
    records = made_up()
    records["sparseclr"] = {seed: deepcopy(run) for seed, run in records["made-up loss A"].items()}
    for seed, share in enumerate((35.0, 30.0)):  # worse than its first weights with seed 1
        records["sparseclr"][seed]["accuracy_percent"]["trained"].update(knn=share, linear=share)
    assert list(comparison.learnt(records)) == list(made_up()) == list(comparison.learnt(made_up()))
    panel = panels.holm_steps(records, measure=measure, level=0.1)
    table = pairs(records, column)
    kept, usual = ((table[x] <= 0.1).sum() for x in ("holm", "p"))
    said = f"of 6 pairs {usual} have a p up to 0.1, and Holm's test for all 6 questions keeps {kept}."
    assert panel.alt.endswith(said)
    panel.controls["compared"].value = "those that learnt"
    assert "of 3 pairs" in panel.alt and len(panel.scene["links"]) == 3
    with pytest.raises(ValueError, match="noise is unknown"):
        panels.holm_steps(probed(("a", 0, 40.0), ("b", 0, 41.0)))


# Settings of one knob


@both_measures
@pytest.mark.parametrize("loss", ["infonce", "groco"])
def test_the_sentence_is_that_of_the_trials(loss, measure, column):
    trials = knob_curves.made_up()
    runs, panel = trials[loss], panels.knob_curves(trials, loss=loss, measure=measure)
    settings = product(enumerate(sorted(set(runs["lr"])), 1), enumerate(sorted(set(runs["value"])), 1))
    for (i, rate), (j, value) in settings:
        seen = panel.seen({**panel.values, "rate": i, "knob": j})
        here = runs[(runs["lr"] == rate) & (runs["value"] == value)][column]
        assert f" {value:g} at rate {rate:g}: {here.mean():.1f} % by {measure}" in seen.sentence
        assert f"({len(here)} of 3 seeds)" in seen.sentence
        first = runs[(runs["lr"] == rate) & (runs["seed"] == 0)][column]
        assert seen.sentence.endswith(f"the knob moves it by {first.max() - first.min():.1f} points.")
    best = runs[runs["seed"] == 0].sort_values("knn").iloc[-1]
    knob = {"infonce": "temperature", "groco": "beta"}[loss]
    assert f"Chosen by kNN: {knob} {best.value:g} at {best.lr:g}, {best[column]:.1f} %." in panel.alt


def test_settings_that_diverged_are_shown_as_nothing():
    runs = knob_curves.made_up()["infonce"]
    gone = (runs["lr"] == 0.01) & (runs["value"] == 1.0)
    runs.loc[gone, ["knn", "linear"]], runs.loc[gone, "collapsed"] = np.nan, True
    panel = panels.knob_curves({"infonce": runs}, knob=5)
    assert "at rate 0.01: it diverged." in panel.alt and "nan" not in panel.alt
    assert np.isnan(knob_curves.searched(runs).seeds[:, -1, -1]).all()
    assert not [link for link in panel.scene["links"] if "nan" in link[0]]
    runs.loc[runs["lr"] == 0.01, ["knn", "linear"]] = np.nan
    assert panels.knob_curves({"infonce": runs}).alt.endswith("At rate 0.01 every run diverged.")


# Final runs


def final_runs() -> pd.DataFrame:
    """Five runs of four losses that nobody has trained."""
    means, noise = np.repeat([58.0, 56.5, 56.2, 53.0], 5), np.random.default_rng(6).normal(0, 0.5, (20, 2))
    runs = pd.DataFrame(means[:, None] + [0, 2] + noise, columns=["knn", "linear"])
    names = [f"loss {letter}" for letter in "pqrs" for _ in range(5)]
    return runs.assign(name=names, seed=[*range(5)] * 4, collapsed=False)


@both_measures
def test_the_gaps_are_those_of_the_searchs_pairs_and_what_holm_keeps_is_filled(measure, column):
    runs = final_runs()
    table, panel = comparing.pairs(runs), panels.paired_gaps(runs, measure=measure)
    table = table[table["metric"] == column]
    names = list(runs.groupby("name")["knn"].mean().sort_values(ascending=False).index)
    for row, base in enumerate(names, 1):
        panel.controls["row"].value = row
        kept = []
        for pair in table[table["holm"] <= 0.05].itertuples():
            if base in (pair.a, pair.b):
                other, sign = (pair.b, -1) if pair.a == base else (pair.a, 1)
                low, high = sorted((sign * pair.low, sign * pair.high))
                said = f"{other} {sign * pair.difference:+.1f} ({low:+.1f} to {high:+.1f})"
                assert minus(said) in panel.alt
                kept.append(names.index(other))
        mean = runs.loc[runs["name"] == base, column].mean()
        assert panel.alt.startswith(f"final runs by {measure}, {base}: {mean:.1f} %, the mean of 5 seeds. ")
        assert f"Holm's test of all 6 pairs keeps {len(kept)} of 3 gaps to it" in panel.alt
        dots = panel.scene["plots"][1]["marks"][-1]
        assert sorted(int(y) for y, c in zip(dots["y"], dots["colour"]) if c != WHITE) == sorted(kept)
    assert kept, "the last of the made-up losses is far below the others"


def test_final_runs_that_collapsed_have_no_gaps_and_stand_last():
    runs = final_runs()
    lost = runs["name"] == "loss p"
    runs.loc[lost & (runs["seed"] == 2), "collapsed"] = True
    assert "the mean of 4 seeds. " in panels.paired_gaps(runs, row=1).alt
    runs.loc[lost, ["knn", "linear"]], runs.loc[lost, "collapsed"] = np.nan, True
    panel = panels.paired_gaps(runs)
    assert panel.alt == "loss p: no run learnt, so it has no gaps." and len(panel.scene["links"]) == 3
    panel.controls["row"].value = 1
    assert "Holm's test of all 3 pairs keeps 1 of 2 gaps" in panel.alt and "nan" not in panel.alt


# Figures of papers


@both_measures
def test_rows_are_compared_by_scipys_paired_test_and_holms_steps(measure, column):
    frame, _ = paired_gaps.made_up()["table A"]
    wide = frame.pivot(index="seed", columns="row", values=column)
    base, found = wide["setting q"], paired_gaps.told_apart(frame, "setting q", column)
    tests = {row: stats.ttest_rel(wide[row], base) for row in wide if row != "setting q"}
    for (row, test), adjusted in zip(tests.items(), holm([test.pvalue for test in tests.values()])):
        gap, ends = (wide[row] - base).mean(), test.confidence_interval(1 - 0.05 / 3)
        columns = ["difference", "holm", "low", "high"]
        assert [*found.loc[row, columns]] == pytest.approx([gap, adjusted, ends.low, ends.high])
    panel = panels.paired_gaps(figure="table A", row=2, measure=measure)
    apart = found[found["holm"] <= 0.05]
    assert panel.alt.startswith(f"table A by {measure}, setting q: {base.mean():.1f} %, the mean of 3")
    assert f"Holm's test keeps {len(apart)} of 3 gaps to it" in panel.alt


def test_dots_are_the_runs_and_the_gaps_stand_beside_those_of_the_paper():
    figures = paired_gaps.made_up()
    panel = panels.paired_gaps(figures, figure="table B", measure="linear probe", row=1)
    (frame, printed), (here, gaps) = figures["table B"], panel.scene["plots"]
    dots = next(mark for mark in here["marks"] if mark["kind"] == "dots" and mark["size"] == 7)
    assert dots["x"] == pytest.approx(frame["linear"].tolist(), rel=1e-5)
    means, (theirs, ours) = frame.groupby("row")["linear"].mean(), gaps["marks"][-2:]
    assert theirs["sign"] == "◆" and gaps["xlabel"].endswith("◆ in the paper")
    for mark, numbers in ((theirs, printed["linear"]), (ours, means)):
        assert mark["x"] == pytest.approx([numbers.iloc[k] - numbers.iloc[0] for k in (1, 2)], rel=1e-5)


# τ and β


def test_an_outcome_holds_the_cosines_that_the_loss_sees():
    images = torch.randint(0, 256, (60, 3, 32, 32), dtype=torch.uint8)
    few = ImageSet(images, torch.arange(60) % 3, tuple("abc"))
    run = new_run(ImageRecipe("InfoNCE()", views="photo", epochs=2, batch=20), channels=3)
    state = {k: v.clone() for k, v in run.encoder.state_dict().items()}
    one = outcome(run, few, few)
    assert one.positives.shape == (60,) and one.negatives.shape == (60 * 59,)
    assert (np.abs(one.negatives) <= 1 + 1e-6).all() and one.positives.mean() > one.negatives.mean()
    assert all(torch.equal(v, run.encoder.state_dict()[k]) for k, v in state.items())


def test_the_sliders_snap_to_what_was_trained():
    cosines = numpy_shifted(0).uniform(-1, 1, (2, 20))
    settings = [*(("InfoNCE", tau) for tau in TEMPERATURES), *(("GroCo", beta) for beta in BETAS)]
    trained = {(name, x): Outcome([3.0, 2.0 + x], 0.2 + x / 40, *cosines) for name, x in settings}
    panel = panels.temperature_and_beta(trained, temperature=0.02, beta=4.0)
    assert "InfoNCE, τ = 0.02: loss from 3 to 2.02, kNN 20.1%" in panel.alt
    assert minus(f"positives {cosines[0].mean():.2f}. GroCo, β = 4: loss from 3 to 6,") in panel.alt
