"""Images: random views of each, an encoder of `setclr.models`, kNN and a linear probe."""

from pathlib import Path

import numpy as np
from torch import nn

from setclr import data as data_of
from setclr import models as models_of
from setclr import views
from setclr.checks import integer
from setclr.data import ImageSet
from setclr.data_sets import FOLDER
from setclr.evaluation.protocols import OWN, protocol_named
from setclr.experiments.embedding import embed_folder
from setclr.experiments.pairs import best_epoch as watch
from setclr.experiments.run import Run
from setclr.experiments.tables import device_of, evaluate, labelled, measure
from setclr.recipes.image import ImageRecipe
from setclr.training.distributed import from_first
from setclr.training.source import ImageViews

__all__ = ["accuracies", "channels", "embed", "evaluate", "labelled", "load", "models", "source",
           "watch"]  # fmt: skip


def load(recipe: ImageRecipe, root: str | Path, given: ImageSet | None = None) -> ImageSet:
    known = data_of.known(recipe.data)
    in_full = recipe.data.startswith(FOLDER) and recipe.view_size is not None and recipe.size is None
    loaded = [] if given is None else [given]

    def load_here() -> None:
        split = "train" if recipe.labels else known.pretraining
        stream = True if in_full else None
        loaded.append(data_of.load(recipe.data, root, split, recipe.size, stream=stream))

    if given is None:
        from_first(load_here)
    if not loaded:
        load_here()
    images = loaded[0]
    if known.mirror and given is None:
        to_train, _ = data_of.split_pairs(data_of.two_views(images))
        images = data_of.paired(to_train, known.mirror)
    if recipe.images and len(images) > 1:  # `Batches` raises the error for a single image
        hint = f"{recipe.data} has {len(images)}"
        integer("images", recipe.images, least=2, most=len(images), hint=hint)
        images = images.sample(recipe.images)
    return images


def channels(data: ImageSet) -> int:
    return data.images.shape[1]


def models(recipe: ImageRecipe, channels: int) -> tuple[nn.Module, nn.Module]:
    encoder, width = models_of.encoder(recipe.encoder, channels, recipe.initial, recipe.normalised)
    if recipe.parsed_loss.headless:
        return encoder, nn.Identity()
    norm, E = recipe.last_norm, recipe.embedding
    return encoder, models_of.head(width, recipe.hidden, E, norm, recipe.layers, recipe.activation)


def source(recipe: ImageRecipe, data: ImageSet) -> ImageViews:
    return ImageViews(data, views_of(recipe, data.images.shape[-1]))


def views_of(recipe: ImageRecipe, side: int) -> tuple[views.View, ...]:
    """The recipe's views of images of that side: the full ones, then the small crops."""
    full = recipe.full_views or len(views.PRESETS[recipe.views])
    small = recipe.local_size or round(3 / 7 * (recipe.view_size or side))
    return views.multi_crop(recipe.views, full, recipe.local_views, recipe.view_size, small)


def accuracies(run: Run, train: ImageSet, test: ImageSet) -> dict[str, float]:
    return measure(run.encoder, train, test, device_of(run), protocol_named(OWN), True).numbers


def embed(
    run: Run, place: Path, size: int | None, batch: int, skip_damaged: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    return embed_folder(run, place, size, batch, skip_damaged)
