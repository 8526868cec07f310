"""Schedules of a loss's parameters: the text, the values at each epoch, and what is refused."""

import math

import pytest
import torch
from conftest import shifted

from setclr import losses
from setclr.losses import IOT, MMCL, InfoNCE, QARe
from setclr.recipes import RECIPES, loss_schedule

MMCL_ON_CIFAR = "bandwidth: 25, 2.5 from 75, 0.25 from 125"


def test_stages_are_read():
    assert loss_schedule.loss_stages(MMCL_ON_CIFAR) == {"bandwidth": [(0, 25), (75, 2.5), (125, 0.25)]}
    assert loss_schedule.loss_stages("C: inf, 1e2 from 3 ; solver: 'inv', 'pgd' from 4;") == {
        "C": [(0, math.inf), (3, 100.0)],
        "solver": [(0, "inv"), (4, "pgd")],
    }
    assert loss_schedule.loss_stages("") == loss_schedule.loss_stages(" ; ") == {}


@pytest.mark.parametrize("text, message", [
    ("bandwidth", "must name a parameter and its values.*got 'bandwidth'"),
    ("band width: 3", "must name a parameter"),
    *((f"bandwidth: {no_literal}", "must give bandwidth numbers or quoted names, got ")
      for no_literal in ("", "two", "{[]}", "[" * 5000, "-" * 5000 + "1")),
    ("bandwidth: 3 from 2", "a first value, then each with the epoch"),
    ("bandwidth: 3, 2 from 1.5", "a first value, then each with the epoch"),
    ("bandwidth: 3, 2 from 1 from 2", "a first value, then each with the epoch"),
    ("bandwidth: 3, 2 from 9, 1 from 8", "rising epochs, got 8 after 9"),
    ("bandwidth: 3, 2 from -1", "rising epochs, got -1 after 0"),
    ("bandwidth: 3; C: 1; bandwidth: 2", "each parameter once, got bandwidth twice"),
    (None, "loss_schedule must be a text"),
])  # fmt: skip
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
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
    first = loss.losses[0]
    loss_schedule.apply(loss, "temperature: 0.5, 0.2 from 2; epsilon: 0.1, 1 from 1", 2)
    assert loss.losses[0] is first
    assert [term.temperature for term in loss.losses[:2]] == [0.2, 0.2]
    assert loss.losses[3].epsilon == 1
    assert loss.weights == [1.0, 2.0, 0.3, 1.0]
    assert repr(losses.parse(repr(loss))) == repr(loss)


def test_values_that_only_fit_together_are_set_together():
    loss = MMCL(kernel="rbf", C=math.inf)
    loss_schedule.apply(loss, "C: inf, 10 from 1; kernel: 'rbf', 'tanh' from 1", 1)
    assert (loss.kernel, loss.C) == ("tanh", 10)


def test_checking_leaves_the_loss_as_it_is():
    loss = MMCL(bandwidth=7.0)
    loss_schedule.check(loss, MMCL_ON_CIFAR)
    with pytest.raises(ValueError, match="at epoch 8: bandwidth"):
        loss_schedule.check(loss, "bandwidth: 3, 0 from 8")
    assert loss.bandwidth == 7


def test_the_schedules_of_recipes_begin_with_what_their_loss_says():
    scheduled = [RECIPES[name] for name, own in RECIPES.fields.items() if own.get("loss_schedule")]
    assert scheduled
    for recipe in scheduled:
        loss = losses.parse(recipe.loss)
        loss_schedule.apply(loss, recipe.loss_schedule, 0)
        assert repr(loss) == repr(losses.parse(recipe.loss))


def test_three_hundred_stages_are_read_once():
    """Counted and not timed: reading again at every stage would read ninety thousand values."""
    text = "bandwidth: 25" + "".join(f", {1 + k / 1000} from {k + 1}" for k in range(300))
    read = []
    with pytest.MonkeyPatch.context() as patch:
        own = loss_schedule._literal
        patch.setattr(loss_schedule, "_literal", lambda name, text: read.append(text) or own(name, text))
        loss_schedule.check(losses.parse("MMCL()"), text)
    assert len(read) == 601
