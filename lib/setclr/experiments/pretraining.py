"""Pretrain an encoder from a recipe, on one process or many; an interrupted run can be resumed."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from setclr.checks import integer
from setclr.experiments.kinds import first_alone, kind_of, measured_on
from setclr.experiments.run import Models, OnEpoch, Run, initialise, new_run, of_this_recipe, run_of
from setclr.recipes import Recipe, loss_schedule
from setclr.training.checkpoint import locked
from setclr.training.devices import choose_device
from setclr.training.distributed import from_first
from setclr.training.trainer import Trainer


def pretrain(
    recipe: Recipe, out: str | Path | None = None, resume: bool = True, root: str | Path = "data",
    device: str | None = None, on_epoch: OnEpoch | None = None,
    workers: int | None = None, compiled: bool | str = "auto", deterministic: bool = False,
    data: Any = None, keep_every: int | None = None, models: Models | None = None,
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
        out, resume, keep_every: as in `Trainer.fit`.
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
        state = from_first(lambda: resume_state(recipe, out, resume, stack)) if out else None
        run = run_of(state, str(out), models) if state else None
        if run is None or not run.finished:
            kind = kind_of(recipe)
            data = first_alone(lambda: kind.load(recipe, root)) if data is None else data
            if run is None:
                run = new_run(recipe, kind.channels(data), models)
                if recipe.init:
                    initialise(run.encoder, recipe.init)
            run.recipe = recipe  # its data may have been moved
            compiled = compiled if run.compiled is None else run.compiled
            more = {"workers": workers, "compiled": compiled, "deterministic": deterministic}
            trainer = run.trainer(data, where, run.precision, **more)
            if state:
                trainer.load_state_dict(state, str(out))
            del state
            scheduled = partial(loss_schedule.apply, trainer.loss, recipe.loss_schedule)

            def with_history(trainer: Trainer) -> dict | None:
                run.rows = [dict(row) for row in trainer.rows]
                return None if on_epoch is None else on_epoch(run)

            run.rows = list(trainer.fit(out, False, with_history, run.about, scheduled, keep_every))
            run.precision, run.compiled = trainer.precision.name, trainer.compiled
    run.take_best()
    parts = nn.ModuleList([run.encoder, run.head]).to(where).eval()
    parts.to(memory_format=torch.contiguous_format)  # as in a loaded run: the same features to the last bit
    return run


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
    train, test, *_ = measured_on(recipe, root)

    def both(run: Run) -> dict | None:
        numbers = (of_kind(run) if of_kind else None) or {}
        if run.rows and len(run.rows) % every == 0:
            numbers |= kind_of(recipe).accuracies(run, train, test)
        return numbers

    return both


def resume_state(recipe: Recipe, out: Path, resume: bool, stack: ExitStack) -> dict | None:
    """The state to resume from, or None.

    Until the stack closes nobody else can train in `out`, unless the run is finished. Raises
    BlockingIOError if another process or thread trains there.
    """
    state = of_this_recipe(recipe, out) if resume else None
    if state is None or len(state["history"]) < recipe.epochs:
        stack.enter_context(locked(out))
        state = of_this_recipe(recipe, out) if resume else None  # it may have been trained meanwhile
    return state
