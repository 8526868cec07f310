"""Costs of losses and training steps: operations, bytes kept for the backward pass, seconds.

Counts and bytes are the same on every machine, except for solvers that iterate to a tolerance, where
rounding may add an iteration. Seconds hold for this machine at this moment.
"""

import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from setclr import models
from setclr.data import ImageSet
from setclr.experiments.run import new_run
from setclr.recipes.image import ImageRecipe
from setclr.training.grad_cache import Group
from setclr.training.trainer import Trainer

Losses = dict[str, Callable[[Tensor], Tensor]]
Runs = dict[str, dict[int, list[float]]]  # by name of the loss and batch size N, the seconds of every run
NOTHING_WRITTEN = ("_unsafe_view", "empty", "promote_types")  # operations that write no numbers
FACTORISATIONS = ("eigh", "cholesky", "ldl_factor", "lu_factor", "linalg_solve_ex", "inv_ex")


class Middle(NamedTuple):
    """Quartiles and median of many runs; half of the runs lie between `low` and `high`."""

    low: float  # lower quartile
    median: float
    high: float  # upper quartile


class Work(NamedTuple):
    flops: int  # additions and multiplications in matrix products and convolutions
    numbers: int  # numbers that any operation wrote
    side: int  # of the largest matrix that was factorised or decomposed into eigenvalues; 0 if none was


