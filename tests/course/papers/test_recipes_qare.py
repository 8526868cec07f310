"""Rows of QARe's and SparseCLR's tables mean what their authors' program does; variants are the text's."""

from dataclasses import replace

import pytest
import torch

from setclr.experiments import building
from setclr.experiments.run import new_run
from setclr.recipes import PUBLISHED, RECIPES

ROWS = {name: recipe for name, recipe in RECIPES.items() if name.startswith(("qare-table2", "qare-table3"))}
COLUMN = "qare-table{}-conv4-cifar10-{}"
SIMCLR = RECIPES[COLUMN.format(2, "simclr")]


def differences(one, other):
    there = other.to_dict()
    return {key: value for key, value in one.to_dict().items() if value != there[key]}


def test_cosines_are_clamped_in_the_rows_with_qare_alone():
    for name, recipe in ROWS.items():
        pairwise = recipe.loss.split(" + ")[0]
        assert ("clamped" in pairwise) == ("+qare" in name) == ("'clamped cosine'" in recipe.loss)


def test_all_rows_share_first_weights_colours_batches_and_budget():
    for name, recipe in ROWS.items():
        assert recipe.initial == "he" and recipe.normalised == recipe.data and recipe.precision == "float32"
        assert recipe.batch == 128 and recipe.epochs == (0 if "random" in name else 200)
        assert recipe.drop_last == ("deepinfomax" in name)
        assert "Xavier" in PUBLISHED[name].note
        assert ("64 → 64" in PUBLISHED[name].note) == (recipe.encoder == "resnet32")


@pytest.mark.parametrize("encoder", ["conv4", "resnet32"])
def test_random_weights_and_all_encoders_begin_normal_with_hes_variance(encoder):
    """Conv-4's first layer: √(2 / (9 · 8)) = 0.167, not torch's uniform of deviation 0.110."""
    recipe, weights = RECIPES[f"qare-table2-{encoder}-cifar10-random"], []
    for seed in range(20):
        run = new_run(replace(recipe, seed=seed), channels=3)
        first = next(layer for layer in run.encoder.modules() if isinstance(layer, torch.nn.Conv2d))
        weights.append(first.weight.detach().flatten())
    weights, he = torch.cat(weights), (2 / (9 * first.out_channels)) ** 0.5
    assert float(weights.std()) == pytest.approx(he, rel=5 / (2 * len(weights)) ** 0.5)


OF_BASELINES = {
    "supervised": dict(
        loss="Supervised()", views="padded", full_views=1, layers=1, embedding=10,
        optimiser="sgd", lr=0.1, schedule="steps",
    ),
    "random": dict(epochs=0),
    "deepcluster": dict(loss="DeepCluster()", views="padded", full_views=1, embedding=100),
    "rotationnet": dict(loss="Rotation()", views="padded", full_views=1, layers=1, embedding=4),
    "deepinfomax": dict(
        loss="DeepInfoMax(features=64, channels=8, locations=16)", views="flip", full_views=1,
        lr=1e-4, drop_last=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("method, fields", OF_BASELINES.items(), ids=OF_BASELINES)
def test_a_baseline_differs_from_simclr_as_in_the_program(method, fields):
    recipe = RECIPES[COLUMN.format(2, method)]
    assert differences(recipe, SIMCLR) == fields
    assert recipe.momentum == 0.9 and recipe.weight_decay == 0


@pytest.mark.parametrize(
    "method, shapes",
    [("supervised", [64, 10]), ("rotationnet", [64, 4]), ("deepcluster", [64, 256, 100]),
     ("simclr", [64, 256, 64])],
)  # fmt: skip
def test_heads_are_those_of_the_program(method, shapes):
    """One layer for labels and turns, 64 → 256 → outputs for clusters, 64 → 256 → 64 for pairs."""
    _, head = building.models_of(RECIPES[COLUMN.format(2, method)], 3)
    layers = [layer for layer in head.modules() if isinstance(layer, torch.nn.Linear)]
    assert [layers[0].in_features, *(layer.out_features for layer in layers)] == shapes
    assert sum(isinstance(layer, torch.nn.BatchNorm1d) for layer in head.modules()) == len(layers) - 1


def test_the_supervised_row_is_its_own_classifiers_accuracy():
    for name in ROWS.keys() & PUBLISHED.keys():
        (metric,), row = ["classifier" if "supervised" in name else "linear"], PUBLISHED[name]
        assert list(row.numbers) == list(row.spread) == [metric]


def test_variants_have_the_texts_temperature_and_candidates():
    """The row's 2N points at tau 0.05; and all as the text: N candidates, N², no clamps, Xavier's weights."""
    for method in ("simclr", "simclr+qare"):
        row = RECIPES[COLUMN.format(2, method)]
        cold, text = (RECIPES[f"variant-qare-{kind}-conv4-cifar10-{method}"] for kind in ("tau", "text"))
        assert differences(cold, row) == {"loss": row.loss.replace("0.5,", "0.05,", 1)}
        pairwise, *_ = text.loss.split(" + ")
        assert pairwise == "InfoNCE(temperature=0.05, candidates='other view')"
        assert differences(text, row) == {"loss": text.loss, "initial": "xavier"}
        assert text.loss.endswith("0.5 * QARe()") == (method == "simclr+qare")


def test_table_1_has_its_deviations_and_the_settings_of_section_5():
    """Euclidean QARe in a convex combination, 50 epochs of Adam at 0.01 under a cosine, batch 128."""
    rows = {name: row for name, row in PUBLISHED.items() if name.startswith("qare-table1-")}
    assert [row.spread["matching"] for row in rows.values()] == [
        *(0.77, 1.67, 0.43, 1.40, 1.19, 1.38, 0.42, 1.41)
    ]
    for name, row in rows.items():
        recipe = RECIPES[name]
        assert (recipe.lr, recipe.schedule, recipe.epochs, recipe.batch) == (0.01, "cosine", 50, 128)
        assert ("QARe(similarity='euclidean')" in recipe.loss) == name.endswith("+qare")
        assert "Euclidean distance" in row.note and "best on the validation split" in row.note
        if name.endswith("+qare"):
            first, second = (float(term.split(" * ")[0]) for term in recipe.loss.split(" + "))
            assert first + second == pytest.approx(1)


def test_beside_the_column_stand_the_other_three_papers_losses_at_its_budget():
    beside = {name: recipe for name, recipe in RECIPES.items() if name.startswith("column-")}
    assert len(beside) == 4
    for name, recipe in beside.items():
        changed = differences(recipe, SIMCLR)
        assert changed.pop("loss").split("(")[0].lower() in name
        assert changed == ({"last_norm": True} if "groco" in name else {})
