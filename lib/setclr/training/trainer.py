"""The Trainer: training steps, epochs, checkpoints, interruptions, its state, and what a loss asks of it."""

import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setclr import views
from setclr.checks import default_device, folder, integer
from setclr.losses import check_labels, objective
from setclr.losses.temperature import learnt_numbers
from setclr.seeding import generator_of, seeded_globals
from setclr.training import checkpoint, devices, distributed, progress
from setclr.training import source as sources
from setclr.training.devices import Machine
from setclr.training.distributed import rank, world
from setclr.training.grad_cache import GradCache, Group, unchanged_buffers
from setclr.training.interruption import Interrupted, asked_to_stop
from setclr.training.momentum import Keys, MomentumEncoder
from setclr.training.optimisers import LRSchedule, check_optimiser, make_optimiser
from setclr.training.source import Batches, Batching, Source
from setclr.training.task import Task

DIVERGED = "the {} became {} at step {}; lower lr or lengthen the warm-up"
NO_SETTINGS = ("params", "lr", "fused", "foreach", "capturable")  # in an optimiser's groups
FORGOTTEN = " at 0x[0-9a-f]+|, vertical=0.0, turn=0.0"  # of a process, and what views of older runs lack
CHECK_EVERY = 10  # steps between checks of the losses; reading a value makes a GPU wait
CHECKPOINT_SECONDS = 600.0  # between checkpoints


