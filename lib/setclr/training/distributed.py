"""What a loss that couples the whole batch needs from many processes: everyone's embeddings, with the right
gradient.

Every process embeds its own images, gathers the embeddings of all, and computes the same loss on all of them.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable


def rank() -> int:
    """The number of this process; 0 when there is one."""
    return dist.get_rank() if _many() else 0


def world() -> int:
    """How many processes train together."""
    return dist.get_world_size() if _many() else 1


def gather(z: Tensor) -> Tensor:
    """z (V, n, E) on each of W processes → (V, W·n, E) in rank order; the identity when there is one process.

    The gradient of a process's z is the sum over all processes of their gradient with respect to it. Since
    every process
    computes the same loss, that is W times the gradient of the loss: DistributedDataParallel's mean over
    processes divides it by W again.
    """
    return _Gather.apply(z) if world() > 1 else z


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z: Tensor) -> Tensor:
        z = z.contiguous()
        parts = [torch.empty_like(z) for _ in range(world())]
        dist.all_gather(parts, z)
        return torch.cat(parts, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor) -> Tensor:
        grad = grad.clone(memory_format=torch.contiguous_format)  # all_reduce works in place
        dist.all_reduce(grad)
        return grad.chunk(world(), dim=1)[rank()]


def _many() -> bool:
    return dist.is_available() and dist.is_initialized()
