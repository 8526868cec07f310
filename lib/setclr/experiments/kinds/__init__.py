"""The kinds of things that are contrasted: images, graphs and videos, a module for each.

Everything that differs between kinds is in these modules; all else in `experiments` works with any of them.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import pandas as pd
from torch import nn

from setclr.evaluation.protocols import OWN
from setclr.recipes.recipe import Recipe
from setclr.training.source import Source


class Kind(Protocol):
    """What a module of a kind holds. `data` is a set of such things: an ImageSet, GraphSet or VideoSet."""

    def load(self, recipe: Recipe, root: str | Path, given: Any = None) -> Any:
        """The data to train on: `given`, or else the recipe's, which the first process loads first."""

    def channels(self, data: Any) -> int:
        """The numbers of a pixel or of a node, which the encoder's first layer takes."""

    def models(self, recipe: Recipe, channels: int) -> tuple[nn.Module, nn.Module]:
        """Encoder and head with new weights, drawn from torch's global generator."""

    def source(self, recipe: Recipe, data: Any) -> Source:
        """What a Trainer trains on."""

    def watch(self, recipe: Recipe, root: str | Path) -> Callable[[Any], dict | None] | None:
        """What `pretrain` calls with the run after every epoch by this recipe, or None."""

    def labelled(
        self, recipe: Recipe, root: str | Path = "data", protocol: str = OWN, split: str = "test"
    ) -> tuple[Any, Any]:
        """The labelled data to fit a classifier on, and those to measure on, "test" or "validation"."""

    def counted(self, train: Any, test: Any, split: str = "test") -> dict[str, int]:
        """How many there are of each, for a record."""

    def evaluate(
        self, run: Any, train: Any, test: Any, linear: bool = True, protocol: str = OWN
    ) -> pd.DataFrame:
        """Accuracies in per cent, with the rows untrained and trained."""

    def accuracies(self, run: Any, train: Any, test: Any) -> dict[str, float]:
        """Accuracies in per cent of the encoder as it is now; for one process alone."""

    def embed(self, run: Any, place: Path, size: int | None, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """Features (N, D) of all that lies there, and their names (N,)."""


def kind_of(recipe: Recipe) -> Kind:
    """The module of a recipe's kind. It is imported on first use: graphs need PyTorch Geometric."""
    return cast(Kind, import_module(f"setclr.experiments.kinds.{recipe.kind}"))
