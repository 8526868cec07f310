"""One engine for all training: views of images, an encoder, a head, a loss on their embeddings, a step."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from setclr import models, views
from setclr.checks import integer
from setclr.data import ImageSet, image_set
from setclr.data.reading import Batch
from setclr.data.sources import Views
from setclr.losses import Objective
from setclr.training import compiling
from setclr.training.batches import Batches
from setclr.training.devices import choose_device, keep_freed_memory, settings, workers_for
from setclr.training.distributed import average_gradients, from_first, gather_alike, rank, world
from setclr.training.embedding import Embedder, unchanged_buffers
from setclr.training.fitting import Metric, fit
from setclr.training.memory import enough
from setclr.training.momentum import Keys, MomentumEncoder
from setclr.training.optimisers import check_optimiser, make_optimiser
from setclr.training.precision import Precision
from setclr.training.schedule import Rate
from setclr.training.seeding import seeded
from setclr.training.targets import Targets
from setclr.views import view

DIVERGED = "the {} became {} at step {}; lower lr or lengthen the warm-up"
CHECK_EVERY = 10  # steps; reading a value makes a GPU wait


class Trainer:
    """Trains an encoder and a head, which are changed in place. `fit` runs all epochs, `epoch` a single one.

        encoder = my_encoder()  # images (N, C, H, W) in [0, 1] -> features (N, D)
        trainer = Trainer(images, encoder, models.head(D, 256, 64), views.preset("photo"), InfoNCE(0.2))
        trainer.fit("runs/mine")

    Data order is a function of (seed, epoch), augmentation of (seed, epoch, step, position in the batch,
    view), so that many processes see what one would, and a resumed run what it would have seen.

    Args:
        images: an ImageSet, or any Dataset of images (`data.image_set` says which).
        encoder, head: any modules, (N, C, H, W) float32 in [0, 1] -> (N, D) and (M, D) -> (M, E). Where they
            have batch norms, they see all views of a size together.
        views: what is made of an image, as `views.preset` gives it.
        loss: of embeddings z (V, N, E), or a baseline. Its own parameters are trained with the rest.
        optimiser: of all parameters of encoder, head, predictor and loss that learn; its lr is the peak.
            None: Adam with lr 1e-3.
        precision: "float32", "bf16", "fp16", or "auto", bf16 where the device has that in hardware.
        epochs, batch, seed, same_class, drop_last: as in a Recipe; `batch` counts images over all processes.
        rate: the learning rate over time, as a fraction of its peak.
        keys: a momentum encoder, whose embeddings are the loss's candidates; None: there is none.
        predictor: layers between head and loss on the side of the encoder that learns.
        chunk: images that go through the encoder in one go; None: all (`Embedder`).
        at_epoch: called with the number of each epoch, from 0, before it begins, on every process.
        device: "cpu", "cuda", ...; None takes a GPU where there is one.
        workers: processes that read images which are not in memory; None: one less than the processors, at
            most 8.
        compiled: hand views, encoder, head and loss to torch.compile. "auto": where the run is long enough.
        deterministic: the same bits on every run on a GPU, too: torch takes slower algorithms there, some
            several times slower, or raises an error where it has none. On a CPU they are the same anyway.

    Raises ValueError where an argument is not as above, or learning parameters are missing in the optimiser.
    """

    def __init__(
        self, images: ImageSet | Dataset, encoder: nn.Module, head: nn.Module, views: Sequence[views.View],
        loss: Objective, optimiser: torch.optim.Optimizer | None = None, precision: str = "auto", *,
        epochs: int = 20, batch: int = 128, seed: int = 0, same_class: int = 1, drop_last: bool = True,
        rate: Rate | None = None,
        keys: Keys | None = None, predictor: nn.Module | None = None, chunk: int | None = None,
        at_epoch: Callable[[int], object] | None = None, device: str | torch.device | None = None,
        workers: int | None = None, compiled: bool | str = "auto", deterministic: bool = False,
    ):  # fmt: skip
        check_parts(encoder, head, views, loss, rate)
        keep_freed_memory()
        self.images, self.device = image_set(images), choose_device(device)
        self.encoder, self.head, self.loss = encoder, head, loss.to(self.device)
        self.views, self.predictor, self.at_epoch = tuple(views), predictor or nn.Identity(), at_epoch
        self.epochs, self.rate = integer("epochs", epochs, least=0), rate or Rate()
        self.batches = Batches(self.images.labels, batch, seed, same_class, drop_last)
        for size in (batch, self.batches.images % batch):
            if size % world():
                raise ValueError(f"batch must be divisible by the number of processes, {world()}, got {size}")
        self.model = nn.ModuleList([encoder, head, self.predictor]).to(self.device)
        self.precision, self.deterministic = Precision(precision, self.device), deterministic
        optimiser = optimiser or make_optimiser("adam", self.model, self.loss, lr=1e-3)
        learnt = nn.ModuleDict({"model": self.model, "loss": self.loss})
        self.optimiser = check_optimiser(optimiser, learnt)
        self.targets = Targets(loss, self.images, self.batches, encoder, head) if loss.targets else None
        self.embedder = Embedder(
            models.LocalFeatures(encoder, *loss.local) if loss.local else encoder,
            nn.Sequential(head, predictor) if predictor else head, self.precision, chunk,
        )  # fmt: skip
        self.momentum_encoder = MomentumEncoder(encoder, head, self.embedder, keys, seed) if keys else None
        self.steps = len(self.batches)
        self.compiled = self._worth_compiling(compiled)
        self.tried = not self.compiled  # whether compiling has been tried
        self.step, self.seconds = 0, 0.0
        self.values: list[Tensor] = []  # the losses of this epoch so far
        self.rows: list[dict] = []  # the history, a row for each epoch
        self.about: dict = {}  # plain data to be kept in checkpoints
        self.random: dict[str, Tensor] = {}  # states of torch's generators to go on from
        self.workers = workers_for(workers)
        self.view_batches = self._view_batches(self.compiled)

    def fit(
        self, out: str | Path | None = None, resume: bool = True,
        on_epoch: Callable[["Trainer"], dict | None] | None = None, metrics: Sequence[Metric] = (),
    ) -> list[dict]:  # fmt: skip
        """Train for all epochs that are lacking, and return the history, a row for each (`fitting.fit`)."""
        return fit(self, out, resume, on_epoch, metrics)

    def epoch(self) -> Iterator[None]:
        """Train to the end of the epoch, with a pause after every step; losses and weights must be finite."""
        epoch = self.step // self.steps
        before, started = self.seconds, time.perf_counter()
        what = f"a batch of {self.batches.batch} on {self.device}"
        remedy = "chunk=N puts N images through the encoder in one go; or take a smaller batch or view_size"
        if self.at_epoch:
            self.at_epoch(epoch)
        if self.targets:
            self.targets.begin(epoch, self.step % self.steps == 0)
        self.model.train()
        while self.step < (epoch + 1) * self.steps:
            with settings(self.precision, self.deterministic), enough(what, remedy):
                self.values.append(self.update(self._next_views()))
            if self.losses_checked:
                self.refuse_bad_losses()  # this waits for the device, so that the time is that of the work
            self.seconds = before + time.perf_counter() - started
            yield
        self.refuse_bad_weights()

    @property
    def finished(self) -> bool:
        return len(self.rows) >= self.epochs

    @property
    def losses_checked(self) -> bool:
        """Whether the losses are known to be finite: after every tenth step and after an epoch's last."""
        return len(self.values) % CHECK_EVERY == 0 or len(self.values) == self.steps

    @property
    def within_epoch(self) -> bool:
        return 0 < len(self.values) < self.steps

    def close_epoch(self) -> dict:
        """Add the epoch's row to the history, and return it."""
        row = {"epoch": self.step // self.steps, "loss": float(torch.stack(self.values).mean())}
        row |= {"lr": self.optimiser.param_groups[0]["lr"], "seconds": round(self.seconds, 3)}
        row["images_per_s"] = round(self.batches.images / self.seconds)
        row |= {name: p.item() for name, p in self.loss.named_parameters() if p.ndim == 0}
        self.rows.append(row)
        self.values, self.seconds = [], 0.0
        return row

    def own_batches(self) -> Iterator[Batch]:
        """This process's part of every batch from the present step on: indices (n,) and draws (n, V, 36)."""
        seed = self.batches.seed
        first_epoch, first = divmod(self.step, self.steps)
        for epoch in range(first_epoch, self.epochs):
            order = self.batches.of(epoch)
            for position in range(first if epoch == first_epoch else 0, self.steps):
                share = len(order[position]) // world()
                generator = seeded(seed, epoch, position)
                draws = views.draw(self.views, share, generator, first=rank() * share)
                yield order[position][rank() * share : (rank() + 1) * share], draws

    def update(self, x: list[Tensor]) -> Tensor:
        """One step of the optimiser on these views of this process's images; returns the loss."""
        factor = self.rate.factor(self.step, self.steps, self.epochs)
        for group in self.optimiser.param_groups:
            group["lr"] = group["initial_lr"] * factor
        x = self.loss.prepare(x)
        self._compile_once(x)
        self.optimiser.zero_grad()
        more = self.loss_arguments(x)
        loss = self.embedder.backward(x, lambda z: self.objective(z, **more))
        average_gradients(self.loss)  # equal on all processes but for rounding, which must not add up
        self.precision.step(self.optimiser)
        if self.momentum_encoder:
            self.momentum_encoder.advance(more["keys"], self.step / (self.epochs * self.steps))
        self.step += 1
        return loss

    def loss_arguments(self, x: list[Tensor]) -> dict[str, Tensor]:
        """What the loss takes in addition to the embeddings of these views."""
        if self.targets:
            return self.targets.of(self.step % self.steps, self.device)
        return self.momentum_encoder.candidates(x) if self.momentum_encoder else {}

    def objective(self, z: Tensor, **more: Tensor) -> Tensor:
        """The loss of this process's embeddings (V, n, E) among those of all processes."""
        if self.device.type == "cpu" and not z.isfinite().all():  # a compiled loss cannot look
            raise FloatingPointError(DIVERGED.format("embeddings", "NaN or inf", self.step))
        with self.precision.autocast():  # for discriminators; a set loss turns it off
            return self.loss(gather_alike(z), **more)

    def _worth_compiling(self, compiled: bool | str) -> bool:
        if compiled not in (True, False, "auto"):
            raise ValueError(f"compiled must be True, False or 'auto', got {compiled!r}")
        if compiled == "auto":
            n, shape = len(self.views) * self.batches.batch // world(), self.images.images.shape[1:]
            sides = [view.size or shape[-1] for view in self.views]
            shapes = [(n // len(sides), shape[0], side, side) for side in sides]
            compiled = compiling.pays(self.encoder, shapes, self.epochs * self.steps, self.device)
        return bool(compiled) and from_first(lambda: compiling.available(self.device))

    def _view_batches(self, compiled: bool) -> Views:
        source, batches = self.images.source.to(self.device), self.own_batches()
        return source.view_batches(self.views, batches, self.workers, self.device, compiled)

    def _next_views(self) -> list[Tensor]:
        """The next batch's views; if the first cannot be compiled, they go on uncompiled, with a warning."""
        if self.tried:
            return next(self.view_batches)
        try:
            return next(self.view_batches)
        except compiling.failures() as error:
            compiling.warn(error)
            self.view_batches = self._view_batches(compiled=False)
            return next(self.view_batches)

    def _compile_once(self, x: list[Tensor]) -> None:
        """Compile before the first step, on its views, and forget what that computed."""
        if self.tried:
            return
        self.tried = True
        ours = [self.embedder, *([self.momentum_encoder.embedder] if self.momentum_encoder else [])]
        parts = [part for embedder in ours for part in embedder.parts]
        if not self.loss.reads_values:
            parts.append(self.loss)

        def step() -> None:
            more = self.loss_arguments(x)
            self.embedder.backward(x, lambda z: self.objective(z, **more))

        with torch.random.fork_rng(), unchanged_buffers(nn.ModuleList(parts)):
            self.compiled = compiling.compile_all(parts, step)

    def refuse_bad_losses(self) -> None:
        """Raises FloatingPointError if one of the last ten losses is NaN or inf."""
        recent = torch.stack(self.values[-CHECK_EVERY:]).tolist()
        for step, value in enumerate(recent, self.step - len(recent)):
            if not math.isfinite(value):
                raise FloatingPointError(DIVERGED.format("loss", value, step))

    def refuse_bad_weights(self) -> None:
        """Raises FloatingPointError if a weight or a statistic of model or loss is NaN or inf."""
        learnt = [*self.model.state_dict().values(), *self.loss.state_dict().values()]
        if not all(x.isfinite().all() for x in learnt if isinstance(x, Tensor)):
            raise FloatingPointError(DIVERGED.format("weights", "NaN or inf", self.step - 1))

    def progress(self) -> dict[str, str]:
        """What a progress bar shows."""
        rate = len(self.values) * self.batches.batch / self.seconds
        return {"loss": f"{float(self.values[-1]):.3f}", "images_per_s": f"{rate:.0f}"}


def check_parts(encoder: object, head: object, some: object, loss: object, rate: object) -> None:
    """Raises ValueError, naming the argument, where one is not what a Trainer is made of."""
    for name, part in (("encoder", encoder), ("head", head)):
        if not isinstance(part, nn.Module):
            raise ValueError(f"{name} must be a module, got {part!r}; setclr.models makes some by name")
    view.check_views(some)
    if not isinstance(loss, Objective):
        raise ValueError(f"loss must be one of setclr.losses, got {loss!r}; InfoNCE(0.2) is one")
    if rate is not None and not isinstance(rate, Rate):
        raise ValueError(f"rate must be a Rate, got {rate!r}; the optimiser's lr is its peak")
