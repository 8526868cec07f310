"""The loop: what a recipe's training computes, records and leaves alone."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from small_runs import FEW, same, tensors, train
from small_runs import SMALL as TWO_EPOCHS

from setclr import views
from setclr.experiments import load_run
from setclr.experiments.records import read_record, record
from setclr.experiments.run import new_run
from setclr.losses import InfoNCE
from setclr.seeding import generator_of, seeded
from setclr.training import Batching, LRSchedule, Trainer
from setclr.training.source import Batches

SMALL = replace(TWO_EPOCHS, epochs=3)
LEARNT = replace(SMALL, loss="InfoNCE(temperature=learnable(0.2))", epochs=1)
CPU = torch.device("cpu")


def test_a_seed_is_a_run_and_the_global_generator_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again, other = (train(replace(SMALL, epochs=1, seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert same(first, again) and not torch.equal(tensors(first)[0], tensors(other)[0])


def test_a_parameter_of_the_loss_changes_when_its_schedule_says(monkeypatch):
    seen, objective = [], Trainer.objective
    watched = lambda trainer, z: seen.append(trainer.loss.temperature) or objective(trainer, z)  # noqa: E731
    monkeypatch.setattr(Trainer, "objective", watched)
    train(replace(SMALL, loss_schedule="temperature: 0.5, 0.1 from 1, 0.2 from 2"))
    assert seen == [0.5] * 4 + [0.1] * 4 + [0.2] * 4


def test_a_learnable_temperature_descends_its_own_slope():
    """By finite differences of the loss with a fixed temperature, on the same embeddings."""
    recipe = replace(LEARNT, optimiser="sgd", momentum=0.0, lr=0.1, schedule="constant", precision="float32")
    trainer, twin = (new_run(recipe, 3).trainer(FEW, CPU) for _ in range(2))
    (x,) = next(twin.view_batches)
    with torch.no_grad():
        z = twin.head(twin.encoder(x.flatten(0, 1))).unflatten(0, (2, -1)).double()
    high, low = (float(InfoNCE(0.2 * math.exp(h))(z)) for h in (1e-4, -1e-4))
    next(trainer.epoch())
    expected = 0.2 * math.exp(-0.1 * (high - low) / 2e-4)  # it is learnt in the logarithm
    assert trainer.loss.temperature.value == pytest.approx(expected, rel=1e-3) and abs(expected - 0.2) > 0.001


def test_two_trainings_share_no_loss_and_a_learnt_temperature_is_recorded_and_not_decayed():
    recipe = replace(LEARNT, optimiser="adamw", weight_decay=0.5, epochs=2)
    first, second = train(recipe), train(recipe)
    learnt = first.history.temperature
    assert learnt.tolist() == second.history.temperature.tolist() and learnt.nunique() == 2
    assert recipe.parsed_loss.temperature.value == pytest.approx(0.2)
    groups = new_run(recipe, 3).trainer(FEW, CPU).optimiser.param_groups
    assert [group["weight_decay"] for group in groups] == [0.5, 0.0]


def test_four_of_a_class_stand_together_in_a_batch():
    labels = torch.arange(70) % 5
    fours, plain = Batches(labels, Batching(16, 4)), Batches(labels, Batching(16))
    for epoch in range(3):
        order = torch.stack(fours.of_epoch(epoch))
        assert order.shape == (3, 16) and len(fours) == 3
        groups = labels[order].view(-1, 4)
        assert (groups == groups[:, :1]).all() and len(order.unique()) == 48
    first, second, again = (torch.stack(plain.of_epoch(epoch)) for epoch in (0, 1, 1))
    assert not torch.equal(first, second) and torch.equal(second, again)


def test_a_last_batch_that_is_incomplete_is_left_out_or_kept():
    labels = torch.arange(70) % 5
    kept, left_out = Batches(labels, Batching(16, drop_last=False)), Batches(labels, Batching(16))
    assert [len(batch) for batch in kept.of_epoch(0)] == [16, 16, 16, 16, 6] and len(kept) == 5
    assert torch.cat(kept.of_epoch(0)).sort().values.tolist() == list(range(70))
    whole = torch.cat(kept.of_epoch(0))
    assert torch.equal(torch.cat(left_out.of_epoch(0)), whole[:64]) and len(left_out) == 4
    trainer = new_run(replace(SMALL, drop_last=False), 3).trainer(FEW, CPU)
    assert [len(views[0][0]) for views in trainer.view_batches] == 3 * [16, 16, 16, 16, 6]


def test_on_epoch_sees_each_epoch_and_adds_numbers_of_any_kind_to_its_row(tmp_path):
    """What it does to the run's history does not change the trainer's; its length may be none."""
    seen = []

    class Watch(list):
        def __call__(self, run):
            seen.append([row["epoch"] for row in run.rows])
            run.rows.append({"epoch": 99})
            return {"a": np.float64(0.3), "b": torch.tensor(len(seen))}

    run = train(SMALL, tmp_path, on_epoch=Watch())
    assert seen == [[], [1], [1, 2], [1, 2, 3]]
    assert list(run.history.a) == [0.3] * 3 and list(run.history.b) == [2, 3, 4]
    assert load_run(tmp_path).rows == run.rows


BREAKS = [(7, "loss", "the loss became nan at step 6", 1), (12, "encoder", "the weights became NaN", 2)]


@pytest.mark.parametrize("step, name, said, epochs", BREAKS)
def test_a_loss_or_a_weight_that_becomes_nan_stops_the_run(tmp_path, monkeypatch, step, name, said, epochs):
    """And keeps the checkpoint."""
    update = Trainer.update

    def breaks(trainer, x):
        loss = update(trainer, x)
        if trainer.step == step and name == "encoder":
            trainer.encoder[0].weight.data[0] = torch.nan
        return loss * math.nan if trainer.step == step and name == "loss" else loss

    monkeypatch.setattr("setclr.training.trainer.CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr(Trainer, "update", breaks)
    with pytest.raises(FloatingPointError, match=said):
        train(SMALL, tmp_path)
    assert len(load_run(tmp_path).rows) == epochs


def test_learning_rates():
    rates = [LRSchedule("cosine", warmup=2).factor(step, 5, 10) for step in range(50)]
    assert all(a < b for a, b in zip(rates[:10], rates[1:11]))
    assert max(rates) == rates[10] == 1.0
    assert rates[30] == pytest.approx(0.5) and rates[49] < 0.01
    assert LRSchedule("constant", warmup=2).factor(49, 5, 10) == 1.0
    for epochs, factors in ((1, [1]), (3, [1, 1, 0.1]), (4, [1, 1, 0.1, 0.01])):
        steps = [LRSchedule("steps").factor(10 * e, 10, epochs) for e in range(epochs)]
        assert steps == pytest.approx(factors)


def test_generators_are_functions_of_their_key():
    draw = lambda *key: torch.rand(3, generator=seeded(*key))  # noqa: E731
    assert torch.equal(draw(0, 1, 2), draw(0, 1, 2))
    assert len({tuple(draw(*key).tolist()) for key in [(0, 1), (1, 0), (0, 1, 0), (0,), (0, 0, 1)]}) == 5


def test_all_bits_of_a_seed_count():
    """Of torch's own `manual_seed` the lower 32 count: these two steps of a training drew the same views."""
    assert torch.equal(generator_of(7).get_state(), torch.Generator().manual_seed(7).get_state())
    words = np.random.MT19937(np.random.SeedSequence(2**40)).random_raw(701)[1:]  # one earlier than torch
    drawn = torch.empty(700, dtype=torch.int64).random_(0, 2**20, generator=generator_of(2**40))
    assert drawn.tolist() == (words % 2**20).tolist() and generator_of(2**40).initial_seed() == 2**40
    first, other = (views.draw([views.View()], 1, seeded(*key)) for key in ((0, 18, 1918), (0, 91, 264)))
    assert not torch.equal(first, other)
    one, far = (new_run(replace(SMALL, seed=seed), channels=3) for seed in (1, 1 + 2**32))
    assert not torch.equal(*(next(run.encoder.parameters()) for run in (one, far)))


def test_a_run_and_its_record_name_the_version_of_their_draws(tmp_path):
    run = train(LEARNT, out=tmp_path)
    assert run.draws == load_run(tmp_path).draws == views.DRAWS
    record(tmp_path / "a.json", run, pd.DataFrame(), {}, "original", "setclr evaluate", diverged="loss")
    assert read_record(tmp_path / "a.json").draws == views.DRAWS
