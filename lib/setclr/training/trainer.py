"""The moving parts of a run and one epoch of it: views, embeddings, loss, step."""

import math
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from setclr import models, views
from setclr.data import ImageSet
from setclr.data.reading import Batch
from setclr.recipes import Recipe, loss_schedule
from setclr.training.batches import batches, steps_of
from setclr.training.checkpoint import Run
from setclr.training.distributed import average_gradients, gather, rank, world
from setclr.training.embedding import Embedder
from setclr.training.momentum import MomentumEncoder
from setclr.training.optimisers import make_optimiser
from setclr.training.schedule import learning_rate
from setclr.training.seeding import seeded
from setclr.training.targets import Targets

DIVERGED = "the {} became {} at step {}; lower lr or lengthen warmup. The last checkpoint is kept"
CHECK_EVERY = 10  # steps; reading a value makes a GPU wait


class Trainer:
    """The moving parts of a run: model, loss, optimiser, step number. `workers` processes read photographs
    where the images are not in memory; `compiled` hands the encoder to torch.compile."""

    def __init__(
        self, run: Run, dataset: ImageSet, device: torch.device, workers: int = 0, compiled: bool = False
    ):
        recipe = run.recipe
        self.run, self.device, self.labels = run, device, dataset.labels
        self.views = views_of(recipe, side=dataset.images.shape[-1])
        self.loss = recipe.parsed_loss.to(device)
        follows = recipe.key_momentum is not None
        self.momentum_encoder = MomentumEncoder(run.encoder, run.head, recipe, device) if follows else None
        self.predictor = predictor(recipe).to(next(run.head.parameters()))
        self.model = nn.ModuleList([run.encoder, run.head, self.predictor])
        self.targets = Targets(run, dataset) if self.loss.targets else None
        encoder = models.LocalFeatures(run.encoder) if self.loss.local else run.encoder
        head = nn.Sequential(run.head, self.predictor) if recipe.predictor else run.head
        self.embedder = Embedder(encoder, head, device, recipe.chunk, compiled)
        self.optimiser = make_optimiser(recipe, self.model, self.loss)
        self.steps = steps_of(recipe, self.labels)
        self.step = 0
        self.values: list[Tensor] = []  # the losses of this epoch so far
        self.seconds = 0.0
        source = dataset.source.to(device)
        self.view_batches = source.view_batches(self.views, self.own_batches(), workers, device)

    def epoch(self) -> Iterator[None]:
        """Train to the end of the epoch, with a pause after every step; losses and weights must be finite."""
        epoch = self.step // self.steps
        before, started = self.seconds, time.perf_counter()
        loss_schedule.apply(self.loss, self.run.recipe.loss_schedule, epoch)
        if self.targets:
            self.targets.begin(epoch, self.step % self.steps == 0, self.optimiser)
        self.model.train()
        while self.step < (epoch + 1) * self.steps:
            self.values.append(self.update(next(self.view_batches)))
            self.seconds = before + time.perf_counter() - started
            if self.losses_checked:
                self.refuse_bad_losses()
            yield
        self.refuse_bad_weights()

    @property
    def losses_checked(self) -> bool:
        """Whether the losses are known to be finite: after every tenth step and after an epoch's last."""
        return len(self.values) % CHECK_EVERY == 0 or len(self.values) == self.steps

    @property
    def within_epoch(self) -> bool:
        return 0 < len(self.values) < self.steps

    def close_epoch(self) -> dict:
        """The epoch's row of the history."""
        row = {"epoch": self.step // self.steps, "loss": float(torch.stack(self.values).mean())}
        row |= {"lr": self.optimiser.param_groups[0]["lr"], "seconds": round(self.seconds, 3)}
        row["images_per_s"] = round(self.steps * self.run.recipe.batch / self.seconds)
        row |= {name: parameter.item() for name, parameter in self.loss.named_parameters()}
        self.values, self.seconds = [], 0.0
        return row

    def own_batches(self) -> Iterator[Batch]:
        """This process's part of every batch from the present step on: indices (n,) and draws (n, V, 36)."""
        recipe, share = self.run.recipe, self.run.recipe.batch // world()
        mine = slice(rank() * share, (rank() + 1) * share)
        first_epoch, first = divmod(self.step, self.steps)
        for epoch in range(first_epoch, recipe.epochs):
            order = batches(recipe, self.labels, epoch)
            for position in range(first if epoch == first_epoch else 0, self.steps):
                draws = views.draw(self.views, recipe.batch, seeded(recipe.seed, epoch, position))
                yield order[position, mine], draws[mine]

    def update(self, x: list[Tensor]) -> Tensor:
        """One step of the optimiser on these views of this process's images; returns the loss."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.run.recipe, self.step, self.steps)
        self.optimiser.zero_grad()
        try:
            x = self.loss.prepare(x)
            more = self.loss_arguments(x)
            loss = self.embedder.backward(x, lambda z: self.objective(z, **more))
        except torch.OutOfMemoryError as error:
            lacking = f"a batch of {self.run.recipe.batch} does not fit on {self.device} ({error})"
            remedy = "chunk=N puts N images through the encoder in one go; or take a smaller batch"
            raise MemoryError(f"{lacking}; {remedy}") from error
        average_gradients(self.loss)  # equal on all processes but for rounding, which must not add up
        self.optimiser.step()
        if self.momentum_encoder:
            self.momentum_encoder.advance(more["keys"], self.step / (self.run.recipe.epochs * self.steps))
        self.step += 1
        return loss

    def loss_arguments(self, x: list[Tensor]) -> dict[str, Tensor]:
        """What the loss takes in addition to the embeddings of these views."""
        if self.targets:
            return self.targets.of(self.step % self.steps, self.device)
        return self.momentum_encoder.candidates(x) if self.momentum_encoder else {}

    def objective(self, z: Tensor, **more: Tensor) -> Tensor:
        """The loss of this process's embeddings (V, n, E) among those of all processes."""
        if self.device.type == "cpu" and not z.isfinite().all():
            raise FloatingPointError(DIVERGED.format("embeddings", "NaN or inf", self.step))
        return self.loss(gather(z), **more)

    def refuse_bad_losses(self) -> None:
        """Raises FloatingPointError if one of the last ten losses is NaN or inf."""
        recent = torch.stack(self.values[-CHECK_EVERY:]).tolist()
        for step, value in enumerate(recent, self.step - len(recent)):
            if not math.isfinite(value):
                raise FloatingPointError(DIVERGED.format("loss", value, step))

    def refuse_bad_weights(self) -> None:
        """Raises FloatingPointError if a parameter of the model or of the loss is NaN or inf."""
        learnt = [*self.model.parameters(), *self.loss.parameters()]
        if not all(parameter.isfinite().all() for parameter in learnt):
            raise FloatingPointError(DIVERGED.format("weights", "NaN or inf", self.step - 1))

    def progress(self) -> dict[str, str]:
        """What a progress bar shows."""
        rate = len(self.values) * self.run.recipe.batch / self.seconds
        return {"loss": f"{float(self.values[-1]):.3f}", "images_per_s": f"{rate:.0f}"}

    def state(self) -> dict:
        """All that is needed to go on."""
        values = torch.stack(self.values).cpu() if self.values else torch.empty(0)
        reached = {"step": self.step, "values": values, "seconds": self.seconds, "images": len(self.labels)}
        learning = {name: getattr(self, name).state_dict() for name in ("loss", "predictor", "optimiser")}
        keys = self.momentum_encoder.state() if self.momentum_encoder else None
        targets = self.targets.state() if self.targets else None
        others = {"keys": keys, "targets": targets, "rng": torch.get_rng_state()}
        return {**self.run.state(), **reached, **learning, **others}

    def restore(self, state: dict, where: str) -> None:
        """Go on from a checkpoint. Raises ValueError if it lacks the optimiser or was made on other data."""
        again = "resume=False starts again"
        if "optimiser" not in state:
            raise ValueError(f"{where}: was saved without its optimiser and cannot go on; {again}")
        if state["images"] != len(self.labels):
            given = f"{state['images']} images, and {self.run.recipe.data} gives {len(self.labels)} now"
            raise ValueError(f"{where}: was trained on {given}; restore the data, or {again}")
        self.step = state["step"]
        self.values = list(state.get("values", torch.empty(0)).to(self.device).unbind())
        self.seconds = state.get("seconds", 0.0)
        self.loss.load_state_dict(state["loss"])
        self.predictor.load_state_dict(state.get("predictor", {}))
        if self.momentum_encoder:
            self.momentum_encoder.restore(state["keys"])
        if self.targets:
            self.targets.restore(state["targets"])
        self.optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["rng"])


def views_of(recipe: Recipe, side: int) -> tuple[views.View, ...]:
    """The recipe's views of images of that side: the full ones, then the small crops."""
    full = recipe.full_views or len(views.PRESETS[recipe.views])
    small = recipe.local_size or round(3 / 7 * (recipe.view_size or side))
    return views.multi_crop(recipe.views, full, recipe.local_views, recipe.view_size, small)


def predictor(recipe: Recipe) -> nn.Module:
    """The layers between head and loss (MoCo v3), their weights from a seed of their own, or the identity."""
    if not recipe.predictor:
        return nn.Identity()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seeded(recipe.seed, 0, 0, 0).initial_seed())
        E, norm = recipe.embedding, recipe.last_norm
        return models.head(E, recipe.hidden, E, norm, recipe.predictor, recipe.activation)
