"""The training loop. One process today; each step already speaks of the global batch and of this process's
part of it.

Data order is a function of (seed, epoch), augmentation of (seed, epoch, step, position in the global batch,
view), the
learning rate of the step: so a run that was killed and resumed ends with the same bits, on one device and
thread count.
"""

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from setclr import data, losses, views
from setclr.checks import integer
from setclr.recipes import Recipe
from setclr.training import checkpoint
from setclr.training.checkpoint import Run
from setclr.training.distributed import gather, rank, world
from setclr.training.schedule import learning_rate, make_optimiser, stream

DIVERGED = (
    "the {what} became {value} at step {step}; lower lr or lengthen warmup. The last checkpoint is kept"
)


def pretrain(
    recipe: Recipe,
    out: str | Path | None = None,
    resume: bool = True,
    root: str | Path = "data",
    device: str | None = None,
    on_epoch: Callable[[Run], dict | None] | None = None,
) -> Run:
    """Train an encoder and its head as the recipe says; load the result where `out` already holds it.

    Args:
        recipe: what to train.
        out: folder of the run; its checkpoint is written after every epoch. None: nothing is written.
        resume: go on from the checkpoint in `out`, if there is one; False starts afresh and replaces it.
        root: where data sets are found and downloaded to.
        device: "cpu", "cuda", …; None takes a GPU where there is one. On a GPU the model runs in bf16
            autocast.
        on_epoch: called with the run before the first and after every epoch; the dict it returns becomes part
            of the history's row (before the first epoch it is not kept).

    Returns:
        The run, encoder and head in eval mode.

    Raises:
        ValueError: no such device, a batch larger than the data set, more than one process (not yet), or
            `out` holds a run of another recipe, of other data or without what going on needs; the differences
            are listed.
        OSError: `out` cannot be written to; found before training.
        FloatingPointError: the loss or the weights became NaN or inf; names the step. The last checkpoint
            stays.
    """
    if world() > 1:
        raise ValueError(f"pretrain works with one process for now, got {world()}; start it without torchrun")
    device = choose_device(device)
    started = out and resume and (Path(out) / checkpoint.CHECKPOINT).exists()
    state = checkpoint.read(Path(out)) if started else None
    if state:
        run = checkpoint.run_of(state)
        checkpoint.refuse_other_recipe(Path(out), run.recipe, recipe)
        if run.finished:
            return _ready(run, device)

    dataset = data.load(recipe.data, root, "train", recipe.size)
    if recipe.images:
        integer("images", recipe.images, least=2, most=len(dataset), hint=f"{recipe.data} has {len(dataset)}")
        dataset = dataset.sample(recipe.images)
    images = dataset.images
    integer(
        "batch", recipe.batch, least=2, most=len(images), hint=f"{recipe.data} gives {len(images)} images"
    )
    if not state:
        run = checkpoint.new_run(recipe, channels=images.shape[1])
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        trainer = Trainer(_ready(run, device), images, device)
        if state:
            trainer.restore(state, Path(out))
        elif out:
            checkpoint.write(Path(out), trainer.state(), run.history)
        if on_epoch is not None and not run.rows:
            on_epoch(run)
        train(trainer, out, on_epoch)
    return _ready(run, device)


def train(trainer: "Trainer", out: str | Path | None, on_epoch: Callable | None) -> None:
    """The epochs that the trainer's run still lacks, a checkpoint after each."""
    run, recipe = trainer.run, trainer.run.recipe
    name, total = recipe.loss.split("(")[0], recipe.epochs * trainer.steps
    with tqdm(total=total, initial=trainer.step, desc=name, unit="step", disable=rank() > 0) as bar:
        while not run.finished:
            row = trainer.epoch(bar)
            run.rows.append(row)
            if on_epoch is not None:
                row.update({key: float(value) for key, value in (on_epoch(run) or {}).items()})
            if out and rank() == 0:
                checkpoint.write(Path(out), trainer.state(), run.history)


