"""The kinds of things that are contrasted: images, graphs and videos, a module for each.

All that differs between kinds is in these modules; the rest of `experiments` works with any of them. A
module holds these functions. `data` is a set of such things: an ImageSet, GraphSet or VideoSet.

- load(recipe, root, given=None): the data to train on, `given` or else the recipe's, which the first process
  loads before the others.
- channels(data): the numbers of a pixel or of a node, which the encoder's first layer takes.
- models(recipe, channels): encoder and head with new weights, drawn from torch's global generator.
- source(recipe, data): the Source that a Trainer trains on.
- watch(recipe, root): what `pretrain` calls with the run after every epoch by this recipe, or None.
- labelled(recipe, root, protocol, split): the labelled data to fit a classifier on, and those to measure on,
  "test" or "validation".
- evaluate(run, train, test, linear, protocol): a table of accuracies in per cent, with the rows untrained and
  trained.
- accuracies(run, train, test): those of the encoder as it is now, by name, for one process alone.
- embed(run, place, size, batch, skip_damaged): features (N, D) of all that lies in a place, and the names
  (N,) of it. Warnings say what was left out.
"""

from importlib import import_module
from typing import Any

from setclr.recipes.recipe import Recipe


def kind_of(recipe: Recipe) -> Any:
    """The module of a recipe's kind. It is imported on first use: graphs need PyTorch Geometric."""
    return import_module(f"setclr.experiments.kinds.{recipe.kind}")
