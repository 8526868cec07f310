"""A search: as many trials for each loss on validation images, the best one with all seeds, the curve.

And what is said of the differences between losses: tests for pairs, Holm's correction, tables of records.
"""

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import a_record, shifted
from scipy import stats

from setclr import data, losses
from setclr.cli import main
from setclr.data import ImageSet, patches
from setclr.experiments.kinds.image import labelled
from setclr.recipes import RECIPES
from setclr_course.search import hyperparameters, searches
from setclr_course.search.campaigns import campaign
from setclr_course.search.comparing import means, pairs, read
from setclr_course.search.hyperparameters import Hyperparameter, grid, hyperparameter, with_value
from setclr_course.search.hyperparameters import hyperparameter_value as value_of
from setclr_course.search.searches import search, settled, so_far, tried
from setclr_course.search.statistics import holm, paired

SEARCHED = [name for name in RECIPES if name.startswith("compare-photo-")]
SMALL = replace(RECIPES["compare-photo-infonce"], data="cifar10", epochs=2, batch=16)
TWO = {"x": SMALL, "y": replace(SMALL, loss="GroCo(beta=1.0, negatives=3)")}
SETTINGS = ["lr0.001-temperature0.1", "lr0.001-temperature1", "lr0.01-temperature0.1", "lr0.01-temperature1"]


def many(n: int) -> ImageSet:
    """Images whose class is easily seen, with n of each class."""
    labels = torch.arange(4 * n) % 4
    images = torch.randint(0, 256, (4 * n, 3, 16, 16), dtype=torch.uint8, generator=shifted(n))
    images[torch.arange(4 * n), :, 4 * labels] = 255
    return ImageSet(images, labels, tuple("abcd"))


def few():
    """Few images, two rates, two values a knob, and grids that do not grow."""
    with pytest.MonkeyPatch.context() as patch:
        sets = {"train": many(10), "test": many(6)}
        patch.setattr(data, "load", lambda name, root, split, *_, **__: sets[split])
        patch.setattr(hyperparameters, "RATES", (1e-3, 1e-2))
        knobs = hyperparameters.HYPERPARAMETERS
        patch.setitem(knobs, "InfoNCE", Hyperparameter("temperature", (0.1, 1.0)))
        patch.setitem(knobs, "GroCo", Hyperparameter("beta", (0.5, 2.0)))
        patch.setattr(searches, "BEYOND", 0)
        yield


small = pytest.fixture(few)


def done(recipes, folder, seeds=(0, 1)):
    return list(search(recipes, seeds, folder / "runs", folder / "results", command="said so"))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The folder of a search that was stopped after three trials and done again, and what both said."""
    folder = tmp_path_factory.mktemp("searched")
    with contextmanager(few)():
        steps = search(TWO, (0, 1), folder / "runs", folder / "results", command="said so")
        begun = [next(steps) for _ in range(3)]
        steps.close()
        return folder, begun, done(TWO, folder)


def record(folder, name):
    return json.loads((folder / "results" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", SEARCHED)
def test_every_loss_has_as_many_trials_and_they_hold_its_own_setting(name):
    """What is searched is the weight of QARe in a sum, and else a value of the loss's own."""
    settings, loss = grid(RECIPES[name]), RECIPES[name].loss
    assert len(set(settings.values())) == 20
    assert {one.lr for one in settings.values()} == set(hyperparameters.RATES)
    assert (hyperparameter(loss).name == "weight") == ("+qare" in name)
    for title, one in settings.items():
        assert replace(one, lr=RECIPES[name].lr, loss=loss) == RECIPES[name]
        assert title == f"lr{one.lr:g}-{hyperparameter(loss).name}{value_of(one.loss):g}"
        again = with_value(one.loss, value_of(loss))
        assert again == repr(losses.parse(loss)), "nothing else was changed"


