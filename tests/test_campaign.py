"""A campaign does what is left to do."""

import json
from dataclasses import replace

import pytest
import torch
from conftest import shifted

from setclr import data
from setclr.data import ImageSet
from setclr.recipes import COMPARED, RECIPES
from setclr.reports.campaigns import campaign
from setclr.training import pretrain

TWO = {
    name: replace(RECIPES[f"compare-conv4-{name}"], epochs=1, batch=16) for name in ("infonce", "iot-rows")
}


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    generator = shifted(0)
    images = torch.randint(0, 256, (40, 3, 16, 16), dtype=torch.uint8, generator=generator)
    few = ImageSet(images, torch.arange(40) % 4, tuple("abcd"))
    monkeypatch.setattr(data, "load", lambda *args, **kwargs: few)


def test_every_recipe_and_seed_is_trained_evaluated_and_recorded(tmp_path):
    said = list(campaign(TWO, (0, 1), tmp_path / "runs", tmp_path, pixels="noise", command="said so"))
    assert [line.split(":")[0] for line in said] == [
        "infonce-seed0", "iot-rows-seed0", "infonce-seed1", "iot-rows-seed1",
    ]  # fmt: skip
    kept = json.loads((tmp_path / "iot-rows-seed1.json").read_text())
    assert kept["recipe"]["seed"] == 1 and kept["recipe"]["loss"].startswith("IOT")
    assert kept["pixels"] == "noise" and kept["evaluated_with"] == "said so"
    assert set(kept["accuracy_percent"]) == {"raw pixels", "untrained", "trained"}


def test_after_an_interruption_only_the_rest_is_done(tmp_path):
    trained = []

    def interrupted(recipe, out, **where):
        trained.append(out.name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return pretrain(recipe, out, **where)

    with pytest.raises(KeyboardInterrupt):
        list(campaign(TWO, (0,), tmp_path / "runs", tmp_path, train=interrupted))
    said = list(campaign(TWO, (0,), tmp_path / "runs", tmp_path, train=interrupted))
    assert trained == ["infonce-seed0", "iot-rows-seed0", "iot-rows-seed0"]
    assert said[0] == "infonce-seed0: recorded before" and "knn" in said[1]


def test_a_record_of_another_recipe_is_not_taken_for_this_one(tmp_path):
    list(campaign(TWO, (0,), tmp_path / "runs", tmp_path))
    longer = {name: replace(recipe, epochs=2) for name, recipe in TWO.items()}
    with pytest.raises(
        ValueError, match=r"infonce-seed0.json: .*\(epochs 1 there, 2 now\).*another results="
    ):
        list(campaign(longer, (0,), tmp_path / "runs", tmp_path))


def test_compared_recipes_differ_in_the_loss_alone():
    for encoder in ("conv4", "resnet32", "resnet18"):
        recipes = [RECIPES[f"compare-{encoder}-{name}"] for name in COMPARED]
        assert len({replace(recipe, loss="InfoNCE()") for recipe in recipes}) == 1
        assert len({recipe.loss for recipe in recipes}) == len(COMPARED)
