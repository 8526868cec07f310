"""Training on many processes, with torch alone.

Each process embeds its own images, gathers all embeddings with the right gradient, and computes the same
loss. Batch statistics and decisions are common to all processes.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from setclr.inner.derivatives import once
from setclr.losses.base import SetLoss
from setclr.losses.checking import joined_views

Value = TypeVar("Value")
ALONE = ContextVar("alone", default=False)


def rank() -> int:
    """The number of this process, from 0; 0 if there is only one."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def world() -> int:
    """The number of processes that train together; 1 where this one works `alone`."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() and not ALONE.get() else 1


@contextmanager
def alone() -> Iterator[None]:
    """What the first process does inside, the others do not: nothing in it waits for them."""
    before = ALONE.set(True)
    try:
        yield
    finally:
        ALONE.reset(before)


@contextmanager
def joined(device: str | None = None) -> Iterator[str | None]:
    """Join the processes if torchrun started several; gives the name of this process's device.

    On GPUs the backend is NCCL, with one GPU for each process; on CPUs it is gloo. `device` chooses;
    None takes GPUs if there are any.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield device
        return
    on_gpu = torch.cuda.is_available() if device is None else device.startswith("cuda")
    if on_gpu:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    backend, timeout = "nccl" if on_gpu else "gloo", timedelta(minutes=30)
    dist.init_process_group(backend, timeout=timeout, **_meeting_place(timeout))
    try:
        yield device
    finally:
        gc.collect()  # a DistributedDataParallel that outlives its group can abort the interpreter at exit
        dist.destroy_process_group()


def _meeting_place(timeout: timedelta) -> dict[str, Any]:
    """How init_process_group finds the other processes: in torchrun's store, by a name drawn for these alone.

    torchrun keeps one store while it restarts the processes, with the addresses of those that died, which a
    new process may take for those of its peers (https://github.com/pytorch/pytorch/issues/135712). So each
    process asks with a word of its own, and the first answers until it hears that all have the name.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return {}
    me, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store, name = dist.TCPStore(*address, is_master=False, timeout=timeout), uuid4().hex
    if me:
        store.set(f"asks/{me}", word := uuid4().hex)
        name = store.get(word).decode()
        store.set(f"{name}/{me}", "")
    for other in range(1, 1 if me else size):
        while not store.check([f"{name}/{other}"]):
            store.set(store.get(f"asks/{other}").decode(), name)  # a dead process may have asked
            time.sleep(0.01)
    return {"store": dist.PrefixStore(name, store), "rank": me, "world_size": size}


def from_first(make: Callable[[], Value]) -> Value:
    """Call `make` on the first process; every process returns its result, or raises its exception."""
    if world() == 1:
        return make()
    outcome: list[Any] = [None, None]  # the value, the exception
    if rank() == 0:
        try:
            outcome[0] = make()
        except Exception as error:
            outcome[1] = error
    dist.broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def refuse_different(
    name: str, value: object, wanted: str = "be the same", remedy: str = "give all the same files"
) -> None:
    """Raises ValueError, on every process, unless all have the same plain `value`. All must call it."""
    values = [value] * world()
    if world() > 1:
        dist.all_gather_object(values, value)
    if different := [i for i, other in enumerate(values) if other != values[0]]:
        got = f"{values[0]} on process 0 and {values[different[0]]} on process {different[0]}"
        raise ValueError(f"{name} must {wanted} on all processes, got {got}; {remedy}")


def any_of(asked: bool, device: torch.device) -> bool:
    """Whether `asked` is True on any process. All processes must call it; it makes a GPU wait."""
    if world() == 1:
        return asked
    flag = torch.tensor(int(asked), device=device)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)


def gather(z: Tensor) -> Tensor:
    """z (V, n, E) on each of W processes → (V, W·n, E) in rank order; with one process, z itself.

    In your own loop with DistributedDataParallel, each process embeds V views of its n images:

        model = DistributedDataParallel(encoder)
        z = model(views.flatten(0, 1)).unflatten(0, (V, n))  # views (V, n, C, H, W) of this process's images
        InfoNCE(temperature=0.2)(gather(z)).backward()

    The gradient of z is the sum of all processes' gradients: W times that of the loss. The mean over
    processes of DistributedDataParallel divides it by W again; a loop without that mean must do so
    itself. Parameters of the loss get the gradient of the whole batch on every process. Raises ValueError
    on all of them if z has another shape on one, as a last, smaller batch may.
    `gather(labels[None, :, None]).flatten()` gathers labels (n,).

    It is written by hand, since torch 2.15 deprecates its own function
    (torch.distributed.nn.functional.all_gather) in favour of a private one. Cost: two all-gathers
    forwards, of the shapes (a GPU waits for it) and of z; an all-reduce of (V, W·n, E) backwards.

    >>> import torch
    >>> from setclr import InfoNCE, gather
    >>> z = torch.randn(2, 8, 16)  # of this process's images
    >>> InfoNCE(0.2)(gather(z)).shape  # of all processes'; here there is one
    torch.Size([])
    """
    refuse_different("z", tuple(z.shape), "have one shape", "a loader needs drop_last=True")
    return z if world() == 1 else _gathered(z, _Sum.apply)


class DistributedLoss(nn.Module):
    """A loss of the batch of all processes: it gathers, then every process computes the same number.

    Wrap the loss, not the model; the model is in DistributedDataParallel. With one process nothing changes.
    The gradient is as `gather` says.

    >>> import torch
    >>> from setclr import DistributedLoss, InfoNCE
    >>> DistributedLoss(InfoNCE(0.2))(torch.randn(2, 8, 16)).shape
    torch.Size([])

    Raises ValueError if `loss` is no loss on embeddings, and what the loss raises.
    """

    def __init__(self, loss: SetLoss) -> None:
        super().__init__()
        if not isinstance(loss, SetLoss):
            raise ValueError(f"loss must be a loss on embeddings, such as InfoNCE(0.2), got {loss!r}")
        self.loss = loss

    def forward(
        self, z: Tensor, other: Tensor | None = None, memory: Tensor | None = None,
        labels: Tensor | None = None, weight: Tensor | None = None, keys: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """As the loss, of this process's images; `memory` is the same on all processes."""
        z, keys = joined_views(z, other, keys, labels is not None)
        keys = None if keys is None else gather(keys)
        each = {"labels": labels, "weight": weight}
        every = {name: None if x is None else gather(x[None, :, None]).flatten() for name, x in each.items()}
        return self.loss(gather(z), keys=keys, memory=memory, **every)


