"""Fields of recipes: what is given wrong is named with what to do; schedules of a loss's parameters."""

import json
import math
import pickle
import re
from dataclasses import replace

import pytest
import torch
from conftest import shifted

from setclr import losses
from setclr.losses import IOT, MMCL, InfoNCE, QARe
from setclr.recipes import RECIPES, GraphRecipe, ImageRecipe, VideoRecipe, loss_schedule


@pytest.mark.parametrize("change, message", [
    ({"loss": "Rotation(4)"}, "Rotation"), ({"predictor": 2}, "predictor must be 0 without a momentum"),
    ({"full_views": 1}, "full_views must be 2 to 4 with InfoNCE"),
    ({"loss": "QARe()", "labels": True}, "labels must be False for QARe.*takes none"),
    ({"encoder": "resnet34"}, "encoder must be one of .*did you mean 'resnet32'.*timm:NAME takes any"),
    ({"encoder": "timm:resnet81"}, r"did you mean 'timm:resnet18' .*; timm.list_models\(\) lists them"),
    ({"batch": 16, "images_per_class": 3}, "batch must be a multiple of images_per_class=3, got 16"),
    ({"queue": 40}, "queue must be 0 without a momentum encoder, got 40; key_momentum=0.999"),
    ({"loss": "GroCo()", "key_momentum": 0.9, "queue": 40},
     r"queue must not be set with GroCo\(\); Triplet, InfoNCE,.* take memory"),
    ({"loss": "SparseCLR()", "key_momentum": 0.9}, "key_momentum must not be set with SparseCLR.*GroCo"),
    ({"loss": "SupCon()"}, "labels must be True for SupCon.*without labels take InfoNCE"),
    ({"loss": "Supervised()", "full_views": 2}, r"full_views must be 1 with Supervised\(\).* got 2"),
    ({"loss": "MMCL()", "loss_schedule": "bandwith: 3"},
     "must be one of .*did you mean 'bandwidth'.*MMCL.* has no others"),
    ({"loss": "InfoNCE(temperature=learnable(0.2))", "loss_schedule": "temperature: 0.5, 0.1 from 1"},
     "loss_schedule names 'temperature', which .* learns; give it a num"),
    ({"kind": VideoRecipe, "encoder": "s3d", "frames": 7, "size": 64}, "frames must be .* >= 8.*gradients"),
    ({"kind": VideoRecipe, "encoder": "s3d", "frames": 16, "size": 24}, "size must be"),
    ({"kind": GraphRecipe, "loss": "Supervised()"}, "loss must contrast views"),
])  # fmt: skip
def test_fields_that_do_not_fit_together(change, message):
    given = {"kind": ImageRecipe, "loss": "InfoNCE()"} | change
    kind = given.pop("kind")
    with pytest.raises(ValueError, match=message):
        kind(**given)


# Schedules of a loss's parameters: the text, the values at each epoch, and what is refused

MMCL_ON_CIFAR = "bandwidth: 25, 2.5 from 75, 0.25 from 125"


def test_stages_of_a_schedule_are_read():
    assert loss_schedule.loss_stages(MMCL_ON_CIFAR) == {"bandwidth": [(0, 25), (75, 2.5), (125, 0.25)]}
    stages = {"C": [(0, math.inf), (3, 100.0)], "solver": [(0, "inv"), (4, "pgd")]}
    assert loss_schedule.loss_stages("C: inf, 1e2 from 3 ; solver: 'inv', 'pgd' from 4;") == stages
    assert loss_schedule.loss_stages("") == loss_schedule.loss_stages(" ; ") == {}


@pytest.mark.parametrize("text", [
    "bandwidth", "bandwidth: 3, 2 from 9, 1 from 8", "bandwidth: 3, 2 from -1", "C: 1; C: 2", "bandwidth:",
    "bandwidth:two", "bandwidth:{[]}", "bandwidth:3 from 2", "bandwidth:3, 2", "bandwidth:3, 2 from 1.5",
    "bandwidth:" + "[" * 5000, "bandwidth:" + "-" * 5000 + "1", "bandwidth:3, 2 from 1 from 2",
])  # fmt: skip
def test_other_texts_of_a_schedule_are_refused(text):
    part = re.escape(repr(text.split("; ")[-1]))
    with pytest.raises(ValueError, match=f"loss_schedule must have .*'bandwidth: 25, .*', got {part}"):
        loss_schedule.loss_stages(text)


def test_each_epoch_has_its_value_and_the_loss_is_the_one_of_that_value():
    loss = MMCL(bandwidth=25.0)
    z = torch.randn(2, 6, 4, generator=shifted(0))
    for epoch, value in [(0, 25), (74, 25), (75, 2.5), (124, 2.5), (125, 0.25), (399, 0.25), (3, 25)]:
        loss_schedule.apply(loss, MMCL_ON_CIFAR, epoch)
        assert loss.bandwidth == value
        assert torch.equal(loss(z), MMCL(bandwidth=value)(z))


def test_every_term_that_has_the_parameter_gets_it_and_the_others_are_let_be():
    loss = InfoNCE(0.5) + 2.0 * InfoNCE(0.4) + 0.3 * QARe() + IOT("rows", epsilon=0.1)
    terms = list(loss.losses)
    loss_schedule.apply(loss, "temperature: 0.5, 0.2 from 2; epsilon: 0.1, 1 from 1", 2)
    assert list(loss.losses) == terms and [term.weight for term in loss.terms] == [1, 2, 0.3, 1]
    assert (terms[0].temperature, terms[1].temperature, terms[3].epsilon) == (0.2, 0.2, 1)
    assert repr(losses.parse(repr(loss))) == repr(loss)


def test_values_that_only_fit_together_are_set_in_the_order_of_the_text():
    loss = MMCL(kernel="rbf", C=math.inf)
    loss_schedule.apply(loss, "C: inf, 10 from 1; kernel: 'rbf', 'tanh' from 1", 1)
    assert (loss.kernel, loss.C) == ("tanh", 10)


def test_checking_leaves_the_loss_as_it_is():
    loss = MMCL(bandwidth=7.0)
    loss_schedule.check(loss, MMCL_ON_CIFAR)
    with pytest.raises(ValueError, match="at epoch 8: bandwidth must be > 0, got 0"):
        loss_schedule.check(loss, "bandwidth: 3, 0 from 8")
    assert loss.bandwidth == 7


def test_the_schedules_of_recipes_begin_with_what_their_loss_says():
    scheduled = [RECIPES[name] for name in RECIPES if RECIPES.fields(name).get("loss_schedule")]
    assert scheduled
    for recipe in scheduled:
        loss = losses.parse(recipe.loss)
        loss_schedule.apply(loss, recipe.loss_schedule, 0)
        assert repr(loss) == repr(losses.parse(recipe.loss))


def test_a_number_is_recorded_as_it_was_written():
    recipe = ImageRecipe("InfoNCE()", warmup=10, weight_decay=0.0)
    assert json.dumps([recipe.to_dict()[name] for name in ("warmup", "weight_decay")]) == "[10, 0.0]"
    assert hash(recipe) == hash(replace(recipe)) and pickle.loads(pickle.dumps(recipe)) == recipe
