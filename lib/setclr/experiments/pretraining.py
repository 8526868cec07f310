"""Pretrain an encoder from a recipe, on one process or many; an interrupted run can be resumed."""

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import nn

from setclr.checks import integer
from setclr.experiments import building
from setclr.experiments.kinds import kind_of
from setclr.experiments.run import Models, Run, new_run, recipe_of, refuse_other_recipe, run_of
from setclr.recipes import Recipe
from setclr.training.checkpoint import locked, stored
from setclr.training.devices import choose_device
from setclr.training.distributed import from_first
from setclr.training.metrics import Metric
from setclr.training.trainer import Trainer

OnEpoch = Callable[[Run], dict | None]


def pretrain(
    recipe: Recipe, out: str | Path | None = None, resume: bool = True, root: str | Path = "data",
    device: str | None = None, on_epoch: OnEpoch | None = None,
    workers: int | None = None, compiled: bool | str = "auto", deterministic: bool = False,
    metrics: Sequence[Metric] = (), data: Any = None, keep_every: int | None = None,
    models: Models | None = None,
) -> Run:  # fmt: skip
    """Train an encoder and its head as the recipe says; if `out` holds the finished run, load it.

    Under torchrun, inside `distributed.joined()`, every process trains on its part of each batch; the
    first one reads and writes `out`. A run that was killed and resumed ends with the same bits as one
    that was not, on the same device and thread count; on a GPU only if it is `deterministic`. A resumed
    run keeps its precision and whether it was compiled.

    >>> import torch
    >>> from setclr import data, pretrain
    >>> from setclr.recipes import ImageRecipe
    >>> images = torch.randint(256, (8, 3, 16, 16)).byte()
    >>> images = data.ImageSet(images, torch.arange(8) % 2, ("cat", "dog"))  # without data=: the recipe's
    >>> run = pretrain(ImageRecipe("InfoNCE(0.5)", encoder="conv4", epochs=1, batch=8), data=images)
    >>> len(run.history)  # a row of numbers for each epoch
    1

    Args:
        out, resume, metrics, keep_every: as in `Trainer.fit`.
        root: where data sets are found and downloaded to.
        device, workers, compiled, deterministic: as in `training.Machine`.
        on_epoch: as in `Trainer.fit`, called with the run. It may `keep` the run's weights.
        data: train on this ImageSet, GraphSet or VideoSet instead of the recipe's `data`, which then only
            names it.
        models: your own encoder and head instead of those that the recipe names; they are trained in place.
            `load_run` takes them, too.

    Returns the run, encoder and head in eval mode, with the weights that `on_epoch` kept, or the last
    ones. For data of pairs, the validation pairs are not trained on (`data.split_pairs`);
    `experiments.watch` keeps the weights of the epoch that is best on them.

    Raises:
        ValueError: there is no such device, the batch is larger than the data set or cannot be divided
            among the processes, or `out` holds a run of another recipe (the differences are listed), of
            other data or without its optimiser.
        OSError: `out` cannot be written to, its disk is too full, or another process trains there
            (BlockingIOError). It is raised before training.
        RuntimeError: torch's own, for example where a batch does not fit on the device.
        FloatingPointError: the loss or the weights became NaN or inf at the named step.
        Interrupted: SIGINT (Ctrl-C) or SIGTERM came; training stopped after a whole step.
    Whatever is raised during training, the last checkpoint stays.
    """
    where, out = choose_device(device), None if out is None else Path(out)
    with ExitStack() as stack:
        state = from_first(lambda: begun(recipe, out, resume, stack)) if out else None
        run = run_of(state, str(out), models) if state else None
        if run is None or not run.finished:
            kind = kind_of(recipe)
            data = kind.load(recipe, root, data)
            if run is None:
                run = new_run(recipe, kind.channels(data), models)
                if recipe.init:
                    building.initialise(run.encoder, recipe.init)
            run.recipe = recipe  # its data may have been moved
            used = {"precision": run.precision} if run.precision else {}
            compiled = compiled if run.compiled is None else run.compiled
            more = {"workers": workers, "compiled": compiled, "deterministic": deterministic, **used}
            trainer = run.trainer(data, where, **more)
            if state:
                trainer.load_state_dict(state, str(out))
            del state
            watch = None if on_epoch is None else functools.partial(_with_history, on_epoch, run)
            scheduled = functools.partial(building.before_epoch, recipe, trainer)
            fitted = trainer.fit(out, False, watch, metrics, run.about, scheduled, keep_every)
            run.rows = list(fitted)
            run.precision, run.compiled = trainer.precision.name, trainer.compiled
    run.take_best()
    parts = nn.ModuleList([run.encoder, run.head]).to(where).eval()
    parts.to(memory_format=torch.contiguous_format)  # as in a loaded run: the same features to the last bit
    return run


def _with_history(on_epoch: OnEpoch, run: Run, trainer: Trainer) -> dict | None:
    """Call `on_epoch` with the run, after giving the run the trainer's history so far."""
    run.rows = [dict(row) for row in trainer.rows]
    return on_epoch(run)


def watch(recipe: Recipe, root: str | Path = "data", every: int | None = None) -> OnEpoch | None:
    """A function for `pretrain`'s on_epoch, or None where there is nothing to watch.

    It does what the recipe's kind asks for: on pairs it keeps the best epoch, on graphs it measures. With
    `every`, it also measures after every so many epochs on the test data, by the project's own protocol;
    without test data, on a fifth of each class.
    """
    of_kind = kind_of(recipe).watch(recipe, root)
    if every is None:
        return of_kind
    integer("knn_every", every, least=1)
    try:
        train, test = kind_of(recipe).labelled(recipe, root)
    except FileNotFoundError:  # a folder without test data
        train, test = kind_of(recipe).labelled(recipe, root, split="held out")

    def both(run: Run) -> dict | None:
        found = (of_kind(run) if of_kind else None) or {}
        if run.rows and len(run.rows) % every == 0:
            found |= kind_of(recipe).accuracies(run, train, test)
        return found

    return both


def begun(recipe: Recipe, out: Path, resume: bool, stack: ExitStack) -> dict | None:
    """The state to resume from, or None.

    Until the stack closes nobody else can train in `out`, unless the run is finished. Raises
    BlockingIOError if another process or thread trains there.
    """
    state = of_this_recipe(recipe, out) if resume else None
    if state is None or len(state["history"]) < recipe.epochs:
        stack.enter_context(locked(out))
        state = of_this_recipe(recipe, out) if resume else None  # it may have been trained meanwhile
    return state


def of_this_recipe(recipe: Recipe, out: Path) -> dict | None:
    """The state of the checkpoint in `out`, or None. Raises ValueError if it is another recipe's."""
    state = stored(out)
    if state:  # of a run that goes on, the trainer compares what the data are, not where they lie
        kept, moved = recipe_of(state, str(out)), len(state["history"]) < recipe.epochs
        refuse_other_recipe(out, kept, recipe, used=state.get("precision"), moved=moved)
    return state
