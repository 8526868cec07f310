"""Pretraining from a recipe to a run, on one process or many, in one go or with interruptions. Data order is
a function of (seed, epoch), augmentation of (seed, epoch, step, position in the global batch, view), the
learning rate of the step. So a run that was killed and resumed ends with the same bits on the same device and
thread count, and many processes see what one would."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from tqdm.auto import tqdm

from setclr import data
from setclr.checks import integer
from setclr.recipes import Recipe
from setclr.training import checkpoint
from setclr.training.checkpoint import Run
from setclr.training.distributed import any_of, from_first, rank, world
from setclr.training.interruption import Interrupted, Interruption
from setclr.training.trainer import Trainer

CHECKPOINT_SECONDS = 600.0


def pretrain(
    recipe: Recipe, out: str | Path | None = None, resume: bool = True, root: str | Path = "data",
    device: str | None = None, on_epoch: Callable[[Run], dict | None] | None = None,
    workers: int | None = None, compiled: bool = False,
) -> Run:  # fmt: skip
    """Train an encoder and its head as the recipe says; load the result where `out` already holds it.

    Under torchrun, inside `distributed.joined()`, every process trains on its part of each batch; the first
    one reads and writes `out`. A loss's own parameters, such as a learnable temperature, are trained, too.

    Args:
        out: folder of the run; None writes nothing. Its checkpoint is written after every epoch, every ten
            minutes and when training is interrupted.
        resume: go on from the checkpoint in `out`, if there is one; False starts again and replaces it.
        root: where data sets are found and downloaded to.
        device: "cpu", "cuda", …; None takes a GPU where there is one, in bf16 autocast, channels last.
        on_epoch: called with the run, on the first process, before the first and after every epoch. The dict
            that it returns after an epoch becomes part of the history's row. Under torchrun it must not call
            what needs all processes, such as `features` without shared=False.
        workers: processes that read photographs where the data set is too large for memory; None: one less
            than there are processors, at most 8. They change only the speed.
        compiled: compile the encoder with torch.compile: a slower start and, on a GPU, faster steps.

    Returns the run, encoder and head in eval mode.

    Raises:
        ValueError: there is no such device, the batch is larger than the data set or cannot be divided among
            the processes, or `out` holds a run of another recipe (the differences are listed), of other data
            or without its optimiser.
        OSError: `out` cannot be written to, or its disk is too full; found before training.
        MemoryError: the batch does not fit on the GPU.
        FloatingPointError: the loss or the weights became NaN or inf at the named step.
        Interrupted: SIGINT (Ctrl-C) or SIGTERM came; training stopped after a whole step.
    Whatever is raised during training, the last checkpoint stays.
    """
    where, out = choose_device(device), None if out is None else Path(out)
    state = from_first(lambda: _stored(recipe, out) if out and resume else None)
    if state:
        run = checkpoint.run_of(state)
        if run.finished:
            return _ready(run, where)

    dataset = _dataset(recipe, root)
    if not state:
        run = checkpoint.new_run(recipe, channels=dataset.images.shape[1])
    if workers is None:
        workers = min(8, max(1, (os.cpu_count() or 1) - 1))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        trainer = Trainer(_ready(run, where), dataset, where, workers, compiled)
        if state:
            trainer.restore(state, str(out))
        if out:
            from_first(lambda: _prepare(trainer, out))
        if on_epoch is not None and not run.rows and not trainer.step and rank() == 0:
            on_epoch(run)
        try:
            train(trainer, out, on_epoch)
        finally:
            trainer.view_batches.close()  # and with it the processes that read photographs
    return _ready(run, where)


def train(trainer: Trainer, out: Path | None, on_epoch: Callable | None) -> None:
    """The epochs that the trainer's run still lacks, with a checkpoint after each and every ten minutes."""
    run, recipe = trainer.run, trainer.run.recipe
    name, total = recipe.loss.split("(")[0], recipe.epochs * trainer.steps
    silent = {"disable": True} if rank() else {}  # left out otherwise, so that TQDM_DISABLE works
    saved, bar = time.monotonic(), tqdm(total=total, initial=trainer.step, desc=name, unit="step", **silent)
    with Interruption() as stop, bar:
        while not run.finished:
            for _ in trainer.epoch():
                bar.update()
                if trainer.losses_checked:
                    bar.set_postfix(trainer.progress())
                if trainer.within_epoch and _stopped(trainer, stop):
                    break
                due = time.monotonic() - saved > CHECKPOINT_SECONDS
                if due and trainer.within_epoch and trainer.losses_checked:
                    _write(trainer, out)
                    saved = time.monotonic()
            else:
                row = trainer.close_epoch()
                run.rows.append(row)
                if on_epoch is not None and rank() == 0:
                    row.update({key: float(value) for key, value in (on_epoch(run) or {}).items()})
            _write(trainer, out)
            saved = time.monotonic()
            if trainer.within_epoch or (_stopped(trainer, stop) and not run.finished):
                kept = f"{out} holds it: repeat the call to go on" if out else "nothing is kept without out="
                raise Interrupted(f"stopped after step {trainer.step} of {total}; {kept}", stop.asked)


