"""The panels of notebook 11: records read and compared, curves that grow, the walk over τ and β."""

import json
from copy import deepcopy

import numpy as np
import pytest
import torch
from conftest import a_record, numpy_shifted
from scipy import stats

from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr_course import panels
from setclr_course.panels.trained import comparison
from setclr_course.panels.trained.comparison import accuracies, deviation, made_up, pairs, ranked, read
from setclr_course.panels.trained.short_trainings import BETAS, TEMPERATURES, Outcome, outcome
from setclr_course.search.statistics import holm

both_measures = pytest.mark.parametrize("measure, column", [("linear probe", "linear"), ("kNN", "knn")])


@pytest.fixture
def folder(tmp_path):
    """write(name, seed, …) keeps a record there, with a recipe of these fields or a record `of` these."""

    def write(name: str, seed: int, of: dict | None = None, **fields):
        recipe = {"loss": name, "seed": seed, "data": "cifar10", **fields}
        kept = a_record(recipe, pixels="original", **made_up()["made-up loss A"][seed % 2]) | (of or {})
        (tmp_path / f"compare-conv4-{name}-seed{seed}.json").write_text(json.dumps(kept))

    for name, seed in (("iot-both-uniform", 0), ("iot-both-uniform", 12), ("infonce+qare", 0)):
        write(name, seed)
    write.folder = tmp_path
    return write


def test_records_are_read_by_loss_and_seed_and_what_an_older_one_lacks_has_its_default(folder):
    """The precision is the one that was used: a campaign gives later seeds what the machine chose first."""
    folder("groco", 0, {"precision": "float32"}, queue=0, precision="auto")
    records = read(folder.folder)
    seeds = {name: sorted(runs) for name, runs in records.items()}
    assert seeds == {"groco": [0], "infonce+qare": [0], "iot-both-uniform": [0, 12]}
    panel = panels.recorded_curves(records, row=1 + ranked(records).index("infonce+qare"), epoch=10)
    assert panel.alt.startswith("infonce+qare, after epoch 10 of 10")
    with pytest.raises(FileNotFoundError, match="no other-.*campaign makes them"):
        read(folder.folder, "other-")


@pytest.mark.parametrize(
    "field, fields, of",
    [
        ("lr", {"lr": 0.5}, {}),
        ("images", {}, {"images": {"train": 10000, "test": 10000}}),
        ("precision", {}, {"precision": "bf16"}),
    ],
)
def test_records_that_cannot_be_compared_are_refused(folder, field, fields, of):
    folder("groco", 0, of, **fields)
    with pytest.raises(ValueError, match=f"compare-conv4-.*-seed0.json differs .* in {field}$"):
        read(folder.folder)


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
    behind = {
        n: np.mean([comparison.progress(comparison.losses(r)) for r in runs.values()], 0)
        for n, runs in records.items()
    }
    curves = panel.scene["plots"][0]
    line = next(mark for mark in curves["marks"] if mark.get("width") == 2.6)
    assert line["x"] == [1, 2, 3, 4] and line["y"] == pytest.approx(behind[name][:4], rel=1e-5)
    assert curves["title"] == f"{max(behind, key=lambda n: behind[n][3])} has fallen most"
    means = [np.mean(accuracies(records[n], "trained", column)) for n in ranked(records)]
    now = panel.solve(panel.values)
    np.testing.assert_allclose(now.heights, [behind[n][3] for n in ranked(records)])
    assert now.seeds[1] == accuracies(records[name], "trained", column)
    assert panel.alt.endswith("number 2.") and means == sorted(means, reverse=True)


def test_runs_of_two_losses_are_of_one_length_of_two_epochs_or_more():
    one, uneven, short = made_up(1), made_up(2), made_up(2)
    uneven["made-up loss A"][0]["history"].pop()
    for run in (run for runs in short.values() for run in runs.values()):
        del run["history"][1:]
    for records, got in ((one, r"1 of \[10\]"), (uneven, r"2 of \[9, 10\]"), (short, r"2 of \[1\]")):
        with pytest.raises(ValueError, match=f"of two losses and two epochs or more, got {got}"):
            panels.recorded_curves(records)


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