def gather_alike(z: Tensor) -> Tensor:
    """`gather` for a loop in which every process computes the same loss of the result, as the Trainer does.

    The gradients of all processes are then equal, and their sum is W times that of this process. The
    backward pass needs no communication.
    """
    if world() == 1:
        return z
    z = once(z, "gather_alike sums over no other process; take gather")
    return _gathered(z, lambda grad: world() * grad)


def _gathered(z: Tensor, summed: Callable[[Tensor], Tensor]) -> Tensor:
    """All processes' parts. `summed`: what makes of this process's gradient of them the sum of all."""
    parts = [torch.empty_like(z, memory_format=torch.contiguous_format) for _ in range(world())]
    dist.all_gather(parts, z.detach().contiguous())
    parts[rank()] = z  # the one part with a gradient
    whole = torch.cat(parts, dim=1)
    if whole.requires_grad:
        whole.register_hook(summed)
    return whole


def synchronised(model: nn.Module, device: torch.device) -> nn.Module:
    """The model with batch norms that see all processes' images, changed in place.

    With one process nothing changes. torch's SyncBatchNorm works on CUDA alone; other devices get the
    class below.
    """
    if world() == 1:
        return model
    if device.type == "cuda":
        return nn.SyncBatchNorm.convert_sync_batchnorm(model)
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.__class__ = SyncBatchNorm
    return model


class SyncBatchNorm(_BatchNorm):
    """Batch norm by the mean and variance of the whole batch, of which every process holds a part."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        dtype, x = x.dtype, x.to(torch.promote_types(x.dtype, torch.float32))
        over = [dim for dim in range(x.ndim) if dim != 1]
        shape = [-1 if dim == 1 else 1 for dim in range(x.ndim)]
        # Parts differ in size where graphs do. Counts are exact in float32 up to 2**24.
        mine = x.new_full((1,), x.numel() // x.shape[1])
        *total, count = _Sum.apply(torch.cat([x.sum(over), mine])).split([x.shape[1], 1])
        mean = total[0] / count
        centred = x - mean.view(shape)
        variance = _Sum.apply(centred.square().sum(over)) / count
        if self.track_running_stats:
            assert self.num_batches_tracked is not None
            assert self.running_mean is not None and self.running_var is not None
            self.num_batches_tracked.add_(1)
            new = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean.detach(), new)
            self.running_var.lerp_(variance.detach() * count / (count - 1), new)
        x = centred * (variance + self.eps).rsqrt().view(shape)
        return (x * self.weight.view(shape) + self.bias.view(shape) if self.affine else x).to(dtype)

    def _check_input_dim(self, x: Tensor) -> None:
        """Accept any rank ≥ 2."""


class _Sum(torch.autograd.Function):
    """The sum over all processes.

    Its gradient is a sum over all processes, too, since every process's result depends on each part.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)  # all_reduce works in place
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _Sum.apply(grad)


def average_gradients(module: nn.Module) -> None:
    """Replace the gradients of a module outside DistributedDataParallel by their mean over processes."""
    for parameter in module.parameters():
        if world() > 1 and parameter.grad is not None:
            parameter.grad = _Sum.apply(parameter.grad) / world()
