"""Build encoder, head, loss and Trainer from a recipe.

The Trainer and the modules below it do not import recipes.
"""

import copy
from typing import Any

import torch
from torch import nn

from setclr import models, views
from setclr.data import ImageSet
from setclr.losses import Objective
from setclr.recipes import Recipe, loss_schedule
from setclr.seeding import drawing, seeded
from setclr.training.momentum import Keys
from setclr.training.optimisers import LRSchedule, make_optimiser
from setclr.training.trainer import Trainer


def models_of(recipe: Recipe, channels: int) -> tuple[nn.Module, nn.Module]:
    """Encoder and head with new weights, seeded by the recipe; the global generator does not change."""
    with drawing(recipe.seed):
        encoder, features = models.encoder(recipe.encoder, channels, recipe.initial, recipe.normalised)
        if recipe.parsed_loss.local:
            return encoder, nn.Identity()
        return encoder, head_of(recipe, features, recipe.layers)


def head_of(recipe: Recipe, width: int, layers: int) -> nn.Module:
    E, norm = recipe.embedding, recipe.last_norm
    return models.head(width, recipe.hidden, E, norm, layers, recipe.activation)


def trainer_of(
    recipe: Recipe, encoder: nn.Module, head: nn.Module, images: ImageSet, device: torch.device, **more: Any
) -> Trainer:
    """The trainer that the recipe describes, for this encoder and head.

    `more` are arguments that a recipe does not decide: `workers`, `compiled`, `deterministic`, or
    another `precision`.
    """
    loss, model = loss_of(recipe).to(device), nn.ModuleList([encoder, head]).to(device)
    if predictor := predictor_of(recipe):
        model.append(predictor.to(next(head.parameters())))
    momentum, decay = recipe.momentum, recipe.weight_decay
    optimiser = make_optimiser(recipe.optimiser, model, loss, peak_rate(recipe), momentum, decay)
    return Trainer(
        images, encoder, head, views_of(recipe, images.images.shape[-1]), loss, optimiser,
        more.pop("precision", recipe.precision),
        epochs=recipe.epochs, batch=recipe.batch, seed=recipe.seed, images_per_class=recipe.images_per_class,
        drop_last=recipe.drop_last, labels=recipe.labels,
        lr_schedule=LRSchedule(recipe.schedule, recipe.warmup),
        chunk=recipe.chunk, predictor=predictor, keys=keys_of(recipe),
        at_epoch=lambda epoch: loss_schedule.apply(loss, recipe.loss_schedule, epoch), device=device, **more,
    )  # fmt: skip


def peak_rate(recipe: Recipe) -> float:
    """The learning rate after the warm-up: `lr`, times batch / lr_batch if the recipe has `lr_batch`."""
    return recipe.lr * recipe.batch / recipe.lr_batch if recipe.lr_batch else recipe.lr


def keys_of(recipe: Recipe) -> Keys | None:
    if recipe.key_momentum is None:
        return None
    return Keys(recipe.key_momentum, recipe.key_schedule, recipe.queue)


def views_of(recipe: Recipe, side: int) -> tuple[views.View, ...]:
    """The recipe's views of images of that side: the full ones, then the small crops."""
    full = recipe.full_views or len(views.PRESETS[recipe.views])
    small = recipe.local_size or round(3 / 7 * (recipe.view_size or side))
    return views.multi_crop(recipe.views, full, recipe.local_views, recipe.view_size, small)


def predictor_of(recipe: Recipe) -> nn.Module | None:
    """The layers between head and loss (MoCo v3), with weights from a seed of their own, or None."""
    if not recipe.predictor:
        return None
    with drawing(seeded(recipe.seed, 0, 0, 0).initial_seed()):
        return head_of(recipe, recipe.embedding, recipe.predictor)


def loss_of(recipe: Recipe) -> Objective:
    """A copy of the recipe's loss, to be trained."""
    return copy.deepcopy(recipe.parsed_loss)
