"""The momentum encoder, its queue and the predictor, against the papers' rules written out; the pieces for a
training loop of your own, and what `setclr` itself exports."""

import copy
import doctest
import importlib
import math
from dataclasses import replace

import pytest
import torch
from small_runs import FEW, SMALL
from torch import nn
from torch.nn.functional import normalize

import setclr
from setclr import DistributedLoss, InfoNCE, Queue, losses
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr.training import Trainer

MOCO = replace(SMALL, optimiser="sgd", lr=0.1, key_momentum=0.75, queue=40, precision="float32")
V3 = replace(MOCO, loss="GroCo()", queue=0, key_schedule="cosine", predictor=2, last_norm=True)


def trainer_of(recipe: ImageRecipe) -> Trainer:
    """In float64, where operations in another order come to the same.

    In float32 they do not: three steps through batch norms enlarge rounding to more than 1e-5 on some
    processors.
    """
    trainer = new_run(recipe, channels=3).trainer(FEW, torch.device("cpu"))
    for module in (trainer.model, trainer.momentum_encoder.model, trainer.momentum_encoder.queue):
        if module is not None:
            module.double()
    trainer.view_batches = ([views.double() for views in sizes] for sizes in trainer.view_batches)
    return trainer


def embed(networks: nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
    """(V, N, E) of views (V, N, C, S, S), the networks as they are in training."""
    return nn.Sequential(*networks).train()(x.flatten(0, 1)).unflatten(0, x.shape[:2])


@pytest.mark.parametrize("recipe", [MOCO, V3], ids=["queue", "predictor"])
def test_three_steps_are_those_of_the_rules_written_out(recipe):
    trainer, views = trainer_of(recipe), trainer_of(recipe).view_batches
    learns, follows = copy.deepcopy(trainer.model), copy.deepcopy(trainer.model[:2])
    queue = trainer.momentum_encoder.queue
    memory = queue.keys.clone() if recipe.queue else None
    optimiser = torch.optim.SGD(learns.parameters(), 0.1, momentum=0.9)
    loss, steps = losses.parse(recipe.loss), trainer.epoch()
    for step in range(3):
        next(steps)
        (x,) = next(views)
        with torch.no_grad():
            keys = embed(follows, x)
        value = loss(embed(learns, x), keys=keys, memory=memory)
        torch.testing.assert_close(trainer.values[-1], value.detach())
        falling = (1 + math.cos(math.pi * step / 8)) / 2
        optimiser.param_groups[0]["lr"] = 0.1 * falling
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        m = 0.75 if recipe is MOCO else 1 - 0.25 * falling
        for k, q in zip(follows.parameters(), learns[:2].parameters(), strict=True):
            k.data = m * k.data + (1 - m) * q.data
        if recipe.queue:
            memory = torch.cat([memory[16:], normalize(keys[1], dim=1)])
            torch.testing.assert_close(queue.keys, memory)
    assert not any(p.requires_grad for p in trainer.momentum_encoder.model.parameters())
    torch.testing.assert_close(learns.state_dict(), trainer.model.state_dict())
    torch.testing.assert_close(follows.state_dict(), trainer.momentum_encoder.model.state_dict())


def test_a_queue_holds_the_latest_keys_in_their_order_and_takes_more_than_it_holds():
    queue, other = Queue(5, 3), Queue(5, 3, seed=1)
    other.add(torch.eye(3), torch.tensor([4, 5, 6]))
    other.add(torch.eye(3)[:1])
    assert other.labels.tolist() == [-1, 4, 5, 6, -1]
    assert torch.equal(queue.keys, Queue(5, 3).keys) and not torch.equal(queue.keys, other.keys)
    torch.testing.assert_close(queue.keys.norm(dim=1), torch.ones(5))
    kept = queue.keys.clone()
    for added in torch.randn(12, 3, dtype=torch.float64).split([2, 2, 8]):
        queue.add(added)
        kept = torch.cat([kept, normalize(added.float(), dim=1)])[-5:]
        torch.testing.assert_close(queue.keys, kept)
    other.load_state_dict(queue.state_dict())
    assert torch.equal(other.keys, queue.keys) and not queue.keys.requires_grad


def test_a_loss_over_processes_is_the_loss_where_there_is_one():
    z, y, w = torch.randn(2, 6, 4), torch.tensor([0, 0, 1, 1, 2, 3]), torch.rand(6)
    loss = InfoNCE(0.2)
    over = DistributedLoss(loss)
    assert torch.equal(over(z, labels=y, weight=w), loss(z, labels=y, weight=w))
    assert torch.equal(over(z[0], z[1]), loss(z)) and torch.equal(over(z, keys=z + 1), loss(z, keys=z + 1))


def test_every_loss_is_exported_from_setclr():
    assert {name for name in setclr.__all__ if hasattr(losses, name)} == {*losses.BY_NAME, "learnable"}


MODULES = ("setclr", "setclr.losses", "setclr.inner", "setclr.training", "setclr.evaluation")
NAMES = [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]
CALLED = [pair for pair in NAMES if callable(getattr(importlib.import_module(pair[0]), pair[1]))]


@pytest.mark.parametrize("module, name", CALLED)
def test_every_public_name_has_an_example_that_runs(module, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    thing = getattr(importlib.import_module(module), name)
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(thing, name, importlib.import_module(thing.__module__), {})
    assert found.examples and not doctest.DocTestRunner().run(found).failed
