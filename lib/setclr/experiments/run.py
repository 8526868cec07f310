"""A pretraining run: its recipe, history and weights, saved to a folder or loaded from it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from setclr.experiments import building
from setclr.recipes import Recipe
from setclr.training.checkpoint import REMEDY, line_of, load, read, write, write_history
from setclr.training.trainer import Trainer

Models = tuple[nn.Module, nn.Module]  # encoder, head


@dataclass
class Run:
    """A pretraining run: its `recipe`, its `history` so far, and the trained `encoder` and `head`.

    `precision` and `compiled` are what the training used; None before training. `best` are weights to
    use instead of the last epoch's; None: use the last epoch's. `own`: encoder and head are the user's, not
    those that the recipe names.
    """

    recipe: Any  # an ImageRecipe, GraphRecipe or VideoRecipe; None if a Trainer without a recipe wrote it
    encoder: nn.Module
    head: nn.Module
    channels: int
    rows: list[dict] = field(default_factory=list)
    precision: str | None = None
    compiled: bool | None = None
    best: dict[str, dict] | None = None
    own: bool = False

    @property
    def history(self) -> pd.DataFrame:
        """A row for each epoch, with the training's numbers.

        Columns: epoch (from 1), loss (its mean), lr, seconds, images_per_s, the loss's learnt parameters
        if it has any, and what `on_epoch` returned.
        """
        return pd.DataFrame(self.rows)

    @property
    def finished(self) -> bool:
        return len(self.rows) >= self.recipe.epochs

    def save(self, out: str | Path) -> None:
        """Write recipe, history and weights to the folder `out`, without the state for further training."""
        write_history(Path(out), self.rows)
        write(Path(out), self.state())

    def keep(self) -> None:
        """Store the current weights as the `best` so far."""
        self.best = {name: deepcopy(part.state_dict()) for name, part in self.parts.items()}

    def take_best(self) -> None:
        for name, weights in (self.best or {}).items():
            self.parts[name].load_state_dict(weights)

    @property
    def parts(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder, "head": self.head}

    def state(self) -> dict:
        learned = {name: part.state_dict() for name, part in self.parts.items()}
        used = {"precision": self.precision, "compiled": self.compiled}
        return {**self.about(), "history": self.rows, **used, **learned}

    def about(self) -> dict:
        """The recipe and the channels, which define encoder and head, and the `best` weights."""
        return {"recipe": self.recipe.to_dict(), "channels": self.channels, "best": self.best}

    def trainer(self, data: Any, device: torch.device, **more: Any) -> Trainer:
        """The trainer that goes on with this run; `more` as in `building.trainer_of`."""
        return building.trainer_of(self.recipe, self.encoder, self.head, data, device, **more)


def new_run(recipe: Recipe, channels: int, models: Models | None = None) -> Run:
    """A run with new weights, a function of the recipe's seed; the global random state does not change.

    `models`: your own encoder and head instead, as they are.
    """
    if models:
        return Run(recipe, *models, channels, own=True)
    return Run(recipe, *building.models_of(recipe, channels), channels)


def untrained(run: Run) -> Run | None:
    """A run of the same recipe with its first weights, on the device of this one; None for `own` modules."""
    if run.own:
        return None
    first, device = new_run(run.recipe, run.channels), next(run.encoder.parameters()).device
    nn.ModuleList([first.encoder, first.head]).to(device)
    return first


def beside_untrained(
    run: Run, accuracies: Callable[[Run, Any, Any], dict[str, float]], train: Any, test: Any
) -> pd.DataFrame:
    """A table of accuracies with the rows untrained, unless encoder and head are your own, and trained."""
    runs = {"untrained": untrained(run), "trained": run}
    rows = {name: accuracies(one, train, test) for name, one in runs.items() if one}
    return pd.DataFrame.from_dict(rows, orient="index")


def load_run(out: str | Path, models: Models | None = None) -> Run:
    """The run that `pretrain(..., out=out)`, `Run.save(out)` or a Trainer wrote, on the CPU, in eval mode.

    `out` is the folder of the run, or a checkpoint in it such as OUT/epoch-10.pt. `models`: encoder and head,
    if they are your own. They get the weights, and are needed if a Trainer without a recipe wrote the run.

    Raises FileNotFoundError if there is no checkpoint; ValueError if the file is truncated or of another
    kind, or its weights are those of another model.
    """
    run = run_of(read(Path(out)), str(out), models)
    run.take_best()
    nn.ModuleList([run.encoder, run.head]).eval()
    return run


def run_of(state: dict, where: str = "the checkpoint", models: Models | None = None) -> Run:
    """The run that a checkpoint's contents describe. Raises ValueError if weights and recipe do not fit."""
    if models and "recipe" not in state:
        run = Run(None, *models, channels=3, own=True)
    else:
        run = new_run(recipe_of(state, where), state["channels"], models)
    run.precision, run.compiled = state.get("precision", "float32"), state.get("compiled", False)
    run.rows, run.best = state["history"], state.get("best")
    for weights in [state] if run.best is None else [run.best, state]:  # those may be taken later
        load(run.parts, weights, where)
    return run


def recipe_of(state: dict, where: str) -> Recipe:
    """The recipe in a checkpoint's contents. Raises ValueError if there is none, or a field is invalid."""
    if "recipe" not in state:
        remedy = "load_run(out, models=(encoder, head)) gives them the weights"
        raise ValueError(f"{where}: holds no recipe; the Trainer that wrote it goes on, and {remedy}")
    try:
        return Recipe.from_dict(state["recipe"])
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: recipe: {line_of(error)}; {REMEDY}") from error


def form_of(data: str) -> str:
    """How data of your own lie, such as "folder" or "pt"; "" for a set of a known name."""
    return "pt" if data.endswith(".pt") else data.partition(":")[0] * (":" in data)


def refuse_other_recipe(
    out: Path, stored: Recipe, wanted: Recipe, argument: str = "out", used: str | None = None,
    moved: bool = False,
) -> None:  # fmt: skip
    """Raises ValueError with the differences if the run in `out` has another recipe.

    `moved`: data of your own may lie elsewhere now. A wanted precision of "auto" fits any. Another one
    must be the `used` precision; None: the stored recipe's.
    """
    there, now = stored.to_dict(), wanted.to_dict()
    if moved and (form := form_of(stored.data)) == form_of(wanted.data) != "":
        there["data"] = now["data"] = form
    there["precision"] = now["precision"] if wanted.precision == "auto" else used or stored.precision
    different = [f"{key} {there[key]!r} there, {now[key]!r} now" for key in now if there[key] != now[key]]
    if different:
        remedy = "resume=False to replace it" if argument == "out" else "remove it"
        if argument == "out" and all(text.startswith("epochs ") for text in different):
            remedy = f"init={str(out)!r} in a new folder starts from its weights, by a schedule of its own"
        said = f"{out}: holds a run of another recipe ({'; '.join(different)})"
        raise ValueError(f"{said}; choose another {argument}=, or {remedy}")
