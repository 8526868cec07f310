"""All epochs of a training: with checkpoints, callbacks and interruptions, in one go or continued."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from tqdm.auto import tqdm

from setclr.training import checkpoint
from setclr.training.distributed import any_of, from_first, rank, tensors_from_first, world
from setclr.training.interruption import Interrupted, Interruption
from setclr.training.locking import alone
from setclr.training.metrics import CSV, Metric
from setclr.training.resuming import restore, state_of

if TYPE_CHECKING:
    from setclr.training.trainer import Trainer

CHECKPOINT_SECONDS = 600.0
OnEpoch = Callable[["Trainer"], dict | None]


def fit(
    trainer: "Trainer", out: str | Path | None = None, resume: bool = True,
    on_epoch: OnEpoch | None = None, metrics: Sequence[Metric] = (),
) -> list[dict]:  # fmt: skip
    """Train for the epochs that are lacking; afterwards encoder, head and predictor are in eval mode.

    The global random state is left as it was.

    Args:
        out: folder of the run; None writes nothing. Its checkpoint is written before training, every ten
            minutes, when training is interrupted and at the end, its history.csv after every epoch.
        resume: go on from the checkpoint in `out`, if there is one; False starts again and replaces it.
        on_epoch: called with the trainer, on the first process, before the first and after every epoch. The
            dict that it returns after an epoch becomes part of the history's row. Under torchrun it must not
            call what needs all processes, such as `features` without shared=False.
        metrics: called on the first process after every epoch with the history (`training.metrics`).

    Returns the history, a row for each epoch. Raises what `pretrain` says; after any error the last
    checkpoint stays.
    """
    out = None if out is None else Path(out)
    with own_generators(trainer), ExitStack() as stack:
        if out:
            from_first(lambda: stack.enter_context(alone(out)))
        if out and resume and not trainer.step:
            found = tensors_from_first(lambda: stored(out))
            if found:
                restore(trainer, found, str(out))
        start_generators(trainer)
        writer = stack.enter_context(checkpoint.Writer(out)) if out else None
        if out:
            from_first(lambda: prepare(trainer, out))
        if out:
            metrics = [CSV(out), *metrics]
        if on_epoch is not None and not trainer.rows and not trainer.step and rank() == 0:
            on_epoch(trainer)
        stack.callback(trainer.view_batches.close)  # and with it the processes that read photographs
        run(trainer, writer, on_epoch, metrics)
    trainer.model.eval()
    return trainer.rows


def run(
    trainer: "Trainer", writer: checkpoint.Writer | None, on_epoch: OnEpoch | None, metrics: Sequence[Metric]
) -> None:
    """The epochs that are lacking, with a checkpoint every ten minutes and at the end."""
    total, name = trainer.epochs * trainer.steps, type(trainer.loss).__name__
    silent = {"disable": True} if rank() else {}  # left out otherwise, so that TQDM_DISABLE works
    bar = tqdm(total=total, initial=trainer.step, desc=name, unit="step", **silent)
    with Interruption() as stop, bar:
        while not trainer.finished:
            for _ in trainer.epoch():
                bar.update()
                if trainer.losses_checked:
                    bar.set_postfix(trainer.progress())
                if trainer.within_epoch and stopped(trainer, stop):
                    break
                if trainer.within_epoch and trainer.losses_checked:
                    write_if_due(trainer, writer)
            else:
                row = trainer.close_epoch()
                if rank() == 0:
                    more = None if on_epoch is None else on_epoch(trainer)
                    row.update({key: float(value) for key, value in (more or {}).items()})
                    for metric in metrics:
                        metric(trainer.rows)
                write_if_due(trainer, writer, last=trainer.finished)
            if trainer.within_epoch or (stopped(trainer, stop) and not trainer.finished):
                write_if_due(trainer, writer, last=True)
                held = f"{writer.out} holds it: repeat the call to go on" if writer else ""
                said = f"stopped after step {trainer.step} of {total}"
                raise Interrupted(f"{said}; {held or 'nothing is kept without out='}", stop.asked)


def stopped(trainer: "Trainer", stop: Interruption) -> bool:
    """Whether all processes are to stop after this step; many agree on it only where losses are read."""
    agree = world() == 1 or trainer.losses_checked
    return agree and any_of(stop.asked is not None, trainer.device)


def write_if_due(trainer: "Trainer", writer: checkpoint.Writer | None, last: bool = False) -> None:
    """Begin a checkpoint if ten minutes have passed since the one before; wait for it if it is the last."""
    if not writer or rank():
        return
    writer.check()
    if last or time.monotonic() - writer.begun > CHECKPOINT_SECONDS:
        trainer.refuse_bad_weights()
        writer.write(state_of(trainer))
    if last:
        writer.wait()


def stored(out: Path) -> dict | None:
    return checkpoint.read(out) if (out / checkpoint.CHECKPOINT).exists() else None


def prepare(trainer: "Trainer", out: Path) -> None:
    """Write the first checkpoint, so that errors in writing appear before any training."""
    checkpoint.tidy(out)
    weights = sum(p.nbytes for p in trainer.model.parameters())
    needed = 6 * weights + 10_000_000  # weights and Adam's two moments, the old file and the new
    free = shutil.disk_usage(out).free
    if free < needed:
        raise OSError(f"{out}: {free / 1e6:.0f} MB are free and a run needs {needed / 1e6:.0f}; make room")
    checkpoint.write_history(out, trainer.rows)
    checkpoint.write(out, state_of(trainer))


@contextmanager
def own_generators(trainer: "Trainer") -> Iterator[None]:
    """torch's global generators are put back at the end."""
    with torch.random.fork_rng(devices=[trainer.device] if trainer.device.type == "cuda" else []):
        yield


def start_generators(trainer: "Trainer") -> None:
    """Seed torch's global generators, for dropout and the like, or set them as a checkpoint left them."""
    torch.manual_seed(trainer.batches.seed)
    if trainer.random:
        torch.set_rng_state(trainer.random["cpu"])
        if "cuda" in trainer.random and trainer.device.type == "cuda":
            torch.cuda.set_rng_state(trainer.random["cuda"], trainer.device)
