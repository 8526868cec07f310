"""A run: pretrained from a recipe, resumed, saved to a folder and loaded from it.

The Trainer and the modules below it do not import recipes.
"""

import copy
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from setclr import models as models_of
from setclr.checks import folder, integer
from setclr.data.folders import LEFT_OUT
from setclr.data.folders import skip_damaged as skipping
from setclr.experiments import weights
from setclr.experiments.kinds import first_alone, kind_of, measured_on
from setclr.losses import objective
from setclr.recipes import Recipe, loss_schedule
from setclr.seeding import drawing, seeded
from setclr.training import checkpoint
from setclr.training.checkpoint import REMEDY, line_of
from setclr.training.devices import Machine, choose_device
from setclr.training.distributed import from_first, rank
from setclr.training.momentum import Keys
from setclr.training.optimisers import LRSchedule, make_optimiser
from setclr.training.source import Batching
from setclr.training.trainer import Trainer
from setclr.views import DRAWS

OnEpoch = Callable[["Run"], dict | None]
Models = tuple[nn.Module, nn.Module]  # encoder, head
Features = tuple[np.ndarray, np.ndarray]  # of what was embedded: (N, D) float32, and its names (N,)


@dataclass
class Run:
    """A pretraining run: its `recipe`, its `history` so far, and the trained `encoder` and `head`.

    `precision`, `compiled` and `draws`, the version of its random numbers, are what the training used; None
    before training. `best` are weights to use instead of the last epoch's, or None. `own`: encoder and head
    are the user's, not those that the recipe names; so is the loss of the name `own_loss`.
    """

    recipe: Any  # an ImageRecipe, GraphRecipe or VideoRecipe; None if a Trainer without a recipe wrote it
    encoder: nn.Module
    head: nn.Module
    channels: int
    rows: list[dict] = field(default_factory=list)
    precision: str | None = None
    compiled: bool | None = None
    draws: int | None = None
    best: dict[str, dict] | None = None
    own: bool = False
    own_loss: str | None = None

    @property
    def history(self) -> pd.DataFrame:
        """A row for each epoch, with the training's numbers.

        Columns: epoch (from 1), loss (its mean), lr, seconds, images_per_s, std and rank of the last batch's
        embeddings (`training.progress.spread`), the loss's learnt parameters if it has any, and what
        `on_epoch` returned.
        """
        return pd.DataFrame(self.rows)

    @property
    def finished(self) -> bool:
        return len(self.rows) >= self.recipe.epochs

    def save(self, out: str | Path) -> None:
        """Write recipe, history and weights to the folder `out`, without the state for further training."""
        checkpoint.write_history(Path(out), self.rows)
        learnt = {name: part.state_dict() for name, part in self.parts.items()}
        used = {"precision": self.precision, "compiled": self.compiled, "draws": self.draws}
        checkpoint.write(Path(out), {**self.about(), "history": self.rows, **used, **learnt})

    def keep(self) -> None:
        """Store the current weights as the `best` so far."""
        self.best = {name: copy.deepcopy(part.state_dict()) for name, part in self.parts.items()}

    def take_best(self) -> None:
        for name, learnt in (self.best or {}).items():
            self.parts[name].load_state_dict(learnt)

    @property
    def device(self) -> torch.device:
        return next(self.encoder.parameters()).device

    @property
    def parts(self) -> dict[str, nn.Module]:
        return {"encoder": self.encoder, "head": self.head}

    def about(self) -> dict:
        """The recipe and the channels, which define encoder and head, and the `best` weights."""
        own = {"own_loss": self.own_loss} if self.own_loss else {}
        return {"recipe": self.recipe.to_dict(), "channels": self.channels, "best": self.best, **own}

    def trainer(
        self, data: Any, device: torch.device, precision: str | None = None, loss: Any = None, **more: Any
    ) -> Trainer:
        """The trainer that the recipe describes, for this encoder and head, and the `loss` if it is your own.

        `more` are fields of a `Machine` that a recipe does not decide: `workers`, `compiled`,
        `deterministic`. `precision` replaces the recipe's.
        """
        recipe, model = self.recipe, nn.ModuleList(self.parts.values()).to(device)
        loss = copy.deepcopy(recipe.parsed_loss) if loss is None else objective(loss)
        loss, predictor, keys = loss.to(device), None, None
        if layers := getattr(recipe, "predictor", 0):  # its weights are drawn from a seed of their own
            E, how = recipe.embedding, (recipe.last_norm, layers, recipe.activation, recipe.head_norm)
            with drawing(seeded(recipe.seed, 0, 0, 0).initial_seed()):
                predictor = models_of.head(E, recipe.hidden, E, *how)
            model.append(predictor.to(next(self.head.parameters())))
        if recipe.key_momentum is not None:
            keys = Keys(recipe.key_momentum, recipe.key_schedule, recipe.queue, predictor)
        rates = peak_rate(recipe), recipe.momentum, recipe.weight_decay
        source = kind_of(recipe).source(recipe, data)
        size = recipe.batch if recipe.drop_last else min(recipe.batch, len(source))
        return Trainer(
            source, self.encoder, self.head, loss, make_optimiser(recipe.optimiser, model, loss, *rates),
            epochs=recipe.epochs, batch=Batching(size, recipe.images_per_class, recipe.drop_last),
            seed=recipe.seed, labels=recipe.labels, keys=keys,
            lr_schedule=LRSchedule(recipe.schedule, recipe.warmup),
            device=Machine(device, precision or recipe.precision, recipe.chunk, **more),
        )  # fmt: skip


