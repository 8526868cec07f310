"""The momentum encoder, its queue and the predictor, against the papers' rules written out."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from small_runs import FEW, SMALL
from torch import nn
from torch.nn import functional as F

from setclr import losses
from setclr.experiments.run import new_run
from setclr.recipes import ImageRecipe
from setclr.training import Trainer

MOCO = replace(SMALL, optimiser="sgd", lr=0.1, key_momentum=0.75, queue=40, precision="float32")
V3 = replace(MOCO, loss="GroCo()", queue=0, key_schedule="cosine", predictor=2, last_norm=True)


def trainer_of(recipe: ImageRecipe) -> Trainer:
    return new_run(recipe, channels=3).trainer(FEW, torch.device("cpu"))


def in_float64(trainer: Trainer) -> Trainer:
    """The same trainer in float64, where operations in another order come to the same.

    In float32 they do not: three steps through batch norms enlarge rounding to more than 1e-5 on some
    processors.
    """
    for module in (trainer.model, trainer.momentum_encoder.model):
        module.double()
    if trainer.momentum_encoder.queue is not None:
        trainer.momentum_encoder.queue = trainer.momentum_encoder.queue.double()
    trainer.view_batches = ([views.double() for views in sizes] for sizes in trainer.view_batches)
    return trainer


def embed(model: nn.ModuleList, x: torch.Tensor) -> torch.Tensor:
    """(V, N, E) of views (V, N, C, S, S), the networks as they are in training."""
    z = x.flatten(0, 1)
    for part in model.train():
        z = part(z)
    return z.unflatten(0, x.shape[:2])


@pytest.mark.parametrize("recipe", [MOCO, V3], ids=["queue", "predictor"])
def test_three_steps_are_those_of_the_rules_written_out(recipe):
    trainer = in_float64(trainer_of(recipe))
    encoder, head, predictor = (copy.deepcopy(part) for part in trainer.model)
    key_encoder, key_head = copy.deepcopy(encoder), copy.deepcopy(head)
    memory = trainer.momentum_encoder.queue.keys.clone() if recipe.queue else None
    learnt = [*encoder.parameters(), *head.parameters(), *predictor.parameters()]
    optimiser = torch.optim.SGD(learnt, 0.1, momentum=0.9)
    loss, steps = losses.parse(recipe.loss), trainer.epoch()
    views = in_float64(trainer_of(recipe)).view_batches
    for step in range(3):
        next(steps)
        (x,) = next(views)
        with torch.no_grad():
            keys = embed(nn.ModuleList([key_encoder, key_head]), x)
        z = embed(nn.ModuleList([encoder, head, predictor]), x)
        value = loss(z, keys=keys) if memory is None else loss(z, keys=keys, memory=memory)
        torch.testing.assert_close(trainer.values[-1], value.detach())
        optimiser.param_groups[0]["lr"] = 0.1 * (1 + math.cos(math.pi * step / 8)) / 2
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        m = 0.75 if recipe is MOCO else 1 - 0.25 * (1 + math.cos(math.pi * step / 8)) / 2
        for key, query in ((key_encoder, encoder), (key_head, head)):
            for k, q in zip(key.parameters(), query.parameters()):
                k.data = m * k.data + (1 - m) * q.data
        if memory is not None:
            memory = torch.cat([memory[16:], F.normalize(keys[1], dim=1)])
            torch.testing.assert_close(trainer.momentum_encoder.queue.keys, memory)
    assert not any(p.requires_grad for p in trainer.momentum_encoder.model.parameters())
    for mine, theirs in zip((encoder, head, predictor), trainer.model):
        torch.testing.assert_close(mine.state_dict(), theirs.state_dict())
    for mine, theirs in zip((key_encoder, key_head), trainer.momentum_encoder.model):
        torch.testing.assert_close(mine.state_dict(), theirs.state_dict())


def test_the_queue_begins_as_a_function_of_the_seed():
    queues = [trainer_of(replace(MOCO, seed=seed)).momentum_encoder.queue.keys for seed in (0, 0, 1)]
    assert torch.equal(queues[0], queues[1]) and not torch.equal(queues[0], queues[2])
    torch.testing.assert_close(queues[0].norm(dim=1), torch.ones(40))
