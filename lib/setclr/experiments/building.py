"""Build encoder, head, loss and Trainer from a recipe of any kind.

The Trainer and the modules below it do not import recipes.
"""

import copy
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from setclr import models
from setclr.experiments.kinds import kind_of
from setclr.losses import Objective
from setclr.recipes import Recipe, loss_schedule
from setclr.seeding import drawing, seeded
from setclr.training import checkpoint
from setclr.training.batches import Batching
from setclr.training.devices import Machine
from setclr.training.momentum import Keys
from setclr.training.optimisers import LRSchedule, make_optimiser
from setclr.training.trainer import Trainer


def models_of(recipe: Recipe, channels: int) -> tuple[nn.Module, nn.Module]:
    """Encoder and head with new weights, seeded by the recipe; the global generator does not change."""
    with drawing(recipe.seed):
        return kind_of(recipe).models(recipe, channels)


def trainer_of(
    recipe: Recipe, encoder: nn.Module, head: nn.Module, data: Any, device: torch.device,
    precision: str | None = None, **more: Any
) -> Trainer:  # fmt: skip
    """The trainer that the recipe describes, for this encoder and head.

    `more` are fields of a `Machine` that a recipe does not decide: `workers`, `compiled`, `deterministic`.
    `precision` replaces the recipe's.
    """
    loss, model = loss_of(recipe).to(device), nn.ModuleList([encoder, head]).to(device)
    if predictor := predictor_of(recipe):
        model.append(predictor.to(next(head.parameters())))
    momentum, decay = recipe.momentum, recipe.weight_decay
    optimiser = make_optimiser(recipe.optimiser, model, loss, peak_rate(recipe), momentum, decay)
    source = kind_of(recipe).source(recipe, data)
    return Trainer(
        source, encoder, head, loss, optimiser, epochs=recipe.epochs, batch=batching_of(recipe, len(source)),
        seed=recipe.seed, labels=recipe.labels, lr_schedule=LRSchedule(recipe.schedule, recipe.warmup),
        keys=keys_of(recipe, predictor),
        device=Machine(device, precision or recipe.precision, recipe.chunk, **more),
    )  # fmt: skip


def before_epoch(recipe: Recipe, trainer: Trainer, epoch: int) -> None:
    """Set the parameters of the trainer's loss that the recipe's loss_schedule changes in that epoch."""
    loss_schedule.apply(trainer.loss, recipe.loss_schedule, epoch)


def batching_of(recipe: Recipe, there: int) -> Batching:
    """How batches are made. If the last one need not be complete, a set smaller than a batch is one batch."""
    size = recipe.batch if recipe.drop_last else min(recipe.batch, there)
    return Batching(size, recipe.images_per_class, recipe.drop_last)


def peak_rate(recipe: Recipe) -> float:
    """The learning rate after the warm-up: `lr`, times batch / lr_batch if the recipe has `lr_batch`."""
    return recipe.lr * recipe.batch / recipe.lr_batch if recipe.lr_batch else recipe.lr


def keys_of(recipe: Recipe, predictor: nn.Module | None) -> Keys | None:
    if recipe.key_momentum is None:
        return None
    return Keys(recipe.key_momentum, recipe.key_schedule, recipe.queue, predictor)


def predictor_of(recipe: Recipe) -> nn.Module | None:
    """The layers between head and loss (MoCo v3), with weights from a seed of their own, or None."""
    layers = getattr(recipe, "predictor", 0)
    if not layers:
        return None
    one: Any = recipe
    with drawing(seeded(recipe.seed, 0, 0, 0).initial_seed()):
        E, norm = one.embedding, one.last_norm
        return models.head(E, one.hidden, E, norm, layers, one.activation)


def loss_of(recipe: Recipe) -> Objective:
    """A copy of the recipe's loss, to be trained."""
    return copy.deepcopy(recipe.parsed_loss)


def initialise(encoder: nn.Module, where: str) -> None:
    """Give the encoder the weights of a run, from its folder, or of a file that `export` wrote.

    Raises FileNotFoundError if there is nothing there; ValueError if it is something else, or does not fit.
    """
    path, weights = checkpoint.loaded(Path(os.path.expanduser(where)))
    of_a_run = set(weights) >= checkpoint.LEARNT
    state = (weights.get("best") or weights) if of_a_run else {"encoder": weights}
    remedy = "give the folder of a run of this encoder, or a file of `export`"
    checkpoint.load({"encoder": encoder}, state, f"init: {path}", remedy)