def pretrain(
    recipe: Recipe, out: str | Path | None = None, resume: bool = True, root: str | Path = "data",
    device: str | None = None, on_epoch: OnEpoch | None = None,
    workers: int | None = None, compiled: bool | str = "auto", deterministic: bool = False,
    data: Any = None, keep_every: int | None = None, models: Models | None = None, loss: Any = None,
    skip_damaged: bool = False,
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
        skip_damaged: leave out files that cannot be read; out/left-out.txt names them. A run goes on without
            files that have been removed since, from its last whole epoch.
        loss: your own module or function instead of the recipe's (`losses.Own`). Its record names its class.

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
    where, out = choose_device(device), folder("out", out)
    with ExitStack() as stack:
        state = from_first(lambda: resume_state(recipe, out, resume, stack)) if out else None
        run = run_of(state, str(out), models) if state else None
        own_loss = None if loss is None else repr(objective(loss))
        if run and run.own_loss != own_loss:
            got = f"loss {run.own_loss or recipe.loss} there, {own_loss or recipe.loss} now"
            raise ValueError(f"{out}: holds a run of another loss ({got}); remove it, or take another folder")
        if run is None or len(run.rows) < recipe.epochs:
            kind = kind_of(recipe)
            with skipping(skip_damaged) as left:
                data = first_alone(lambda: kind.load(recipe, root)) if data is None else data
            if out and left and rank() == 0:
                out.mkdir(parents=True, exist_ok=True)
                (out / "left-out.txt").write_text("\n".join([*left, ""]))
            if run is None:
                run = new_run(recipe, kind.channels(data), models)
                if recipe.init:
                    weights.initialise(run.encoder, recipe.init)
            run.recipe, run.own_loss = recipe, own_loss  # its data may have been moved
            compiled = compiled if run.compiled is None else run.compiled
            more = {"workers": workers, "compiled": compiled, "deterministic": deterministic, "loss": loss}
            trainer = run.trainer(data, where, run.precision, **more)
            if state:
                trainer.load_state_dict(state, str(out), fewer=skip_damaged or LEFT_OUT.get() is not None)
            del state
            scheduled = partial(loss_schedule.apply, trainer.loss, recipe.loss_schedule)

            def with_history(trainer: Trainer) -> dict | None:
                run.rows = [dict(row) for row in trainer.rows]
                return None if on_epoch is None else on_epoch(run)

            run.rows = list(trainer.fit(out, False, with_history, run.about, scheduled, keep_every))
            run.precision, run.compiled, run.draws = trainer.precision.name, trainer.compiled, DRAWS
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


def new_run(recipe: Recipe, channels: int, models: Models | None = None) -> Run:
    """A run with new weights, a function of the recipe's seed; the global random state does not change.

    `models`: your own encoder and head instead, as they are.
    """
    if models:
        return Run(recipe, *models, channels, own=True)
    with drawing(recipe.seed):
        encoder, head = kind_of(recipe).models(recipe, channels)
    return Run(recipe, encoder, head, channels)


def with_untrained(run: Run) -> dict[str, Run]:
    """By the rows of a table the run, "trained", and one with its first weights, "untrained", on the same
    device. `own` modules have none."""
    if run.own:
        return {"trained": run}
    first = new_run(run.recipe, run.channels)
    nn.ModuleList(first.parts.values()).to(run.device)
    return {"untrained": first, "trained": run}


def beside_untrained(
    accuracies: Callable, run: Run, train: Any, test: Any, linear: bool = True, protocol: str = ""
) -> pd.DataFrame:
    """The `accuracies` of a kind as the table of its `evaluate`, which has one protocol and one measure."""
    rows = {name: accuracies(one, train, test) for name, one in with_untrained(run).items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def peak_rate(recipe: Recipe) -> float:
    """The learning rate after the warm-up: `lr`, times batch / lr_batch if the recipe has `lr_batch`."""
    return recipe.lr * recipe.batch / recipe.lr_batch if recipe.lr_batch else recipe.lr


def load_run(out: str | Path, models: Models | None = None) -> Run:
    """The run that `pretrain(..., out=out)`, `Run.save(out)` or a Trainer wrote, on the CPU, in eval mode.

    `out` is the folder of the run, or a checkpoint in it such as OUT/epoch-10.pt. `models`: encoder and head,
    if they are your own. They get the weights, and are needed if a Trainer without a recipe wrote the run.

    Raises FileNotFoundError if there is no checkpoint; ValueError if the file is truncated or of another
    kind, or its weights are those of another model.
    """
    run = run_of(checkpoint.read(Path(out)), str(out), models)
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
    run.draws, run.own_loss = state.get("draws"), state.get("own_loss")
    run.rows, run.best = state["history"], state.get("best")
    for learnt in [state] if run.best is None else [run.best, state]:  # those may be taken later
        checkpoint.load(run.parts, learnt, where)
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


def resume_state(recipe: Recipe, out: Path, resume: bool, stack: ExitStack) -> dict | None:
    """The state to resume from, or None.

    Until the stack closes nobody else can train in `out`, unless the run is finished. Raises
    BlockingIOError if another process or thread trains there.
    """
    state = of_this_recipe(recipe, out) if resume else None
    if state is None or len(state["history"]) < recipe.epochs:
        stack.enter_context(checkpoint.locked(out))
        state = of_this_recipe(recipe, out) if resume else None  # it may have been trained meanwhile
    return state


def of_this_recipe(recipe: Recipe, out: Path) -> dict | None:
    """The state of the checkpoint in `out`, or None. Raises ValueError if it is another recipe's."""
    state = checkpoint.stored(out)
    if state:  # of a run that goes on, the trainer compares what the data are, not where they lie
        there, moved = recipe_of(state, str(out)), len(state["history"]) < recipe.epochs
        refuse_other_recipe(out, there, recipe, used=state.get("precision"), moved=moved)
    return state


def refuse_other_recipe(
    out: Path, stored: Recipe, wanted: Recipe, argument: str = "out", used: str | None = None,
    moved: bool = False,
) -> None:  # fmt: skip
    """Raises ValueError with the differences if the run in `out` has another recipe.

    More epochs are wanted of a recipe whose settings do not change with time: it goes on. `moved`: data of
    your own may lie elsewhere now. A wanted precision of "auto" fits any. Another one
    must be the `used` precision; None: the stored recipe's.
    """
    there, now = stored.to_dict(), wanted.to_dict()
    if moved and all(":" in data or data.endswith(".pt") for data in (stored.data, wanted.data)):
        del now["data"]  # the trainer compares what they are
    if stored.epochs < wanted.epochs and wanted.schedule == wanted.key_schedule == "constant":
        del now["epochs"]
    there["precision"] = now["precision"] if wanted.precision == "auto" else used or stored.precision
    different = [f"{key} {there[key]!r} there, {now[key]!r} now" for key in now if there[key] != now[key]]
    if different:
        remedy = "remove it, or take another folder"
        if argument == "out" and all(text.startswith("epochs ") for text in different):
            remedy = f"init={str(out)!r} in a new folder starts from its weights, by a schedule of its own"
        raise ValueError(f"{out}: holds a run of another recipe ({'; '.join(different)}); {remedy}")