class _Watch(TorchDispatchMode):
    """Counts launches, written numbers and the side of the largest factorised matrix of operations inside."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = self.numbers = self.side = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        outputs = result if isinstance(result, (tuple, list)) else [result]
        if not (function.is_view or any(word in str(function) for word in NOTHING_WRITTEN)):
            written = [x for x in outputs if isinstance(x, Tensor)]
            self.launches += any(x.device.type != "cpu" for x in written)
            self.numbers += sum(x.numel() for x in written)
        if any(word in str(function) for word in FACTORISATIONS):
            self.side = max(self.side, args[0].shape[-1])
        return result


def work(call: Callable[[], object]) -> Work:
    """Count the operations of `call()`, with its backward pass if it runs one."""
    with FlopCounterMode(display=False) as products, _Watch() as watch:
        call()
    return Work(products.get_total_flops(), watch.numbers, watch.side)


def launches(call: Callable[[], object]) -> int:
    """The number of operations that `call()` starts on a device other than the CPU, without views.

    On a GPU each waits some microseconds for its turn. Tensors on the meta device give the same count
    without any computation.
    """
    with _Watch() as watch:
        call()
    return watch.launches


class Kept(saved_tensors_hooks):
    """A context that counts the bytes that autograd keeps for the backward pass: `now`, and at their `peak`.

    Storage that several operations keep is counted once. Parameters that operations keep are counted,
    too.
    """

    def __init__(self) -> None:
        self.now = self.peak = 0
        self.holders: Counter[int] = Counter()
        super().__init__(self._pack, lambda held: held.tensor)

    def __enter__(self) -> "Kept":  # type: ignore[override]  # torch's returns None
        super().__enter__()
        return self

    def _pack(self, tensor: Tensor) -> "_Held":
        held, storage = _Held(tensor.detach()), tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        self.now += size if self.holders[key] == 0 else 0
        self.holders[key] += 1
        self.peak = max(self.peak, self.now)
        weakref.finalize(held, self._release, key, size)
        return held

    def _release(self, key: int, size: int) -> None:
        self.holders[key] -= 1
        self.now -= size if self.holders[key] == 0 else 0


@dataclass(eq=False)
class _Held:
    tensor: Tensor


def kept_bytes(loss: Callable[[Tensor], Tensor], z: Tensor) -> int:
    """The bytes that loss(z) keeps for its backward pass, with z itself where it is kept."""
    with Kept() as kept:
        loss(z.detach().requires_grad_())
    return kept.peak


def points(N: int, dimensions: int) -> Tensor:
    """Random points (2, N, dimensions), as embeddings of two views of N images; they require a gradient."""
    return torch.randn(2, N, dimensions, generator=torch.Generator().manual_seed(N)).requires_grad_()


def seconds(
    losses: Losses, sizes: Iterable[int], dimensions: int = 128, budget: float = 0.5, least: int = 5
) -> Runs:
    """Seconds of forward and backward passes, as {name: {N: [seconds of every run]}}.

    The losses take turns. Each loss takes about `budget` seconds at each size, with `least` to 50 runs.
    A first run comes before these and does not count.
    """
    table: Runs = {name: {} for name in losses}
    for N in sizes:
        z = points(N, dimensions)
        repeat = {name: int(np.clip(budget / timed(loss, z), least, 50)) for name, loss in losses.items()}
        taken = defaultdict(list)
        for k in range(max(repeat.values())):
            for name in losses:
                if k < repeat[name]:
                    taken[name].append(timed(losses[name], z))
        for name in losses:
            table[name][N] = taken[name]
    return table


def middle(runs: Iterable[float]) -> Middle:
    """Quartiles and median of the seconds of many runs, or of numbers computed from them."""
    return Middle(*(float(q) for q in np.quantile(list(runs), (0.25, 0.5, 0.75))))


def timed(loss: Callable[[Tensor], Tensor], z: Tensor) -> float:
    """Seconds of loss(z) together with its gradient at z."""
    start = _now(z.device)
    torch.autograd.grad(loss(z), z)
    return _now(z.device) - start


def parts_of_a_step(
    recipe: ImageRecipe, losses: Losses, steps: int = 5, device: str = "cpu"
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds of the parts of training steps on noise of 32 px, and of each loss on the steps' embeddings.

    Returns two dicts, by part and by loss, of lists with a number for each step. The recipe's own loss
    trains; `losses` are only timed, in turns. Two more steps come first and do not count.
    """
    where = torch.device(device)
    trainer = noise_trainer(recipe, steps + 2, where)
    took, clock = defaultdict(list), [0.0]

    def mark(part: str) -> None:
        now = _now(where)
        took[part].append(now - clock[0])
        clock[0] = now

    def timed_losses(z: Tensor) -> Tensor:
        mark("encoder forward")
        leaf = z.detach().requires_grad_()
        for name, loss in losses.items():
            took[name].append(timed(loss, leaf))
        (gradient,) = torch.autograd.grad(trainer.loss(leaf), leaf)
        clock[0] = _now(where)
        return (z * gradient).sum()

    def timed_views(view_batches: Iterator[list[Group]]) -> Iterator[list[Group]]:
        clock[0] = _now(where)
        for made in view_batches:
            mark("views")
            yield made
            clock[0] = _now(where)

    # The Trainer's own steps, with a look at the clock between their parts.
    trainer.optimiser.register_step_pre_hook(lambda *_: mark("encoder backward"))
    trainer.optimiser.register_step_post_hook(lambda *_: mark("optimiser"))
    trainer.view_batches = timed_views(trainer.view_batches)
    with mock.patch.object(trainer, "objective", timed_losses):
        for _ in trainer.epoch():
            pass
    order = ("views", "encoder forward", "encoder backward", "optimiser")
    return {part: took[part][2:] for part in order}, {name: took[name][2:] for name in losses}


def noise_trainer(recipe: ImageRecipe, steps: int, device: torch.device, compiled: bool = False) -> Trainer:
    """A trainer with `steps` steps an epoch on noise of 32 px, to measure costs."""
    images = torch.randint(0, 256, (recipe.batch * steps, 3, 32, 32), dtype=torch.uint8)
    run = new_run(recipe, channels=3)
    nn.ModuleList([run.encoder, run.head]).to(device)
    noise = ImageSet(images, torch.zeros(len(images), dtype=torch.long), ("noise",))
    return run.trainer(noise, device, compiled=compiled)


def encoder_cost(name: str, batch: int, views: int = 2, side: int = 32) -> tuple[int, int]:
    """Flops of a forward and backward pass of that encoder, and bytes kept between the two.

    It runs on the meta device, so any size is cheap.
    """
    encoder = models.encoder(name)[0].to("meta")
    x = torch.empty(views * batch, 3, side, side, device="meta")
    with FlopCounterMode(display=False) as products, Kept() as kept:
        encoder(x).sum().backward()
    return products.get_total_flops(), kept.peak


def this_machine() -> str:
    """A description of the machine, for the title of a table of times."""
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread" + "s" * (threads > 1)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