SHIFTED = [(name, seed, height + 5 * seed) for name, height in (("a", 40), ("b", 41)) for seed in range(3)]


def test_what_a_seed_adds_to_all_losses_alike_is_no_noise_between_them():
    made = made_up()
    variances = [np.var(accuracies(runs, "trained", "linear"), ddof=1) for runs in made.values()]
    assert deviation(made) == pytest.approx(np.mean(variances) ** 0.5)
    records = probed(*SHIFTED)
    assert deviation(records) == pytest.approx(5)
    assert deviation(records, within=True) == pytest.approx(0, abs=1e-9)
    rng = numpy_shifted(0)
    noisy = [(name, seed, 3 * seed + rng.normal()) for name in "abcdefgh" for seed in range(3)]
    x = np.array([value for *_, value in noisy]).reshape(8, 3)
    assert deviation(probed(*noisy), within=True) == pytest.approx(((left(x) ** 2).sum() / 14) ** 0.5)
    fewer = probed(*noisy[:-1])
    assert deviation(fewer, within=True) == deviation(comparison.common_seeds(fewer), within=True) > 0
    for one in (("b", 0, 41.0), ("a", 1, 42.0)):
        assert np.isnan(deviation(probed(("a", 0, 40.0), one), within=True))


def test_losses_are_compared_over_the_seeds_that_both_have_and_pairs_over_those_that_all_have():
    records = probed(("a", 0, 40.0), ("a", 1, 50.0), ("b", 1, 51.0), ("b", 2, 70.0), ("c", 5, 1.0))
    np.testing.assert_allclose(comparison.gaps(records, "b", "a"), [1])
    assert len(comparison.gaps(records, "c", "a")) == len(comparison.gaps(records, "missing", "a")) == 0
    with pytest.raises(ValueError, match="records must share a seed"):
        comparison.common_seeds(records)
    common = comparison.common_seeds({n: records[n] for n in "ab"})
    assert {n: list(runs) for n, runs in common.items()} == {"a": [1], "b": [1]}
    table = pairs(probed(*SHIFTED, ("c", 0, 42.0), ("c", 1, 48.0)))
    assert len(table) == 3 and table.loc[("b", "a"), "gap"] == pytest.approx(1)
    assert table.loc[("c", "a"), "gap"] == pytest.approx(2.5)


def test_pairs_are_judged_by_student_and_holm():
    """Three equal losses and one far off, three seeds: t with (4 - 1) (3 - 1) degrees of freedom."""
    x = np.array([[40.0], [40.0], [40.0], [60.0]]) + 2 * np.arange(3) + numpy_shifted(2).normal(size=(4, 3))
    table = pairs(probed(*((name, k, x[i, k]) for i, name in enumerate("abcd") for k in range(3))))
    error = ((left(x) ** 2).sum() / 6 * 2 / 3) ** 0.5
    assert table["p"].tolist() == pytest.approx((2 * stats.t.sf(table["gap"].abs() / error, 6)).tolist())
    assert table["holm"].tolist() == pytest.approx(holm(table["p"]).tolist())
    assert (table["holm"] <= 0.05).sum() >= 3
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
    rng, trained = numpy_shifted(0), {}
    for name, values in (("InfoNCE", TEMPERATURES), ("GroCo", BETAS)):
        for value in values:
            cosines = rng.uniform(-1, 1, 20), rng.uniform(-1, 1, 90)
            trained[name, value] = Outcome([3.0, 2.0 + value], 0.2 + value / 40, *cosines)
    panel = panels.temperature_and_beta(trained, temperature=0.02, beta=4.0)
    one = trained["InfoNCE", 0.02]
    assert f"InfoNCE, τ = 0.02: loss from 3 to 2.02, kNN {one.knn:.1%}" in panel.alt
    assert f"positives {one.positives.mean():.2f}. GroCo, β = 4:" in panel.alt
