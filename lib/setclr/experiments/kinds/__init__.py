"""The kinds of things that are contrasted: images, graphs and videos, a module for each.

All that differs between kinds is in these modules; the rest of `experiments` works with any of them. A
module holds these functions. `data` is a set of such things: an ImageSet, GraphSet or VideoSet.

- load(recipe, root): the recipe's data to train on.
- channels(data): the numbers of a pixel or of a node, which the encoder's first layer takes.
- models(recipe, channels): encoder and head with new weights, drawn from torch's global generator.
- source(recipe, data): the Source that a Trainer trains on.
- watch(recipe, root): what `pretrain` calls with the run after every epoch by this recipe, or None.
- labelled(recipe, root, protocol, split): the labelled data to fit a classifier on, and those to measure on,
  of SPLITS.
- evaluate(run, train, test, linear, protocol): a table of accuracies in per cent, with the rows untrained and
  trained.
- accuracies(run, train, test): those of the encoder as it is now, by name, for one process alone.
- embed(run, place, size, batch, skip_damaged): features (N, D) of all that lies in a place, and the names
  (N,) of it. Warnings say what was left out.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from setclr.checks import choice
from setclr.data.sets import held_out_mask
from setclr.evaluation.protocols import OWN
from setclr.recipes.recipe import Recipe
from setclr.training.distributed import from_first

SPLITS = ("test", "validation", "held out")  # what an encoder is measured on


def kind_of(recipe: Recipe) -> Any:
    """The module of a recipe's kind. It is imported on first use: graphs need PyTorch Geometric."""
    return import_module(f"setclr.experiments.kinds.{recipe.kind}")


def first_alone(load: Callable[[], Any]) -> Any:
    """What `load` gives. Of many processes the first, which may download it, loads before the others."""
    loaded: list[Any] = []
    from_first(lambda: loaded.append(load()))
    return loaded[0] if loaded else load()


def split_of(split: str, train: Any, labels: Tensor, test: Callable[[], Any]) -> tuple[Any, Any]:
    """All training data and the `test` data. For other splits two parts of the training data: four fifths of
    each class, and a fifth, drawn by a fixed seed. All of them twice, to be shown, where none has a label."""
    if choice("split", split, SPLITS) == "test":
        return train, test()
    if split == "held out" and labels.min() < 0:
        return train, train
    held = held_out_mask(labels)
    return train.subset(~held), train.subset(held)


def measured_on(
    recipe: Recipe, root: str | Path, protocol: str = OWN, bare: bool = False
) -> tuple[Any, Any, str, str]:
    """The labelled data of `labelled`, their split, and a note.

    Without test data a fifth of each class of the training data stands for them, and the note says so.
    Raises ValueError where nothing has a label, unless data may be `bare` of labels.
    """
    labelled, split, note = partial(kind_of(recipe).labelled, recipe, root, protocol), "test", ""
    try:
        train, test = first_alone(lambda: labelled("test"))
    except FileNotFoundError as error:
        split = "held out"
        note = f"{error}\nmeasured on a fifth of each class, which the encoder was trained on\n"
        train, test = first_alone(lambda: labelled(split))
    if not (bare or train.classes or test.classes):
        raise ValueError(f"{recipe.data} must have labels to be measured, got none; `evaluate` shows its run")
    return train, test, split, note
