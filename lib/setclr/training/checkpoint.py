"""A run on disk: `checkpoint.pt`, all that is needed to go on, and `history.csv`, a line for each epoch."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from setclr import models
from setclr.recipes import Recipe

CHECKPOINT, HISTORY = "checkpoint.pt", "history.csv"


@dataclass
class Run:
    """A pretraining run: its `recipe`, its `history` so far, and what it learned (`encoder`, `head`)."""

    recipe: Recipe
    encoder: nn.Module
    head: nn.Module
    channels: int
    rows: list[dict] = field(default_factory=list)

    @property
    def history(self) -> pd.DataFrame:
        """A row for each epoch: epoch (from 1), loss (its mean), lr, seconds, images_per_s, the loss's learnt
        parameters if it has any, and what `on_epoch` returned."""
        return pd.DataFrame(self.rows)

    @property
    def finished(self) -> bool:
        return len(self.rows) >= self.recipe.epochs

    def save(self, out: str | Path) -> None:
        """Write recipe, history and weights to the folder `out`, but not what only further training needs."""
        write(Path(out), self.state(), self.history)

    def state(self) -> dict:
        learned = {"encoder": self.encoder.state_dict(), "head": self.head.state_dict()}
        return {"recipe": self.recipe.to_dict(), "channels": self.channels, "history": self.rows, **learned}


def new_run(recipe: Recipe, channels: int) -> Run:
    """A run with new weights, a function of the recipe's seed; the global random state does not change."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        encoder, features = models.encoder(recipe.encoder, channels)
        head = _head(recipe, features)
        if recipe.parsed_loss.local:
            width = models.LocalFeatures(encoder.eval()).parts(torch.zeros(1, channels, 32, 32))[1].shape[2]
            head = models.LocalHead(head, _head(recipe, width), features, width)
            encoder.train()
    return Run(recipe, encoder, head, channels)


def _head(recipe: Recipe, width: int) -> nn.Module:
    E, norm = recipe.embedding, recipe.last_norm
    return models.head(width, recipe.hidden, E, norm, recipe.layers, recipe.activation)


def load_run(out: str | Path) -> Run:
    """The run that `pretrain(..., out=out)` or `Run.save(out)` wrote, on the CPU, in eval mode. Raises
    FileNotFoundError if there is no checkpoint; ValueError if the file is truncated or of another kind, or
    its weights are those of another model."""
    run = run_of(read(Path(out)), str(out))
    nn.ModuleList([run.encoder, run.head]).eval()
    return run


def run_of(state: dict, where: str = "the checkpoint") -> Run:
    """The run that a checkpoint's contents describe. Raises ValueError if weights and recipe do not fit."""
    run = new_run(Recipe.from_dict(state["recipe"]), state["channels"])
    for name, part in (("encoder", run.encoder), ("head", run.head)):
        refuse_other_weights(part, state[name], f"{where}: its {name} is not the recipe's")
        part.load_state_dict(state[name])
    run.rows = state["history"]
    return run


def refuse_other_weights(part: nn.Module, weights: dict, complaint: str) -> None:
    """Raises ValueError with the first difference if the weights belong to another model."""
    wanted, found = ({key: tuple(x.shape) for key, x in d.items()} for d in (part.state_dict(), weights))
    for key in [*wanted, *found]:
        if wanted.get(key) != found.get(key):
            said = f"{key!r} is {found.get(key, 'missing')}, and must be {wanted.get(key, 'absent')}"
            remedy = "take the checkpoint as it was written, or train again in another folder"
            raise ValueError(f"{complaint} ({said}): they come from different runs; {remedy}")


def read(out: Path) -> dict:
    """The contents of a run's checkpoint. Raises as `load_run` does."""
    path = out / CHECKPOINT
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no checkpoint there; pretrain(recipe, out={str(out)!r}) makes one")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{path}: not a readable checkpoint ({kind}); delete it to train again") from error
    if not isinstance(state, dict) or not {"recipe", "channels", "encoder", "head", "history"} <= set(state):
        raise ValueError(f"{path}: a torch file, but not a setclr checkpoint; choose another folder")
    return state


def tidy(out: Path) -> None:
    """Make the folder and remove what a killed run left unfinished. Raises OSError where that fails."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for unfinished in [*out.glob(f".{CHECKPOINT}.*"), *out.glob(f".{HISTORY}.*")]:
            unfinished.unlink()
    except OSError as error:
        raise OSError(f"out must be a folder that can be written, got {out}: {error.strerror}") from error


def write(out: Path, state: dict, history: pd.DataFrame) -> None:
    """Replace the run's files, each in one step: a reader, or a killed run, finds the old or the new one, and
    where they cannot be written, the old ones stay and an OSError is raised."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        _replace(out / HISTORY, lambda path: history.to_csv(path, index=False))
        _replace(out / CHECKPOINT, lambda path: torch.save(state, path))  # last: with it all is written
    except (OSError, RuntimeError) as error:  # torch.save raises RuntimeError when the disk is full
        remedy = "make room there, or allow writing, and repeat the call to go on"
        said = f"{out} could not be written to ({error}); what was written before is kept: {remedy}"
        raise OSError(said) from error


def refuse_other_recipe(out: Path, stored: Recipe, wanted: Recipe, argument: str = "out") -> None:
    """Raises ValueError with the differences if the run in `out` has another recipe."""
    there, now = stored.to_dict(), wanted.to_dict()
    different = [f"{key} {there[key]!r} there, {now[key]!r} now" for key in now if there[key] != now[key]]
    if different:
        remedy = "resume=False to replace it" if argument == "out" else "remove it"
        said = f"{out}: holds a run of another recipe ({'; '.join(different)})"
        raise ValueError(f"{said}; choose another {argument}=, or {remedy}")


def _replace(path: Path, save: Callable[[str], None]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        save(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