class Trainer:
    """Trains an encoder and a head in place. `fit` runs all epochs, `epoch` a single one.

    Data order is a function of (seed, epoch), views of (seed, epoch, step, place in the batch). So many
    processes see the same views as one, and a resumed run the same as an uninterrupted one.

    >>> import torch
    >>> from setclr import InfoNCE
    >>> from setclr.training import LoaderViews, Trainer  # ImageViews makes the views of images itself
    >>> pairs = [[x + 0.1 * torch.randn(4), x + 0.1 * torch.randn(4)] for x in torch.randn(32, 4)]
    >>> encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)
    >>> trainer = Trainer(LoaderViews(pairs), encoder, head, InfoNCE(0.2), epochs=2, batch=16, device="cpu")
    >>> len(trainer.fit())  # a row of numbers for each epoch; fit("runs/mine") keeps checkpoints there
    2

    Args:
        source: what is contrasted, and its views: `ImageViews`, `LoaderViews` or another `Source`.
        encoder, head: any modules, from a group of views to (N, D), for images (N, C, H, W) float32 in
            [0, 1], and (M, D) -> (M, E). Their batch norms see all views of one size together.
        loss: a loss of embeddings z (V, N, E), or a baseline; or any module or function of z, or of two views
            (N, E), see `losses.Own`. Its own parameters are trained, too.
        optimiser: holds all learning parameters of encoder, head, predictor and loss; its lr is the peak.
            None: Adam with lr 1e-3.
        epochs, seed: as in a Recipe.
        batch: how many images, graphs or the like make a step, over all processes; or a `Batching`.
        labels: give the loss the labels. A supervised loss, such as SupCon, needs them.
        lr_schedule: the learning rate over time, as a fraction of its peak.
        keys: settings of a momentum encoder, whose embeddings are the loss's candidates; None: none.
        device: "cpu", "cuda", ..., None for a GPU where there is one; or a `Machine`, which also says with
            which precision, workers and compiler.

    Raises ValueError where an argument is not as above, or the optimiser lacks parameters that learn.
    """

    def __init__(
        self, source: Source, encoder: nn.Module, head: nn.Module, loss: Any,
        optimiser: torch.optim.Optimizer | None = None, *, epochs: int = 20, batch: int | Batching = 128,
        seed: int = 0, labels: bool = False, lr_schedule: LRSchedule | None = None, keys: Keys | None = None,
        device: str | torch.device | Machine | None = None,
    ):  # fmt: skip
        default_device()
        loss = objective(loss)
        sources.check_parts(source, encoder, head, loss, optimiser, lr_schedule)
        devices.reuse_freed_pages()
        machine = device if isinstance(device, Machine) else Machine(device)
        self.device = devices.choose_device(machine.device)
        self.source, self.things = source, getattr(source, "things", "items")
        self.digest = source.digest() if hasattr(source, "digest") else f"{len(source)} {self.things}"
        distributed.refuse_different(self.things, self.digest)
        self.encoder, self.head, self.loss = encoder, head, loss.to(self.device)
        self.labels, self.predictor = check_labels(loss, labels), (keys and keys.predictor) or nn.Identity()
        if self.labels:
            sources.check_classes(source, self.things, loss, head)
        self.epochs, self.lr_schedule = integer("epochs", epochs, least=0), lr_schedule or LRSchedule()
        if self.lr_schedule.warmup > epochs > 0:
            got, hint = self.lr_schedule.warmup, "it is counted in epochs; take a shorter one"
            raise ValueError(f"warmup must be at most {epochs}, the epochs, got {got}; {hint}")
        how = batch if isinstance(batch, Batching) else Batching(batch)
        self.batches = Batches(source.labels, how, seed, self.things)
        for size in (how.size, self.batches.images % how.size):
            if size % world():
                raise ValueError(f"batch must be divisible by the number of processes, {world()}, got {size}")
        self.model = nn.ModuleList([encoder, head, self.predictor]).to(self.device)
        dims = getattr(source, "dims", None)
        self.precision = devices.Precision(machine.precision, self.device, clips=dims == 5)
        self.deterministic = machine.deterministic
        optimiser = optimiser or make_optimiser("adam", self.model, self.loss, lr=1e-3)
        learnt = nn.ModuleDict({"model": self.model, "loss": self.loss})
        self.optimiser = check_optimiser(optimiser, learnt)
        self.task: Task = loss.task(self) or Task(self)
        to_loss = nn.Sequential(head, self.predictor)
        self.grad_cache = GradCache(self.task.encoder, to_loss, self.precision, machine.chunk)
        self.momentum_encoder = MomentumEncoder(encoder, head, self.grad_cache, keys, seed) if keys else None
        self.steps = len(self.batches)
        self.compiled = machine.compiles(dims is not None, self.epochs * self.steps, self.things)
        self.compile_tried = not self.compiled
        self.step, self.seconds = 0, 0.0
        few = min(8, max(1, (os.cpu_count() or 1) - 1))
        self.workers = few if machine.workers is None else machine.workers
        self.values: list[Tensor] = []  # the losses of this epoch so far
        self.embedded = torch.empty(0)  # the embeddings of the last batch
        self.checked = math.nan  # the last loss that was looked at
        self.not_finite = self._not_finite()  # where weights began so, on purpose
        self.rows: list[dict] = []  # the history, a row for each epoch
        self.watched: dict[str, float] = {}  # what `on_epoch` returned last
        self.random: dict[str, Tensor] = {}  # states of torch's generators to resume from
        self.view_batches = self._view_batches()
        self.settings = self._settings(how, keys)

    def fit(
        self, out: str | Path | None = None, resume: bool = True,
        on_epoch: Callable[["Trainer"], dict | None] | None = None, about: Callable[[], dict] = dict,
        before_epoch: Callable[[int], object] | None = None, keep_every: int | None = None,
    ) -> list[dict]:  # fmt: skip
        """Train the epochs that remain; afterwards encoder, head and predictor are in eval mode.

        torch's global generators are restored afterwards.

        Args:
            out: folder of the run; None writes nothing. Its checkpoint is written before training, every
                ten minutes, when training is interrupted and at the end; its history.csv after every epoch.
            resume: resume from the checkpoint in `out` if there is one, also where this Trainer was
                interrupted; False starts again and replaces it.
            on_epoch: called with the trainer, on the first process, before the first and after every epoch.
                The dict that it returns after an epoch becomes part of the history's row. Under torchrun
                what it calls, such as `features`, works on this process alone.
            about: returns plain data that each checkpoint keeps beside the trainer's state.
            before_epoch: called with the number of each epoch, from 0, before it begins, on every process.
            keep_every: also keep the checkpoint of every so many epochs, as out/epoch-10.pt and so on.

        Returns the history, a row for each epoch. Raises what `pretrain` raises; the last checkpoint stays.
        """
        out = folder("out", out)
        integer("keep_every", 1 if keep_every is None else keep_every, least=1)
        fork = torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else [])
        with fork, ExitStack() as stack:
            if out:
                self._resume(out, resume, stack)
            torch.manual_seed(self.batches.seed % 2**64)  # for dropout and the like
            torch.set_rng_state(generator_of(self.batches.seed).get_state())
            if self.random:
                torch.set_rng_state(self.random["cpu"])
                if "cuda" in self.random and self.device.type == "cuda":
                    torch.cuda.set_rng_state(self.random["cuda"], self.device)
            writer = self._writer(out, about, stack) if out else None
            stack.callback(lambda: self.random.update(self._random()))  # a second call goes on from there
            self.view_batches = self._view_batches()
            if on_epoch is not None and not self.rows and not self.step and rank() == 0:
                with distributed.alone():
                    on_epoch(self)
            stack.callback(lambda: getattr(self.view_batches, "close", int)())  # and the processes that read
            about_it = self.epochs * self.steps, self.step, self._title(), rank() == 0
            bar, signals = map(stack.enter_context, (progress.bar(*about_it), asked_to_stop()))
            while not self.finished:
                if before_epoch:
                    before_epoch(self.step // self.steps)
                for _ in self.epoch():
                    bar.update()
                    bar.set_description(self._title(), refresh=False)
                    if self.losses_checked:
                        bar.set_postfix(self.progress())
                    agree = world() == 1 or self.losses_checked  # many processes, when they wait anyway
                    stopped = agree and distributed.any_of(bool(signals), self.device)
                    copies: list[str] = []
                    if not self.within_epoch:
                        self._end_epoch(out, on_epoch)
                        if keep_every and len(self.rows) % keep_every == 0:
                            copies = [f"epoch-{len(self.rows)}.pt"]
                    if writer and (stopped or self.losses_checked):
                        self._write_if_due(writer, stopped or self.finished, *copies)
                    if stopped and not self.finished:
                        nothing = "nothing was saved, since out= was not given"
                        where = f"{out} holds it: repeat the call to go on" if out else nothing
                        total = self.epochs * self.steps
                        raise Interrupted(f"stopped after step {self.step} of {total}; {where}", *signals)
        self.model.eval()
        return self.rows

    def _resume(self, out: Path, resume: bool, stack: ExitStack) -> None:
        """Lock the folder until the stack closes, and load its checkpoint, if there is one to resume from."""
        distributed.from_first(lambda: stack.enter_context(checkpoint.locked(out)))
        if stored := distributed.from_first(lambda: checkpoint.stored(out) if resume else None):
            self.load_state_dict(stored, str(out))

    def _writer(self, out: Path, about: Callable[[], dict], stack: ExitStack) -> checkpoint.Writer | None:
        """The writer of checkpoints, on the first process, which has written one."""
        writer = checkpoint.Writer(out, lambda: about() | self.state_dict())
        stack.callback(writer.thread.shutdown)
        distributed.from_first(lambda: writer.prepare(self.rows))
        return writer if rank() == 0 else None

    def _title(self) -> str:
        return f"{self.loss._get_name()}, epoch {min(1 + self.step // self.steps, self.epochs)}/{self.epochs}"

    def _end_epoch(self, out: Path | None, on_epoch: Callable[["Trainer"], dict | None] | None) -> None:
        """Add the epoch's row to the history, with what `on_epoch` returns."""
        row = self.close_epoch()
        if rank():
            return
        with distributed.alone():
            more = (on_epoch(self) if on_epoch is not None else None) or {}
        watched = {key: float(value) for key, value in more.items()}
        row.update(watched)
        self.watched = watched or self.watched
        if out:
            checkpoint.write_history(out, self.rows)
        if progress.logged():
            progress.tell(row, self.epochs)

    def _write_if_due(self, writer: checkpoint.Writer, last: bool, *copies: str) -> None:
        """Begin a checkpoint if it is the `last`, if ten minutes have passed, or for `copies`.

        `copies`: names of more files with it, which stay. Waits for the last one.
        """
        if last or copies or time.monotonic() - writer.begun >= CHECKPOINT_SECONDS:
            self.refuse_bad_weights()
            writer.write(*copies)
        if last:
            writer.wait()

    def state_dict(self) -> dict:
        """All that is needed to resume, as plain data and tensors."""
        values = torch.stack(self.values).cpu() if self.values else torch.empty(0)
        return {
            "history": [dict(row) for row in self.rows], "draws": views.DRAWS,
            "precision": self.precision.name, "compiled": self.compiled,
            "step": self.step, "values": values, "seconds": self.seconds, "data": self.digest,
            "not_finite": sorted(self.not_finite), "targets": self.task.state(),
            "random": self._random(), "settings": self.settings,
            **{name: part.state_dict() for name, part in self._parts().items()},
        }  # fmt: skip

    def _random(self) -> dict[str, Tensor]:
        """The states of torch's generators."""
        cuda = {"cuda": torch.cuda.get_rng_state(self.device)} if self.device.type == "cuda" else {}
        return {"cpu": torch.get_rng_state(), **cuda}

    def _settings(self, how: Batching, keys: Keys | None) -> dict[str, str]:
        """What a run goes on with, in words, as it was before the training."""
        given = {
            "loss": self.loss, "views": getattr(self.source, "views", None), "labels": self.labels,
            "batch": how, "seed": self.batches.seed, "epochs": self.epochs, "lr_schedule": self.lr_schedule,
            "keys": keys and (keys.momentum, keys.schedule, keys.queue),
            "optimiser": type(self.optimiser).__name__,
        }  # fmt: skip
        if self.lr_schedule.shape == "constant" and (not keys or keys.schedule == "constant"):
            del given["epochs"]  # a run may go on for longer
        for i, group in enumerate(self.optimiser.param_groups):
            given |= {f"{k}{f' of group {i}' * bool(i)}": x for k, x in group.items() if k not in NO_SETTINGS}
        return {name: re.sub(FORGOTTEN, "", repr(x)) for name, x in given.items()}

    def _parts(self) -> dict[str, Any]:
        """What has a state of its own, by name."""
        parts = {name: getattr(self, name) for name in (*checkpoint.MODULES, "optimiser")}
        parts["scaler"] = self.precision.scaler
        return parts | ({"keys": self.momentum_encoder} if self.momentum_encoder else {})

    def _not_finite(self) -> set[str]:
        """Where weights and buffers hold NaN or inf."""
        return set(checkpoint.not_finite({name: part.state_dict() for name, part in self._parts().items()}))

    def load_state_dict(self, state: dict, where: str = "the checkpoint", fewer: bool = False) -> None:
        """Load what `state_dict` gave, to resume from it. `where` names the state in errors.

        `fewer`: the data may have lost some things since; the run then goes on from its last whole epoch.

        Raises ValueError if it lacks the optimiser, or is of other data, random views, precision or model.
        """
        if fewer and int(state.get("data", "0").split()[0]) > len(self.source):  # how many there were
            done = len(state["history"]) * self.steps
            state = {**state, "data": self.digest, "step": done, "values": torch.empty(0)}
        self._refuse_other_run(state, where)
        checkpoint.load(self._parts(), state, where)
        for weight, moments in self.optimiser.state.items():
            for key, x in moments.items():
                # Fused steps go through memory in order, so the state needs the weight's memory format.
                if isinstance(x, Tensor) and x.shape == weight.shape:
                    moments[key] = torch.empty_like(weight, dtype=x.dtype).copy_(x)
        self.step, self.rows = state["step"], [dict(row) for row in state["history"]]
        self.values = list(state["values"].to(self.device).unbind())
        self.seconds, self.random = state["seconds"], state["random"]
        if self.values:
            self.task.restore(state["targets"])

    def _refuse_other_run(self, state: dict, where: str) -> None:
        """Raises ValueError if a state lacks parts, or has other data, random views, precision or batches."""
        done, within = len(state["history"]), len(state.get("values", ()))
        position = divmod(state.get("step", 0), self.steps)
        draws, data = state.get("draws", 1), state.get("data", self.digest)
        used, now = state.get("precision", "float32"), self.precision.name
        has = f"it has {done} epochs and {within} steps, and should have {position}"
        there = state.get("settings", self.settings)
        both = {k: (there[k], x) for k, x in self.settings.items() if k in there and there[k] != x}
        changed = "; ".join(f"{k} {before} there, {now} now" for k, (before, now) in both.items())
        for other, complaint in (
            ("optimiser" not in state,
             "was saved without its optimiser, or by one of the first versions; take a whole one"),
            (data != self.digest, f"was trained on {data}, and these are {self.digest}; restore "
             "the data, or skip_damaged=True goes on without what is gone"),
            (done < self.epochs and draws != views.DRAWS,
             f"was begun with version {draws} of the random views; finish it with the older setclr"),
            (used != now, f"was trained in {used}, not {now}; take precision={used!r}"),
            (changed, f"has other settings ({changed}); take those"),
            ((done, within) != position, f"was trained in other batches, or is damaged: {has}"),
        ):  # fmt: skip
            if other:
                raise ValueError(f"{where}: {complaint}, or remove it to start again")

    def epoch(self) -> Iterator[None]:
        """Train to the end of the epoch; yields after every step. Losses and weights must stay finite."""
        epoch = self.step // self.steps
        before, started = self.seconds, time.perf_counter()
        self.order = self.batches.of_epoch(epoch)
        self.task.begin(epoch, self.step % self.steps == 0)
        self.model.train()
        while self.step < (epoch + 1) * self.steps:
            own = seeded_globals(self.batches.seed, self.step, rank(), torch_too=False)  # for the encoder
            with devices.settings(self.precision, self.deterministic), own:
                if not self.compile_tried:
                    self._compile()
                self.values.append(self.update(next(self.view_batches)))
            if self.losses_checked:
                self.refuse_bad_losses()  # this waits for the device, so that the time below is complete
            self.seconds = before + time.perf_counter() - started
            if not self.within_epoch:
                self.refuse_bad_weights()
            yield

    @property
    def finished(self) -> bool:
        return len(self.rows) >= self.epochs

    @property
    def losses_checked(self) -> bool:
        """Whether the losses are checked after this step: after every tenth, and an epoch's last."""
        return len(self.values) % CHECK_EVERY == 0 or len(self.values) == self.steps

    @property
    def within_epoch(self) -> bool:
        return 0 < len(self.values) < self.steps

    def close_epoch(self) -> dict:
        """Add the epoch's row to the history, and return it."""
        row = {"epoch": self.step // self.steps, "loss": float(torch.stack(self.values).mean())}
        row |= {"lr": self.optimiser.param_groups[0]["lr"], "seconds": round(self.seconds, 3)}
        row[f"{self.things}_per_s"] = round(self.batches.images / self.seconds)
        row |= progress.spread(self.embedded)
        row |= learnt_numbers(self.loss)
        self.rows.append(row)
        self.values, self.seconds = [], 0.0
        return row

    def update(self, x: list[Group]) -> Tensor:
        """Take one step of the optimiser on the views `x` of this process's share; returns the loss."""
        factor = self.lr_schedule.factor(self.step, self.steps, self.epochs)
        for group in self.optimiser.param_groups:
            group["lr"] = group["initial_lr"] * factor
        self.optimiser.zero_grad()
        loss, more = self._backward(x)
        # These are equal on all processes but for rounding, which must not accumulate.
        distributed.average_gradients(self.loss)
        self.precision.step(self.optimiser)
        if self.momentum_encoder:
            progress = self.step / (self.epochs * self.steps)
            self.momentum_encoder.advance(more["keys"], progress, more.get("labels"))
        self.step += 1
        return loss

    def _backward(self, x: list[Group]) -> tuple[Tensor, dict[str, Tensor]]:
        """Add the gradients of the loss of the views `x`; the loss, and its arguments beside embeddings."""
        x = self.task.prepare(x)
        more = self.momentum_encoder.candidates(x, self.labels) if self.momentum_encoder else {}
        more |= self.task.arguments_at(self.order[self.step % self.steps])
        return self.grad_cache.backward(x, lambda z: self.objective(z, **more)), more

    def objective(self, z: Tensor, **more: Tensor) -> Tensor:
        """The loss of the whole batch: of this process's embeddings z (V, n, E) and those of all others."""
        if self.device.type == "cpu" and not z.isfinite().all():  # a compiled loss cannot check this
            raise FloatingPointError(DIVERGED.format("embeddings", "NaN or inf", self.step))
        self.embedded = z.detach()
        return self.loss(distributed.gather_alike(z), **more)

    def _view_batches(self) -> Iterator[list[Group]]:
        steps = self.batches.steps(self.step, self.epochs)  # from where a run goes on, if it was resumed
        yield from self.source.batches(steps, self.device, self.workers, self.compiled)

    def _compile(self) -> None:
        """Compile by a trial of the next step, whose results are discarded; or warn and go on without."""
        self.compile_tried = True
        parts = [*self.grad_cache.parts]
        if self.momentum_encoder:
            parts += self.momentum_encoder.grad_cache.parts
        if not self.loss.reads_values:
            parts.append(self.loss)
        buffers = unchanged_buffers(nn.ModuleList(parts))
        with torch.random.fork_rng(), seeded_globals(self.batches.seed), buffers:
            self.compiled = devices.compile_all(parts, lambda: self._backward(next(self.view_batches)))
        self.view_batches = self._view_batches()

    def refuse_bad_losses(self) -> None:
        """Raises FloatingPointError if one of the last ten losses is NaN or inf."""
        recent = torch.stack(self.values[-CHECK_EVERY:]).tolist()
        for step, value in enumerate(recent, self.step - len(recent)):
            if not math.isfinite(value):
                raise FloatingPointError(DIVERGED.format("loss", value, step))
        self.checked = recent[-1]

    def refuse_bad_weights(self) -> None:
        """Raises FloatingPointError if a weight or a buffer holds NaN or inf that began finite."""
        if self._not_finite() - self.not_finite:
            raise FloatingPointError(DIVERGED.format("weights", "NaN or inf", self.step - 1))

    def progress(self) -> dict[str, str]:
        """The numbers of a progress bar: the last loss checked, and what `on_epoch` returned last."""
        shown = {"loss": f"{self.checked:.3f}"}
        return shown | {name: f"{value:.1f}" for name, value in self.watched.items()}