def _stopped(trainer: Trainer, stop: Interruption) -> bool:
    """Whether all processes are to stop after this step; many agree on it only where losses are read."""
    agree = world() == 1 or trainer.losses_checked
    return agree and any_of(stop.asked is not None, trainer.device)


def _write(trainer: Trainer, out: Path | None) -> None:
    if out and rank() == 0:
        trainer.refuse_bad_weights()
        checkpoint.write(out, trainer.state(), trainer.run.history)


def choose_device(name: str | None) -> torch.device:
    """The device of that name, or for None a GPU if there is one. Raises ValueError for an unknown device."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be cpu, cuda or another that torch finds, got {name!r}") from error


def _stored(recipe: Recipe, out: Path) -> dict | None:
    """The state in `out`, if there is one. Raises ValueError if it is another recipe's."""
    if not (out / checkpoint.CHECKPOINT).exists():
        return None
    state = checkpoint.read(out)
    checkpoint.refuse_other_recipe(out, Recipe.from_dict(state["recipe"]), recipe)
    return state


def _dataset(recipe: Recipe, root: str | Path) -> data.ImageSet:
    """The images to train on. The first process makes, downloads or verifies them before all load them."""
    in_full = recipe.data.startswith(data.FOLDER) and recipe.view_size is not None and recipe.size is None

    def load() -> data.ImageSet:
        split = data.pretraining_split(recipe.data)
        return data.load(recipe.data, root, split, recipe.size, stream=True if in_full else None)

    from_first(lambda: load().source.verify())
    dataset = load()
    if recipe.images:
        integer("images", recipe.images, least=2, most=len(dataset), hint=f"{recipe.data} has {len(dataset)}")
        dataset = dataset.sample(recipe.images)
    n = len(dataset)
    integer("batch", recipe.batch, least=2, most=n, hint=f"{recipe.data} gives {n} images")
    if recipe.batch % world():
        raise ValueError(f"batch must be divisible by the number of processes, {world()}, got {recipe.batch}")
    return dataset


def _prepare(trainer: Trainer, out: Path) -> None:
    """Write the first checkpoint, so that errors in writing appear before any training."""
    checkpoint.tidy(out)
    weights = sum(p.nbytes for p in trainer.model.parameters())
    needed = 6 * weights + 10_000_000  # weights and Adam's two moments, the old file and the new
    free = shutil.disk_usage(out).free
    if free < needed:
        raise OSError(f"{out}: {free / 1e6:.0f} MB are free and a run needs {needed / 1e6:.0f}; make room")
    checkpoint.write(out, trainer.state(), trainer.run.history)


def _ready(run: Run, device: torch.device) -> Run:
    nn.ModuleList([run.encoder, run.head]).to(device).eval()
    return run