@pytest.mark.parametrize("recipe, message", [
    (replace(SMALL, loss="Triplet()"), "loss must be one of 'InfoNCE', .* or a sum that ends with QARe"),
    (replace(SMALL, loss="IOT(epsilon=learnable(0.1))"), "epsilon must be a number, .* learnt in 'IOT"),
    (replace(SMALL, optimiser="lars"), "optimiser must be one of .*, got 'lars'.*are Adam's"),
    (replace(SMALL, loss="MMCL()", loss_schedule="bandwidth: 2, 1 from 1"), "loss_schedule .* constant"),
])  # fmt: skip
def test_what_cannot_be_searched_is_refused_before_anything_is_trained(recipe, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        done({"x": SMALL, "z": recipe}, tmp_path)
    assert not list(tmp_path.iterdir())


def test_patches_are_divided_so_that_validation_patches_of_a_photograph_overlap_no_others(monkeypatch):
    """Or an encoder would be chosen that knows places again, and no others."""
    make = patches.photo_windows  # takes seconds
    once = cache(lambda name, split: make(name, patches.photograph(name), split))
    monkeypatch.setattr(patches, "photo_windows", lambda name, grey, split: once(name, split))
    held = patches.photo_validation().reshape(18, 400)
    assert held.any(1).all() and (held.mean(1) >= 0.2).all() and held.mean() < 0.25
    for name, mask in zip(patches.PHOTOGRAPHS, held):
        windows = once(name, "train")
        first, last = windows[:, :2], windows[:, :2] + windows[:, 2:]
        apart = (first[mask][:, None] >= last[~mask]) | (last[mask][:, None] <= first[~mask])
        assert apart.any(-1).all()
    root, mask = Path(__file__).resolve().parents[3] / "data", torch.from_numpy(held.flatten())
    train, validation = labelled(RECIPES["compare-photo-groco"], root, split="validation")
    whole = data.load("photo-patches", root)
    assert torch.equal(train.images, whole.images[~mask])
    assert torch.equal(validation.labels, whole.labels[mask])


def test_validation_images_are_a_fifth_of_each_class_and_never_test_images(small, tmp_path):
    train, held = labelled(SMALL, tmp_path, split="validation")
    assert [part.labels.bincount().tolist() for part in (train, held)] == [[8] * 4, [2] * 4]
    together = torch.cat([train.images, held.images]).flatten(1).tolist()
    assert sorted(together) == sorted(many(10).images.flatten(1).tolist())
    again, _ = labelled(replace(SMALL, seed=3, lr=1.0), tmp_path, split="validation")
    assert torch.equal(again.images, train.images), "a function of the set alone"
    for name in ("stl10", "folder:x"):
        with pytest.raises(ValueError, match=f"data must be labelled images of one size.*got '{name}'"):
            labelled(replace(SMALL, data=name, view_size=32), tmp_path, split="validation")
    with pytest.raises(ValueError, match="split must be one of 'test', 'validation', .* got 'train'"):
        labelled(SMALL, tmp_path, split="train")


def test_after_a_stop_three_stages_have_their_records(searched, small):
    folder, begun, said = searched
    assert len(said) == 8 + 2 + 4 + 2 * 2 * 3 + 1
    assert said[-1].startswith("20 of 20 runs are recorded\n") and "learnt" in said[-1]
    assert [line.split(":")[0] for line in said[:4]] == [f"x {title}-seed0" for title in SETTINGS]
    before = [line.split(":")[0] for line in said if line.endswith("recorded before")]
    assert before[:3] == [line.split(":")[0] for line in begun]
    assert len(before) == 3 + 2 * 2, "and the curves' first seeds, which are trials"
    trials = read(folder / "results" / "trials" / "x")
    first = trials.query("seed == 0").set_index("name")
    assert list(first.index) == SETTINGS
    title = said[8].removeprefix("x: ")
    assert first.loc[title, "knn"] == first["knn"].max() and title == first["knn"].idxmax()
    best = record(folder, "x-seed1")
    assert best["recipe"] == replace(grid(TWO["x"])[title], seed=1).to_dict()
    assert best["images"] == {"train": 40, "test": 24} and best["evaluated_with"] == "said so"
    assert len(best["history"]) == 2, "the accuracies of every fifth of the epochs, here of every epoch"
    last = {key: round(best["history"][-1][key], 2) for key in ("knn", "linear")}
    assert last == best["accuracy_percent"]["trained"]
    curve = trials.query("seed > 0")
    assert len(curve) == 2 * 2 and set(curve["lr"]) == {first.loc[title, "lr"]}
    trial = record(folder, f"trials/x/{title}-seed2")
    assert trial["images"] == {"train": 32, "validation": 8} and "knn" not in trial["history"][-1]
    tables = tried(TWO, folder / "results")
    assert list(tables) == ["x", "y"] and len(tables["x"]) == len(trials)
    assert set(tables["x"]["knn"]) == set(trials["knn"])


def test_repeated_it_does_nothing_and_trials_of_another_recipe_are_no_grounds_for_a_choice(searched, small):
    folder, _, _ = searched
    kept = {path: path.read_bytes() for path in folder.rglob("*.json")}
    assert all(line.endswith("recorded before") for line in done(TWO, folder) if "seed" in line)
    other = {"x": replace(TWO["x"], epochs=1), "y": TWO["y"]}
    assert list(tried(other, folder / "results")) == ["y"]
    said = done({"x": other["x"]}, folder, seeds=(0,))
    assert "another recipe (epochs 2 there, 1 now)" in said[0] and "no choice yet" in said[-2]
    assert said[-1].startswith("0 of 9 runs are recorded, of the final ones 0 of 1")
    assert kept == {path: path.read_bytes() for path in folder.rglob("*.json")}


def test_the_command_compiles_all_its_runs_where_it_is_told_to(small, tmp_path, monkeypatch):
    real, asked = searches.pretrain, []

    def pretrain(recipe, out, **more):
        asked.append(more["compiled"])
        return real(recipe, out, **more | {"compiled": False})

    monkeypatch.setattr(searches, "pretrain", pretrain)  # of the final runs
    monkeypatch.setattr(searches, "campaign", lambda *a, **k: campaign(*a, **{"train": pretrain} | k))
    monkeypatch.setitem(RECIPES, "compare-photo-infonce", replace(SMALL, epochs=1))
    words = ["search", "compare-photo-infonce@4", "--runs", f"{tmp_path}/runs", "--results", str(tmp_path)]
    main([*words, "--compiled", "yes"])
    assert asked == [True] * (4 + 1 + 2 * 2)
    kept = json.loads((tmp_path / "compare-photo-infonce-seed4.json").read_text())
    assert kept["evaluated_with"].startswith("python -m setclr search compare-photo-infonce@4 --runs")


def test_runs_that_diverge_are_recorded_and_never_tried_again_nor_chosen(small, tmp_path, monkeypatch):
    real, tried = searches.pretrain, []

    def nan(run):
        raise FloatingPointError("the loss became nan at step 3; lower lr")

    def pretrain(recipe, out, **more):
        tried.append(out.name)
        return real(recipe, out, **more | ({"on_epoch": nan} if recipe.lr == 1e-2 else {}))

    recipes = {"x": replace(TWO["x"], epochs=1)}
    monkeypatch.setattr(searches, "campaign", lambda *a, **k: campaign(*a, **{"train": pretrain} | k))
    said = done(recipes, tmp_path, seeds=(0,))
    trials = read(tmp_path / "results" / "trials" / "x")
    lost = trials.query("diverged")
    assert lost["lr"].tolist() == [1e-2] * 2 and lost["collapsed"].all() and trials["diverged"].sum() == 2
    assert "became nan" in said[2] and "lr0.001" in said[4]
    kept = record(tmp_path, f"trials/x/{SETTINGS[2]}-seed0")
    assert kept["diverged"].startswith("the loss became nan") and kept["accuracy_percent"] == {}
    assert kept["machine"]["device"].startswith("CPU") and kept["precision"] == "float32"
    tried.clear()
    assert "recorded before" in done(recipes, tmp_path, seeds=(0,))[2] and not tried


@pytest.mark.parametrize("lr, temperature, rates, temperatures", [
    (0.03, 0.2, (3e-4, 1e-3, 3e-3, 1e-2, 0.033, 0.11), (0.05, 0.1, 0.2, 0.5, 1)),
    (1e-3, 9, (3e-4, 1e-3, 3e-3, 1e-2), (0.05, 0.1, 0.2, 0.5, 1, 2, 4)),  # and no further
    (1e-6, 0.04, (2.7e-05, 9e-05, 3e-4, 1e-3, 3e-3, 1e-2), (0.025, 0.05, 0.1, 0.2, 0.5, 1)),
    (1e-3, 0.1, (3e-4, 1e-3, 3e-3, 1e-2), (0.05, 0.1, 0.2, 0.5, 1)),
])  # fmt: skip
def test_a_grid_grows_where_its_best_is_an_end(lr, temperature, rates, temperatures, tmp_path, monkeypatch):
    """Trials that are the better the nearer they are to a rate and a temperature."""

    def made(recipes, seeds, runs, results, **_):
        results.mkdir(parents=True, exist_ok=True)
        for (title, one), seed in product(recipes.items(), seeds):
            off = np.log(one.lr / lr) ** 2 + np.log(value_of(one.loss) / temperature) ** 2
            put(results, title, seed, 90 - off / 9, loss=one.loss, lr=one.lr)
            yield f"{title}-seed{seed}"

    monkeypatch.setattr(searches, "campaign", made)
    recipe = RECIPES["compare-photo-infonce"]
    said = done({"x": recipe}, tmp_path, seeds=(0,))
    asked = said[: [line.startswith("x: ") for line in said].index(True)]
    wanted = grid(recipe, rates, temperatures)
    assert sorted(asked) == sorted(f"x {title}-seed0" for title in wanted)
    settings, title = settled("x", recipe, tmp_path / "results")
    assert settings == wanted and f"x: {title}" in said
    pulls = (rates, lr), (temperatures, temperature)
    nearest = [min(values, key=lambda x: abs(np.log(x / to))) for values, to in pulls]
    assert [settings[title].lr, value_of(settings[title].loss)] == nearest
    all_runs = len(wanted) + 1 + 2 * len(temperatures)
    assert said[-1].splitlines()[0] == f"{all_runs} of {all_runs} runs are recorded"


# What is said of the differences

# Student's sleep data (1908): hours gained by ten patients on two drugs.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_student_himself():
    """p and interval as R's t.test(paired = TRUE) prints them on its help page's data."""
    assert paired(FIRST, SECOND) == pytest.approx((-1.58, -2.4598858, -0.7001142, 0.002833), abs=5e-7)


def test_intervals_of_many_questions_are_bonferronis_and_equal_differences_have_no_spread():
    gap = np.subtract(FIRST, SECOND)
    reach = stats.t.isf(0.1 / 36 / 2, 9) * gap.std(ddof=1) / 10**0.5
    found = paired(FIRST, SECOND, 0.9, 36)
    assert (found.low, found.high) == pytest.approx((gap.mean() - reach, gap.mean() + reach))
    assert paired([1.0, 2.0], [1.0, 2.0]) == (0, 0, 0, 1)
    assert paired([1.0, 2.0], [3.0, 4.0]) == (-2, -2, -2, 0)


def test_holm_by_hand():
    """Four values: the least times 4, the next times 3, and none below the one before it, none above 1."""
    assert holm([0.03, 0.01, 0.04, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1, 1] and holm([]).tolist() == []


@pytest.mark.parametrize("call, message", [
    (lambda: paired([1.0], [2.0]), r"a and b must be n >= 2 finite numbers each.* got shapes \(1,\)"),
    (lambda: paired([1.0, float("nan")], [1.0, 2.0]), "1 and 2 finite"),
    (lambda: holm([1.5]), "p must be numbers from 0 to 1"),
    (lambda: read("nowhere"), "nowhere: no records there; setclr search FILTER makes some"),
])  # fmt: skip
def test_what_cannot_be_tested_is_refused(call, message):
    with pytest.raises(FileNotFoundError if message.startswith("nowhere") else ValueError, match=message):
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
    lost = some.query("collapsed")[["name", "seed", "diverged"]]
    assert lost.values.tolist() == [["b", 3, False], ["c", 2, True]]
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
    assert table.loc[("knn", "a", "b"), [*wanted._fields]].tolist() == pytest.approx(wanted)
    for metric in ("knn", "linear"):
        assert table.loc[metric, "holm"].tolist() == pytest.approx(holm(table.loc[metric, "p"]).tolist())


def test_a_loss_that_never_learnt_is_in_no_pair_and_one_loss_has_none(some):
    others = some.assign(collapsed=some["collapsed"] | (some["name"] == "b"))
    table = pairs(others)
    assert table[["metric", "a", "b"]].values.tolist() == [["knn", "a", "c"], ["linear", "a", "c"]]
    assert np.isnan(means(others).loc["b", "knn"]) and means(others).loc["b", "collapsed"] == 4
    assert pairs(some[some["name"] == "a"]).empty


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