def choose_device(name: str | None) -> torch.device:
    """The device of that name, or a GPU where there is one. Raises ValueError where there is no such
    device."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device must be cpu, cuda or another that torch finds here, got {name!r}"
        ) from error


class Trainer:
    """The moving parts of a run: model, optimiser, step number."""

    def __init__(self, run: Run, images: Tensor, device: torch.device):
        recipe = run.recipe
        self.run, self.device = run, device
        self.images = images.to(device)
        self.views = views.preset(recipe.views)
        self.loss = losses.parse(recipe.loss)
        self.model = nn.Sequential(run.encoder, run.head)
        self.optimiser = make_optimiser(recipe, self.model)
        self.steps = len(images) // recipe.batch
        self.step = 0

    def epoch(self, bar: tqdm) -> dict:
        """Train for one epoch; returns its row of the history."""
        recipe = self.run.recipe
        epoch, started = self.step // self.steps, time.perf_counter()
        order = torch.randperm(len(self.images), generator=stream(recipe.seed, epoch))
        share = recipe.batch // world()
        mine = slice(rank() * share, (rank() + 1) * share)
        self.model.train()

        values = []
        for position, batch in enumerate(order[: self.steps * recipe.batch].split(recipe.batch)):
            draws = views.draw(self.views, recipe.batch, stream(recipe.seed, epoch, position))
            x = views.apply(
                self.images[batch[mine].to(self.device, non_blocking=True)], self.views, draws[mine]
            )
            values.append(self.update(x))
            self.watch(values, bar, started)
        if not all(parameter.isfinite().all() for parameter in self.model.parameters()):
            raise FloatingPointError(DIVERGED.format(what="weights", value="NaN or inf", step=self.step - 1))
        seconds = time.perf_counter() - started
        return {
            "epoch": epoch + 1,
            "loss": float(torch.stack(values).mean()),
            "lr": self.optimiser.param_groups[0]["lr"],
            "seconds": round(seconds, 3),
            "images_per_s": round(self.steps * recipe.batch / seconds),
        }

    def update(self, x: Tensor) -> Tensor:
        """One step of the optimiser on the views x (V, n, C, S, S) of this process's images; returns the
        loss."""
        lr = learning_rate(self.run.recipe, self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            z = self.model(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        if self.device.type == "cpu" and not z.isfinite().all():
            raise FloatingPointError(DIVERGED.format(what="embeddings", value="NaN or inf", step=self.step))
        loss = self.loss(gather(z.float()))
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.step += 1
        return loss.detach()

    def watch(self, values: list[Tensor], bar: tqdm, started: float) -> None:
        """Move the bar; now and then, since it makes a GPU wait, look at the loss. NaN ends the run."""
        bar.update()
        if len(values) % 10 and len(values) < self.steps:
            return
        recent = torch.stack(values[-10:])
        if not recent.isfinite().all():
            bad = self.step - len(recent) + int((~recent.isfinite()).nonzero()[0])
            value = float(recent[~recent.isfinite()][0])
            raise FloatingPointError(DIVERGED.format(what="loss", value=value, step=bad))
        rate = len(values) * self.run.recipe.batch / (time.perf_counter() - started)
        bar.set_postfix(loss=f"{float(recent[-1]):.3f}", images_per_s=f"{rate:.0f}")

    def state(self) -> dict:
        """All that going on needs."""
        return {
            **self.run.state(),
            "step": self.step,
            "images": len(self.images),
            "loss": self.loss.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "rng": torch.get_rng_state(),
        }

    def restore(self, state: dict, out: Path) -> None:
        """Go on from a checkpoint. Raises ValueError if it lacks the optimiser or was made on other data."""
        if "optimiser" not in state:
            raise ValueError(
                f"{out}: was saved without its optimiser and cannot go on; resume=False starts afresh"
            )
        if state["images"] != len(self.images):
            raise ValueError(
                f"{out}: was trained on {state['images']} images, and {self.run.recipe.data} gives "
                f"{len(self.images)} now; bring the data back, or start afresh with resume=False"
            )
        self.step = state["step"]
        self.loss.load_state_dict(state["loss"])
        self.optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["rng"])


def _ready(run: Run, device: torch.device) -> Run:
    run.encoder.to(device).eval()
    run.head.to(device).eval()
    return run
